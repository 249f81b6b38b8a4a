import { expect, it } from "vitest";
import type { Row } from "../../api/types";
import { textsOf } from "./columns";
import { shapeOf } from "./shape";

const columns = [
  { name: "month", type: "date" },
  { name: "region", type: "string" },
  { name: "amount", type: "decimal(9,2)" },
];
const rows: Row[] = [
  ["2025-01-01", "West", "12.50"],
  ["2025-02-01", null, null],
];
const y = [{ field: "amount", title: "Total amount", format: "usd" }];

it("the table of a chart has the chart's titles, times and formats, and no null", () => {
  const texts = textsOf({ type: "line", x: { field: "month" }, y, series: "region" }, columns, rows);
  expect(texts.map(({ name }) => name)).toEqual(["month", "region", "Total amount"]);
  const written = rows.map((row) => texts.map(({ textOf }, at) => textOf(row[at])));
  expect(written).toEqual([
    ["Jan 2025", "West", "$12.50"],
    ["Feb 2025", "(empty)", "no value"],
  ]);
});

it("a group without a value is labelled as empty in every kind of chart", () => {
  const all: Row[] = [...rows, ["2025-01-01", null, "3.00"]];
  const of = (spec: object) => JSON.stringify(shapeOf(spec as never, columns, all));
  for (const spec of [
    { type: "line", x: { field: "month" }, y, series: "region" },
    { type: "bar", x: { field: "region" }, y },
    { type: "pie", x: { field: "region" }, y },
    { type: "scatter", x: { field: "month" }, y, series: "region", point: "region" },
    { type: "heatmap", x: { field: "month" }, y: [{ field: "region" }], value: y[0] },
  ]) {
    expect(of(spec)).toContain("(empty)");
    expect(of(spec)).not.toContain('"null"');
  }
  expect(of({ type: "pie", x: { field: "month" }, y })).toContain("Jan 2025");
});
