import { expect, it } from "vitest";
import { fromPathOf, wordIn, wordsOfNames } from "./path-columns";

it("words that tell the files apart are those of which each name has one", () => {
  const months = ["01", "02", "03"];
  const shops = months.flatMap((month) => [
    `rentals north 2026-${month}.csv`,
    `South_rentals_${month}_2026.txt`,
    `west-2026${month}.csv`,
  ]);
  expect(wordsOfNames(shops)).toEqual(["north", "south", "west"]);
  expect(wordsOfNames(["sales north 1.csv", "sales north 2.csv", "sales south.csv"])).toEqual(["north", "south"]);
  expect(wordsOfNames(["sales_2024-01.csv", "sales_2024-02.csv"])).toEqual([]);
  expect(wordsOfNames(["a b.csv", "c.csv"])).toEqual([]);
});

it("the longest word that a name contains is its value", () => {
  expect(wordIn("rentals NORTHWEST.csv", ["north", "northwest"])).toBe("northwest");
  expect(wordIn("east.csv", ["north"])).toBeUndefined();
});

it("a value with braces is a pattern, others are words", () => {
  expect(fromPathOf(" sales_{} ")).toBe("sales_{}");
  expect(fromPathOf("north, South,")).toEqual(["north", "South"]);
});
