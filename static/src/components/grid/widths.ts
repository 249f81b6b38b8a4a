/** Column widths: by the first values, or as resized. */
import { isNumeric } from "../../format/values";
import type { Row } from "../../api/types";
import { shown } from "./value";
import type { GridColumn } from "./types";

export const WIDTH_MIN = 56;
const WIDTH_MAX = 1_600;
/** Maximum automatic width, in pixels and as a share of the window: more than one column is visible. */
const AUTO_MAX = 340;
const AUTO_SHARE_MAX = 0.5;
const FILTER_MIN = 112;
const SAMPLED_ROWS = 60;
/** Width of a character in data and in headers, in pixels. */
const DATA_PX = 7.3;
const HEADER_PX = 7.4;
const PADDING = 20;
const HEADER_MORE = 40;

export type Widths = Record<string, number>;

export const isWidths = (value: unknown): value is Widths =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((width) => typeof width === "number" && width >= WIDTH_MIN && width <= WIDTH_MAX);

/** Width in characters; East Asian characters count twice. */
function characterCells(text: string): number {
  let sum = 0;
  for (const char of text) sum += (char.codePointAt(0) ?? 0) >= 0x1100 ? 2 : 1;
  return sum;
}

export const clampWidth = (width: number): number => Math.round(Math.min(Math.max(width, WIDTH_MIN), WIDTH_MAX));

/** Width by type while no rows are known. */
function widthOfType(type: string): number {
  if (type.startsWith("timestamp")) return 26 * DATA_PX;
  if (type === "date") return 11 * DATA_PX;
  if (isNumeric(type)) return 9 * DATA_PX;
  return 0;
}

/** Automatic width by header and first values. */
export function autoWidth(column: GridColumn, at: number, rows: readonly Row[], filtered: boolean): number {
  const header = Math.max(characterCells(column.name), characterCells(column.type)) * HEADER_PX + HEADER_MORE;
  let data = rows.length === 0 ? widthOfType(column.type) : 0;
  for (const row of rows.slice(0, SAMPLED_ROWS)) {
    const value = row[at] ?? null;
    const text = column.format ? column.format(value) : shown(value, column.type, column.naming).text;
    data = Math.max(data, characterCells(text) * DATA_PX);
  }
  const least = filtered ? FILTER_MIN : WIDTH_MIN;
  return clampWidth(Math.min(Math.max(header, data + PADDING, least), AUTO_MAX, innerWidth * AUTO_SHARE_MAX));
}

/** Width of the row-number column. */
export const gutterWidth = (rows: number): number =>
  Math.max(40, Math.ceil(String(rows.toLocaleString()).length * DATA_PX + PADDING));

/** Whether values are right-aligned. */
export const isNumericColumn = (column: GridColumn): boolean => isNumeric(column.type);

/** Effective widths and their setter. */
export function widthsOf(columns: GridColumn[], rows: readonly Row[], kept: Widths, filtered: boolean): number[] {
  return columns.map((column, at) => {
    const own = Object.hasOwn(kept, column.name) ? kept[column.name] : undefined;
    return own ?? autoWidth(column, at, rows, filtered);
  });
}
