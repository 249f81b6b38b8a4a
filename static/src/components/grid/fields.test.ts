import { expect, it } from "vitest";
import { fieldGrid } from "./fields";

const columns = [
  { name: "day", type: "timestamp" },
  { name: "at", type: "timestamp" },
  { name: "n", type: "decimal(9,2)" },
  { name: "shop", type: "string" },
];
const rows = [
  ["2025-01-01T00:00:00", "2025-01-01T10:30:00", "1234.50", "North"],
  [null, "2025-01-02T00:00:00", null, null],
];

it("midnights are shown as days, other times as the locale writes them", () => {
  const grid = fieldGrid([], columns, rows);
  expect(grid.columns.map(({ name }) => name)).toEqual(["day", "at", "n", "shop"]);
  expect(grid.columns[0]?.format?.("2025-01-01T00:00:00")).toMatch(/^Jan 1, 2025$/);
  expect(grid.columns[0]?.format?.(null)).toBe("(empty)");
  expect(grid.columns[1]?.format?.("2025-01-01T10:30:00")).toMatch(/^Jan 1, 2025, 10:30:00\sAM$/);
  expect(grid.columns[2]?.format).toBeUndefined();
  expect(grid.columns[3]?.format?.(null)).toBe("(empty)");
  expect(grid.columns[3]?.format?.("a\nb")).toBe("a↵b");
  expect(grid.rows).toEqual(rows);
});

it("fields choose, order, title and format the columns; unknown ones are skipped", () => {
  const grid = fieldGrid(
    [{ field: "n", title: "Revenue", format: "usd" }, { field: "gone" }, { field: "day", format: "month" }],
    columns,
    rows,
  );
  expect(grid.columns.map(({ name }) => name)).toEqual(["Revenue", "day"]);
  expect(grid.columns[0]?.format?.("1234.50")).toBe("$1,234.50");
  expect(grid.columns[1]?.format?.("2025-01-01T00:00:00")).toBe("Jan 2025");
  expect(grid.rows[0]).toEqual(["1234.50", "2025-01-01T00:00:00"]);
});
