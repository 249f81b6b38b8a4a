/** Profiles the columns of a table or a result, to suggest a chart. */
import { loadConfig } from "../../api/config";
import { ran } from "../../api/sql";
import type { Cell, ResultColumn, Row } from "../../api/types";
import { identifier } from "../../format/sql";
import { familyOf, instant, isNumeric, numeric, plain } from "../../format/values";
import { unitsOf } from "../../tables/units";

export interface ColumnProfile {
  name: string;
  type: string;
  /** Number of distinct values, approximate unless the profile is exact. */
  distinct: number;
  /** For numbers and times; times in milliseconds. */
  min: number | undefined;
  max: number | undefined;
  /** Whether a time has a time of day other than midnight. */
  hours: boolean;
  /** The number format that signs in the sources say: `usd`, `percent`. */
  unit?: string;
}

export interface Profile {
  rows: number;
  /** Whether distinct values were counted, not estimated. */
  exact?: boolean;
  columns: ColumnProfile[];
}

/** Columns that are profiled; the others can still be chosen. */
const COLUMNS_MAX = 60;

const usable = ({ name, type }: ResultColumn): boolean =>
  !/\p{Cc}/u.test(name) && !/[\])]$/.test(type.replace(/^decimal\(.*\)$/i, "decimal"));

export const profiled = (columns: readonly ResultColumn[]): ResultColumn[] =>
  columns.filter(usable).slice(0, COLUMNS_MAX);

const isDate = (type: string): boolean => type.toLowerCase() === "date";

/** Tables with more cells have their distinct values estimated. */
const EXACT_CELLS_MAX = 5_000_000;

/** The statement that profiles the columns of `from`, SQL after FROM. */
export function profileSql(from: string, columns: readonly ResultColumn[], exact = false): string {
  const parts = profiled(columns).flatMap(({ name, type }) => {
    const own = identifier(name);
    const family = familyOf(type);
    const bounds = family === "other" ? ["NULL", "NULL"] : [`min(${own})`, `max(${own})`];
    const hours =
      family === "time" && /^timestamp/i.test(type) ? `bool_or(${own} <> date_trunc('day', ${own}))` : "NULL";
    return [exact ? `count(DISTINCT ${own})` : `approx_count_distinct(${own})`, ...bounds, hours];
  });
  return `SELECT ${["count(*)", ...parts].join(", ")} FROM ${from}`;
}

/** Parses the result of {@link profileSql}. */
export function profileOf(row: Row, columns: readonly ResultColumn[]): Profile {
  const found = profiled(columns).map(({ name, type }, at) => {
    const [distinct, min, max, hours] = row.slice(1 + at * 4, 5 + at * 4);
    const bound = (value: Cell | undefined) =>
      (familyOf(type) === "time" ? instant(value) : numeric(value)) ?? undefined;
    return { name, type, distinct: numeric(distinct) ?? 0, min: bound(min), max: bound(max), hours: hours === true };
  });
  return { rows: numeric(row[0]) ?? 0, columns: found };
}

/** Profiles rows in memory. */
export function profileRows(rows: readonly Row[], columns: readonly ResultColumn[]): Profile {
  const found = columns.flatMap((column, at) => {
    if (!usable(column)) return [];
    const { name, type } = column;
    const family = familyOf(type);
    const values = rows.map((row) => row[at] ?? null).filter((value) => value !== null);
    const numbers =
      family === "other" ? [] : values.map(family === "time" ? instant : numeric).filter((one) => one !== null);
    const [min, max] = numbers.reduce(
      ([least, most], one) => [Math.min(least, one), Math.max(most, one)],
      [Infinity, -Infinity],
    );
    return [
      {
        name,
        type,
        distinct: new Set(values.map(plain)).size,
        min: Number.isFinite(min) ? min : undefined,
        max: Number.isFinite(max) ? max : undefined,
        hours: family === "time" && !isDate(type) && numbers.some((ms) => ms % 86_400_000 !== 0),
      },
    ];
  });
  return { rows: rows.length, exact: true, columns: found };
}

/** Profiles a table. @throws ApiFailure */
export async function profileTable(
  slug: string,
  table: { name: string; rows: number; schema: readonly ResultColumn[] },
  signal?: AbortSignal,
): Promise<Profile> {
  const { name, rows, schema } = table;
  const exact = rows * profiled(schema).length <= EXACT_CELLS_MAX;
  const [answer, units] = await Promise.all([
    ran(slug, profileSql(identifier(name), schema, exact), signal),
    loadConfig(slug).then(
      ({ config }) => unitsOf(config, name),
      () => new Map<string, string>(),
    ),
  ]);
  const profile = profileOf((answer.rows as Row[])[0] ?? [], schema);
  const columns = profile.columns.map((column) => {
    const unit = units.get(column.name);
    return unit !== undefined && isNumeric(column.type) ? { ...column, unit } : column;
  });
  return { ...profile, columns, exact };
}
