import { expect, it } from "vitest";
import { rejectWords } from "./reject";

it.each([
  ["wrong_type", "twelve", "expected int64, found `twelve`", "`twelve` isn't a whole number in this column's format."],
  [
    "wrong_type",
    "see invoice",
    "column `revenue`: expected decimal(18,2), found `see invoice`: it does not match `number_format`",
    "`see invoice` isn't a number in this column's format.",
  ],
  ["wrong_type", "31.02.", "expected date, found `31.02.`", "`31.02.` isn't a date in this column's format."],
  ["wrong_type", "x", "expected timestamptz, found `x`", "`x` isn't a date and time in this column's format."],
  ["null_not_allowed", "", "null is not allowed", "The cell is empty, and this column needs a value."],
  ["ragged_row", null, "the row has 3 cells, expected 4", "the row has 3 cells, expected 4"],
  ["wrong_type", null, "expected int64", "expected int64"],
])("%s of %s is put into words", (reason, value, message, words) =>
  expect(rejectWords({ reason, value, message })).toBe(words),
);
