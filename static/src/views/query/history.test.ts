import { describe, expect, it } from "vitest";
import { isUnsaved, isHistory, remember, type HistoryEntry } from "./history";

const past = (sql: string, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  sql,
  at: "2026-01-01T00:00:00Z",
  status: "done",
  ...more,
});

describe("query history", () => {
  it("is sorted newest first", () => {
    expect(remember([past("a")], past("b")).map(({ sql }) => sql)).toEqual(["b", "a"]);
  });
  it("keeps the last of two equal consecutive queries", () => {
    const found = remember([past("a", { rows: 1 }), past("z")], past("a ", { rows: 2 }));
    expect(found.map(({ rows }) => rows)).toEqual([2, undefined]);
  });
  it("keeps a hundred entries", () => {
    let found: HistoryEntry[] = [];
    for (let n = 0; n < 150; n += 1) found = remember(found, past(`select ${n}`));
    expect(found).toHaveLength(100);
    expect(found[0]?.sql).toBe("select 149");
  });
  it("drops the oldest entries above the size limit", () => {
    const large = (mark: string) => past(mark.repeat(100_000));
    const found = remember(remember(remember([], large("a")), large("b")), large("c"));
    expect(found.map(({ sql }) => sql[0])).toEqual(["c", "b"]);
  });
  it("ignores empty text", () => expect(remember([], past("  \n"))).toEqual([]));
  it("ignores stored values of another type", () => {
    expect(isHistory([past("a", { ms: 3 })])).toBe(true);
    expect(isHistory([{ sql: 1 }])).toBe(false);
    expect(isHistory([past("a", { status: "odd" as never })])).toBe(false);
    expect(isHistory("[]")).toBe(false);
  });
});

describe("replaced editor text", () => {
  it("is kept if it is stored nowhere else", () => expect(isUnsaved("select 2", [past("select 1")], [])).toBe(true));
  it("isn't kept if it was run, saved or is empty", () => {
    expect(isUnsaved("select 1 ", [past("select 1")], [])).toBe(false);
    expect(isUnsaved("select 1", [], [{ sql: "select 1\n" }])).toBe(false);
    expect(isUnsaved(" ", [], [])).toBe(false);
  });
});
