/** Reads result columns for charts. */
import type { Cell, ResultColumn, Row } from "../../api/types";
import { isNaming } from "../../format/naming";
import { count } from "../../format/number";
import { EMPTY, familyOf, instant, numeric, plain, timeWritten, written } from "../../format/values";
import type { ChartField, ChartSpec } from "./spec";
import { isCalled, type Step } from "./steps";

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
  /** The times that can be labelled, ascending: the values' months, quarters or years, or the firsts of months. */
  units?: number[];
  /** Whether times span so many years that a year is a step of its own. */
  isLong?: boolean;
  /** Whether times are days of few weeks, so that the first of a month is labelled as a day. */
  isShort?: boolean;
}

const DAY_MS = 86_400_000;
/** Fewer times of a column whose name doesn't say so aren't recognised as quarters. */
const QUARTERS_MIN = 3;

export type Grain = "year" | "quarter" | "month" | "date" | "datetime";

/** Months of a year that times of a grain have. */
export const GRAIN_MONTHS = { year: 12, quarter: 3, month: 1 } as const;

/** The coarsest time unit that fits all values. `name`: of the column, which may name the unit. */
export function grain(times: readonly number[], name = ""): Grain {
  if (times.some((ms) => ms % DAY_MS !== 0)) return "datetime";
  const days = times.map((ms) => new Date(ms));
  if (!days.every((day) => day.getUTCDate() === 1)) return "date";
  const called = (unit: string) => isCalled(name, unit);
  if (times.length < 2 && !["year", "quarter", "month"].some(called)) return "date";
  if (called("month")) return "month";
  const each = (months: number) => days.every((day) => day.getUTCMonth() % months === 0);
  if (each(GRAIN_MONTHS.year) && !called("quarter")) return "year";
  const isQuarters = called("quarter") || new Set(times).size >= QUARTERS_MIN;
  return each(GRAIN_MONTHS.quarter) && isQuarters ? "quarter" : "month";
}

export const kindOf = (type: string): AxisKind =>
  familyOf(type) === "time" ? "time" : familyOf(type) === "number" ? "number" : "category";

/** Position of a value on a continuous axis. */
export const position = (value: Cell | undefined, kind: AxisKind): number | null =>
  kind === "time" ? instant(value) : numeric(value);

/** Label of a value, including null. */
export function labelled(value: Cell | undefined, field: ResolvedField, times = "date"): string {
  if (value === null || value === undefined) return EMPTY;
  if (!field.format && kindOf(field.type) === "time") {
    const ms = instant(value);
    if (ms !== null) return timeWritten(ms, times);
  }
  // Identifiers (years, hours) have no thousands separators.
  if (!field.format && familyOf(field.type) === "number") return plain(value);
  return written(value, field.format, field.type);
}

/** Labels of a field's values, times in the unit of all. */
export function labelsOf(field: ResolvedField, rows: Row[]): (value: Cell | undefined) => string {
  const isTime = kindOf(field.type) === "time";
  const times = isTime ? rows.map((row) => instant(row[field.at])).filter((ms) => ms !== null) : [];
  const unit = isTime ? grain(times, field.field) : undefined;
  return (value) => labelled(value, field, unit);
}

/** Titles and values of a result's columns in a chart's words. */
export function textsOf(
  { x, y, value, series, point }: ChartSpec,
  columns: ResultColumn[],
  rows: Row[],
): { name: string; textOf: (value: Cell | undefined) => string }[] {
  const measures = value ? [...y, value] : y;
  const groups = [x, ...[series, point].flatMap((field) => (field === undefined ? [] : [{ field }]))];
  return columns.map(({ name, type }, at) => {
    const group = groups.find((one) => one.field === name);
    const field: ChartField = group ?? measures.find((one) => one.field === name) ?? { field: name };
    const own = { ...field, at, type, name: field.title || name };
    if (kindOf(type) === "time") return { name: own.name, textOf: labelsOf(own, rows) };
    const format = field.format ?? (isNaming(name, type) ? "text" : undefined);
    const missing = kindOf(type) === "number" && !group ? "no value" : EMPTY;
    return { name: own.name, textOf: (cell) => written(cell, format, type) || (cell === "" ? "" : missing) };
  });
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
