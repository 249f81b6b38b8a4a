import { expect, it } from "vitest";
import { lineAndColumn } from "./text";

it("an offset is shown as line and column", () => {
  expect(lineAndColumn("ab\ncd", 4)).toEqual({ line: 2, column: 2 });
  expect(lineAndColumn("ab", 0)).toEqual({ line: 1, column: 1 });
  expect(lineAndColumn("ab\n", 3)).toEqual({ line: 2, column: 1 });
});
