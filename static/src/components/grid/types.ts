import type { ComponentChildren } from "preact";
import type { Cell, Row } from "../../api/types";

export interface GridColumn {
  name: string;
  /** As the API names types: `int64`, `decimal(10,2)`, `timestamp`, … Numbers stand right. */
  type: string;
  /** Under the name, e.g. a warning. */
  note?: ComponentChildren;
  /** Says how a value is shown (title: as it is). Without it, by type. */
  format?: (value: Cell) => string;
  /** Its numbers are names (ids, years) and have no separators. Without it, by its name and first values. */
  naming?: boolean;
  /** Where a value leads, as an address within the page (`~/lake`). */
  link?: (value: Cell, row: Row) => string | undefined;
}

/** Where rows come from: all at hand, or page by page from the service. */
export interface RowSource {
  /** How many there are; a grid of a million scrolls as one of ten. */
  total: number;
  /** The row, if it is at hand; else it is on its way or will be asked for. */
  get: (index: number) => Row | undefined;
  /** Rows from `first` to before `end` are or will soon be seen. */
  need?: (first: number, end: number) => void;
  /** Rows that are seen couldn't be read. */
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
  /** What the grid shows, for screen readers. */
  label: string;
  columns: GridColumn[];
  rows: RowSource;
  /** Keeps widths under this name in the browser. */
  name?: string;
  /** The columns by which it is sorted, first first; with `onSort` headers can be clicked. */
  sort?: SortKey[];
  onSort?: (sort: SortKey[]) => void;
  /** Under each header, e.g. a filter. */
  head?: (column: GridColumn) => ComponentChildren;
  /** A row was opened (Enter, double click, its number): show its details. */
  onOpen?: (index: number) => void;
  /** The row that is open: it is brought into view. */
  shown?: number | undefined;
  /** Marks a cell, e.g. one that would be refused; the text is its title. */
  mark?: (row: number, column: number) => Marked | undefined;
  /** What the rows are chosen by (filters): another one is shown from its beginning. */
  chosen?: string;
  /** Below the header, where there are no rows. */
  empty?: ComponentChildren;
  /** So many rows are seen at most before it scrolls; without it the grid is as high as its parent lets it be. */
  rowsShown?: number;
}

/** Rows of an answer, all at hand. */
export const rowsAtHand = (rows: Row[]): RowSource => ({ total: rows.length, get: (index) => rows[index] });
