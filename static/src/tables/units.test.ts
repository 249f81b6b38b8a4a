import { expect, it } from "vitest";
import { withUnits } from "./units";

it("fractions of a percent column are shown as percentages", () => {
  const units = new Map([
    ["discount", "percent"],
    ["note", "percent"],
    ["amount", "usd"],
  ]);
  const [discount, ...others] = withUnits(
    [
      { name: "discount", type: "decimal(9,4)" },
      // The config says percent, and the next run will make it a number.
      { name: "note", type: "string" },
      { name: "amount", type: "decimal(9,2)" },
    ],
    units,
  );
  expect(["0.1250", "1", null].map((value) => discount?.format?.(value))).toEqual(["12.5%", "100%", "null"]);
  expect(others.map(({ format }) => format)).toEqual([undefined, undefined]);
});
