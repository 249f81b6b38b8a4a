import { useLayoutEffect, useRef, useState } from "preact/hooks";
import {
  scrolledIntoView,
  physicalHeight,
  scrolled,
  alignedPosition,
  isStuck,
  toPhysical,
  type ScrollPosition,
} from "../../components/grid/geometry";

/** Overscan rows on each side. */
const OVERSCAN_ROWS = 10;
/** Delay before the bar is realigned, in milliseconds. */
const SETTLE_MS = 150;

interface Seen {
  first: number;
  end: number;
  /** Height of the box; 0 while hidden. */
  height: number;
  /** Offset of row positions: the full height may exceed the limit of browsers. */
  shift: number;
}

const same = (a: Seen, b: Seen): boolean =>
  a.first === b.first && a.end === b.end && a.height === b.height && a.shift === b.shift;

/** Virtual scrolling of rows of equal height. */
export function useWindow(total: number, rowPx: number) {
  const box = useRef<HTMLDivElement>(null);
  const place = useRef<ScrollPosition>({ physical: 0, virtual: 0 });
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const [seen, setSeen] = useState<Seen>({ first: 0, end: 50, height: 0, shift: 0 });
  const full = total * rowPx;
  const extent = () => ({ full, view: box.current?.clientHeight ?? 0 });
  const look = () => {
    const node = box.current;
    if (!node) return;
    const { physical, virtual } = place.current;
    const height = node.clientHeight;
    const first = Math.max(0, Math.floor(virtual / rowPx) - OVERSCAN_ROWS);
    const end = Math.ceil((virtual + height) / rowPx) + OVERSCAN_ROWS;
    const next = { first, end, height, shift: physical - virtual };
    setSeen((now) => (same(now, next) ? now : next));
  };
  /** Moves the bar and the visible rows. */
  const put = (virtual: number) => {
    const node = box.current;
    if (!node) return;
    node.scrollTop = alignedPosition({ physical: 0, virtual }, extent());
    place.current = { physical: node.scrollTop, virtual };
    look();
  };
  const onScroll = () => {
    const node = box.current;
    if (!node) return;
    place.current = scrolled(place.current, node.scrollTop, extent());
    if (isStuck(place.current, extent())) put(place.current.virtual);
    look();
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      const { physical, virtual } = place.current;
      if (Math.abs(toPhysical(virtual, extent()) - physical) >= 1) put(virtual);
    }, SETTLE_MS);
  };
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return undefined;
    look();
    const observer = new ResizeObserver(look);
    observer.observe(node);
    return () => {
      observer.disconnect();
      clearTimeout(timer.current);
    };
    // Runs once: the callback reads current values itself.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  useLayoutEffect(() => {
    // The number of rows may have changed.
    if (box.current) place.current = scrolled(place.current, box.current.scrollTop, extent());
    look();
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [full]);
  const reveal = (row: number, middle = false) => {
    const { view } = extent();
    const [top, bottom] = [row * rowPx, (row + 1) * rowPx];
    const at = middle ? top - view / 2 : scrolledIntoView(place.current.virtual, view, top, bottom);
    const virtual = Math.min(Math.max(0, Math.round(at)), Math.max(0, full - view));
    if (virtual !== place.current.virtual) put(virtual);
  };
  const end = Math.min(total, seen.end);
  return {
    box,
    onScroll,
    reveal,
    height: seen.height,
    first: Math.min(seen.first, Math.max(0, end - 1)),
    end,
    shift: seen.shift,
    /** Total height within the limit of browsers. */
    space: physicalHeight(full),
  };
}
