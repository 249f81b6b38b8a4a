import { expect, it } from "vitest";
import { daysOfRange, RANGES } from "./presets";

// A Thursday.
const TODAY = Date.UTC(2024, 1, 29, 15);

it.each([
  ["today", "2024-02-29", "2024-02-29"],
  ["yesterday", "2024-02-28", "2024-02-28"],
  ["last_7_days", "2024-02-23", "2024-02-29"],
  ["this_week", "2024-02-26", "2024-03-03"],
  ["last_week", "2024-02-19", "2024-02-25"],
  ["this_month", "2024-02-01", "2024-02-29"],
  ["last_month", "2024-01-01", "2024-01-31"],
  ["last_quarter", "2023-10-01", "2023-12-31"],
  ["this_year", "2024-01-01", "2024-12-31"],
  ["last_year", "2023-01-01", "2023-12-31"],
])("%s has the days that the service resolves it to", (name, start, end) =>
  expect(daysOfRange(name, TODAY)).toEqual({ start, end }),
);

it("every range but all time has days", () => {
  expect(Object.keys(RANGES).filter((name) => !daysOfRange(name, TODAY))).toEqual(["all"]);
});
