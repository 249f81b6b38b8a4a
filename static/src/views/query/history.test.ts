import { describe, expect, it } from "vitest";
import { isUnsaved, isPast, remember, type HistoryEntry } from "./history";

const past = (sql: string, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  sql,
  at: "2026-01-01T00:00:00Z",
  status: "done",
  ...more,
});

describe("the history", () => {
  it("has the newest first", () => {
    expect(remember([past("a")], past("b")).map(({ sql }) => sql)).toEqual(["b", "a"]);
  });
  it("has a query that is run twice in a row once, as it went last", () => {
    const found = remember([past("a", { rows: 1 }), past("z")], past("a ", { rows: 2 }));
    expect(found.map(({ rows }) => rows)).toEqual([2, undefined]);
  });
  it("keeps a hundred", () => {
    let found: HistoryEntry[] = [];
    for (let n = 0; n < 150; n += 1) found = remember(found, past(`select ${n}`));
    expect(found).toHaveLength(100);
    expect(found[0]?.sql).toBe("select 149");
  });
  it("forgets the oldest of texts that are too large together", () => {
    const large = (mark: string) => past(mark.repeat(100_000));
    const found = remember(remember(remember([], large("a")), large("b")), large("c"));
    expect(found.map(({ sql }) => sql[0])).toEqual(["c", "b"]);
  });
  it("takes no empty text", () => expect(remember([], past("  \n"))).toEqual([]));
  it("is told from what else a store may hold", () => {
    expect(isPast([past("a", { ms: 3 })])).toBe(true);
    expect(isPast([{ sql: 1 }])).toBe(false);
    expect(isPast([past("a", { status: "odd" as never })])).toBe(false);
    expect(isPast("[]")).toBe(false);
  });
});

describe("a text that makes room for another", () => {
  it("is kept if it is nowhere else", () => expect(isUnsaved("select 2", [past("select 1")], [])).toBe(true));
  it("isn't, if it was run or saved before, or says nothing", () => {
    expect(isUnsaved("select 1 ", [past("select 1")], [])).toBe(false);
    expect(isUnsaved("select 1", [], [{ sql: "select 1\n" }])).toBe(false);
    expect(isUnsaved(" ", [], [])).toBe(false);
  });
});
