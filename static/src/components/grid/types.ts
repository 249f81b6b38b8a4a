import type { ComponentChildren } from "preact";
import type { Cell, Row } from "../../api/types";
import type { MenuItem } from "../menu";

export interface GridColumn {
  name: string;
  /** Type as in the API: `int64`, `decimal(10,2)`, `timestamp`, … Numbers are right-aligned. */
  type: string;
  /** Shown below the name, such as a warning. */
  note?: ComponentChildren;
  /** Formats a value; default: by type. */
  format?: (value: Cell) => string;
  /** Whether numbers are identifiers (IDs, years) without separators; default: guessed from name and values. */
  naming?: boolean;
  /** Link target of a value within the app (`~/lake`). */
  link?: (value: Cell, row: Row) => string | undefined;
}

/** Source of rows: in memory, or loaded page by page. */
export interface RowSource {
  /** Total row count. */
  total: number;
  /** The row, if loaded. */
  get: (index: number) => Row | undefined;
  /** Requests rows from `first` to before `end`. */
  need?: (first: number, end: number) => void;
  /** Error while loading visible rows. */
  failure?: { error: unknown; retry: () => void } | undefined;
}

export interface SortKey {
  column: string;
  descending: boolean;
}

export interface Marked {
  tone: "bad" | "warn";
  title: string;
}

export interface GridProps {
  /** Accessible name. */
  label: string;
  columns: GridColumn[];
  rows: RowSource;
  /** Stores widths under this name in the browser. */
  name?: string;
  /** Sort columns, most significant first; `onSort` makes headers clickable. */
  sort?: SortKey[];
  onSort?: (sort: SortKey[]) => void;
  /** Content below each header, such as a filter. */
  head?: (column: GridColumn) => ComponentChildren;
  /** More items for the context menu of a header. */
  columnItems?: (column: string) => MenuItem[];
  /** Opens a row (Enter, double click, its number). */
  onOpen?: (index: number) => void;
  /** The open row, which is scrolled into view. */
  shown?: number | undefined;
  /** Marks a cell, for instance as rejected; the text is its title. */
  mark?: (row: number, column: number) => Marked | undefined;
  /** Key of the filters; a new key scrolls to the top. */
  chosen?: string;
  /** Shown instead of rows. */
  empty?: ComponentChildren;
  /** Maximum number of visible rows before scrolling; default: the parent's height. */
  rowsShown?: number;
  /** False where the rows' numbers are unknown. */
  isNumbered?: boolean;
}

/** Row source of rows in memory. */
export const rowsInMemory = (rows: Row[]): RowSource => ({ total: rows.length, get: (index) => rows[index] });
