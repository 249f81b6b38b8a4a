/** A first question to a table that nobody has asked yet: its rows, or a sum, over time or by a category. */
import type { Column, Row } from "../../api/types";
import { isNumeric, rawText } from "../../components/grid/value";
import { identifier } from "./statement";

export interface Suggestion {
  title: string;
  sql: string;
}

/** Names of numbers that make sense as a sum. */
const SUMMED = /(amount|price|revenue|total|sales|cost|fare|qty|quantity|units|bytes|volume|value)/i;
/** More different values than that are no categories. */
const CATEGORIES_MAX = 30;
const DAY_MS = 86_400_000;
const POINTS_MAX = 2_000;

/** The unit that gives a line some dozens of points. */
function unitOf(values: number[]): "month" | "day" | "hour" {
  const days = (Math.max(...values) - Math.min(...values)) / DAY_MS;
  if (days > 365 * 3) return "month";
  return days > 2 ? "day" : "hour";
}

const timesOf = (rows: readonly Row[], at: number): number[] =>
  rows.map((row) => Date.parse(rawText(row[at]))).filter((time) => !Number.isNaN(time));

/** `stats`: the least and greatest values of columns by name, where they are known. */
export function suggest(
  table: string,
  columns: readonly Column[],
  rows: readonly Row[],
  extremes: ReadonlyMap<string, readonly [unknown, unknown]> = new Map(),
): Suggestion | undefined {
  const summed = columns.find(({ name, type }) => isNumeric(type) && SUMMED.test(name));
  const measure = summed ? `sum(${identifier(summed.name)}) AS ${identifier(summed.name)}` : `count(*) AS "rows"`;
  const measured = summed ? summed.name : "rows";
  const from = identifier(table);
  const timeAt = columns.findIndex(({ type }) => type === "date" || type.startsWith("timestamp"));
  const time = columns[timeAt];
  if (time) {
    const known = extremes.get(time.name)?.map((value) => Date.parse(String(value)));
    const times = known?.every((value) => !Number.isNaN(value)) ? known : timesOf(rows, timeAt);
    const unit = times.length > 0 ? unitOf(times) : "day";
    const name = identifier(time.name);
    const bucket = time.type === "date" && unit !== "month" ? name : `date_trunc('${unit}', ${name})`;
    return {
      title: `${measured} by ${unit} of ${time.name}`,
      sql: `SELECT ${bucket} AS ${name}, ${measure}\nFROM ${from}\nWHERE ${name} IS NOT NULL\nGROUP BY 1\nORDER BY 1\nLIMIT ${POINTS_MAX}`,
    };
  }
  const category = columns.find(({ type }, at) => {
    if (type !== "string" && type !== "boolean") return false;
    const distinct = new Set(rows.map((row) => row[at])).size;
    return distinct > 1 && distinct <= CATEGORIES_MAX && distinct <= rows.length / 2;
  });
  if (!category) return undefined;
  const name = identifier(category.name);
  return {
    title: `${measured} by ${category.name}`,
    sql: `SELECT ${name}, ${measure}\nFROM ${from}\nGROUP BY 1\nORDER BY 2 DESC\nLIMIT ${CATEGORIES_MAX}`,
  };
}
