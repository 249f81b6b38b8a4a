import { describe, expect, it } from "vitest";
import { mergedValues } from "./merge-values";
import { chosen, conflictsOf, merge } from "./merge";

const merged = (base: unknown, mine: unknown, theirs: unknown): unknown => {
  const text = mergedValues(JSON.stringify(base), JSON.stringify(mine), JSON.stringify(theirs));
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
};

describe("three-way value merge", () => {
  it("takes changes of different keys", () => {
    const base = { a: 1, b: 2, c: { d: 3, e: 4 } };
    expect(merged(base, { ...base, a: 9 }, { ...base, b: 8 })).toEqual({ a: 9, b: 8, c: { d: 3, e: 4 } });
    expect(merged(base, { a: 1, b: 2, c: { d: 0, e: 4 } }, { a: 1, c: { d: 3 } })).toEqual({ a: 1, c: { d: 0 } });
    expect(merged({}, { mine: 1 }, { theirs: 2 })).toEqual({ mine: 1, theirs: 2 });
  });
  it("merges lists by the names of their items", () => {
    const base = [
      { table: "a", n: 1 },
      { table: "b", n: 2 },
    ];
    const mine = [...base, { table: "c", n: 3 }];
    const theirs = [
      { table: "a", n: 9 },
      { table: "b", n: 2 },
      { table: "d", n: 4 },
    ];
    expect(merged(base, mine, theirs)).toEqual([
      { table: "a", n: 9 },
      { table: "b", n: 2 },
      { table: "c", n: 3 },
      { table: "d", n: 4 },
    ]);
  });
  it("reports changes of the same key as conflicts", () => {
    expect(merged({ a: 1 }, { a: 2 }, { a: 3 })).toBeUndefined();
    expect(merged({ a: 1 }, {}, { a: 3 })).toBeUndefined();
    expect(merged({ a: [1] }, { a: [1, 2] }, { a: [1, 3] })).toBeUndefined();
    expect(mergedValues("{", "{}", "{}")).toBeUndefined();
  });
});

it("takes keys added at one place on both sides, though the lines conflict", () => {
  const text = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
  const { pieces } = merge(text({ a: 1 }), text({ a: 1, b: 2 }), text({ a: 1, c: 3 }));
  expect(conflictsOf(pieces)).toEqual([]);
  expect(JSON.parse(chosen(pieces, []) ?? "")).toEqual({ a: 1, b: 2, c: 3 });
});
