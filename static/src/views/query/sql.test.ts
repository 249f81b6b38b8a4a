import { expect, it } from "vitest";
import { firstRows } from "./sql";

it("the first rows of a table can be asked for", () => {
  expect(firstRows("my table")).toBe('SELECT *\nFROM "my table"\nLIMIT 100');
});
