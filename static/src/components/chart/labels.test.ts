import { describe, expect, it } from "vitest";
import { labelsBelow, labelsBeside } from "./labels";
import { optionOf } from "./option";
import { shapeOf } from "./shape";
import type { ChartTheme } from "./theme";

const measure = (text: string) => text.length * 7;
const products = ["Käsekuchen", "Kaffee 1kg", "Honig", "Müsli", "Gemüsebrühe", "Weißbier", "Apfelsaft", "Brötchen"];
const below = (texts: string[], length: number) => labelsBelow(texts, { length, depth: 250, measure });

describe("labels below an axis", () => {
  it("stay level where they fit, also in two lines", () => {
    expect(below(["Nord", "Süd"], 300)).toMatchObject({ texts: ["Nord", "Süd"], rotate: 0, isSparse: false });
    expect(below(["United Air Lines", "Delta"], 180)).toMatchObject({
      texts: ["United Air\nLines", "Delta"],
      rotate: 0,
    });
  });
  it.each([
    [320, 45],
    [140, 90],
  ])("turn on an axis of %d px, so that all of few are shown", (length, rotate) =>
    expect(below(products, length)).toMatchObject({ texts: products, rotate, isSparse: false }),
  );
  it("leave some out only where hundreds stand side by side", () => {
    const many = Array.from({ length: 200 }, (_, at) => `Customer ${at}`);
    expect(below(many, 600)).toMatchObject({ rotate: 0, isSparse: true });
  });
});

it("labels beside an axis are all shown if there is a line for each", () => {
  expect(labelsBeside(products, { length: 160, depth: 400 })).toMatchObject({ isSparse: false, width: 140 });
  expect(labelsBeside(products, { length: 80, depth: 340 }).isSparse).toBe(true);
});

describe("ticks of a time axis", () => {
  const look = { series: ["#000"], width: 600, height: 260, measure } as unknown as ChartTheme;
  const columns = [
    { name: "month", type: "date" },
    { name: "revenue", type: "int64" },
  ];
  const spec = { type: "line" as const, x: { field: "month" }, y: [{ field: "revenue" }] };
  const axisOf = (days: string[], name = "month") => {
    const shape = shapeOf(
      { ...spec, x: { field: name } },
      [{ name, type: "date" }, ...columns.slice(1)],
      days.map((day, at) => [day, at]),
    );
    if (shape.kind === "none") throw new Error(shape.why);
    return (optionOf(shape, spec, look) as { xAxis: { axisLabel: Labels; minInterval?: number } }).xAxis;
  };
  interface Labels {
    formatter: (ms: number) => string;
    customValues?: number[];
  }
  const tickOf = (days: string[]) => {
    const { axisLabel } = axisOf(days);
    return (day: string) => axisLabel.formatter(Date.parse(day));
  };
  const ticks = (days: string[], name?: string) => {
    const { axisLabel } = axisOf(days, name);
    return axisLabel.customValues?.map(axisLabel.formatter);
  };
  it("are at the unit of the values, also of two", () => {
    expect(ticks(["2025-01-01", "2025-02-01"])).toEqual(["Jan 2025", "Feb"]);
    expect(ticks(["2024-11-01", "2025-02-01"])).toEqual(["Nov 2024", "Dec", "Jan 2025", "Feb"]);
    expect(ticks(["2024-04-01", "2024-07-01"], "quarter")).toEqual(["Q2 2024", "Q3 2024"]);
    expect(ticks(["2024-04-01", "2024-07-01", "2024-10-01"], "period")).toEqual(["Q2 2024", "Q3 2024", "Q4 2024"]);
    expect(ticks(["2023-01-01", "2025-01-01"], "year")).toEqual(["2023", "2024", "2025"]);
    // As many as have room.
    const months = Array.from({ length: 48 }, (_, at) => new Date(Date.UTC(2020, at)).toISOString().slice(0, 10));
    expect(ticks(months)).toEqual(["2020", "Jul", "2021", "Jul", "2022", "Jul", "2023", "Jul"]);
  });
  it("aren't below a day where all values are days", () => {
    const { axisLabel, minInterval } = axisOf(["2025-03-01", "2025-03-02"], "day");
    expect(minInterval).toBeGreaterThanOrEqual(86_400_000);
    expect(axisLabel.formatter(Date.UTC(2025, 2, 1))).toBe("Mar 1");
  });
  it("are months at even distances for days of several months", () => {
    const days = (n: number) =>
      Array.from({ length: n }, (_, at) => new Date(Date.UTC(2024, 5, 20 + at)).toISOString().slice(0, 10));
    expect(ticks(days(150), "day")).toEqual(["Jul 2024", "Aug", "Sep", "Oct", "Nov"]);
    expect(ticks(days(90), "day")).toBeUndefined();
    expect(ticks(days(1_000), "day")).toEqual(["Jul 2024", "Jan 2025", "Jul", "Jan 2026", "Jul", "Jan 2027"]);
  });
  it("name January among months, and the year among years", () => {
    const months = tickOf(["2024-11-01", "2024-12-01", "2025-01-01", "2025-02-01"]);
    expect(["2024-12-01", "2025-01-01"].map(months)).toEqual(["Dec", "Jan 2025"]);
    expect(tickOf(["2019-05-01", "2024-12-01"])("2021-01-01")).toBe("2021");
    expect(tickOf(["2022-01-01", "2023-01-01", "2024-01-01"])("2023-01-01")).toBe("2023");
  });
});

