import { expect, it } from "vitest";
import { typeWords } from "./types";

it.each([
  ["hugeint", "integer"],
  ["int64", "integer"],
  ["decimal(38,2)", "decimal"],
  ["float64", "number"],
  ["string[]", "list of text"],
  ["timestamptz", "timestamptz"],
])("%s is shown as %s", (type, words) => expect(typeWords(type)).toBe(words));
