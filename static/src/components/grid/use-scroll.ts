import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import {
  brought,
  columnRange,
  common,
  isRush,
  physicalHeight,
  ROW_PX,
  rowRange,
  sameRange,
  scrolled,
  settled,
  stuck,
  toPhysical,
  type Extent,
  type Place,
  type Range,
} from "./geometry";

/** After that long without movement the bar is put where it belongs, in milliseconds. */
const SETTLE_MS = 150;
/** Rows that ran past are drawn whole after that long without movement, in milliseconds. */
const REST_MS = 80;

interface Window {
  rows: Range;
  columns: Range;
  /** What is added to a row's virtual position to get its physical one. */
  shift: number;
  /** Those of the rows whose cells are drawn: all, but for those that came while rows ran past too fast to be read. */
  whole: Range;
}

interface Options {
  total: number;
  offsets: number[];
  gutter: number;
  /** Rows that are seen now, for those who fetch them. */
  need: ((first: number, end: number) => void) | undefined;
  /** Another one: rows have come, or are others; what is needed is told anew. */
  version: unknown;
}

const same = (a: Window, b: Window): boolean =>
  a.shift === b.shift && sameRange(a.whole, b.whole) && sameRange(a.rows, b.rows) && sameRange(a.columns, b.columns);

/** What of a grid is drawn, as its element is scrolled. */
export function useScroll({ total, offsets, gutter, need, version }: Options) {
  const scroller = useRef<HTMLDivElement>(null);
  const header = useRef<HTMLDivElement>(null);
  const place = useRef<Place>({ physical: 0, virtual: 0 });
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const rest = useRef<ReturnType<typeof setTimeout>>();
  /** When it was scrolled last, by how much, and whether too fast to be read. */
  const pace = useRef({ at: 0, by: 0, rush: false });
  const [window_, setWindow] = useState<Window>({
    rows: { first: 0, end: 0 },
    columns: { first: 0, end: 0 },
    shift: 0,
    whole: { first: 0, end: 0 },
  });
  const full = total * ROW_PX;

  const extent = useCallback((): Extent => {
    const node = scroller.current;
    return { full, view: node ? Math.max(0, node.clientHeight - (header.current?.offsetHeight ?? 0)) : 0 };
  }, [full]);

  const look = useCallback(() => {
    const node = scroller.current;
    if (!node) return;
    const { virtual, physical } = place.current;
    const { view } = extent();
    const left = node.scrollLeft;
    const { rush, by } = pace.current;
    const next = {
      rows: rowRange(virtual, view, total, rush ? by : 0),
      columns: columnRange(offsets, left, left + node.clientWidth - gutter),
      shift: physical - virtual,
    };
    setWindow((before) => {
      const whole = rush ? common(before.whole, next.rows) : next.rows;
      if (same(before, { ...next, whole })) return before;
      // The same object, lest every row is drawn anew for it.
      return { ...next, whole, columns: sameRange(before.columns, next.columns) ? before.columns : next.columns };
    });
    // Those drawn around what is seen, too: they are the next that will be. What runs past isn't asked for.
    if (!rush && next.rows.end > next.rows.first) need?.(next.rows.first, next.rows.end);
  }, [extent, total, offsets, gutter, need]);

  /** Moves the bar without moving what is seen. */
  const put = useCallback((physical: number, virtual: number) => {
    const node = scroller.current;
    if (!node) return;
    node.scrollTop = physical;
    place.current = { physical: node.scrollTop, virtual };
  }, []);

  const settle = useCallback(() => {
    const wanted = settled(place.current, extent());
    if (Math.abs(wanted - place.current.physical) < 1) return;
    put(wanted, place.current.virtual);
    look();
  }, [extent, put, look]);

  const calm = useCallback(() => {
    pace.current.rush = false;
    look();
  }, [look]);

  const onScroll = useCallback(() => {
    const node = scroller.current;
    if (!node) return;
    const before = place.current.virtual;
    place.current = scrolled(place.current, node.scrollTop, extent());
    const now = performance.now();
    const by = place.current.virtual - before;
    pace.current = { at: now, by, rush: isRush(by, now - pace.current.at, pace.current.rush) };
    if (stuck(place.current, extent())) put(settled(place.current, extent()), place.current.virtual);
    look();
    clearTimeout(timer.current);
    timer.current = setTimeout(settle, SETTLE_MS);
    clearTimeout(rest.current);
    if (pace.current.rush) rest.current = setTimeout(calm, REST_MS);
  }, [calm, extent, look, put, settle]);

  useEffect(
    () => () => {
      clearTimeout(timer.current);
      clearTimeout(rest.current);
    },
    [],
  );
  useLayoutEffect(() => {
    const node = scroller.current;
    if (!node) return undefined;
    // Rows may have become fewer under the bar.
    place.current = scrolled(place.current, node.scrollTop, extent());
    look();
    const observer = new ResizeObserver(() => look());
    observer.observe(node);
    if (header.current) observer.observe(header.current);
    return () => observer.disconnect();
  }, [extent, look]);

  useEffect(look, [look, version]);

  /** Brings a cell into view, or a row, without moving the columns; row -1 is the header, which always is. */
  const reveal = useCallback(
    (row: number, column?: number) => {
      const node = scroller.current;
      if (!node) return;
      const sizes = extent();
      const top = brought(place.current.virtual, sizes.view, row * ROW_PX, (row + 1) * ROW_PX);
      const virtual = Math.min(Math.max(0, top), Math.max(0, sizes.full - sizes.view));
      if (row >= 0 && virtual !== place.current.virtual) put(Math.round(toPhysical(virtual, sizes)), virtual);
      if (column !== undefined) {
        const [from, to] = [offsets[column] ?? 0, offsets[column + 1] ?? 0];
        node.scrollLeft = brought(node.scrollLeft, node.clientWidth - gutter, from, to);
      }
      look();
    },
    [extent, gutter, look, offsets, put],
  );

  const toTop = useCallback(() => {
    put(0, 0);
    look();
  }, [put, look]);

  return { scroller, header, window: window_, height: physicalHeight(full), onScroll, reveal, toTop, extent };
}
