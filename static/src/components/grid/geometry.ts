/**
 * Where rows and columns stand, and which of them are seen.
 *
 * Browsers draw no element higher than 16 to 33 million pixels. A grid whose rows need more has a scroll bar of
 * `HEIGHT_MAX` ("physical" pixels) for the height that its rows would have ("virtual"). Near both ends the two are one
 * to one, in between the bar is coarser. Wheel, touch and keys move rows pixel by pixel all the same: only a movement
 * larger than `JUMP` is taken for one of the bar's. So every row can be reached, and the bar goes anywhere.
 */
export const ROW_PX = 28;
/** Below 2^24, where 32-bit floats, in which browsers place layers, still tell single pixels apart. */
export const HEIGHT_MAX = 15_000_000;
const EDGE = 100_000;
export const JUMP = 5_000;
/** However high a parent lets the grid become, so many rows are drawn at most. */
const ROWS_DRAWN_MAX = 400;
const ROWS_AHEAD = 12;
/** Ranges begin and end on multiples of it, so that few scroll events draw anything. */
const ROWS_STEP = 4;
const COLUMNS_AHEAD = 2;

/** What the rows would need, and what is seen of it, in pixels. */
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

/** What stands at the top when the bar is at `physical`. */
export function toVirtual(at: number, extent: Extent): number {
  const { virtual, physical, edge } = ends(extent);
  if (virtual === physical || at <= edge) return Math.min(at, virtual);
  if (at >= physical - edge) return Math.max(0, virtual - Math.max(0, physical - at));
  return edge + ((at - edge) * (virtual - 2 * edge)) / (physical - 2 * edge);
}

/** Where the bar is when `virtual` stands at the top. */
export function toPhysical(at: number, extent: Extent): number {
  const { virtual, physical, edge } = ends(extent);
  if (virtual === physical || at <= edge) return Math.min(at, physical);
  if (at >= virtual - edge) return Math.max(0, physical - Math.max(0, virtual - at));
  return edge + ((at - edge) * (physical - 2 * edge)) / (virtual - 2 * edge);
}

/** A position of the bar together with what stands at the top there. */
export interface Place {
  physical: number;
  virtual: number;
}

/** The bar was moved to `physical`. */
export function scrolled(from: Place, physical: number, extent: Extent): Place {
  const by = physical - from.physical;
  const last = Math.max(0, extent.full - extent.view);
  if (by === 0) return { physical, virtual: Math.min(from.virtual, last) };
  const far = Math.abs(by) > JUMP;
  const virtual = far ? Math.round(toVirtual(physical, extent)) : from.virtual + by;
  return { physical, virtual: Math.min(Math.max(virtual, 0), last) };
}

/** Where the bar belongs after rows were moved one by one. */
export const settled = (place: Place, extent: Extent): number => Math.round(toPhysical(place.virtual, extent));

/** Whether the bar is at an end and the rows aren't: it must be put right before they can go on. */
export function stuck(place: Place, extent: Extent): boolean {
  const { virtual, physical } = ends(extent);
  return (place.physical <= 0 && place.virtual > 0) || (place.physical >= physical && place.virtual < virtual);
}

export interface Range {
  first: number;
  /** Not included. */
  end: number;
}

export const sameRange = (a: Range, b: Range): boolean => a.first === b.first && a.end === b.end;

export const isIn = (at: number, { first, end }: Range): boolean => at >= first && at < end;

/** What is in both. */
export function common(a: Range, b: Range): Range {
  const first = Math.min(Math.max(a.first, b.first), b.end);
  return { first, end: Math.max(first, Math.min(a.end, b.end)) };
}

/** The rows to draw: those that are seen and some around them, unless the next ones will be others altogether. */
export function rowRange(virtual: number, view: number, total: number, by = 0): Range {
  const ahead = Math.abs(by) > view ? 0 : ROWS_AHEAD;
  const top = Math.floor(virtual / ROW_PX) - ahead;
  const bottom = Math.ceil((virtual + view) / ROW_PX) + ahead;
  const first = Math.max(0, Math.floor(top / ROWS_STEP) * ROWS_STEP);
  const end = Math.min(total, Math.ceil(bottom / ROWS_STEP) * ROWS_STEP, first + ROWS_DRAWN_MAX);
  return { first: Math.min(first, Math.max(0, end)), end: Math.max(0, end) };
}

/** From this speed on no row can be read, in pixels a millisecond: each is seen for three frames or less. */
const RUSH = 16;
/** Below this one rows can be read again. The two are apart, since a frame that comes late makes movement seem slow. */
const CALM = 4;

/** After a longer pause a movement is a new one, whose first step may be a jump: in milliseconds. */
const PAUSE_MS = 100;

/** Whether rows run past too fast to be read, when they moved by `by` pixels, `ms` after they had moved before. */
export const isRush = (by: number, ms: number, before: boolean): boolean =>
  (before || ms < PAUSE_MS) && Math.abs(by) > (before ? CALM : RUSH) * Math.max(1, ms);

/** Where each column begins, and at the end where the last one ends. */
export function offsetsOf(widths: number[]): number[] {
  const offsets = [0];
  let at = 0;
  for (const width of widths) offsets.push((at += width));
  return offsets;
}

/** The columns to draw between two pixels. */
export function columnRange(offsets: number[], from: number, to: number): Range {
  const last = offsets.length - 1;
  const first = Math.max(0, columnAt(offsets, from) - COLUMNS_AHEAD);
  const end = Math.min(last, columnAt(offsets, to) + 1 + COLUMNS_AHEAD);
  return { first: Math.min(first, last), end };
}

/** The last column that begins at or before a pixel. */
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

/** The least movement after which `from` to `to` lies within a view of `size` at `at`. */
export function brought(at: number, size: number, from: number, to: number): number {
  if (from < at || to - from > size) return from;
  return to > at + size ? to - size : at;
}
