/** Reads result columns for charts. */
import type { Cell, ResultColumn, Row } from "../../api/types";
import { count } from "../../format/number";
import { familyOf, instant, numeric, plain, timeWritten, written } from "../../format/values";
import type { ChartField } from "./spec";
import type { Step } from "./steps";

/** A chart field with its column index. */
export interface ResolvedField extends ChartField {
  at: number;
  type: string;
  name: string;
}

/** Resolves a field; undefined if the result doesn't have the column. */
export function resolveField(field: ChartField | undefined, columns: ResultColumn[]): ResolvedField | undefined {
  const at = field ? columns.findIndex(({ name }) => name === field.field) : -1;
  const column = columns[at];
  return field && column ? { ...field, at, type: column.type, name: field.title || field.field } : undefined;
}

type AxisKind = "time" | "number" | "category";

/** Positions along an axis; for categories, indexes into `labels`. */
export interface Axis {
  kind: AxisKind;
  name: string;
  /** For times the label format, for numbers the column's format. */
  format: string;
  labels: string[];
  /** Regular step of times. */
  step?: Step;
  /** Whether times span so many years that a year is a step of its own. */
  isLong?: boolean;
}

const DAY_MS = 86_400_000;

/** The coarsest time unit that fits all values. */
export function grain(times: number[]): "month" | "date" | "datetime" {
  if (times.some((ms) => ms % DAY_MS !== 0)) return "datetime";
  return times.every((ms) => new Date(ms).getUTCDate() === 1) && times.length > 1 ? "month" : "date";
}

export const kindOf = (type: string): AxisKind =>
  familyOf(type) === "time" ? "time" : familyOf(type) === "number" ? "number" : "category";

/** Position of a value on a continuous axis. */
export const position = (value: Cell | undefined, kind: AxisKind): number | null =>
  kind === "time" ? instant(value) : numeric(value);

/** Label of a value, including null. */
export function labelled(value: Cell | undefined, field: ResolvedField, times = "date"): string {
  if (value === null || value === undefined) return "null";
  if (!field.format && kindOf(field.type) === "time") {
    const ms = instant(value);
    if (ms !== null) return timeWritten(ms, times);
  }
  // Identifiers (years, hours) have no thousands separators.
  if (!field.format && familyOf(field.type) === "number") return plain(value);
  return written(value, field.format, field.type);
}

/** Collects notes about data that isn't drawn. */
export class Notes {
  readonly texts: string[] = [];

  /** "Showing 200 of 1,234 categories." */
  cut(shown: number, all: number, what: string): void {
    if (shown < all) this.texts.push(`Showing ${count(shown)} of ${count(all)} ${what}.`);
  }

  say(text: string): void {
    this.texts.push(text);
  }
}

/** Distinct keys of a column in row order, with their values. */
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
