/** Chooses measures, times and categories as a person would: no IDs, codes, years or coordinates as measures. */
import { isNaming, words } from "../../format/naming";
import { familyOf } from "../../format/values";
import type { ChartChoice, Dimension, Grain, Kind } from "./choice";
import type { ColumnProfile, Profile } from "./profile";

const DAY_MS = 86_400_000;
const SUMMED = new Set(
  (
    "amount amounts price revenue total totals sales cost costs fare qty quantity units bytes volume value tip tips tax fee fees " +
    "income turnover profit spend budget balance pieces items count clicks views orders betrag umsatz menge preis summe anzahl"
  ).split(" "),
);
const AVERAGED = new Set(
  (
    "rate ratio percent percentage pct share discount avg average mean median score rating age temp temperature humidity pressure " +
    "speed delay duration latency weight height width length depth index level"
  ).split(" "),
);
const CODES = new Set(
  "blz bic iban code codes plz zip ags fips naics isin wkn lat lon lng latitude longitude easting northing uuid guid hash version".split(
    " ",
  ),
);
const LATER_TIMES = new Set(
  "birth birthday dob updated modified changed loaded ingested imported expires due".split(" "),
);
const USUAL_CATEGORIES = new Set(
  "region country state category type status channel product segment carrier shop store vendor department kind origin".split(
    " ",
  ),
);
/** Fewer rows don't show whether a column is an ID. */
const ROWS_MIN = 50;
/** Numbers of equal length with at least this many digits are codes. */
const CODE_DIGITS = 5;
const CATEGORIES_MAX = 60;
/** Categories that a chart shows; the others are grouped. */
export const TOP = 10;
/** Series with distinct colours; the others are grouped in one more colour. */
export const SERIES = 7;
const BINS = 20;

const isWhole = (type: string): boolean => /^u?(?:int|tinyint|smallint|integer|bigint|hugeint)/i.test(type);
const has = (name: string, known: Set<string>): boolean => words(name).some((word) => known.has(word));
const digits = (value: number): number => String(Math.abs(value)).length;

function looksLikeId({ name, type, distinct, min, max }: ColumnProfile, rows: number): boolean {
  if (!isWhole(type) || has(name, SUMMED) || min === undefined || max === undefined || rows < ROWS_MIN) return false;
  if (distinct >= rows * 0.95 && min >= 0) return true;
  return min > 0 && digits(min) >= CODE_DIGITS && digits(min) === digits(max);
}

/** How well a column serves as a measure; undefined if it can't be one. */
export function measureScore(column: ColumnProfile, rows: number): number | undefined {
  const { name, type, distinct, min, max } = column;
  if (familyOf(type) !== "number" || distinct === 0) return undefined;
  if (isNaming(name, type, [min, max, max]) || has(name, CODES) || looksLikeId(column, rows)) return undefined;
  const last = words(name).at(-1) ?? "";
  if (["year", "month", "week", "weekday", "day", "hour", "minute", "quarter"].includes(last)) return undefined;
  const flag = isWhole(type) && distinct <= 2 && min === 0 && max === 1;
  return (
    (has(name, SUMMED) ? 4 : 0) +
    (["revenue", "amount", "sales", "total", "umsatz", "betrag"].some((word) => words(name).includes(word)) ? 1 : 0) +
    (has(name, AVERAGED) ? 2 : 0) +
    (isWhole(type) ? 1 : 2) -
    (flag ? 2 : 0) -
    (distinct <= 1 ? 3 : 0)
  );
}

/** The measures of a table, the most useful first. */
export function measuresOf({ columns, rows }: Profile): ColumnProfile[] {
  return columns
    .map((column) => ({ column, score: measureScore(column, rows) }))
    .filter((one): one is { column: ColumnProfile; score: number } => one.score !== undefined)
    .sort((a, b) => b.score - a.score)
    .map(({ column }) => column);
}

/** A column as a chart's measure. */
export const measured = ({ name, type, unit }: { name: string; type: string; unit?: string }) => ({
  measure: name,
  measureType: type,
  ...(unit === undefined ? {} : { measureUnit: unit }),
});

