import { describe, expect, it } from "vitest";
import { ranked, score, type Named } from "./rank";

const named = (label: string, also = ""): Named => ({ id: label, label, also });
const found = (labels: string[], text: string, recent: string[] = []) =>
  ranked(
    labels.map((label) => named(label)),
    text,
    recent,
    10,
  ).map(({ label }) => label);

describe("what was meant", () => {
  it("is first what is called so, then what begins so, then a word within, then letters", () => {
    expect(found(["my airlines", "fair", "airlines", "air"], "air")).toEqual([
      "air",
      "airlines",
      "my airlines",
      "fair",
    ]);
  });
  it("may leave letters out", () => expect(found(["weather", "airports"], "wthr")).toEqual(["weather"]));
  it("isn't what has the letters by chance", () => expect(score("fx", "flights and their taxes")).toBeUndefined());
  it("fits every word, in its name or where it is", () => {
    const items = [named("weather", "flights table"), named("weather", "sensors table"), named("flights", "pipeline")];
    expect(ranked(items, "flights wea", [], 10)).toEqual([items[0]]);
  });
  it("takes no heed of case", () => expect(found(["Clean run"], "clean RUN")).toEqual(["Clean run"]));
});

describe("what was used last", () => {
  it("is first while nothing is typed", () => expect(found(["a", "b", "c"], "", ["c", "b"])).toEqual(["c", "b", "a"]));
  it("doesn't push away what fits much better", () => {
    expect(found(["airlines", "air"], "air", ["airlines"])).toEqual(["air", "airlines"]);
  });
});

it("no more than wanted are given", () => {
  expect(ranked([named("a"), named("b")], "", [], 1)).toHaveLength(1);
});
