import { plain } from "../../format/values";
import { memo } from "preact/compat";
import { Link } from "wouter-preact";
import type { Cell, Row } from "../../api/types";
import { count } from "../../format/number";
import { ROW_PX, type Range } from "./geometry";
import type { GridColumn, Marked } from "./types";
import { isNumericColumn } from "./widths";
import { cutTo, shown, TITLE_MAX } from "./value";

export interface Layout {
  columns: GridColumn[];
  offsets: number[];
  gutter: number;
  width: number;
}

export const cellId = (grid: string, row: number, column: number): string => `${grid}-${row}-${column}`;

interface CellProps {
  id: string;
  at: number;
  column: GridColumn;
  left: number;
  width: number;
  value: Cell;
  row: Row;
  active: boolean;
  mark: Marked | undefined;
}

function GridCell({ id, at, column, left, width, value, row, active, mark }: CellProps) {
  const { text, kind } = column.format
    ? { text: column.format(value), kind: shown(value, column.type).kind }
    : shown(value, column.type, column.naming);
  const whole = value === null ? undefined : cutTo(plain(value), TITLE_MAX);
  const href = column.link?.(value, row);
  return (
    <div
      role="gridcell"
      id={id}
      aria-colindex={at + 2}
      aria-selected={active}
      data-column={at}
      class={`grid-cell ${kind} ${isNumericColumn(column) ? "right" : ""} ${mark ? mark.tone : ""} ${active ? "active" : ""}`}
      style={{ left: `${left}px`, width: `${width}px` }}
      title={mark ? mark.title : whole}
    >
      {href ? (
        <Link href={href} tabIndex={-1}>
          {text}
        </Link>
      ) : (
        text
      )}
    </div>
  );
}

interface Props {
  grid: string;
  index: number;
  top: number;
  row: Row | undefined;
  layout: Layout;
  drawn: Range;
  /** The column under the cursor, if it is in this row. */
  active: number | undefined;
  opens: boolean;
  mark: ((row: number, column: number) => Marked | undefined) | undefined;
}

/** One row; drawn anew only when something of it has changed. */
export const GridRow = memo(function GridRow({ grid, index, top, row, layout, drawn, active, opens, mark }: Props) {
  const { columns, offsets, gutter, width } = layout;
  const cells = [];
  for (let at = drawn.first; at < drawn.end; at += 1) {
    const column = columns[at];
    if (!column) continue;
    const left = gutter + (offsets[at] ?? 0);
    const wide = (offsets[at + 1] ?? 0) - (offsets[at] ?? 0);
    const id = cellId(grid, index, at);
    cells.push(
      row ? (
        <GridCell
          key={at}
          id={id}
          at={at}
          column={column}
          left={left}
          width={wide}
          value={row[at] ?? null}
          row={row}
          active={active === at}
          mark={mark?.(index, at)}
        />
      ) : (
        <div
          key={at}
          role="gridcell"
          id={id}
          aria-colindex={at + 2}
          aria-busy="true"
          data-column={at}
          class={`grid-cell waiting ${active === at ? "active" : ""}`}
          style={{ left: `${left}px`, width: `${wide}px` }}
        />
      ),
    );
  }
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      data-row={index}
      class={active === undefined ? "grid-row" : "grid-row active"}
      style={{ top: `${top}px`, width: `${width}px`, height: `${ROW_PX}px` }}
    >
      <div
        role="rowheader"
        aria-colindex={1}
        class={opens ? "grid-number opens" : "grid-number"}
        style={{ width: `${gutter}px` }}
        title={opens ? `Open row ${count(index + 1)}` : undefined}
      >
        {count(index + 1)}
      </div>
      {cells}
    </div>
  );
});
