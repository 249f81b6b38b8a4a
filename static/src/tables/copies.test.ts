import { expect, it } from "vitest";
import { copySql } from "./copies";

const columns = [{ name: "id" }, { name: "Sold at" }, { name: "note" }];
const known = new Set(["id", "Sold at", "note"]);

it("rows are looked up with all their values", () => {
  const rows = [
    [1, "2024-03-01", null],
    [2, "2024-03-02", "it's new"],
  ];
  expect(copySql("sales", known, { file: "a.csv", columns, rows })).toBe(
    `SELECT EXISTS (FROM sales WHERE id = '1' AND "Sold at" = '2024-03-01' AND note IS NULL)\n` +
      `  AND EXISTS (FROM sales WHERE id = '2' AND "Sold at" = '2024-03-02' AND note = 'it''s new')`,
  );
});

it("few values say nothing", () => {
  const one = [[1, "2024-03-01", null]];
  const empty = [
    [1, null, null],
    [2, null, null],
  ];
  expect(copySql("sales", known, { file: "a.csv", columns, rows: one })).toBeUndefined();
  expect(copySql("sales", known, { file: "a.csv", columns, rows: empty })).toBeUndefined();
  expect(copySql("sales", new Set(["id"]), { file: "a.csv", columns, rows: [...one, ...one] })).toBeUndefined();
});
