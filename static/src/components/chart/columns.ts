/** Columns of a result as charts read them. */
import type { Cell, ResultColumn, Row } from "../../api/types";
import { count } from "../../format/number";
import { familyOf, instant, numeric, plain, timeWritten, written } from "../../format/values";
import type { ChartField } from "./spec";

/** A field with where it stands in the rows. */
export interface Held extends ChartField {
  at: number;
  type: string;
  name: string;
}

/** The field's column; undefined: the result has none. */
export function held(field: ChartField | undefined, columns: ResultColumn[]): Held | undefined {
  const at = field ? columns.findIndex(({ name }) => name === field.field) : -1;
  const column = columns[at];
  return field && column ? { ...field, at, type: column.type, name: field.title || field.field } : undefined;
}

type AxisKind = "time" | "number" | "category";

/** The places along an axis. Of a category they are positions in `labels`. */
export interface Axis {
  kind: AxisKind;
  name: string;
  /** Of a time: the format of its labels; of a number: the column's. */
  format: string;
  labels: string[];
}

const DAY_MS = 86_400_000;

/** Months, days or times: as coarse as all values are. */
export function grain(times: number[]): "month" | "date" | "datetime" {
  if (times.some((ms) => ms % DAY_MS !== 0)) return "datetime";
  return times.every((ms) => new Date(ms).getUTCDate() === 1) && times.length > 1 ? "month" : "date";
}

export const kindOf = (type: string): AxisKind =>
  familyOf(type) === "time" ? "time" : familyOf(type) === "number" ? "number" : "category";

/** Where a value stands on an axis that has room between its values. */
export const position = (value: Cell | undefined, kind: AxisKind): number | null =>
  kind === "time" ? instant(value) : numeric(value);

/** A value as a label; a null has one too. */
export function labelled(value: Cell | undefined, field: Held, times = "date"): string {
  if (value === null || value === undefined) return "null";
  if (!field.format && kindOf(field.type) === "time") {
    const ms = instant(value);
    if (ms !== null) return timeWritten(ms, times);
  }
  // Numbers that name things (years, hours) have no separators.
  if (!field.format && familyOf(field.type) === "number") return plain(value);
  return written(value, field.format, field.type);
}

/** Keeps what can be drawn, and says what isn't. */
export class Notes {
  readonly texts: string[] = [];

  /** "The first 200 of 1,234 categories are drawn." */
  cut(shown: number, all: number, what: string): void {
    if (shown < all) this.texts.push(`Showing ${count(shown)} of ${count(all)} ${what}.`);
  }

  say(text: string): void {
    this.texts.push(text);
  }
}

/** The distinct keys of a column, in the rows' order, with the value of each. */
export function distinct(rows: Row[], at: number): Map<string, Cell> {
  const found = new Map<string, Cell>();
  for (const row of rows) {
    const value = row[at] ?? null;
    const key = keyOf(value);
    if (!found.has(key)) found.set(key, value);
  }
  return found;
}

export const keyOf = (value: Cell | undefined): string => JSON.stringify(value ?? null);
