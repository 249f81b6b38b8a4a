/** A chart's content, as chosen in the builder's fields. */
import type { ChartField, ChartSpec, ChartType } from "../../components/chart";
import type { PivotSpec } from "../../components/pivot";
import type { Filter } from "../../format/filter";
import { words } from "../../format/naming";
import { familyOf } from "../../format/values";

/** `none`: the values of the rows as they are. */
export type Aggregate = "count" | "distinct" | "sum" | "avg" | "median" | "min" | "max" | "none";
export type Grain = "hour" | "day" | "week" | "month" | "quarter" | "year";
/** `stacked`: a bar chart with stacked bars. */
export type Kind = ChartType | "stacked" | "pivot" | "table" | "number";

/** Rows of a table, or of a query's result. */
export type Source = { table: string } | { sql: string };

/** A column that groups rows. */
export interface Dimension {
  column: string;
  type: string;
  /** For times: the unit to truncate to. */
  grain?: Grain;
  /** For numbers: the width of the bins. */
  bin?: number;
  /** Maximum number of values, those with the largest measure. */
  top?: number;
}

/** A dashboard's parameter that filters a column. */
export interface ParamUse {
  param: string;
  /** The parameter's type. */
  kind: "date_range" | "select" | "number" | "text";
  column: string;
  /** Of a select: rows without a value have one, too. */
  empty?: boolean;
}

export interface ChartChoice {
  source: Source;
  kind: Kind;
  aggregate: Aggregate;
  /** Column of the measure; `count` has none. */
  measure?: string;
  /** Type of the measure's column. */
  measureType?: string;
  /** The number format that signs in the measure's sources say: `usd`, `percent`. */
  measureUnit?: string;
  /** Further columns of a result that are drawn as they are. */
  more?: string[];
  by?: Dimension;
  split?: Dimension;
  /** Whether values beyond `top` are grouped as “Other”; else they are left out. */
  others?: boolean;
  filters?: (Filter & { type: string })[];
  sort?: "value" | "ascending" | "name";
  params?: ParamUse[];
  /** Totals of a pivot table. */
  totals?: boolean;
  /** Number format of the measure; else chosen by name and type. */
  format?: string;
}

/** Label of the values beyond `top`. */
export const OTHER = "Other";
/** Maximum number of points of a scatter; more rows are sampled. */
export const SAMPLE_ROWS = 5_000;

export const GRAINS: Record<Grain, string> = {
  hour: "Hour",
  day: "Day",
  week: "Week",
  month: "Month",
  quarter: "Quarter",
  year: "Year",
};

/** Formats that can be chosen for a measure. */
export const FORMATS: Record<string, string> = {
  number: "1,234.567",
  integer: "1,235",
  decimal1: "1,234.6",
  decimal2: "1,234.57",
  compact: "1.2K",
  percent: "12%",
  percent1: "12.3%",
  usd: "$1,234.57",
  usd0: "$1,235",
  eur: "€1,234.57",
  eur0: "€1,235",
  gbp: "£1,234.57",
  gbp0: "£1,235",
  bytes: "1.2 MiB",
  duration_s: "Seconds: 1 min",
  duration_ms: "Milliseconds: 1 s",
};

export const KINDS: Record<Kind, string> = {
  line: "Line",
  area: "Area",
  bar: "Bar",
  stacked: "Stacked bar",
  pie: "Pie",
  scatter: "Scatter",
  heatmap: "Heatmap",
  pivot: "Pivot table",
  table: "Table",
  number: "Number",
};

export const AGGREGATES: Record<Aggregate, string> = {
  count: "Number of rows",
  sum: "Sum of",
  avg: "Average of",
  median: "Median of",
  min: "Minimum of",
  max: "Maximum of",
  distinct: "Distinct values of",
  none: "Values as they are",
};

const PREFIX: Record<Aggregate, string> = {
  count: "",
  sum: "",
  none: "",
  avg: "average_",
  median: "median_",
  min: "min_",
  max: "max_",
  distinct: "distinct_",
};

/** Names of the result's columns. */
export interface Names {
  by: string | undefined;
  split: string | undefined;
  measure: string;
}

/** A name that isn't in `taken`, ignoring case as SQL does. */
function free(name: string, taken: (string | undefined)[]): string {
  const known = new Set(taken.map((one) => one?.toLowerCase()));
  for (let n = 1; ; n += 1) {
    const one = n === 1 ? name : `${name}_${n}`;
    if (!known.has(one.toLowerCase())) return one;
  }
}

