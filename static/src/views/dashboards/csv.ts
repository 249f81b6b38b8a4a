import type { Cell, ResultColumn, Row } from "../../api/types";
import { areDays, dayOnly, familyOf, plain } from "../../format/values";

/** A cell according to RFC 4180. */
function cell(value: Cell): string {
  const text = plain(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Times that are all midnights are written as days. */
export function csvOf(columns: ResultColumn[], rows: Row[]): string {
  const isDay = columns.map(({ type }, at) => familyOf(type) === "time" && areDays(rows.map((row) => row[at])));
  const lines = [
    columns.map(({ name }) => cell(name)),
    ...rows.map((row) => row.map((value, at) => cell(isDay[at] ? dayOnly(value) : value))),
  ];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}
