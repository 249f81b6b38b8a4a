import { expect, it } from "vitest";
import { emptyCells, typeWithName, typeWords } from "./types";

it.each([
  ["hugeint", "whole number"],
  ["int64", "whole number"],
  ["decimal(38,2)", "decimal number"],
  ["float64", "number"],
  ["string[]", "list of text"],
  ["timestamp", "date and time"],
  ["timestamptz", "time with zone"],
  ["timestamp with time zone", "time with zone"],
  ["boolean", "yes or no"],
  ["date", "date"],
])("%s is shown as %s", (type, words) => expect(typeWords(type)).toBe(words));

it.each([
  ["int64", "whole number (int64)"],
  ["decimal(18,2)", "decimal number (decimal(18,2))"],
  ["string", "text (string)"],
  ["float64", "number (float64)"],
  ["date", "date"],
  ["timestamptz", "time with zone (timestamptz)"],
])("%s is offered as %s", (type, words) => expect(typeWithName(type)).toBe(words));

it("empty cells are allowed or not", () => expect([true, false].map(emptyCells)).toEqual(["allowed", "not allowed"]));
