import { describe, expect, it } from "vitest";
import { ranked, score, type Searchable } from "./rank";

const named = (label: string, also = ""): Searchable => ({ id: label, label, also });
const found = (labels: string[], text: string, recent: string[] = []) =>
  ranked(
    labels.map((label) => named(label)),
    text,
    recent,
    10,
  ).map(({ label }) => label);

describe("fuzzy search", () => {
  it("ranks exact matches first, then prefixes, words within, and subsequences", () => {
    expect(found(["my airlines", "fair", "airlines", "air"], "air")).toEqual([
      "air",
      "airlines",
      "my airlines",
      "fair",
    ]);
  });
  it("matches subsequences", () => expect(found(["weather", "airports"], "wthr")).toEqual(["weather"]));
  it("ignores widely scattered letters", () => expect(score("fx", "flights and their taxes")).toBeUndefined());
  it("requires every word, in the label or the secondary text", () => {
    const items = [named("weather", "flights table"), named("weather", "sensors table"), named("flights", "pipeline")];
    expect(ranked(items, "flights wea", [], 10)).toEqual([items[0]]);
  });
  it("ignores case", () => expect(found(["Clean run"], "clean RUN")).toEqual(["Clean run"]));
});

describe("recently used items", () => {
  it("come first while the query is empty", () =>
    expect(found(["a", "b", "c"], "", ["c", "b"])).toEqual(["c", "b", "a"]));
  it("don't outrank a much better match", () => {
    expect(found(["airlines", "air"], "air", ["airlines"])).toEqual(["air", "airlines"]);
  });
});

it("returns at most the requested number", () => {
  expect(ranked([named("a"), named("b")], "", [], 1)).toHaveLength(1);
});
