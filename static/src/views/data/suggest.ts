/** Suggests a first query for a table: row count or a sum, over time or by category. */
import { plain } from "../../format/values";
import type { Cell, Column, Row } from "../../api/types";
import { quoted } from "../../format/sql";
import { summedColumn } from "../../format/summed";

export interface Suggestion {
  title: string;
  sql: string;
}

/** More distinct values aren't categories. */
const CATEGORIES_MAX = 30;
const DAY_MS = 86_400_000;
const POINTS_MAX = 2_000;

/** Time unit that gives a few dozen points. */
function unitOf(times: number[], type: string): "month" | "day" | "hour" {
  if (times.length === 0) return "day";
  const days = (Math.max(...times) - Math.min(...times)) / DAY_MS;
  if (days > 365 * 3) return "month";
  return days > 2 || type === "date" ? "day" : "hour";
}

/** Time column of the chart, if any. */
export const timeColumn = (columns: readonly Column[]): Column | undefined =>
  columns.find(({ type }) => type === "date" || type.startsWith("timestamp"));

/** Query for the first and last time of a column. */
export const extremesOf = (table: string, time: Column): string =>
  `SELECT min(${quoted(time.name)}), max(${quoted(time.name)}) FROM ${quoted(table)}`;

/** `extremes`: first and last time of the time column, if known. */
export function suggest(
  table: string,
  columns: readonly Column[],
  rows: readonly Row[],
  extremes?: readonly Cell[],
): Suggestion | undefined {
  const summed = summedColumn(columns);
  const measure = summed ? `sum(${quoted(summed.name)}) AS ${quoted(summed.name)}` : `count(*) AS "rows"`;
  const measured = summed ? summed.name : "rows";
  const from = quoted(table);
  const time = timeColumn(columns);
  if (time) {
    const known = (extremes ?? rows.map((row) => row[columns.indexOf(time)])).map((value) => Date.parse(plain(value)));
    const unit = unitOf(
      known.filter((value) => !Number.isNaN(value)),
      time.type,
    );
    const name = quoted(time.name);
    const bucket = time.type === "date" && unit === "day" ? name : `date_trunc('${unit}', ${name})`;
    return {
      title: `${measured} by ${unit}${time.name === unit ? "" : `, ${time.name}`}`,
      sql: `SELECT ${bucket} AS ${name}, ${measure}\nFROM ${from}\nWHERE ${name} IS NOT NULL\nGROUP BY 1\nORDER BY 1\nLIMIT ${POINTS_MAX}`,
    };
  }
  const category = columns.find(({ type }, at) => {
    if (type !== "string" && type !== "boolean") return false;
    const distinct = new Set(rows.map((row) => row[at])).size;
    return distinct > 1 && distinct <= CATEGORIES_MAX && distinct <= rows.length / 2;
  });
  if (!category) return undefined;
  const name = quoted(category.name);
  return {
    title: `${measured} by ${category.name}`,
    sql: `SELECT ${name}, ${measure}\nFROM ${from}\nGROUP BY 1\nORDER BY 2 DESC\nLIMIT ${CATEGORIES_MAX}`,
  };
}
