import type { Cell, ResultColumn, Row } from "../../api/types";
import { plain } from "../../format/values";

/** A cell after RFC 4180. */
function cell(value: Cell): string {
  const text = plain(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvOf(columns: ResultColumn[], rows: Row[]): string {
  const lines = [columns.map(({ name }) => cell(name)), ...rows.map((row) => row.map(cell))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** Gives a text to the browser to keep as a file. */
export function saveAs(name: string, text: string, type = "text/csv"): void {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
