import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Row } from "../../api/types";
import { type Shape, shapeOf } from "./shape";
import { labelDistanceMin } from "./steps";

const daily = [
  { name: "day", type: "date" },
  { name: "who", type: "string" },
  { name: "n", type: "int64" },
];
const of = <K extends Shape["kind"]>(shape: Shape, kind: K) => {
  if (shape.kind !== kind) throw new Error(`expected ${kind}, found ${JSON.stringify(shape)}`);
  return shape as Extract<Shape, { kind: K }>;
};
const day = (n: number) => Date.UTC(2013, 0, n);

describe("a time that regular data lacks", () => {
  const months = (...of: number[]): Row[] =>
    of.map((month) => [`2025-${String(month).padStart(2, "0")}-01`, "a", month]);
  const spec = { type: "line" as const, x: { field: "day" }, y: [{ field: "n" }] };
  const values = (rows: Row[], type: "line" | "bar" = "line") =>
    of(shapeOf({ ...spec, type }, daily, rows), "lines").lines[0]?.points.map(([, value]) => value);

  it("is a gap in a line", () => {
    expect(values(months(1, 2, 3, 5, 6))).toEqual([1, 2, 3, null, 5, 6]);
    const ends: Row[] = ["01-31", "02-28", "03-31", "05-31"].map((end, at) => [`2025-${end}`, "a", at]);
    expect(values(ends)).toEqual([0, 1, 2, null, 3]);
  });
  it("has a place among bars, in both orders", () => {
    const bars = (rows: Row[]) => of(shapeOf({ ...spec, type: "bar" }, daily, rows), "lines");
    expect(bars(months(1, 2, 3, 5)).x.labels).toHaveLength(5);
    expect(bars(months(1, 2, 3, 5)).lines[0]?.points).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
      [4, 5],
    ]);
    expect(bars(months(5, 3, 2, 1)).lines[0]?.points.map(([at]) => at)).toEqual([0, 2, 3, 4]);
    // Sorted by value: the axis has no order of time.
    expect(bars(months(5, 1, 3, 2)).x.labels).toHaveLength(4);
  });
  it("isn't assumed on weekends, or where times have no step", () => {
    const days = (...of: number[]): Row[] => of.map((n) => [new Date(day(n)).toISOString().slice(0, 10), "a", n]);
    expect(values(days(1, 2, 3, 4, 7, 8))).toEqual([1, 2, 3, 4, 7, 8]);
    expect(values(days(1, 2, 3, 4, 9, 10))).toEqual([1, 2, 3, 4, null, null, null, null, 9, 10]);
    expect(values(days(1, 3, 8, 21))).toEqual([1, 3, 8, 21]);
    expect(values(months(1, 5))).toEqual([1, 5]);
  });
  it("is a gap even if few times are left, where the column's name or their days say the step", () => {
    const named = [{ name: "month", type: "date" }, ...daily.slice(1)];
    const of2 = (name: string, rows: Row[]) => {
      const columns = [{ name, type: "timestamp" }, ...daily.slice(1)];
      const shape = shapeOf({ ...spec, x: { field: name } }, columns, rows);
      return of(shape, "lines").lines[0]?.points.map(([, value]) => value);
    };
    expect(of(shapeOf({ ...spec, x: { field: "month" } }, named, months(1, 5)), "lines").lines[0]?.points).toHaveLength(
      5,
    );
    expect(values(months(1, 4, 12))?.filter((value) => value === null)).toHaveLength(9);
    expect(of2("month", months(1, 3, 5))).toEqual([1, null, 3, null, 5]);
    expect(of2("quarter", months(1, 4, 10))).toEqual([1, 4, null, 10]);
    const at = (...times: string[]): Row[] => times.map((time, n) => [time, "a", n]);
    expect(of2("week", at("2025-01-06", "2025-01-20"))).toEqual([0, null, 1]);
    expect(of2("hour", at("2025-01-06T01:00:00", "2025-01-06T02:00:00", "2025-01-06T05:00:00"))).toEqual([
      ...[0, 1, null, null, 2],
    ]);
  });
  it("is a gap of an hour among bars, with its time", () => {
    const rows: Row[] = [1, 2, 4].map((hour) => [`2025-01-06T0${hour}:00:00`, "a", hour]);
    const columns = [{ name: "day", type: "timestamp" }, ...daily.slice(1)];
    const { labels } = of(shapeOf({ ...spec, type: "bar" }, columns, rows), "lines").x;
    expect(labels[2]).toMatch(/3:00:00/);
  });
  it("is a gap however long it is, and in the line of an earlier period", () => {
    const long = ["2020-01-01", "2020-01-02", "2020-01-03", "2024-01-01"].map((time, n): Row => [time, "a", n]);
    expect(values(long)).toEqual([0, 1, 2, null, 3]);
    const compared = { rows: months(1, 2, 3, 5), days: 0, title: "before" };
    const { lines } = of(shapeOf(spec, daily, months(1, 2, 3, 4, 5), compared), "lines");
    expect(lines[1]?.points.map(([, value]) => value)).toEqual([1, 2, 3, null, 5]);
  });
  it("is a gap on a weekend or beside it only if other weekends have values", () => {
    const days = (...of: number[]): Row[] => of.map((n) => [new Date(day(n)).toISOString().slice(0, 10), "a", n]);
    // January 5, 2013 was a Saturday.
    expect(values(days(2, 3, 4, 8, 9))).toEqual([2, 3, 4, 8, 9]);
    expect(values(days(2, 3, 4, 5, 8, 9))).toEqual([2, 3, 4, 5, null, null, 8, 9]);
    expect(values(days(7, 8, 10, 11))).toEqual([7, 8, null, 10, 11]);
  });
  it("leaves no label between two months", () => {
    const { x } = of(shapeOf(spec, daily, months(1, 2, 3, 5)), "lines");
    expect(x.step).toEqual({ unit: "month", by: 1 });
    expect(x.step && labelDistanceMin(x.step)).toBeGreaterThan(31 * 86_400_000);
  });
});

