/** Formats values as dashboards name formats (`usd0`, `percent1`, `duration_ms`, …), or by column type. */
import type { Cell } from "../api/types";
import { bytes } from "./number";
import { duration } from "./time";

/** A group without a value: in charts, pivots and filters. */
export const EMPTY = "(empty)";

type Family = "number" | "time" | "other";

const NUMBERS =
  /^(?:u?int(?:8|16|32|64)|float(?:32|64)|decimal|u?hugeint|bignum|varint|u?(?:tinyint|smallint|integer|bigint)|float|double|real)$/;

/** Kind of a column, for panels and charts. */
export function familyOf(type: string): Family {
  const lower = type.toLowerCase();
  if (lower.endsWith("]")) return "other";
  const base = lower.split("(")[0]?.trim() ?? "";
  if (NUMBERS.test(base)) return "number";
  return base === "date" || base.startsWith("time") ? "time" : "other";
}

export const isNumeric = (type: string): boolean => familyOf(type) === "number";

/** Number of a cell (decimals and large integers are strings); null if it isn't one. */
export function numeric(value: Cell | undefined): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "string" || value.trim() === "") return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** Milliseconds of a date, time or timestamp; values without a zone are read as UTC. */
export function instant(value: Cell | undefined): number | null {
  if (typeof value !== "string") return null;
  const text = /^\d{2}:\d{2}/.test(value) ? `1970-01-01T${value}` : value;
  const zoned = /T/.test(text) && !/(?:Z|[+-]\d{2}:?\d{2})$/.test(text) ? `${text}Z` : text;
  const time = Date.parse(zoned);
  return Number.isNaN(time) ? null : time;
}

const DAY_MS = 86_400_000;
/** A midnight without a time zone, or in UTC. */
const MIDNIGHT = /[T ]00:00(?::00(?:\.0+)?)?(?:Z|[+-]00(?::?00)?)?$/;

/** Whether values of a timestamp are days, quarters or the like: all are midnights. Null is neither. */
export function areDays(values: readonly (Cell | undefined)[]): boolean {
  const there = values.filter((value) => value !== null && value !== undefined);
  return there.length > 0 && there.every((value) => (instant(value) ?? 1) % DAY_MS === 0);
}

/** A day as `2025-02-01`, without its midnight. */
export const dayOnly = (value: Cell): Cell => (typeof value === "string" ? value.replace(MIDNIGHT, "") : value);

const decimals = (least: number, most = least, more: Intl.NumberFormatOptions = {}) =>
  new Intl.NumberFormat(undefined, { minimumFractionDigits: least, maximumFractionDigits: most, ...more });
const money = (currency: string, digits: number) => decimals(digits, digits, { style: "currency", currency });

const NUMBER_FORMATS: Record<string, Intl.NumberFormat> = {
  number: decimals(0, 3),
  integer: decimals(0),
  decimal1: decimals(1),
  decimal2: decimals(2),
  compact: decimals(0, 1, { notation: "compact" }),
  percent: decimals(0, 0, { style: "percent" }),
  percent1: decimals(1, 1, { style: "percent" }),
  // Of a table's own values, with their digits; dashboards don't name it.
  percentage: decimals(0, 6, { style: "percent" }),
  usd: money("USD", 2),
  usd0: money("USD", 0),
  eur: money("EUR", 2),
  eur0: money("EUR", 0),
  gbp: money("GBP", 2),
  gbp0: money("GBP", 0),
};
/** Short formats for axes. */
const SHORT: Record<string, Intl.NumberFormat> = {
  percent: decimals(0, 1, { style: "percent" }),
  usd: decimals(0, 1, { style: "currency", currency: "USD", notation: "compact" }),
  eur: decimals(0, 1, { style: "currency", currency: "EUR", notation: "compact" }),
  gbp: decimals(0, 1, { style: "currency", currency: "GBP", notation: "compact" }),
  compact: decimals(0, 1, { notation: "compact" }),
  number: decimals(0, 3),
};

const days = (options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat(undefined, { timeZone: "UTC", ...options });
const TIME_FORMATS: Record<string, Intl.DateTimeFormat> = {
  date: days({ dateStyle: "medium" }),
  datetime: days({ dateStyle: "medium", timeStyle: "medium" }),
  time: days({ timeStyle: "medium" }),
  month: days({ year: "numeric", month: "short" }),
  year: days({ year: "numeric" }),
};

/** A time in a named format. */
export const timeWritten = (ms: number, format: string): string =>
  format === "quarter" ? quarterWritten(ms) : ((TIME_FORMATS[format] ?? TIME_FORMATS.date)?.format(ms) ?? "");

/** `Q3 2025`. */
const quarterWritten = (ms: number): string =>
  `Q${Math.floor(new Date(ms).getUTCMonth() / 3) + 1} ${new Date(ms).getUTCFullYear()}`;

/** Default format by column type. */
function byType(type: string): string {
  const base = type.toLowerCase().split("(")[0] ?? "";
  if (familyOf(type) === "number") return "number";
  if (familyOf(type) !== "time") return "text";
  if (base === "date") return "date";
  return base.startsWith("timestamp") ? "datetime" : "time";
}

/** A value without formatting, for the clipboard; null is empty. */
export function plain(value: Cell | undefined): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A value for display; null is empty, and callers decide how to show it. */
export function written(value: Cell | undefined, format: string | undefined, type = "string"): string {
  if (value === null || value === undefined) return "";
  const named = format ?? byType(type);
  if (named === "text") return plain(value);
  if (named === "year" && familyOf(type) !== "time") return plain(value);
  if (named in TIME_FORMATS || named === "quarter") {
    const ms = instant(value);
    return ms === null ? plain(value) : timeWritten(ms, named);
  }
  const number = numeric(value);
  if (number === null) return plain(value);
  const form = NUMBER_FORMATS[named];
  // Strings of digits are formatted digit by digit, beyond the precision of numbers.
  if (form) return form.format((typeof value === "string" ? value : number) as number);
  return numberWritten(number, named);
}

/** A number in a named format. */
export function numberWritten(number: number, format = "number"): string {
  const form = NUMBER_FORMATS[format];
  if (form) return form.format(number);
  const sign = number < 0 ? "−" : "";
  if (format === "bytes") return sign + bytes(Math.abs(number));
  if (format === "duration_s") return sign + duration(Math.abs(number) * 1_000);
  if (format === "duration_ms") return sign + duration(Math.abs(number));
  if (format === "year" || format === "text") return String(number);
  return NUMBER_FORMATS.number?.format(number) ?? String(number);
}

/** A number on an axis, compact from ten thousand. */
export function axisWritten(number: number, format = "number"): string {
  if (["bytes", "duration_s", "duration_ms", "year", "text"].includes(format)) return numberWritten(number, format);
  if (format.startsWith("percent")) return (SHORT.percent ?? decimals(0)).format(number);
  const currency = /^[a-z]{3}0?$/.test(format) ? SHORT[format.replace("0", "")] : undefined;
  const large = Math.abs(number) >= 10_000 || format === "compact";
  return (currency ?? (large ? SHORT.compact : SHORT.number) ?? decimals(0)).format(number);
}
