import { describe, expect, it } from "vitest";
import { dropAt, moveTarget, reordered, resized } from "./arrange-logic";

const box = (left: number, top: number, width: number, height: number) => ({
  left,
  top,
  width,
  height,
  right: left + width,
  bottom: top + height,
});
/** Two panels side by side, and one below that fills the row. */
const boxes = [
  { id: "a", box: box(0, 0, 494, 200) },
  { id: "b", box: box(506, 0, 494, 200) },
  { id: "c", box: box(0, 212, 1_000, 300) },
];

describe("dragging a panel", () => {
  it.each([
    ["c", { x: 100, y: 50 }, { id: "a", side: "left" }, 0],
    ["c", { x: 400, y: 50 }, { id: "a", side: "right" }, 1],
    ["c", { x: 900, y: 50 }, { id: "b", side: "right" }, 2],
    ["a", { x: 100, y: 450 }, { id: "c", side: "bottom" }, 2],
    ["a", { x: 100, y: 230 }, { id: "c", side: "top" }, 1],
    ["a", { x: 700, y: 900 }, { id: "c", side: "bottom" }, 2],
  ] as const)("%s at %j goes beside %j", (id, point, drop, to) => {
    const found = dropAt(boxes, point, id, 1_000);
    expect(found).toEqual(drop);
    expect(moveTarget(["a", "b", "c"], id, drop)).toBe(to);
    expect(reordered(["a", "b", "c"], id, drop).indexOf(id)).toBe(to);
  });
  it("over its own position, or the only panel, changes nothing", () => {
    expect(dropAt(boxes, { x: 100, y: 50 }, "a", 1_000)).toBeUndefined();
    expect(dropAt(boxes.slice(0, 1), { x: 900, y: 900 }, "a", 1_000)).toBeUndefined();
  });
});

describe("resizing a panel", () => {
  const size = { width: 6, height: 320 };
  it("snaps to columns and steps within the grid", () => {
    expect(resized(size, { x: 170, y: 33 }, 1_000)).toEqual({ width: 8, height: 360 });
    expect(resized(size, { x: 9_000, y: 0 }, 1_000)).toEqual({ width: 12, height: 320 });
    expect(resized(size, { x: -9_000, y: -9_000 }, 1_000)).toEqual({ width: 1, height: 80 });
  });
  it("changes only the height in a single-column layout", () =>
    expect(resized(size, { x: 300, y: 60 }, 400)).toEqual({ width: 6, height: 380 }));
});
