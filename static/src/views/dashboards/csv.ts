import type { Cell, ResultColumn, Row } from "../../api/types";
import { plain } from "../../format/values";

/** A cell according to RFC 4180. */
function cell(value: Cell): string {
  const text = plain(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvOf(columns: ResultColumn[], rows: Row[]): string {
  const lines = [columns.map(({ name }) => cell(name)), ...rows.map((row) => row.map(cell))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}
