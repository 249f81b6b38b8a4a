import { describe, expect, it } from "vitest";
import { moved, nextSort, type Cursor } from "./cursor";

const bounds = { rows: 1_000, columns: 10, page: 20 };
const key = (name: string, mod = false) => ({ key: name, ctrlKey: mod, metaKey: mod, shiftKey: false, altKey: false });

describe("grid cursor", () => {
  it.each<[string, boolean, Cursor, Cursor]>([
    ["ArrowDown", false, { row: 5, column: 3 }, { row: 6, column: 3 }],
    ["ArrowUp", false, { row: 0, column: 3 }, { row: -1, column: 3 }],
    ["ArrowUp", false, { row: -1, column: 3 }, { row: -1, column: 3 }],
    ["ArrowRight", false, { row: 5, column: 9 }, { row: 5, column: 9 }],
    ["ArrowLeft", false, { row: 5, column: 9 }, { row: 5, column: 8 }],
    ["ArrowDown", true, { row: 5, column: 3 }, { row: 999, column: 3 }],
    ["ArrowUp", true, { row: 5, column: 3 }, { row: 0, column: 3 }],
    ["ArrowRight", true, { row: 5, column: 3 }, { row: 5, column: 9 }],
    ["PageDown", false, { row: 5, column: 3 }, { row: 25, column: 3 }],
    ["PageDown", false, { row: 995, column: 3 }, { row: 999, column: 3 }],
    ["PageUp", false, { row: 5, column: 3 }, { row: 0, column: 3 }],
    ["Home", false, { row: 5, column: 3 }, { row: 5, column: 0 }],
    ["End", false, { row: 5, column: 3 }, { row: 5, column: 9 }],
    ["Home", true, { row: 5, column: 3 }, { row: 0, column: 0 }],
    ["End", true, { row: 5, column: 3 }, { row: 999, column: 9 }],
  ])("moves on %s (with the modifier: %s)", (name, mod, from, to) =>
    expect(moved(from, key(name, mod), bounds)).toEqual(to),
  );
  it("stays in the header if there are no rows", () => {
    expect(moved({ row: -1, column: 0 }, key("End", true), { ...bounds, rows: 0 })).toEqual({ row: -1, column: 9 });
    expect(moved({ row: -1, column: 0 }, key("ArrowDown"), { ...bounds, rows: 0 })?.row).toBe(-1);
  });
  it("ignores other keys", () => {
    expect(moved({ row: 0, column: 0 }, key("a"), bounds)).toBeUndefined();
    expect(moved({ row: 0, column: 0 }, { ...key("ArrowLeft"), altKey: true }, bounds)).toBeUndefined();
  });
});

describe("clicking a column header", () => {
  const a = { column: "a", descending: false };
  const b = { column: "b", descending: true };

  it("cycles through ascending, descending and unsorted", () => {
    expect(nextSort([], "a", false)).toEqual([a]);
    expect(nextSort([a], "a", false)).toEqual([{ column: "a", descending: true }]);
    expect(nextSort([{ ...a, descending: true }], "a", false)).toEqual([]);
  });
  it("replaces the sort, or extends it with Shift", () => {
    expect(nextSort([b], "a", false)).toEqual([a]);
    expect(nextSort([b], "a", true)).toEqual([b, a]);
    expect(nextSort([a, b], "a", true)).toEqual([{ column: "a", descending: true }, b]);
    expect(nextSort([a, b], "b", true)).toEqual([a]);
  });
});
