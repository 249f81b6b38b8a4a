/** Summaries of columns: nulls, distinct values, range, histogram, most frequent values. */
import type { Cell, ResultColumn, Row } from "../api/types";
import { isNaming } from "../format/naming";
import { identifier } from "../format/sql";
import { familyOf, instant, numeric, plain } from "../format/values";
import { ran } from "../api/sql";
import type { Profile } from "./builder/profile";

const BINS_MAX = 20;
const TOP = 5;
/** More distinct values aren't counted one by one. */
const COUNTED_MAX = 2_000;
/** Columns of a statement. */
const COLUMNS_PER_QUERY = 20;

export interface Counted {
  value: Cell;
  count: number;
}

export interface Summary {
  name: string;
  type: string;
  rows: number;
  nulls: number;
  distinct: number;
  /** Whether distinct values were counted, not estimated. */
  exact: boolean;
  /** For numbers and times; times in milliseconds. */
  min: number | undefined;
  max: number | undefined;
  /** Rows per bin from `min` to `max`; empty if there is no range. */
  bins: number[];
  /** The most frequent values, if they repeat. */
  top: Counted[];
}

/** Whether a column's values are quantities, unlike IDs and codes. */
const isScale = (name: string, type: string): boolean => familyOf(type) !== "other" && !isNaming(name, type);

function largest(counts: Map<string, Counted>, distinct: number, present: number): Counted[] {
  if (distinct === 0 || distinct > present / 2) return [];
  return [...counts.values()].sort((a, b) => b.count - a.count).slice(0, TOP);
}

export interface Scale {
  count: number;
  /** Width of a bin. */
  width: number;
}

/** Bins from `min` to `max`; whole numbers of a small range have one each. */
export function scaleOf({ name, type, min, max }: Pick<Summary, "name" | "type" | "min" | "max">): Scale | undefined {
  if (!isScale(name, type) || min === undefined || max === undefined || max <= min) return undefined;
  const whole = /^u?(?:int|tinyint|smallint|bigint|hugeint)/i.test(type);
  if (whole && max - min < BINS_MAX) return { count: max - min + 1, width: 1 };
  return { count: BINS_MAX, width: (max - min) / BINS_MAX };
}

/** Summarizes the rows of a result. */
export function summarize(columns: readonly ResultColumn[], rows: readonly Row[]): Summary[] {
  return columns.map(({ name, type }, at) => {
    const family = familyOf(type);
    const present = rows.map((row) => row[at] ?? null).filter((value) => value !== null);
    const counts = new Map<string, Counted>();
    for (const value of present) {
      const key = plain(value);
      const known = counts.get(key);
      if (known) known.count += 1;
      else counts.set(key, { value, count: 1 });
    }
    const numbers =
      family === "other" ? [] : present.map(family === "time" ? instant : numeric).filter((one) => one !== null);
    const [min, max] = numbers.reduce(([a, b], one) => [Math.min(a, one), Math.max(b, one)], [Infinity, -Infinity]);
    const scale = scaleOf({ name, type, min, max });
    const bins = new Array<number>(scale?.count ?? 0).fill(0);
    if (scale)
      for (const one of numbers) {
        const bin = Math.min(scale.count - 1, Math.floor((one - min) / scale.width));
        bins[bin] = (bins[bin] ?? 0) + 1;
      }
    return {
      name,
      type,
      rows: rows.length,
      nulls: rows.length - present.length,
      distinct: counts.size,
      exact: true,
      min: Number.isFinite(min) ? min : undefined,
      max: Number.isFinite(max) ? max : undefined,
      bins,
      top: bins.length > 0 ? [] : largest(counts, counts.size, present.length),
    };
  });
}

/** Expressions of a column: count, and the keys and counts of its bins or values. */
function expressions({ name, type, distinct, min, max }: Profile["columns"][number]): string[] {
  const own = identifier(name);
  const counted = `count(${own})`;
  const scale = scaleOf({ name, type, min, max });
  if (scale && min !== undefined) {
    const value = familyOf(type) === "time" ? timeOf(own, type) : `CAST(${own} AS DOUBLE)`;
    const at = `floor((${value} - ${min}) / ${scale.width})`;
    // `greatest` would take a null for 0.
    const bin = `histogram(CAST(least(${scale.count - 1}, greatest(0, ${at})) AS INTEGER)) FILTER (WHERE ${own} IS NOT NULL)`;
    return [counted, `map_keys(${bin})`, `map_values(${bin})`];
  }
  if (distinct > 0 && distinct <= COUNTED_MAX)
    return [counted, `map_keys(histogram(CAST(${own} AS VARCHAR)))`, `map_values(histogram(CAST(${own} AS VARCHAR)))`];
  return [counted, "NULL", "NULL"];
}

/** Milliseconds as {@link instant} has them. */
function timeOf(name: string, type: string): string {
  if (/^time(?!stamp)/i.test(type))
    return `epoch_ms(CAST(DATE '1970-01-01' AS TIMESTAMP) + (${name} - TIME '00:00:00'))`;
  return `epoch_ms(CAST(${name} AS TIMESTAMP))`;
}

/** The statement that summarizes columns of a table. */
export const summarySql = (table: string, columns: Profile["columns"]): string =>
  `SELECT ${columns.flatMap(expressions).join(", ")} FROM ${identifier(table)}`;

export function summariesOf(
  row: Row,
  columns: Profile["columns"],
  { rows, exact = false }: Pick<Profile, "rows" | "exact">,
): Summary[] {
  return columns.map(({ name, type, distinct, min, max }, at) => {
    const [counted, keys, values] = row.slice(at * 3, at * 3 + 3);
    const present = numeric(counted) ?? 0;
    const pairs =
      Array.isArray(keys) && Array.isArray(values)
        ? keys.map((key, index) => [key, numeric(values[index]) ?? 0] as const)
        : [];
    const scale = scaleOf({ name, type, min, max });
    const bins = new Array<number>(scale && pairs.length > 0 ? scale.count : 0).fill(0);
    if (scale) for (const [key, count] of pairs) bins[numeric(key) ?? 0] = count;
    const counts = new Map(scale ? [] : pairs.map(([value, count]) => [plain(value), { value, count }]));
    const top = largest(counts, scale ? 0 : distinct, present);
    return { name, type, rows, nulls: Math.max(0, rows - present), distinct, exact, min, max, bins, top };
  });
}

/** Summarizes the profiled columns of a table. @throws ApiFailure */
export async function summarizeTable(
  slug: string,
  table: string,
  profile: Profile,
  signal: AbortSignal,
): Promise<Summary[]> {
  const found: Summary[] = [];
  for (let from = 0; from < profile.columns.length; from += COLUMNS_PER_QUERY) {
    const columns = profile.columns.slice(from, from + COLUMNS_PER_QUERY);
    const answer = await ran(slug, summarySql(table, columns), signal);
    found.push(...summariesOf((answer.rows as Row[])[0] ?? [], columns, profile));
  }
  return found;
}