it("lines of labels, and the name of the axis below them, don't overlap", () => {
  const look = { series: ["#000"], width: 700, height: 260, measure } as unknown as ChartTheme;
  const columns = [
    { name: "product", type: "string" },
    { name: "revenue", type: "int64" },
  ];
  const spec = { type: "bar" as const, x: { field: "product" }, y: [{ field: "revenue" }] };
  const shape = shapeOf(
    spec,
    columns,
    ["Office furniture and chairs", "Outdoor and garden tools", "Consumer electronics"].map((name) => [name, 1]),
  );
  if (shape.kind === "none") throw new Error(shape.why);
  const { xAxis } = optionOf(shape, spec, look) as { xAxis: Record<"axisLabel" | "nameTextStyle", object> };
  for (const style of [xAxis.axisLabel, xAxis.nameTextStyle]) expect(style).toMatchObject({ lineHeight: 14 });
  expect(xAxis.nameTextStyle).toMatchObject({ padding: [2, 0, 0, 0] });
});

it("a long label is cut to its room, and takes no more than it has", () => {
  const look = { series: ["#000"], width: 400, height: 260, measure } as unknown as ChartTheme;
  const columns = [
    { name: "product", type: "string" },
    { name: "revenue", type: "int64" },
  ];
  const spec = { type: "bar" as const, x: { field: "product" }, y: [{ field: "revenue" }], horizontal: true };
  const shape = shapeOf(
    spec,
    columns,
    ["Office furniture and chairs", "Books"].map((name) => [name, 1]),
  );
  if (shape.kind === "none") throw new Error(shape.why);
  const { axisLabel } = (
    optionOf(shape, spec, look) as { yAxis: { axisLabel: { formatter: (text: string, at: number) => string } } }
  ).yAxis;
  expect(["", ""].map(axisLabel.formatter)).toEqual(["Office furniture an…", "Books"]);
  expect(axisLabel).not.toHaveProperty("width");
});

describe("a bar chart", () => {
  const look = {
    series: ["#000"],
    width: 330,
    height: 260,
    measure,
    ramp: ["", ""],
    ways: ["", "", ""],
  } as unknown as ChartTheme;
  const columns = [
    { name: "product", type: "string" },
    { name: "revenue", type: "int64" },
  ];
  const rows = products.map((name, at) => [name, at]);
  it.each([false, true])("of few names labels every bar (horizontal: %s)", (horizontal) => {
    const spec = { type: "bar" as const, x: { field: "product" }, y: [{ field: "revenue" }], horizontal };
    const shape = shapeOf(spec, columns, rows);
    if (shape.kind === "none") throw new Error(shape.why);
    const option = optionOf(shape, spec, look) as Record<"xAxis" | "yAxis", { axisLabel: object }>;
    expect(option[horizontal ? "yAxis" : "xAxis"].axisLabel).toMatchObject({ interval: 0, hideOverlap: false });
  });
});
