/** Formats cell values for display and for the clipboard. */
import { isNumeric, plain } from "../../format/values";
import type { Cell } from "../../api/types";

/** Longer text is cut, in characters. */
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

/** Groups the digits of a number by locale, at any precision; returns other text unchanged. */
export function grouped(text: string): string {
  if (!PLAIN_NUMBER.test(text)) return text;
  const fraction = text.split(".")[1]?.length ?? 0;
  return fraction > 100 ? text : writer(fraction).format(text as Intl.StringNumericLiteral);
}

const oneLine = (text: string): string => text.replace(/\r\n|[\n\r]/g, "↵").replace(/\t/g, "⇥");
export const cutTo = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;

/** Display text of a value; `naming`: numbers without separators. */
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

/** A row as tab-separated values. */
export function asTabs(row: readonly Cell[]): string {
  return row.map((value) => plain(value).replace(/[\t\n\r]+/g, " ")).join("\t");
}

/** A row as a JSON object. */
export function asJson(names: string[], row: readonly Cell[]): string {
  // Entries: a column may be called `__proto__`.
  const fields = names.map((name, at) => `  ${JSON.stringify(name)}: ${JSON.stringify(row[at] ?? null)}`);
  return `{\n${fields.join(",\n")}\n}`;
}
