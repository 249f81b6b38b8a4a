import { expect, it } from "vitest";
import { failureWords, rejectWords } from "./reject";

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

it.each([
  [
    "`31.12.2024` isn't a date in this column's format, MM/DD/YYYY or YYYY-MM-DD.",
    "expected date, found `31.12.2024`: it matches none of the formats `%m/%d/%Y`, `%Y-%m-%d`",
  ],
  [
    "`x` isn't a date in this column's format, YYYY-MM-DD.",
    "expected date, found `x`: without `formats` a date is `YYYY-MM-DD`",
  ],
  [
    "`5.123` isn't a number in this column's format: it has 3 decimal places, the type holds 2.",
    "expected decimal(10,2), found `5.123`: it has 3 decimal places, the type holds 2",
  ],
  [
    "`01/02/2024` isn't a date in this column's format: two of the formats `%d/%m/%Y`, `%m/%d/%Y` differ.",
    "expected date, found `01/02/2024`: two of the formats `%d/%m/%Y`, `%m/%d/%Y` differ",
  ],
])("%s", (words, message) => {
  const value = /found `([^`]*)`/.exec(message)?.[1] ?? "";
  expect(rejectWords({ reason: "wrong_type", value, message })).toBe(words);
  expect(failureWords(`\`orders/a.csv\` line 2: column \`c\`: ${message}`)).toBe(
    `\`orders/a.csv\` line 2: column \`c\`: ${words}`,
  );
});

it("a value out of range, and a failure that is about no value, keep their particulars", () => {
  const message = "column `n`: expected int8, found `300`: the type holds -128 to 127";
  expect(rejectWords({ reason: "out_of_range", value: "300", message })).toBe(
    "`300` is too large or too small for this column: the type holds -128 to 127.",
  );
  const other = "table `orders`: no file matches";
  expect(failureWords(other)).toBe(other);
});

it("says what the rows of a limit are counted in", () =>
  expect(
    failureWords(
      "table `a`: 2 of 314 rows rejected, but none may be; table `b`: 1 of 9 rows rejected, but none may be",
    ),
  ).toBe(
    "table `a`: 2 of 314 rows in all its files rejected, but none may be; table `b`: 1 of 9 rows in all its files rejected, but none may be",
  ));