export function namesOf({ aggregate, measure, by, split, kind }: ChartChoice): Names {
  if (kind === "scatter" || aggregate === "none")
    return { by: by?.column, split: split?.column, measure: measure ?? "" };
  const own = kind === "number" ? {} : { by, split };
  const first = own.by && (own.by.grain ?? own.by.column);
  const second = own.split && free(own.split.grain ?? own.split.column, [first]);
  const third = aggregate === "count" ? "rows" : `${PREFIX[aggregate]}${measure ?? ""}`;
  return { by: first, split: second, measure: free(third, [first, second]) };
}

const readable = (column: string): string => {
  const text = column.replaceAll("_", " ").trim();
  return text === "" ? column : text;
};

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** "Total revenue": the measure in words. */
export function measureTitle({ aggregate, measure = "" }: ChartChoice): string {
  const named = readable(measure);
  switch (aggregate) {
    case "count":
      return "Rows";
    case "sum":
      return /^totals?\b/i.test(named) ? capital(named) : `Total ${named}`;
    case "avg":
      return /^(?:avg|average|mean)\b/i.test(named) ? capital(named) : `Average ${named}`;
    case "median":
      return `Median ${named}`;
    case "min":
      return `Minimum ${named}`;
    case "max":
      return `Maximum ${named}`;
    case "distinct":
      return `Distinct ${named}`;
    case "none":
      return capital(named);
  }
}

/** "Total revenue per month by region", "Total revenue by product (top 5)", "Rows by shop and kind (pivot table)". */
export function titleOf(choice: ChartChoice): string {
  const { kind, by, aggregate } = choice;
  // A table of the fields of a chart has a title of its own.
  const isTable = (kind === "pivot" || kind === "table") && by !== undefined && aggregate !== "none";
  const title = topTitle(choice);
  return isTable ? `${title} (${KINDS[kind].toLowerCase()})` : title;
}

function topTitle(choice: ChartChoice): string {
  const { kind, by, aggregate } = choice;
  const top = kind === "number" || aggregate === "none" ? undefined : by?.top;
  return titled(choice, top === undefined ? "" : ` (top ${top})`);
}

/** A title that no other panel has: with the kind of chart, else with a number. */
export function freeTitle(title: string, taken: readonly string[], kind?: Kind): string {
  if (!taken.includes(title)) return title;
  const own = kind && !title.endsWith(")") ? `${title} (${KINDS[kind].toLowerCase()})` : title;
  if (!taken.includes(own)) return own;
  for (let n = 2; ; n += 1) if (!taken.includes(`${title} (${n})`)) return `${title} (${n})`;
}

/** Whether a title is the automatic one, which follows the chart; earlier versions named neither tables nor top values. */
export const isAutomatic = (title: string, choice: ChartChoice): boolean =>
  [titleOf(choice), topTitle(choice), titled(choice, "")].some(
    (one) => title === one || title === freeTitle(one, [one], choice.kind) || numbered(title) === one,
  );

const numbered = (title: string): string => title.replace(/ \(\d+\)$/, "");

function titled(choice: ChartChoice, top: string): string {
  const { kind, by, split } = choice;
  const what = measureTitle(choice);
  if (kind === "table" && choice.aggregate === "none") return "table" in choice.source ? "Sample rows" : "Rows";
  if (kind === "number" || !by) return what;
  const first = by.grain
    ? `per ${by.grain}`
    : kind === "scatter"
      ? `against ${readable(by.column)}`
      : `by ${readable(by.column)}`;
  return `${what} ${first}${top}${split ? ` ${by.grain ? "by" : "and"} ${readable(split.column)}` : ""}`;
}

const MONEY = new Set([
  "amount",
  "price",
  "revenue",
  "sales",
  "cost",
  "costs",
  "fare",
  "total",
  "tip",
  "tax",
  "fee",
  "income",
  "turnover",
  "profit",
]);
const RATIOS = new Set(["rate", "ratio", "share", "pct", "percent", "percentage", "discount"]);

