import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import {
  scrolledIntoView,
  columnRange,
  intersection,
  isTooFast,
  physicalHeight,
  ROW_PX,
  rowRange,
  sameRange,
  scrolled,
  alignedPosition,
  isStuck,
  toPhysical,
  type Extent,
  type ScrollPosition,
  type Range,
} from "./geometry";

/** Delay before the bar is realigned, in milliseconds. */
const SETTLE_MS = 150;
/** Delay before rows are fully rendered after fast scrolling, in milliseconds. */
const RENDER_DELAY_MS = 80;

interface Window {
  rows: Range;
  columns: Range;
  /** Difference between physical and virtual position. */
  shift: number;
  /** Rows with rendered cells; excludes those that appeared during fast scrolling. */
  whole: Range;
}

interface Options {
  total: number;
  offsets: number[];
  gutter: number;
  /** Reports visible rows for loading. */
  need: ((first: number, end: number) => void) | undefined;
  /** A new value re-reports the visible rows. */
  version: unknown;
}

const same = (a: Window, b: Window): boolean =>
  a.shift === b.shift && sameRange(a.whole, b.whole) && sameRange(a.rows, b.rows) && sameRange(a.columns, b.columns);

/** Computes what a grid renders for its scroll position. */
export function useScroll({ total, offsets, gutter, need, version }: Options) {
  const scroller = useRef<HTMLDivElement>(null);
  const header = useRef<HTMLDivElement>(null);
  const place = useRef<ScrollPosition>({ physical: 0, virtual: 0 });
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const rest = useRef<ReturnType<typeof setTimeout>>();
  /** Time, distance and speed class of the last scroll. */
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
      const whole = rush ? intersection(before.whole, next.rows) : next.rows;
      if (same(before, { ...next, whole })) return before;
      // Same object, so that rows aren't rendered again.
      return { ...next, whole, columns: sameRange(before.columns, next.columns) ? before.columns : next.columns };
    });
    // Includes overscan; rows that only pass by aren't requested.
    if (!rush && next.rows.end > next.rows.first) need?.(next.rows.first, next.rows.end);
  }, [extent, total, offsets, gutter, need]);

  /** Moves the bar without moving the rows. */
  const put = useCallback((physical: number, virtual: number) => {
    const node = scroller.current;
    if (!node) return;
    node.scrollTop = physical;
    place.current = { physical: node.scrollTop, virtual };
  }, []);

  const settle = useCallback(() => {
    const wanted = alignedPosition(place.current, extent());
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
    pace.current = { at: now, by, rush: isTooFast(by, now - pace.current.at, pace.current.rush) };
    if (isStuck(place.current, extent())) put(alignedPosition(place.current, extent()), place.current.virtual);
    look();
    clearTimeout(timer.current);
    timer.current = setTimeout(settle, SETTLE_MS);
    clearTimeout(rest.current);
    if (pace.current.rush) rest.current = setTimeout(calm, RENDER_DELAY_MS);
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
    // The grid may have fewer rows now.
    place.current = scrolled(place.current, node.scrollTop, extent());
    look();
    const observer = new ResizeObserver(() => look());
    observer.observe(node);
    if (header.current) observer.observe(header.current);
    return () => observer.disconnect();
  }, [extent, look]);

  useEffect(look, [look, version]);

  /** Scrolls a cell or a row into view; row -1 is the header, which always is. */
  const reveal = useCallback(
    (row: number, column?: number) => {
      const node = scroller.current;
      if (!node) return;
      const sizes = extent();
      const top = scrolledIntoView(place.current.virtual, sizes.view, row * ROW_PX, (row + 1) * ROW_PX);
      const virtual = Math.min(Math.max(0, top), Math.max(0, sizes.full - sizes.view));
      if (row >= 0 && virtual !== place.current.virtual) put(Math.round(toPhysical(virtual, sizes)), virtual);
      if (column !== undefined) {
        const [from, to] = [offsets[column] ?? 0, offsets[column + 1] ?? 0];
        node.scrollLeft = scrolledIntoView(node.scrollLeft, node.clientWidth - gutter, from, to);
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
