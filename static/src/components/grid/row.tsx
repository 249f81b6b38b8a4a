import type { ComponentChildren } from "preact";
import { memo } from "preact/compat";
import { Link } from "wouter-preact";
import type { Row } from "../../api/types";
import { count } from "../../format/number";
import type { Range } from "./geometry";
import type { GridColumn, Marked } from "./types";
import { columnClass, rowClass } from "./use-column-styles";
import { isNumericColumn } from "./widths";
import { shown } from "./value";

export interface Layout {
  columns: GridColumn[];
  offsets: number[];
  gutter: number;
  width: number;
  isNumbered: boolean;
}

export const cellId = (grid: string, row: number, column: number): string => `${grid}-${row}-${column}`;

/** `aria-colindex` of the first column; the row number has 1. */
export const FIRST_COLUMN = 2;

interface CellParts {
  classes: string;
  title?: string | undefined;
  content?: ComponentChildren;
}

const WAITING: CellParts = { classes: "waiting" };

/** Classes and content of a cell by column and value. */
function filled(row: Row, index: number, at: number, column: GridColumn, mark: Props["mark"]): CellParts {
  const value = row[at] ?? null;
  const marked = mark?.(index, at);
  const { text, kind } = column.format
    ? { text: column.format(value), kind: shown(value, column.type).kind }
    : shown(value, column.type, column.naming);
  const href = column.link?.(value, row);
  const content = href ? (
    <Link href={href} tabIndex={-1}>
      {text}
    </Link>
  ) : (
    text
  );
  const classes = `${kind} ${isNumericColumn(column) ? "right" : ""} ${marked?.tone ?? ""}`;
  return { classes, title: marked?.title, content };
}

interface Props {
  grid: string;
  index: number;
  top: number;
  row: Row | undefined;
  layout: Layout;
  /** Empty while scrolling is too fast to read. */
  drawn: Range;
  /** Column of the cursor, if it is in this row. */
  active: number | undefined;
  opens: boolean;
  mark: ((row: number, column: number) => Marked | undefined) | undefined;
}

/** Memoized row. */
export const GridRow = memo(function GridRow({ grid, index, top, row, layout, drawn, active, opens, mark }: Props) {
  const { columns } = layout;
  const cells = [];
  for (let at = drawn.first; at < drawn.end; at += 1) {
    const column = columns[at];
    if (!column) continue;
    const isActive = active === at;
    // Only the cell under the cursor is looked up by ID.
    const id = isActive ? cellId(grid, index, at) : undefined;
    const { classes, title, content } = row ? filled(row, index, at, column, mark) : WAITING;
    cells.push(
      <div
        key={at}
        role="gridcell"
        id={id}
        aria-colindex={at + FIRST_COLUMN}
        aria-busy={row ? undefined : "true"}
        aria-selected={(row && isActive) || undefined}
        class={`grid-cell ${classes} ${columnClass(grid, at)} ${isActive ? "active" : ""}`}
        title={title}
      >
        {content}
      </div>,
    );
  }
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      data-row={index}
      class={`grid-row ${rowClass(grid)}${active === undefined ? "" : " active"}`}
      style={{ top: `${top}px` }}
    >
      <div
        role="rowheader"
        aria-colindex={1}
        class={opens ? "grid-number opens" : "grid-number"}
        title={opens ? "Open this row" : undefined}
      >
        {layout.isNumbered && count(index + 1)}
      </div>
      {cells}
    </div>
  );
});
