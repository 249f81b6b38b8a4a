import { plain } from "../../format/values";
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { asFailure } from "../../api/failure";
import { Button } from "../button";
import type { MenuItem } from "../menu";
import { CellMenu } from "./cell-menu";
import { copyText } from "./copy";
import { hasMod, moved, nextSort, type Cursor } from "./cursor";
import { isIn, offsetsOf, ROW_PX, type Range } from "./geometry";
import { GridHeader } from "./header";
import { cellId, FIRST_COLUMN, GridRow, type Layout } from "./row";
import type { GridProps, RowSource, SortKey } from "./types";
import { useColumnStyles } from "./use-column-styles";
import { useScroll } from "./use-scroll";
import { useSideScroll } from "../side-scroll";
import { useWidths } from "./use-widths";
import { asJson, asTabs, cutTo, TITLE_MAX } from "./value";
import { gutterWidth } from "./widths";
import "./grid.css";

export * from "./types";
export { usePages, type FetchPage } from "./pages";
export { copyText } from "./copy";
export { fieldGrid } from "./fields";

const UNSORTED: SortKey[] = [];
/** While rows move too fast to read, only row numbers are rendered. */
const NO_COLUMNS: Range = { first: 0, end: 0 };
/** Keyboard resize step, in pixels. */
const RESIZE_STEP = 16;

/** The cell of an event. */
function cellOf(target: EventTarget | null): Cursor | undefined {
  if (!(target instanceof Element)) return undefined;
  const row = target.closest<HTMLElement>("[data-row]")?.dataset.row;
  // The first is the row number.
  const column = target.closest("[aria-colindex]")?.getAttribute("aria-colindex") ?? FIRST_COLUMN;
  return row === undefined ? undefined : { row: Number(row), column: Math.max(0, Number(column) - FIRST_COLUMN) };
}

/** Sets the full value as the title when a cell is hovered; setting all would be slow. */
function showFullValue(rows: RowSource, target: EventTarget | null): void {
  const cell = target instanceof Element ? target.closest<HTMLElement>(".grid-rows [role=gridcell]") : null;
  const at = cellOf(cell);
  const value = at && rows.get(at.row)?.[at.column];
  if (!cell || cell.matches(".bad, .warn")) return;
  cell.title = value === null || value === undefined ? "" : cutTo(plain(value), TITLE_MAX);
}

/** Header fields handle their own keys. */
const isField = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest("input, select, textarea, [role=menu]") !== null;