/** Sums amounts, averages rates and levels. */
export function aggregateOf({ name, min, unit }: ColumnProfile): "sum" | "avg" {
  if (unit === "percent") return "avg";
  if (has(name, AVERAGED) || words(name).join(" ").includes("unit price")) return "avg";
  if (has(name, SUMMED)) return "sum";
  return (min ?? 0) < 0 ? "avg" : "sum";
}

/** Time columns, event times first. */
export function timesOf({ columns }: Profile): ColumnProfile[] {
  const found = columns.filter(({ type, distinct }) => /^(?:date|timestamp)/i.test(type) && distinct > 1);
  return [...found].sort((a, b) => Number(has(a.name, LATER_TIMES)) - Number(has(b.name, LATER_TIMES)));
}

/** Columns with few distinct values, the most informative first. */
export function categoriesOf({ columns, rows }: Profile): ColumnProfile[] {
  const score = ({ name, distinct }: ColumnProfile) =>
    (has(name, USUAL_CATEGORIES) ? 2 : 0) + (distinct >= 3 && distinct <= 15 ? 1 : 0);
  return columns
    .filter(({ type, distinct }) => /^(?:string|varchar|boolean|enum)/i.test(type) && distinct > 1)
    .filter(({ distinct }) => distinct <= CATEGORIES_MAX && (distinct <= rows / 2 || rows < ROWS_MIN))
    .sort((a, b) => score(b) - score(a));
}

/** A unit that gives some dozen points. */
export function grainOf({ min, max, hours }: ColumnProfile): Grain {
  const days = min === undefined || max === undefined ? 0 : (max - min) / DAY_MS;
  if (hours && days <= 3) return "hour";
  if (days <= 100) return "day";
  if (days <= 365 * 10) return "month";
  return days <= 365 * 25 ? "quarter" : "year";
}

/** Units that can be chosen for a column. */
export const grainsOf = (type: string): Grain[] =>
  /^date$/i.test(type)
    ? ["day", "week", "month", "quarter", "year"]
    : ["hour", "day", "week", "month", "quarter", "year"];

/** A width of 1, 2 or 5 times a power of ten that gives about twenty bins. */
export function binOf({ min, max, type }: ColumnProfile): number | undefined {
  if (min === undefined || max === undefined || max <= min) return undefined;
  const rough = (max - min) / BINS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((one) => one * power >= rough) ?? 10;
  const width = Number((step * power).toPrecision(12));
  return isWhole(type) ? Math.max(1, Math.round(width)) : width;
}

/** A column as a dimension with suitable defaults. `top`: most values of a category. */
export function dimensionOf(column: ColumnProfile, top: number): Dimension {
  const { name, type, distinct } = column;
  const family = familyOf(type);
  if (family === "time" && /^(?:date|timestamp)/i.test(type)) return { column: name, type, grain: grainOf(column) };
  const bin = family === "number" && distinct > CATEGORIES_MAX / 2 && !isNaming(name, type) ? binOf(column) : undefined;
  if (bin !== undefined) return { column: name, type, bin };
  return distinct > top ? { column: name, type, top } : { column: name, type };
}

/** The default sort order along `by`. */
export const sortOf = (by: Dimension | undefined): "value" | "name" =>
  by && (by.grain !== undefined || by.bin !== undefined || (familyOf(by.type) !== "other" && by.top === undefined))
    ? "name"
    : "value";

export const kindFor = (by: Dimension | undefined): Kind => (by ? (by.grain ? "line" : "bar") : "number");

/** A first chart of a table. */
export function firstChoice(table: string, profile: Profile): ChartChoice {
  const [measure] = measuresOf(profile);
  const [time] = timesOf(profile);
  const [category] = categoriesOf(profile);
  const along = time ?? category;
  const by = along && dimensionOf(along, TOP);
  return {
    source: { table },
    kind: kindFor(by),
    ...(measure ? { aggregate: aggregateOf(measure), ...measured(measure) } : { aggregate: "count" }),
    ...(by ? { by, sort: sortOf(by) } : {}),
  };
}
