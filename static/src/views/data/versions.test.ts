import { expect, it } from "vitest";
import { unknownChangesText } from "./versions";

it("the first version isn't said to have lost the one before", () => {
  expect(unknownChangesText({ sequence: 1, rows: 1_200, sources: 1 })).toBe(
    "The first version: 1,200 rows of 1 source.",
  );
  expect(unknownChangesText({ sequence: 2, rows: 1, sources: 1 })).toMatch(/no longer kept/);
});
