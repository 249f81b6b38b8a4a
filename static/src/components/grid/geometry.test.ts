import { describe, expect, it } from "vitest";
import {
  scrolledIntoView,
  columnRange,
  intersection,
  HEIGHT_MAX,
  isTooFast,
  JUMP,
  offsetsOf,
  physicalHeight,
  ROW_PX,
  rowRange,
  scrolled,
  alignedPosition,
  isStuck,
  toPhysical,
  toVirtual,
  type ScrollPosition,
} from "./geometry";

const view = 600;
const few = { full: 1_000 * ROW_PX, view };
const many = { full: 100_000_000 * ROW_PX, view };

describe("grid within the browser's height limit", () => {
  it("scrolls pixel by pixel", () => {
    expect(physicalHeight(few.full)).toBe(few.full);
    for (const at of [0, 1, 777, few.full - view]) {
      expect(toVirtual(at, few)).toBe(at);
      expect(toPhysical(at, few)).toBe(at);
    }
  });
  it("jumps to the dragged scrollbar position", () => {
    expect(scrolled({ physical: 0, virtual: 0 }, 20_000, few)).toEqual({ physical: 20_000, virtual: 20_000 });
  });
  it("scrolls to its end when rows are removed", () => {
    expect(scrolled({ physical: 0, virtual: 9_999 }, 0, { full: 1_000, view })).toEqual({ physical: 0, virtual: 400 });
    expect(scrolled({ physical: 0, virtual: 50 }, 0, { full: 100, view })).toEqual({ physical: 0, virtual: 0 });
  });
});

describe("grid above the browser's height limit", () => {
  const last = many.full - view;
  const bar = HEIGHT_MAX - view;

  it("has a scroll height that all browsers support", () => expect(physicalHeight(many.full)).toBe(HEIGHT_MAX));
  it("starts and ends with the scrollbar", () => {
    expect(toVirtual(0, many)).toBe(0);
    expect(toVirtual(bar, many)).toBe(last);
    expect(toPhysical(last, many)).toBe(bar);
  });
  it("scrolls pixel by pixel near both ends", () => {
    expect(toVirtual(1_234, many)).toBe(1_234);
    expect(toVirtual(bar - 1_234, many)).toBe(last - 1_234);
  });
  it("maps every row to a scrollbar position, in order", () => {
    let before = -1;
    for (let at = 0; at <= bar; at += 99_991) {
      const virtual = toVirtual(at, many);
      expect(virtual).toBeGreaterThan(before);
      expect(toPhysical(virtual, many)).toBeCloseTo(at, 3);
      before = virtual;
    }
  });

  it.each([0, 3_571, 49_999_999, 99_999_990])("reaches each row near row %d by wheel alone", (row) => {
    let place: ScrollPosition = { physical: Math.round(toPhysical(row * ROW_PX, many)), virtual: row * ROW_PX };
    const seen = new Set<number>();
    for (let step = 0; step < 40; step += 1) {
      place = scrolled(place, Math.min(place.physical + 100, bar), many);
      const end = Math.min(100_000_000, Math.ceil((place.virtual + view) / ROW_PX));
      for (let index = Math.floor(place.virtual / ROW_PX); index < end; index += 1) seen.add(index);
      if (step % 7 === 0) place = { physical: alignedPosition(place, many), virtual: place.virtual };
    }
    const rows = [...seen].sort((a, b) => a - b);
    expect(rows.at(-1)).toBe(Math.min(99_999_999, Math.ceil((row * ROW_PX + 4_000 + view) / ROW_PX) - 1));
    expect(rows.length).toBe((rows.at(-1) ?? 0) - (rows[0] ?? 0) + 1);
  });

  it("scrolls by the wheel distance at any scrollbar position", () => {
    const from: ScrollPosition = { physical: 7_000_000, virtual: 1_000_000_000 };
    expect(scrolled(from, 7_000_240, many).virtual).toBe(1_000_000_240);
    expect(scrolled(from, 6_999_900, many).virtual).toBe(999_999_900);
  });
  it("jumps to the dragged scrollbar position", () => {
    const there = scrolled({ physical: 0, virtual: 0 }, bar / 2, many);
    expect(there.virtual).toBeCloseTo(last / 2, -1);
    expect(scrolled({ physical: 0, virtual: 0 }, JUMP + 1, many).virtual).toBe(JUMP + 1);
  });
  it("keeps scrolling if the scrollbar reaches its end before the rows do", () => {
    expect(isStuck({ physical: 0, virtual: 3_000 }, many)).toBe(true);
    expect(isStuck({ physical: bar, virtual: last - 3_000 }, many)).toBe(true);
    expect(isStuck({ physical: 0, virtual: 0 }, many)).toBe(false);
    expect(isStuck({ physical: bar, virtual: last }, many)).toBe(false);
    const freed: ScrollPosition = { physical: alignedPosition({ physical: 0, virtual: 3_000 }, many), virtual: 3_000 };
    expect(freed.physical).toBe(3_000);
  });
});