describe("lines", () => {
  const rows: Row[] = [
    ["2013-01-02", "a", 2],
    ["2013-01-01", "a", 1],
    ["2013-01-02", "b", 5],
  ];
  const spec = { type: "line" as const, x: { field: "day" }, y: [{ field: "n" }], series: "who" };

  it("are sorted by time, with a gap for each missing row", () => {
    const { lines, x } = of(shapeOf(spec, daily, rows), "lines");
    expect(x.kind).toBe("time");
    expect(lines.map(({ name, points }) => [name, points])).toEqual([
      [
        "a",
        [
          [day(1), 1],
          [day(2), 2],
        ],
      ],
      [
        "b",
        [
          [day(1), null],
          [day(2), 5],
        ],
      ],
    ]);
  });

  it("have zeros for missing rows when stacked", () => {
    const { lines } = of(shapeOf({ ...spec, type: "area", stacked: true }, daily, rows), "lines");
    expect(lines[1]?.points[0]).toEqual([day(1), 0]);
  });

  it("for a comparison period are shifted onto the current one", () => {
    const compared = { rows: [["2012-12-31", "a", 7]], days: 1, title: "the day before" };
    const { lines } = of(shapeOf(spec, daily, rows, compared), "lines");
    expect(lines[2]).toMatchObject({ name: "a, the day before", of: 0, points: [[day(1), 7]] });
  });

  it("are limited to twelve, with a note", () => {
    const many = Array.from({ length: 20 }, (_, at): Row => ["2013-01-01", `s${at}`, at]);
    const shape = of(shapeOf(spec, daily, many), "lines");
    expect(shape.lines.map(({ name }) => name)).toContain("s19");
    expect(shape.lines).toHaveLength(12);
    expect(shape.notes.join()).toContain("12 largest of 20 series");
  });

  it("are downsampled if they have too many points, with a note", () => {
    const many = Array.from({ length: 6_000 }, (_, at): Row => [at, at % 7]);
    const columns = [
      { name: "x", type: "int64" },
      { name: "n", type: "int64" },
    ];
    const shape = of(shapeOf({ type: "line", x: { field: "x" }, y: [{ field: "n" }] }, columns, many), "lines");
    expect(shape.thinned).toBe(true);
    expect(shape.notes.join()).toContain("6,000 points");
  });

  it("have a note if several rows share an x value", () => {
    const twins: Row[] = [
      ["2013-01-01", "a", 1],
      ["2013-01-01", "a", 2],
    ];
    expect(shapeOf(spec, daily, twins).notes.join()).toContain("another row has the same x value");
  });
});

