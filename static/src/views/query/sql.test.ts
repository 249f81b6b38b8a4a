import { expect, it } from "vitest";
import { firstRows, identifier } from "./sql";

it.each([
  ["trips", "trips"],
  ["_rejected_rows", "_rejected_rows"],
  ["order", '"order"'],
  ["Fare", '"Fare"'],
  ["a b", '"a b"'],
  ['a"b', '"a""b"'],
  ["1st", '"1st"'],
])("the name %s is written %s", (name, written) => expect(identifier(name)).toBe(written));

it("the first rows of a table can be asked for", () => {
  expect(firstRows("my table")).toBe('SELECT *\nFROM "my table"\nLIMIT 100');
});
