import { isMac } from "../../browser/shortcuts";
import type { SortKey } from "./types";

/** Row -1 is the header. */
export interface Cursor {
  row: number;
  column: number;
}

interface Bounds {
  rows: number;
  columns: number;
  /** Rows per Page Up or Page Down. */
  page: number;
}

type Key = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "shiftKey" | "altKey">;

export const hasMod = (key: Key): boolean => (isMac ? key.metaKey : key.ctrlKey);

/** Target of a navigation key; undefined for other keys. */
export function moved(at: Cursor, key: Key, { rows, columns, page }: Bounds): Cursor | undefined {
  if (key.altKey || key.shiftKey) return undefined;
  const far = hasMod(key);
  const row = (to: number): Cursor => ({ row: Math.min(Math.max(to, -1), rows - 1), column: at.column });
  const column = (to: number): Cursor => ({ row: at.row, column: Math.min(Math.max(to, 0), columns - 1) });
  switch (key.key) {
    case "ArrowUp":
      return far ? row(Math.min(0, rows - 1)) : row(at.row - 1);
    case "ArrowDown":
      return row(far ? rows - 1 : at.row + 1);
    case "ArrowLeft":
      return column(far ? 0 : at.column - 1);
    case "ArrowRight":
      return column(far ? columns - 1 : at.column + 1);
    case "PageUp":
      return row(Math.max(Math.min(at.row, 0), at.row - page));
    case "PageDown":
      return row(at.row + page);
    case "Home":
      return far ? { row: Math.min(0, rows - 1), column: 0 } : column(0);
    case "End":
      return far ? { row: rows - 1, column: Math.max(0, columns - 1) } : column(columns - 1);
    default:
      return undefined;
  }
}

/** Cycles a column: ascending, descending, unsorted. With `more`, other columns stay. */
export function nextSort(sort: SortKey[], column: string, more: boolean): SortKey[] {
  const known = sort.find((one) => one.column === column);
  const next: SortKey | undefined = !known
    ? { column, descending: false }
    : known.descending
      ? undefined
      : { column, descending: true };
  if (!more) return next ? [next] : [];
  if (!known) return next ? [...sort, next] : sort;
  return sort.flatMap((one) => (one.column === column ? (next ? [next] : []) : [one]));
}