/** Virtualized table: sticky header, stable sizes, keyboard navigation, copying. */
export function Grid(props: GridProps) {
  const {
    label,
    columns: given,
    rows,
    name,
    sort = UNSORTED,
    onSort,
    head,
    onOpen,
    shown,
    mark,
    chosen,
    empty,
    rowsShown,
    isNumbered = true,
  } = props;
  const id = useId();
  const [cursor, setCursor] = useState<Cursor>();
  const [menu, setMenu] = useState<{ x: number; y: number; cell: Cursor }>();
  const { columns, widths, resize } = useWidths(given, rows, name, head !== undefined);
  const gutter = gutterWidth(rows.total);
  const layout = useMemo<Layout>(() => {
    const offsets = offsetsOf(widths);
    return { columns, offsets, gutter, width: gutter + (offsets[offsets.length - 1] ?? 0), isNumbered };
  }, [columns, widths, gutter, isNumbered]);
  useColumnStyles(id, layout);
  const box = useRef<HTMLDivElement>(null);
  const {
    scroller,
    header,
    window: drawn,
    height,
    onScroll,
    reveal,
    toTop,
    extent,
  } = useScroll({
    total: rows.total,
    offsets: layout.offsets,
    gutter,
    need: rows.need,
    version: rows,
  });
  useSideScroll(box, scroller);
  // A new order or filter starts at the top.
  const order = JSON.stringify([sort, chosen]);
  const orderBefore = useRef(order);
  useLayoutEffect(() => {
    if (orderBefore.current !== order) toTop();
    orderBefore.current = order;
  }, [order, toTop]);
  const there = shown !== undefined && shown < rows.total ? shown : undefined;
  useLayoutEffect(() => {
    if (there === undefined) return;
    setCursor((before) => ({ row: there, column: before?.column ?? 0 }));
    reveal(there);
    // Scrolls only when the row changes: the user may scroll away from it.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [there]);

  const at =
    cursor && cursor.row < rows.total && cursor.column < columns.length && columns.length > 0 ? cursor : undefined;
  const go = (to: Cursor) => {
    setCursor(to);
    reveal(to.row, to.column);
  };
  const sortBy = useMemo(
    () => onSort && ((column: string, more: boolean) => onSort(nextSort(sort, column, more))),
    [onSort, sort],
  );
  const copyCell = (cell: Cursor) => {
    const column = columns[cell.column];
    const value = cell.row < 0 ? (column?.name ?? "") : plain(rows.get(cell.row)?.[cell.column]);
    void copyText(value, cell.row < 0 ? "the name" : "the cell");
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (isField(event.target)) return;
    const from = at ?? { row: rows.total > 0 ? 0 : -1, column: 0 };
    const page = Math.max(1, Math.floor(extent().view / ROW_PX) - 1);
    const to = at && moved(from, event, { rows: rows.total, columns: columns.length, page });
    const arrow = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (arrow && hasMod(event) && event.shiftKey) resize(from.column, (widths[from.column] ?? 0) + arrow * RESIZE_STEP);
    else if (to) go(to);
    else if (event.key === "Enter" && from.row < 0) sortBy?.(columns[from.column]?.name ?? "", event.shiftKey);
    else if (event.key === "Enter" && onOpen) onOpen(from.row);
    else if (event.key.toLowerCase() === "c" && hasMod(event) && !event.shiftKey && !getSelection()?.toString())
      copyCell(from);
    else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) openMenu(from);
    else return;
    event.preventDefault();
  };

  const openMenu = (cell: Cursor) => {
    const box = document.getElementById(cellId(id, cell.row, cell.column))?.getBoundingClientRect();
    if (box) setMenu({ x: box.left, y: box.bottom, cell });
  };
  const closeMenu = () => {
    setMenu(undefined);
    scroller.current?.focus();
  };

  const drawnRows = [];
  for (let index = drawn.rows.first; index < drawn.rows.end; index += 1) {
    drawnRows.push(
      <GridRow
        key={index}
        grid={id}
        index={index}
        top={index * ROW_PX + drawn.shift}
        row={rows.get(index)}
        layout={layout}
        drawn={isIn(index, drawn.whole) ? drawn.columns : NO_COLUMNS}
        active={at?.row === index ? at.column : undefined}
        opens={onOpen !== undefined}
        mark={mark}
      />,
    );
  }
  const isDrawn =
    at &&
    (at.row < 0 || isIn(at.row, drawn.whole)) &&
    at.column >= drawn.columns.first &&
    at.column < drawn.columns.end;
  return (
    <div ref={box} class="grid" style={{ "--side-start": `${gutter}px` }}>
      <div
        ref={scroller}
        class={rowsShown ? "grid-scroll bounded" : "grid-scroll"}
        role="grid"
        tabIndex={0}
        aria-label={label}
        aria-rowcount={rows.total + 1}
        aria-colcount={columns.length + 1}
        aria-activedescendant={isDrawn ? cellId(id, at.row, at.column) : undefined}
        style={rowsShown ? { "--grid-rows": Math.min(rowsShown, Math.max(1, rows.total)) } : undefined}
        onScroll={onScroll}
        onKeyDown={onKeyDown}
        onFocus={(event) => {
          if (event.target === event.currentTarget && !at) setCursor({ row: rows.total > 0 ? 0 : -1, column: 0 });
        }}
        onPointerOver={(event) => showFullValue(rows, event.target)}
        onPointerDown={(event) => {
          const cell = isField(event.target) ? undefined : cellOf(event.target);
          if (cell) setCursor(cell);
        }}
        onClick={(event) => {
          const number = event.target instanceof Element && event.target.closest(".grid-number");
          const cell = number ? cellOf(number) : undefined;
          if (cell && onOpen) onOpen(cell.row);
        }}
        onDblClick={(event) => {
          const cell = cellOf(event.target);
          if (cell && cell.row >= 0) onOpen?.(cell.row);
        }}
        onContextMenu={(event) => {
          const cell = isField(event.target) ? undefined : cellOf(event.target);
          if (!cell) return;
          event.preventDefault();
          setCursor(cell);
          setMenu({ x: event.clientX, y: event.clientY, cell });
        }}
      >
        <GridHeader
          grid={id}
          header={header}
          layout={layout}
          drawn={drawn.columns}
          active={at?.row === -1 ? at.column : undefined}
          sort={sort}
          onSort={sortBy}
          onResize={resize}
          head={head}
        />
        <div role="rowgroup" class="grid-rows" style={{ height: `${height}px`, width: `${layout.width}px` }}>
          {drawnRows}
        </div>
      </div>
      {rows.total === 0 && empty && <div class="grid-empty">{empty}</div>}
      {rows.failure && (
        <div class="grid-failure row" role="alert">
          <span class="grow">Couldn't load some rows: {asFailure(rows.failure.error).message}</span>
          <Button onClick={rows.failure.retry}>Try again</Button>
        </div>
      )}
      {menu && (
        <CellMenu label="Cell" at={menu} onClose={closeMenu} items={menuItems(props, menu.cell, copyCell, resize)} />
      )}
    </div>
  );
}

function menuItems(
  { columns, rows, onOpen, onSort, columnItems }: GridProps,
  cell: Cursor,
  copyCell: (cell: Cursor) => void,
  resize: (column: number, width: number | undefined) => void,
): MenuItem[] {
  const column = columns[cell.column]?.name ?? "";
  const row = rows.get(cell.row);
  const names = columns.map((one) => one.name);
  if (cell.row < 0) {
    return [
      ...(onSort
        ? [
            { label: "Sort ascending", onSelect: () => onSort([{ column, descending: false }]) },
            { label: "Sort descending", onSelect: () => onSort([{ column, descending: true }]) },
            { label: "Clear sort", onSelect: () => onSort([]) },
          ]
        : []),
      { label: "Copy name", onSelect: () => copyCell(cell) },
      { label: "Fit width to values", onSelect: () => resize(cell.column, undefined) },
      ...(columnItems?.(column) ?? []),
    ];
  }
  if (!row) return [{ label: "Loading row…", disabled: true, onSelect: () => undefined }];
  return [
    ...(onOpen ? [{ label: "Open row", onSelect: () => onOpen(cell.row) }] : []),
    { label: "Copy cell", onSelect: () => copyCell(cell) },
    {
      label: "Copy row",
      hint: "Tab-separated, for spreadsheets",
      onSelect: () => void copyText(asTabs(row), "the row"),
    },
    { label: "Copy row as JSON", onSelect: () => void copyText(asJson(names, row), "the row") },
  ];
}