describe("bars", () => {
  const spec = { type: "bar" as const, x: { field: "month" }, y: [{ field: "n" }] };
  const columns = [
    { name: "month", type: "timestamp" },
    { name: "n", type: "int64" },
  ];
  const month = (m: string, n: number): Row => [`2013-${m}-01T00:00:00`, n];

  it("of months are labelled by month", () => {
    const { x } = of(shapeOf(spec, columns, [month("07", 1), month("08", 2)]), "lines");
    expect(x.labels).toEqual(["Jul 2013", "Aug 2013"]);
  });

  it("for comparison months are matched by order", () => {
    const compared = { rows: [month("05", 8), month("06", 9)], days: 62, title: "before" };
    const { lines } = of(shapeOf(spec, columns, [month("07", 1), month("08", 2)], compared), "lines");
    expect(lines[1]?.points).toEqual([
      [0, 8],
      [1, 9],
    ]);
  });
});

describe("pie slices", () => {
  const columns = [
    { name: "who", type: "string" },
    { name: "n", type: "int64" },
  ];
  const spec = { type: "pie" as const, x: { field: "who" }, y: [{ field: "n" }] };

  it("beyond the number of colours are grouped, with a note", () => {
    const rows = Array.from({ length: 60 }, (_, at): Row => [`w${at}`, at + 1]);
    const { parts, notes } = of(shapeOf(spec, columns, rows), "parts");
    expect(parts).toHaveLength(8);
    expect(parts[0]).toEqual({ name: "w59", value: 60 });
    expect(parts[7]).toMatchObject({ name: "Other (53)", value: 1_431 });
    expect(parts[7]?.of?.slice(0, 2)).toEqual([
      { name: "w52", value: 53 },
      { name: "w51", value: 52 },
    ]);
    expect(notes.join()).toContain("7 largest of 60 parts");
  });

  it("can't be negative", () => {
    expect(
      shapeOf(spec, columns, [
        ["a", -1],
        ["b", 2],
      ]).notes.join(),
    ).toContain("1 negative");
  });
});

it("heatmap cells are sorted by value, not by row", () => {
  const columns = [
    { name: "hour", type: "int8" },
    { name: "weekday", type: "string" },
    { name: "n", type: "float64" },
  ];
  const rows: Row[] = [
    [10, "2 Tue", 1],
    [9, "1 Mon", 2],
    [9, "10 X", null],
  ];
  const spec = { type: "heatmap" as const, x: { field: "hour" }, y: [{ field: "weekday" }], value: { field: "n" } };
  const shape = of(shapeOf(spec, columns, rows), "cells");
  expect(shape.x.labels).toEqual(["9", "10"]);
  expect(shape.y.labels).toEqual(["1 Mon", "2 Tue", "10 X"]);
  expect(shape.cells).toEqual([
    [1, 1, 1],
    [0, 0, 2],
  ]);
});

it("points without a value on both axes are left out, with a note", () => {
  const columns = [
    { name: "a", type: "float64" },
    { name: "b", type: "float64" },
  ];
  const spec = { type: "scatter" as const, x: { field: "a" }, y: [{ field: "b" }] };
  const shape = of(
    shapeOf(spec, columns, [
      [1, 2],
      [null, 3],
    ]),
    "points",
  );
  expect(shape.groups[0]?.points).toHaveLength(1);
  expect(shape.notes.join()).toContain("1 row not shown");
});

it("charts that a result can't fill are explained", () => {
  expect(shapeOf({ type: "bar", x: { field: "x" }, y: [{ field: "n" }] }, daily, [])).toMatchObject({
    kind: "none",
    why: "The result doesn't have the columns of this chart.",
  });
  const spec = { type: "bar" as const, x: { field: "who" }, y: [{ field: "n" }] };
  expect(shapeOf(spec, daily, [])).toMatchObject({ kind: "none", why: "No rows." });
  expect(shapeOf(spec, daily, [["2013-01-01", "a", null]])).toMatchObject({ kind: "none", why: "No values." });
});

describe("series colours", () => {
  const tokens = readFileSync("src/theme/tokens.css", "utf8");
  const pairs = [...tokens.matchAll(/--chart-\d: light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, light, dark]) => [
    light,
    dark,
  ]);
  const surfaces = /--surface: light-dark\((#\w{6}), (#\w{6})\)/.exec(tokens)?.slice(1) ?? [];
  const brightness = (hex: string) =>
    [1, 3, 5]
      .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
      .reduce((sum, part, at) => sum + part * ([0.2126, 0.7152, 0.0722][at] ?? 0), 0);
  const contrast = (a: string, b: string) => {
    const [low = 0, high = 0] = [brightness(a), brightness(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };

  it("have enough contrast on both themes", () => {
    expect(pairs).toHaveLength(8);
    for (const pair of pairs)
      for (const at of [0, 1]) expect(contrast(pair[at] ?? "", surfaces[at] ?? "")).toBeGreaterThan(3);
  });
});
