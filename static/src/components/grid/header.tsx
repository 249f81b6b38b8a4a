import { ArrowDown, ArrowUp } from "lucide-preact";
import type { ComponentChildren, RefObject } from "preact";
import { memo } from "preact/compat";
import { useRef } from "preact/hooks";
import { typeWords } from "../../format/types";
import type { Range } from "./geometry";
import { cellId, FIRST_COLUMN, type Layout } from "./row";
import type { GridColumn, SortKey } from "./types";
import { clampWidth, isNumericColumn } from "./widths";

interface Props {
  grid: string;
  header: RefObject<HTMLDivElement>;
  layout: Layout;
  drawn: Range;
  /** Column of the cursor, if it is in the header. */
  active: number | undefined;
  sort: SortKey[];
  onSort: ((column: string, more: boolean) => void) | undefined;
  /** `width` undefined: fit to the values. */
  onResize: (column: number, width: number | undefined) => void;
  head: ((column: GridColumn) => ComponentChildren) | undefined;
}

/** Resize handle: drag to resize, double-click to fit. */
function Edge({ at, width, onResize }: { at: number; width: number; onResize: Props["onResize"] }) {
  const from = useRef<{ x: number; width: number }>();
  const move = (event: PointerEvent) => {
    if (from.current) onResize(at, clampWidth(from.current.width + event.clientX - from.current.x));
  };
  return (
    <div
      class="grid-edge"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.preventDefault();
        event.stopPropagation();
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = { x: event.clientX, width };
      }}
      onPointerMove={move}
      onPointerUp={() => (from.current = undefined)}
      onPointerCancel={() => (from.current = undefined)}
      onDblClick={(event) => {
        event.stopPropagation();
        onResize(at, undefined);
      }}
    />
  );
}

function SortMark({ sort, name }: { sort: SortKey[]; name: string }) {
  const at = sort.findIndex((one) => one.column === name);
  const key = sort[at];
  if (!key) return null;
  return (
    <span class="grid-sorted">
      {key.descending ? <ArrowDown aria-hidden="true" /> : <ArrowUp aria-hidden="true" />}
      {sort.length > 1 && at + 1}
    </span>
  );
}

const SORTED = { true: "descending", false: "ascending" } as const;

/** Memoized: doesn't render for each new row. */
export const GridHeader = memo(function GridHeader(props: Props) {
  const { grid, header, layout, drawn, active, sort, onSort, onResize, head } = props;
  const { columns, offsets, gutter, width } = layout;
  const cells = [];
  for (let at = drawn.first; at < drawn.end; at += 1) {
    const column = columns[at];
    if (!column) continue;
    const wide = (offsets[at + 1] ?? 0) - (offsets[at] ?? 0);
    const key = sort.find((one) => one.column === column.name);
    cells.push(
      <div
        key={at}
        role="columnheader"
        id={cellId(grid, -1, at)}
        aria-colindex={at + FIRST_COLUMN}
        aria-sort={key ? SORTED[`${key.descending}`] : undefined}
        data-column={at}
        class={`grid-head ${isNumericColumn(column) ? "number" : ""} ${active === at ? "active" : ""}`}
        style={{ width: `${wide}px` }}
      >
        {onSort ? (
          <button
            type="button"
            tabIndex={-1}
            class="grid-title"
            title={`${column.name}: sort (Shift to add to the sort)`}
            onClick={(event) => onSort(column.name, event.shiftKey)}
          >
            <span class="cut">{column.name}</span>
            <SortMark sort={sort} name={column.name} />
          </button>
        ) : (
          <span class="grid-title" title={column.name}>
            <span class="cut">{column.name}</span>
          </span>
        )}
        <span class="grid-type cut" title={column.type}>
          {typeWords(column.type).replace(/^(whole|decimal) /, "")}
        </span>
        {column.note}
        {head?.(column)}
        <Edge at={at} width={wide} onResize={onResize} />
      </div>,
    );
  }
  return (
    <div ref={header} class="grid-header" role="rowgroup" style={{ width: `${width}px` }}>
      <div role="row" aria-rowindex={1} data-row={-1} class="grid-header-row">
        <div role="columnheader" aria-colindex={1} class="grid-corner" style={{ width: `${gutter}px` }}>
          <span class="for-readers">Row</span>
        </div>
        <div role="presentation" class="grid-gap" style={{ width: `${offsets[drawn.first] ?? 0}px` }} />
        {cells}
      </div>
    </div>
  );
});