describe("rendered range", () => {
  it("has the visible rows and an overscan", () => {
    const { first, end } = rowRange(10_000 * ROW_PX, view, 1_000_000);
    expect(first).toBeLessThan(10_000);
    expect(first).toBeGreaterThan(9_970);
    expect(end).toBeGreaterThan(10_000 + view / ROW_PX);
    expect(end - first).toBeLessThan(80);
  });
  it("doesn't change with each pixel", () => {
    const ranges = Array.from({ length: 56 }, (_, at) => JSON.stringify(rowRange(50_000 + at, view, 1_000_000)));
    expect(new Set(ranges).size).toBeLessThan(4);
  });
  it("ends with the rows", () => {
    expect(rowRange(0, view, 3)).toEqual({ first: 0, end: 3 });
    expect(rowRange(0, view, 0)).toEqual({ first: 0, end: 0 });
  });
  it("is bounded in a parent that grows with its content", () => {
    const { first, end } = rowRange(0, 28_000_000, 1_000_000);
    expect(end - first).toBeLessThanOrEqual(400);
  });
  it("has only a few of two thousand columns", () => {
    const offsets = offsetsOf(Array.from({ length: 2_000 }, () => 100));
    expect(columnRange(offsets, 0, 950)).toEqual({ first: 0, end: 12 });
    const middle = columnRange(offsets, 100_050, 101_000);
    expect(middle).toEqual({ first: 998, end: 1_013 });
    expect(columnRange(offsets, 199_500, 210_000).end).toBe(2_000);
  });
  it("has no columns if there are none", () => {
    expect(columnRange(offsetsOf([]), 0, 500)).toEqual({ first: 0, end: 0 });
  });
});

describe("scrolling a cell into view", () => {
  it("scrolls no further than necessary", () => {
    expect(scrolledIntoView(100, 500, 200, 228)).toBe(100);
    expect(scrolledIntoView(100, 500, 50, 78)).toBe(50);
    expect(scrolledIntoView(100, 500, 590, 618)).toBe(118);
    expect(scrolledIntoView(100, 500, 900, 1_600)).toBe(900);
  });
});

describe("fast scrolling", () => {
  it("is detected until it slows down clearly", () => {
    expect(isTooFast(100, 1_000 / 60, false)).toBe(false);
    expect(isTooFast(400, 1_000 / 60, false)).toBe(true);
    expect(isTooFast(-400, 1_000 / 60, false)).toBe(true);
    // A late frame isn't readable either.
    expect(isTooFast(400, 50, false)).toBe(false);
    expect(isTooFast(400, 50, true)).toBe(true);
    expect(isTooFast(50, 1_000 / 60, true)).toBe(false);
  });
  it("isn't a single jump, however far", () => expect(isTooFast(14_000_000, 150, false)).toBe(false));
  it.each([
    [
      { first: 0, end: 8 },
      { first: 4, end: 12 },
      { first: 4, end: 8 },
    ],
    [
      { first: 4, end: 12 },
      { first: 0, end: 8 },
      { first: 4, end: 8 },
    ],
    [
      { first: 0, end: 4 },
      { first: 8, end: 12 },
      { first: 8, end: 8 },
    ],
    [
      { first: 8, end: 12 },
      { first: 0, end: 4 },
      { first: 4, end: 4 },
    ],
  ])("%j and %j intersect in %j", (a, b, both) => expect(intersection(a, b)).toEqual(both));
});
