import { expect, it } from "vitest";
import type { ColumnProfile } from "./builder/profile";
import { summariesOf, summarize, summarySql } from "./summary";

const columns = [
  { name: "amount", type: "decimal(10,2)" },
  { name: "shop", type: "string" },
  { name: "customer_id", type: "int64" },
  { name: "day", type: "date" },
];
const rows = Array.from({ length: 100 }, (_, at) => [
  at === 7 ? null : `${at}.50`,
  at % 3 === 0 ? "North" : "South",
  at,
  at < 50 ? "2024-01-01" : "2024-01-11",
]);

it("result columns have nulls, ranges, histograms and frequent values; IDs have no histogram", () => {
  const [amount, shop, id, day] = summarize(columns, rows);
  expect(amount).toMatchObject({ rows: 100, nulls: 1, distinct: 99, min: 0.5, max: 99.5, top: [] });
  expect(amount?.bins).toHaveLength(20);
  expect(amount?.bins.reduce((sum, one) => sum + one, 0)).toBe(99);
  expect(shop).toMatchObject({
    nulls: 0,
    distinct: 2,
    bins: [],
    top: [
      { value: "South", count: 66 },
      { value: "North", count: 34 },
    ],
  });
  expect(id).toMatchObject({ bins: [], top: [] });
  expect([day?.bins[0], day?.bins[19]]).toEqual([50, 50]);
  const [few] = summarize([{ name: "pieces", type: "int32" }], [[1], [3], [3]]);
  expect(few?.bins).toEqual([1, 0, 2]);
  expect(summarize(columns, [])[0]).toMatchObject({ rows: 0, min: undefined, bins: [], top: [] });
});

it("a table's columns are summarized by one statement", () => {
  const profile = (name: string, type: string, distinct: number, min?: number, max?: number): ColumnProfile => ({
    name,
    type,
    distinct,
    min,
    max,
    hours: false,
  });
  const profiles = [
    profile("amount", "decimal(10,2)", 99, 0, 10),
    profile("shop", "string", 2),
    profile("note", "string", 90_000),
  ];
  expect(summarySql("sales", profiles)).toBe(
    "SELECT count(amount), map_keys(histogram(CAST(least(19, greatest(0, floor((CAST(amount AS DOUBLE) - 0) / 0.5))) AS INTEGER)) FILTER (WHERE amount IS NOT NULL)), " +
      "map_values(histogram(CAST(least(19, greatest(0, floor((CAST(amount AS DOUBLE) - 0) / 0.5))) AS INTEGER)) FILTER (WHERE amount IS NOT NULL)), " +
      "count(shop), map_keys(histogram(CAST(shop AS VARCHAR))), map_values(histogram(CAST(shop AS VARCHAR))), count(note), NULL, NULL FROM sales",
  );
  const [amount, shop, note] = summariesOf(
    [90, [0, 19], [60, 30], 100, ["N", "S"], [30, 70], 100, null, null],
    profiles,
    { rows: 100 },
  );
  expect(amount).toMatchObject({ nulls: 10, bins: [60, ...new Array<number>(18).fill(0), 30], top: [] });
  expect(shop?.top).toEqual([
    { value: "S", count: 70 },
    { value: "N", count: 30 },
  ]);
  expect(note).toMatchObject({ nulls: 0, bins: [], top: [] });
});
