/** How a value of a cell is written: for eyes, and for a clipboard. */
import { isNumeric, plain } from "../../format/values";
import type { Cell } from "../../api/types";

/** More of a text than a cell or a title can show, in characters. */
const SHOWN_MAX = 300;
export const TITLE_MAX = 2_000;
const PLAIN_NUMBER = /^-?\d+(\.\d+)?$/;

type Kind = "null" | "number" | "boolean" | "text" | "nested";

interface Shown {
  text: string;
  kind: Kind;
}

const writers = new Map<number, Intl.NumberFormat>();

function writer(fraction: number): Intl.NumberFormat {
  let found = writers.get(fraction);
  if (!found) {
    found = new Intl.NumberFormat(undefined, { minimumFractionDigits: fraction, maximumFractionDigits: fraction });
    writers.set(fraction, found);
  }
  return found;
}

/** A number in the reader's locale with all its digits, whatever their number; other texts stay as they are. */
export function grouped(text: string): string {
  if (!PLAIN_NUMBER.test(text)) return text;
  const fraction = text.split(".")[1]?.length ?? 0;
  return fraction > 100 ? text : writer(fraction).format(text as Intl.StringNumericLiteral);
}

const oneLine = (text: string): string => text.replace(/\r\n|[\n\r]/g, "↵").replace(/\t/g, "⇥");
export const cutTo = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;

/** A value as its cell shows it; `naming`: numbers have no separators. */
export function shown(value: Cell, type: string, naming = false): Shown {
  if (value === null) return { text: "null", kind: "null" };
  if (typeof value === "boolean") return { text: String(value), kind: "boolean" };
  if (typeof value === "object") return { text: cutTo(JSON.stringify(value), SHOWN_MAX), kind: "nested" };
  if (typeof value === "number" || isNumeric(type)) {
    const text = String(value);
    return { text: naming ? text : grouped(text), kind: "number" };
  }
  return { text: oneLine(cutTo(value, SHOWN_MAX)), kind: "text" };
}

/** A row as spreadsheets take it. */
export function asTabs(row: readonly Cell[]): string {
  return row.map((value) => plain(value).replace(/[\t\n\r]+/g, " ")).join("\t");
}

/** A row as an object by the names of its columns. */
export function asJson(names: string[], row: readonly Cell[]): string {
  // Entries, since a column may be called `__proto__`.
  const fields = names.map((name, at) => `  ${JSON.stringify(name)}: ${JSON.stringify(row[at] ?? null)}`);
  return `{\n${fields.join(",\n")}\n}`;
}
