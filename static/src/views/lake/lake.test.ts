import { describe, expect, it } from "vitest";
import type { LakeLevel } from "../../api/types";
import { each } from "../../uploads/bulk";
import { kept, EMPTY_SELECTION, only, withRange, withStep, withToggled } from "./selection";
import { entriesOf, matches } from "./level";
import { extended, PIECE } from "./lines";
import { sniff, split } from "../../format/delimited";

const order = ["a", "b", "c", "d"];

describe("file selection", () => {
  it("extends from the anchor in both directions", () => {
    const from = only("c");
    expect([...withRange(from, "a", order).chosen]).toEqual(["a", "b", "c"]);
    expect([...withRange(withRange(from, "a", order), "d", order).chosen]).toEqual(["c", "d"]);
  });

  it("moves by arrow keys within the list, and extends with Shift", () => {
    expect(withStep(EMPTY_SELECTION, 1, order, false).cursor).toBe("a");
    expect(withStep(only("d"), 1, order, false).cursor).toBe("d");
    expect([...withStep(only("b"), 1, order, true).chosen]).toEqual(["b", "c"]);
    expect(withStep(only("b"), 1, [], false)).toBe(EMPTY_SELECTION);
  });

  it("toggles one file, and drops files that no longer exist", () => {
    const both = withToggled(only("a"), "c");
    expect([...both.chosen]).toEqual(["a", "c"]);
    expect([...withToggled(both, "a").chosen]).toEqual(["c"]);
    expect(kept(both, ["a"])).toMatchObject({ cursor: undefined });
    expect(kept(both, order)).toBe(both);
  });
});

describe("folder listing", () => {
  it("has folders before files on each page, and no samples of pipelines being created", () => {
    const file = (key: string) => ({ key, size: 1, modified: "", etag: null });
    const page = (folders: string[], files: string[]): LakeLevel => ({
      prefix: "pipelines/",
      folders,
      files: files.map(file),
      next: null,
    });
    const entries = entriesOf([
      page(["pipelines/x/", "pipelines/draft-0123456789abcdef/"], ["pipelines/a"]),
      page(["pipelines/y/"], []),
    ]);
    expect(entries.map(({ name }) => name)).toEqual(["x", "a", "y"]);
  });

  it("names entries without a name of their own", () => {
    const file = (key: string) => ({ key, size: 0, modified: "", etag: null });
    const level = {
      prefix: "p/in/",
      folders: ["p/in//", "p/in/a/"],
      files: [file("p/in/"), file("p/in/x.csv")],
      next: null,
    };
    expect(entriesOf([level]).map(({ name }) => name)).toEqual(["(no name)", "a", "(folder marker)", "x.csv"]);
  });

  it("is filtered by all typed words", () => {
    expect([matches("Trips-2024.csv", "2024 trips"), matches("Trips.csv", "2024")]).toEqual([true, false]);
  });
});

describe("splitting CSV text", () => {
  it("handles quotes, doubled quotes and quoted line breaks", () => {
    expect(split('a;"b;""c""\nd";e\r\nf;;', ";", '"')).toEqual([
      ["a", 'b;"c"\nd', "e"],
      ["f", "", ""],
    ]);
    expect(split("a,'b,c'", ",", "'")).toEqual([["a", "b,c"]]);
    expect(split('a,"b', ",", null)).toEqual([["a", '"b']]);
    expect(split("", ",", '"')).toEqual([]);
  });

  it("detects the delimiter that fits all rows", () => {
    expect(sniff("a;b,5;c\n1;2,5;3\n")).toBe(";");
    expect(sniff("a\tb\n1,5\t2\n")).toBe("\t");
    expect(sniff("one\ntwo\n")).toBe(",");
  });
});

describe("bulk operations", () => {
  it("continue after a failure and report it", async () => {
    const seen: number[] = [];
    const work = (key: string) => (key === "b" ? Promise.reject(new Error("no")) : Promise.resolve());
    const failures = await each(order, work, (done) => seen.push(done), new AbortController().signal);
    expect(failures.map(({ key, error }) => [key, error.message])).toEqual([["b", "no"]]);
    expect(seen.at(-1)).toBe(4);
  });

  it("start nothing after they are stopped", async () => {
    const stop = new AbortController();
    let begun = 0;
    const work = () => {
      begun += 1;
      stop.abort();
      return Promise.resolve();
    };
    await each(order, work, () => undefined, stop.signal);
    expect(begun).toBeLessThan(order.length);
  });
});

describe("lines of a file", () => {
  const piece = (lines: number, more: boolean) => ({ lines: Array.from({ length: lines }, () => ""), more });
  /** The extent of a file of 9,402 lines opened at its line 9,400, after pieces in this order. */
  const after = (...order: number[]) =>
    order.reduce(
      (extent, at) => {
        const lines = Math.max(0, Math.min(PIECE, 9_402 - at * PIECE));
        return extended(extent, at, piece(lines, at * PIECE + PIECE < 9_402));
      },
      { total: 9_400 + PIECE, whole: false, beyond: false },
    );

  it.each([[[0, 46, 47]], [[47, 46, 0]], [[46, 47, 0]], [[48, 47, 0]]])(
    "are counted once their end is known: %j",
    (order) => expect(after(...order)).toEqual({ total: 9_402, whole: true, beyond: false }),
  );
  it("aren't counted before", () => expect(after(0, 46, 48).whole).toBe(false));
});