/** Number format of the measure; `max`: the largest value seen, if known. */
export function formatOf(choice: ChartChoice, max?: number): string {
  const { aggregate, measure = "", measureType = "", measureUnit = "" } = choice;
  if (choice.format !== undefined) return choice.format;
  if (aggregate === "count" || aggregate === "distinct") return "integer";
  if (measureUnit === "percent") return "percent1";
  const isLarge = max !== undefined && Math.abs(max) >= 10_000;
  if (measureUnit) return isLarge ? `${measureUnit}0` : measureUnit;
  const last = words(measure).at(-1) ?? "";
  if (RATIOS.has(last) && aggregate !== "sum" && max !== undefined && Math.abs(max) <= 1) return "percent1";
  const whole = /^u?(?:int|tinyint|smallint|bigint|hugeint)/i.test(measureType);
  if (whole) return aggregate === "avg" || aggregate === "median" ? "decimal1" : "integer";
  if (MONEY.has(last) && isLarge) return "integer";
  return MONEY.has(last) ? "decimal2" : "number";
}

/** Whether the chart needs `by`. */
export const isGrouped = (kind: Kind): boolean => kind !== "number";

const field = (name: string, title?: string, format?: string): ChartField => ({
  field: name,
  ...(title && title !== name ? { title } : {}),
  ...(format ? { format } : {}),
});

/** How the values of a time unit are written. */
const GRAIN_FORMATS: Record<Grain, string> = {
  hour: "datetime",
  day: "date",
  week: "date",
  month: "month",
  quarter: "quarter",
  year: "year",
};

const grouping = (name: string, by: Dimension): ChartField =>
  field(name, undefined, by.grain && GRAIN_FORMATS[by.grain]);

/** Columns of a grouped table: groups, then the measure; undefined if the rows are shown as they are. */
export function columnsOf(choice: ChartChoice, format?: string): ChartField[] | undefined {
  const { by, split, aggregate } = choice;
  if (aggregate === "none") return undefined;
  const names = namesOf(choice);
  return [
    ...(by ? [grouping(names.by ?? by.column, by)] : []),
    ...(split ? [grouping(names.split ?? split.column, split)] : []),
    field(names.measure, measureTitle(choice), format),
  ];
}

/** How a pivot table lays out the result. */
export function pivotOf(choice: ChartChoice, format?: string): PivotSpec | undefined {
  const { kind, by, split } = choice;
  if (kind !== "pivot" || !by) return undefined;
  const names = namesOf(choice);
  // A query that groups has one row a cell, so the first is the value.
  const summed = addsUp(choice);
  return {
    rows: [grouping(names.by ?? by.column, by)],
    columns: split ? [grouping(names.split ?? split.column, split)] : [],
    values: [
      {
        ...field(names.measure, split ? undefined : measureTitle(choice), format),
        aggregate: summed ? "sum" : "first",
      },
    ],
    ...(choice.totals && summed ? { totals: true } : {}),
  };
}

/** Whether the measure of a group is the sum of its parts'. */
export const addsUp = ({ aggregate }: ChartChoice): boolean =>
  aggregate === "sum" || aggregate === "count" || aggregate === "none";

/** Format of the points of a scatter: chosen, or that of the column's unit. */
export const pointFormat = ({ measureUnit, format: chosen }: ChartChoice, format?: string): string | undefined =>
  measureUnit === undefined && chosen === undefined ? undefined : format;

/** How the result is drawn; undefined for tables and numbers. `format`: of the measure. */
export function specOf(choice: ChartChoice, format?: string): ChartSpec | undefined {
  const { kind, by, more = [] } = choice;
  if (kind === "table" || kind === "pivot" || kind === "number" || !by) return undefined;
  const names = namesOf(choice);
  const plain = choice.aggregate === "none";
  const value = field(names.measure, plain ? undefined : measureTitle(choice), format);
  const x = field(names.by ?? by.column);
  const others = more.map((name) => field(name, undefined, format));
  const series = names.split === undefined ? {} : { series: names.split };
  switch (kind) {
    case "pie":
      return { type: "pie", x, y: [value] };
    case "heatmap":
      return { type: "heatmap", x, y: [field(names.split ?? by.column)], value };
    case "scatter":
      return { type: "scatter", x, y: [field(names.measure, undefined, pointFormat(choice, format))], ...series };
    case "stacked":
      return { type: "bar", x, y: [value, ...others], stacked: true, ...series };
    case "area":
      return { type: "area", x, y: [value], stacked: names.split !== undefined, ...series };
    case "line":
    case "bar":
      return {
        type: kind,
        x,
        y: [value, ...others],
        ...series,
        ...(hasHorizontalBars(choice) ? { horizontal: true } : {}),
      };
  }
}

/** Whether bars are horizontal, which makes long names easier to read. */
export const hasHorizontalBars = ({ kind, by, split }: ChartChoice): boolean =>
  kind === "bar" && by !== undefined && !split && familyOf(by.type) === "other" && (by.top ?? 0) > 8;
