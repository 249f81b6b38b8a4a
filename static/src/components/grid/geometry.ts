/**
 * Layout of rows and columns, and virtual scrolling.
 *
 * Browsers limit elements to 16 to 33 million pixels. Larger grids map the full height ("virtual" pixels) to a scroll
 * bar of `HEIGHT_MAX` ("physical" pixels). The mapping is 1:1 near both ends and coarser in between. Wheel, touch and
 * keys always move pixel by pixel; only a movement larger than `JUMP` counts as a drag of the bar. So every row is
 * reachable.
 */
export const ROW_PX = 28;
/** Below 2^24, where the 32-bit floats of browser layout still resolve single pixels. */
export const HEIGHT_MAX = 15_000_000;
const EDGE = 100_000;
export const JUMP = 5_000;
/** Maximum number of rendered rows, whatever the parent's height. */
const ROWS_DRAWN_MAX = 400;
const ROWS_AHEAD = 12;
/** Ranges are multiples of it, so that few scroll events render. */
const ROWS_STEP = 4;
const COLUMNS_AHEAD = 2;

/** Total and visible height, in pixels. */
export interface Extent {
  full: number;
  view: number;
}

export const physicalHeight = (full: number): number => Math.min(full, HEIGHT_MAX);

function ends({ full, view }: Extent): { virtual: number; physical: number; edge: number } {
  const virtual = Math.max(0, full - view);
  const physical = Math.max(0, physicalHeight(full) - view);
  return { virtual, physical, edge: Math.min(EDGE, physical / 4) };
}

/** Virtual offset for a scroll position. */
export function toVirtual(at: number, extent: Extent): number {
  const { virtual, physical, edge } = ends(extent);
  if (virtual === physical || at <= edge) return Math.min(at, virtual);
  if (at >= physical - edge) return Math.max(0, virtual - Math.max(0, physical - at));
  return edge + ((at - edge) * (virtual - 2 * edge)) / (physical - 2 * edge);
}

/** Scroll position for a virtual offset. */
export function toPhysical(at: number, extent: Extent): number {
  const { virtual, physical, edge } = ends(extent);
  if (virtual === physical || at <= edge) return Math.min(at, physical);
  if (at >= virtual - edge) return Math.max(0, physical - Math.max(0, virtual - at));
  return edge + ((at - edge) * (physical - 2 * edge)) / (virtual - 2 * edge);
}

/** A scroll position with its virtual offset. */
export interface ScrollPosition {
  physical: number;
  virtual: number;
}

/** New position after scrolling to `physical`. */
export function scrolled(from: ScrollPosition, physical: number, extent: Extent): ScrollPosition {
  const by = physical - from.physical;
  const last = Math.max(0, extent.full - extent.view);
  if (by === 0) return { physical, virtual: Math.min(from.virtual, last) };
  const far = Math.abs(by) > JUMP;
  const virtual = far ? Math.round(toVirtual(physical, extent)) : from.virtual + by;
  return { physical, virtual: Math.min(Math.max(virtual, 0), last) };
}

/** Scroll position that matches the virtual offset after pixel-wise moves. */
export const alignedPosition = (place: ScrollPosition, extent: Extent): number =>
  Math.round(toPhysical(place.virtual, extent));

/** Whether the bar is at an end but the rows aren't; it must be realigned to continue. */
export function isStuck(place: ScrollPosition, extent: Extent): boolean {
  const { virtual, physical } = ends(extent);
  return (place.physical <= 0 && place.virtual > 0) || (place.physical >= physical && place.virtual < virtual);
}

export interface Range {
  first: number;
  /** Exclusive. */
  end: number;
}

export const sameRange = (a: Range, b: Range): boolean => a.first === b.first && a.end === b.end;

export const isIn = (at: number, { first, end }: Range): boolean => at >= first && at < end;

/** Intersection. */
export function intersection(a: Range, b: Range): Range {
  const first = Math.min(Math.max(a.first, b.first), b.end);
  return { first, end: Math.max(first, Math.min(a.end, b.end)) };
}

/** Rows to render: visible ones plus overscan, unless scrolling is too fast. */
export function rowRange(virtual: number, view: number, total: number, by = 0): Range {
  const ahead = Math.abs(by) > view ? 0 : ROWS_AHEAD;
  const top = Math.floor(virtual / ROW_PX) - ahead;
  const bottom = Math.ceil((virtual + view) / ROW_PX) + ahead;
  const first = Math.max(0, Math.floor(top / ROWS_STEP) * ROWS_STEP);
  const end = Math.min(total, Math.ceil(bottom / ROWS_STEP) * ROWS_STEP, first + ROWS_DRAWN_MAX);
  return { first: Math.min(first, Math.max(0, end)), end: Math.max(0, end) };
}

/** Speed above which rows are unreadable (three frames or less), in pixels per millisecond. */
const FAST_SPEED = 16;
/** Speed below which rows are readable again. Separate, because a late frame makes movement seem slow. */
const SLOW_SPEED = 4;

/** After a longer pause a movement is new and may start with a jump; in milliseconds. */
const NEW_MOVEMENT_MS = 100;

/** Whether rows move too fast to read: `by` pixels within `ms`. */
export const isTooFast = (by: number, ms: number, before: boolean): boolean =>
  (before || ms < NEW_MOVEMENT_MS) && Math.abs(by) > (before ? SLOW_SPEED : FAST_SPEED) * Math.max(1, ms);

/** Start of each column, plus the end of the last. */
export function offsetsOf(widths: number[]): number[] {
  const offsets = [0];
  let at = 0;
  for (const width of widths) offsets.push((at += width));
  return offsets;
}

/** Columns to render between two pixels. */
export function columnRange(offsets: number[], from: number, to: number): Range {
  const last = offsets.length - 1;
  const first = Math.max(0, columnAt(offsets, from) - COLUMNS_AHEAD);
  const end = Math.min(last, columnAt(offsets, to) + 1 + COLUMNS_AHEAD);
  return { first: Math.min(first, last), end };
}

/** Last column that starts at or before a pixel. */
function columnAt(offsets: number[], pixel: number): number {
  let low = 0;
  let high = Math.max(0, offsets.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((offsets[middle] ?? 0) <= pixel) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Smallest scroll that brings `from` to `to` into a view of `size` at `at`. */
export function scrolledIntoView(at: number, size: number, from: number, to: number): number {
  if (from < at || to - from > size) return from;
  return to > at + size ? to - size : at;
}
