import { describe, expect, it } from "vitest";
import { condition } from "../../format/condition";
import { emptyFilters } from "../../format/filter";
import { choiceOf } from "./checked";
import { choiceOfSpec, withAggregate, withBy, withKind, withMeasure, without, withSplit } from "./change";
import { type ChartChoice, formatOf, freeTitle, isAutomatic, specOf, titleOf } from "./choice";
import { nameFrom, panelOf } from "./panel";
import { aggregateOf, binOf, categoriesOf, firstChoice, grainOf, measuresOf, timesOf } from "./pick";
import { type ColumnProfile, type Profile, profileOf, profileRows, profileSql } from "./profile";
import { statementOf } from "./statement";
import { unitsOf } from "../../tables/units";

const DAY_MS = 86_400_000;
const column = (
  name: string,
  type: string,
  distinct: number,
  min?: number,
  max?: number,
  hours = false,
): ColumnProfile => ({
  name,
  type,
  distinct,
  min,
  max,
  hours,
});
const START = Date.UTC(2023, 0, 1);
const sales: Profile = {
  rows: 2_000,
  columns: [
    column("order_id", "int64", 2_000, 1, 2_000),
    column("blz", "int64", 400, 10_000_000, 87_000_000),
    column("year", "int32", 2, 2023, 2024),
    column("order_date", "date", 700, START, START + 720 * DAY_MS),
    column("region", "string", 4),
    column("customer", "string", 900),
    column("quantity", "int32", 20, 1, 20),
    column("revenue", "decimal(12,2)", 1_800, 1, 5_000),
    column("discount_rate", "float64", 30, 0, 0.5),
  ],
};
const known = { columns: sales.columns, profile: sales };
const revenue: ChartChoice = {
  source: { table: "sales" },
  kind: "line",
  aggregate: "sum",
  measure: "revenue",
  measureType: "decimal(12,2)",
  by: { column: "order_date", type: "date", grain: "month" },
  sort: "name",
};

it("a title that another panel has gets the kind of chart, then a number", () => {
  expect(freeTitle("Rows by shop", ["Rows"], "bar")).toBe("Rows by shop");
  expect(freeTitle("Rows by shop", ["Rows by shop"], "bar")).toBe("Rows by shop (bar)");
  expect(freeTitle("Rows by shop", ["Rows by shop", "Rows by shop (bar)"], "bar")).toBe("Rows by shop (2)");
  expect(freeTitle("Top (top 5)", ["Top (top 5)", "Top (top 5) (2)"], "bar")).toBe("Top (top 5) (3)");
});

describe("default chart", () => {
  it("sums an amount over time, never IDs, bank codes or years", () => {
    expect(firstChoice("sales", sales)).toEqual(revenue);
    expect(measuresOf(sales).map(({ name }) => name)).toEqual(["revenue", "quantity", "discount_rate"]);
  });
  it("averages rates and sums amounts", () => {
    expect(aggregateOf(column("discount_rate", "float64", 9, 0, 1))).toBe("avg");
    expect(aggregateOf(column("unit_price", "float64", 9, 0, 1))).toBe("avg");
    expect(aggregateOf(column("arr_delay", "int32", 9, -5, 9))).toBe("avg");
    expect(aggregateOf(column("fare_amount", "float64", 9, -5, 9))).toBe("sum");
  });
  it("counts rows by category if there is no measure and no time column", () => {
    const profile = { rows: 100, columns: [column("id", "int64", 100, 1, 100), column("payment", "string", 2)] };
    expect(firstChoice("t", profile)).toEqual({
      source: { table: "t" },
      kind: "bar",
      aggregate: "count",
      by: { column: "payment", type: "string" },
      sort: "value",
    });
  });
  it("prefers event times and low-cardinality categories", () => {
    const at = (name: string) => column(name, "timestamp", 9, START, START + DAY_MS, true);
    expect(timesOf({ rows: 9, columns: [at("updated_at"), at("ordered_at")] })[0]?.name).toBe("ordered_at");
    expect(categoriesOf(sales).map(({ name }) => name)).toEqual(["region"]);
  });
  it.each([
    [1, true, "hour"],
    [60, false, "day"],
    [365, false, "month"],
    [365 * 12, false, "quarter"],
    [365 * 40, false, "year"],
  ] as const)("of %d days has the unit that suits", (days, hours, grain) => {
    expect(grainOf(column("d", "timestamp", 9, START, START + days * DAY_MS, hours))).toBe(grain);
  });
  it("uses round bin widths for numbers", () => {
    expect(binOf(column("fare", "float64", 900, 0, 87))).toBe(5);
    expect(binOf(column("n", "int32", 900, 0, 9))).toBe(1);
    expect(binOf(column("x", "float64", 900, 0, 0.9))).toBe(0.05);
    expect(binOf(column("x", "float64", 1, 3, 3))).toBeUndefined();
  });
});

describe("chart SQL", () => {
  it("aggregates an amount over time", () => {
    expect(statementOf(revenue)).toBe(
      "SELECT date_trunc('month', order_date) AS month, sum(revenue) AS revenue\nFROM sales\nWHERE order_date IS NOT NULL\nGROUP BY ALL\nORDER BY 1",
    );
    expect(titleOf(revenue)).toBe("Total revenue per month");
    expect(titleOf({ ...revenue, kind: "pivot" })).toBe("Total revenue per month (pivot table)");
    expect(titleOf({ ...revenue, kind: "table" })).toBe("Total revenue per month (table)");
  });

  it("groups small series and labels the group in the value", () => {
    const choice: ChartChoice = { ...revenue, split: { column: "customer", type: "string", top: 5 } };
    expect(statementOf(choice)).toContain(
      "top_customer AS (\n  SELECT customer FROM sales\n  WHERE customer IS NOT NULL\n  GROUP BY 1 ORDER BY sum(revenue) DESC NULLS LAST, 1 LIMIT 5\n)",
    );
    expect(statementOf(choice)).toContain(
      "CASE WHEN customer NOT IN (SELECT customer FROM top_customer) THEN 'Other' ELSE customer END AS customer",
    );
    const left = statementOf({ ...choice, others: false });
    expect(left).toContain("AND customer IN (SELECT customer FROM top_customer)");
    expect(left).not.toContain("Other");
  });

  it("puts the group of other series last, and sorts bars by total", () => {
    const choice: ChartChoice = {
      ...revenue,
      kind: "stacked",
      sort: "value",
      by: { column: "customer", type: "string", top: 10 },
      split: { column: "region", type: "string" },
    };
    expect(statementOf(choice)).toMatch(
      /ORDER BY customer IS NOT DISTINCT FROM 'Other', sum\(revenue\) OVER \(PARTITION BY customer\) DESC NULLS LAST, 1, 2$/,
    );
    expect(statementOf({ ...choice, split: undefined } as never)).toMatch(/'Other', revenue DESC NULLS LAST, 1$/);
  });

  it.each<[Partial<ChartChoice>, string]>([
    [{ aggregate: "count", by: { column: "region", type: "string" }, sort: "value" }, "count(*) AS rows"],
    [{ aggregate: "distinct", measure: "customer" }, "count(DISTINCT customer) AS distinct_customer"],
    [{ aggregate: "median" }, "median(revenue) AS median_revenue"],
    [{ by: { column: "fare", type: "float64", bin: 5 } }, "floor(fare / 5) * 5 AS fare"],
    [{ by: { column: "Order Date", type: "date", grain: "week" } }, `date_trunc('week', "Order Date") AS week`],
    [{ measure: "month" }, "sum(month) AS month_2"],
    [{ source: { table: 'se"lect' } }, `FROM "se""lect"`],
  ])("for %j contains %s", (more, part) => expect(statementOf({ ...revenue, ...more })).toContain(part));

  it("quotes filter values and binds parameters", () => {
    const text = statementOf({
      ...revenue,
      filters: [{ column: "region", operator: "eq", value: "O'Hare", type: "string" }],
      params: [
        { param: "period", kind: "date_range", column: "order_date" },
        { param: "region", kind: "select", column: "region" },
      ],
    });
    expect(text).toContain("AND region = 'O''Hare'\n");
    expect(text).toContain("($period_start IS NULL OR CAST(order_date AS DATE) BETWEEN $period_start AND $period_end)");
    expect(text).toContain("($region IS NULL OR list_contains($region, CAST(region AS VARCHAR)))");
  });

  it("samples scatter plots after applying filters", () => {
    const choice = withKind(
      { ...revenue, filters: [{ column: "region", operator: "eq", value: "x", type: "string" }] },
      "scatter",
      known,
    );
    expect(statementOf(choice)).toBe(
      "SELECT * FROM (\n  SELECT order_date, revenue FROM sales\n  WHERE order_date IS NOT NULL\n    AND revenue IS NOT NULL\n    AND region = 'x'\n) AS points USING SAMPLE reservoir(5000 ROWS) REPEATABLE (1)",
    );
  });

  it("returns a result's query unchanged, or wraps it in an aggregate", () => {
    const sql = "SELECT region, revenue FROM sales -- all\n;\n";
    const columns = [
      { name: "region", type: "string" },
      { name: "revenue", type: "decimal(12,2)" },
    ];
    const plain = choiceOfSpec(sql, { type: "bar", x: { field: "region" }, y: [{ field: "revenue" }] }, columns);
    expect(statementOf(plain)).toBe("SELECT region, revenue FROM sales -- all");
    const profile = profileRows(
      [
        ["a", 1],
        ["b", 2],
      ],
      columns,
    );
    expect(statementOf(withAggregate(plain, "avg", { columns, profile }))).toBe(
      "WITH result AS (\nSELECT region, revenue FROM sales -- all\n)\nSELECT region, avg(revenue) AS average_revenue\nFROM result\nGROUP BY ALL\nORDER BY 2 DESC NULLS LAST, 1",
    );
  });
});

it("a format that is chosen for a result's chart is that of all its values, also in the panel", () => {
  const spec = { x: { field: "day" }, y: [{ field: "rate" }, { field: "goal" }] };
  const columns = ["day", "rate", "goal"].map((name) => ({ name, type: name === "day" ? "date" : "double" }));
  const fields = { id: "p", title: "P", query: "q", width: 6 };
  for (const type of ["line", "bar", "scatter"] as const) {
    const choice: ChartChoice = { ...choiceOfSpec("SELECT 1", { ...spec, type }, columns), format: "percent1" };
    const values = ["rate", ...(type === "scatter" ? [] : ["goal"])].map((field) => ({ field, format: "percent1" }));
    expect(specOf(choice, "percent1")?.y).toEqual(values);
    expect([panelOf(choice, fields).y].flat()).toEqual(values);
    const plain = without(choice, "format");
    expect(JSON.stringify([specOf(plain), panelOf(plain, fields)])).not.toContain("format");
  }
});

describe("changing a chart", () => {
  it("x axis: switches between lines and bars", () => {
    const bars = withBy(revenue, "region", known);
    expect(bars).toMatchObject({ kind: "bar", sort: "value", by: { column: "region" } });
    expect(bars.by).not.toHaveProperty("grain");
    expect(withBy(bars, "order_date", known)).toMatchObject({ kind: "line", sort: "name", by: { grain: "month" } });
  });
  it("series: groups the smallest of many", () => {
    expect(withSplit(revenue, "customer", known).split).toEqual({ column: "customer", type: "string", top: 7 });
    expect(withSplit(revenue, "region", known).split).toEqual({ column: "region", type: "string" });
    expect(withSplit(withSplit(revenue, "region", known), "", known)).toEqual(revenue);
  });
  it("kind: fills in the required columns", () => {
    expect(withKind(revenue, "heatmap", known).split?.column).toBe("region");
    expect(withKind(withSplit(revenue, "region", known), "pie", known).split).toBeUndefined();
    const back = withKind(withKind(revenue, "scatter", known), "line", known);
    expect(back.by).toEqual(revenue.by);
    expect(specOf(withKind(revenue, "number", known))).toBeUndefined();
  });
  it("measure: picks a column that fits", () => {
    const counted = withAggregate(revenue, "count", known);
    expect(counted.measure).toBeUndefined();
    expect(withAggregate(counted, "sum", known).measure).toBe("revenue");
  });
});

describe("automatic title", () => {
  const products: ChartChoice = { ...revenue, kind: "bar", by: { column: "product", type: "string", top: 5 } };
  it("names how many values are shown", () => {
    expect(titleOf(products)).toBe("Total revenue by product (top 5)");
    expect(titleOf({ ...products, kind: "number" })).toBe("Total revenue");
    expect(titleOf({ source: { table: "t" }, kind: "table", aggregate: "none" })).toBe("Sample rows");
  });
  it("is told from one that was typed, also if an earlier version gave it", () => {
    expect(isAutomatic("Total revenue by product (top 5)", products)).toBe(true);
    expect(isAutomatic("Total revenue by product", products)).toBe(true);
    expect(isAutomatic("Our best products", products)).toBe(false);
    expect(isAutomatic("", products)).toBe(false);
  });
});

describe("chart as a panel", () => {
  it("names the columns of its query", () => {
    const split: ChartChoice = { ...revenue, split: { column: "region", type: "string" } };
    expect(panelOf(split, { id: "a", title: "T", query: "q", width: 12 }, 200)).toEqual({
      id: "a",
      title: "T",
      query: "q",
      type: "line",
      x: "month",
      y: [{ field: "revenue", title: "Total revenue", format: "decimal2" }],
      series: "region",
      width: 12,
    });
    expect(panelOf({ ...revenue, kind: "number" }, { id: "a", title: "T", query: "q", width: 3 }, 1e6)).toMatchObject({
      type: "kpi",
      value: { field: "revenue", format: "integer" },
    });
  });
  it("is a pivot table with a time unit down and a category across", () => {
    const choice = withKind(revenue, "pivot", known);
    expect(statementOf(choice)).toContain("sum(revenue) AS revenue\nFROM sales");
    expect(panelOf(choice, { id: "a", title: "T", query: "q", width: 12 }, 200)).toEqual({
      id: "a",
      title: "T",
      query: "q",
      type: "pivot",
      rows: [{ field: "month", format: "month" }],
      columns: ["region"],
      values: [{ field: "revenue", format: "decimal2", aggregate: "sum" }],
      totals: true,
      width: 12,
    });
    const fields = { id: "a", title: "T", query: "q", width: 12 };
    expect(panelOf({ ...choice, totals: false }, fields)).not.toHaveProperty("totals");
    // Averages don't add up.
    const averages = panelOf(withAggregate(choice, "avg", known), fields);
    expect(averages).toMatchObject({ values: [{ field: "average_revenue", aggregate: "first" }] });
    expect(averages).not.toHaveProperty("totals");
  });
  it("is a table whose groups and measure have titles and formats, or all columns of the rows", () => {
    const table = withKind(revenue, "table", known);
    const fields = { id: "a", title: "T", query: "q", width: 12 };
    expect(panelOf(table, fields, 200).columns).toEqual([
      { field: "month", format: "month" },
      { field: "revenue", title: "Total revenue", format: "decimal2" },
    ]);
    expect(panelOf({ ...table, aggregate: "none" }, fields)).not.toHaveProperty("columns");
  });
  it("gets IDs that are valid in YAML and SQL", () => {
    expect(nameFrom("Total revenue per month", [])).toBe("total_revenue_per_month");
    expect(nameFrom("2024 Ümsätze!", ["umsatze"])).toBe("umsatze_2");
    expect(nameFrom("数", [])).toBe("chart");
  });
  it.each([
    ["count", "x", "string", 1, "integer"],
    ["sum", "quantity", "int32", 99, "integer"],
    ["avg", "quantity", "int32", 99, "decimal1"],
    ["avg", "discount_rate", "float64", 0.4, "percent1"],
    ["avg", "discount", "decimal(6,4)", 0.15, "percent1"],
    ["sum", "revenue", "decimal(12,2)", 99, "decimal2"],
    ["sum", "revenue", "decimal(12,2)", 99_000, "integer"],
    ["avg", "temp", "float64", 30, "number"],
  ] as const)("formats %s of %s (%s) up to %d as %s", (aggregate, measure, measureType, max, format) =>
    expect(formatOf({ source: { table: "t" }, kind: "number", aggregate, measure, measureType }, max)).toBe(format),
  );
});

describe("a column whose sources have signs", () => {
  const signed: Profile = {
    ...sales,
    columns: sales.columns.map((one) =>
      one.name === "revenue"
        ? { ...one, unit: "usd" }
        : one.name === "discount_rate"
          ? { ...one, unit: "percent" }
          : one,
    ),
  };
  const signedKnown = { columns: sales.columns, profile: signed };
  const fields = { id: "a", title: "T", query: "q", width: 12 };

  it("gives all kinds of charts its format", () => {
    const first = firstChoice("sales", signed);
    expect(first).toEqual({ ...revenue, measureUnit: "usd" });
    expect(choiceOf(JSON.parse(JSON.stringify(first)))).toEqual(first);
    expect(formatOf(first, 500)).toBe("usd");
    expect(formatOf(first, 50_000)).toBe("usd0");
    for (const kind of ["line", "bar", "pie", "heatmap", "pivot", "table", "number", "scatter"] as const)
      expect(JSON.stringify(panelOf(withKind(first, kind, signedKnown), fields, 500))).toContain('"format":"usd"');
    expect(formatOf({ ...first, format: "compact" }, 500)).toBe("compact");
  });
  it("keeps it from other measures", () => {
    const first = firstChoice("sales", signed);
    const discount = withMeasure(first, "discount_rate", signedKnown);
    expect(formatOf(withAggregate(discount, "avg", signedKnown))).toBe("percent1");
    expect(formatOf(withMeasure(first, "quantity", signedKnown))).toBe("integer");
    expect(formatOf(withAggregate(first, "count", signedKnown))).toBe("integer");
    expect(formatOf(withAggregate(first, "distinct", signedKnown))).toBe("integer");
  });
  it("isn't added up if it is a percentage", () => {
    const growth = { ...column("growth", "decimal(9,4)", 50, 0, 1), unit: "percent" };
    expect(aggregateOf(growth)).toBe("avg");
    expect(aggregateOf(column("growth", "decimal(9,4)", 50, 0, 1))).toBe("sum");
  });
  it("is read from the config, unless its signs have no format or its files don't agree", () => {
    const column = (name: string, number_format: unknown) => ({ name, number_format });
    const config = {
      mappings: [
        { table: "other", columns: [column("a", { currency: ["$"] })] },
        {
          table: "t",
          columns: [
            column("a", { currency: ["€", "EUR"] }),
            column("b", { percent: true }),
            column("c", { currency: ["CHF"] }),
            column("d", { currency: ["$", "CAD"] }),
            column("e", null),
            column("f", { currency: ["$"] }),
            null,
          ],
          variants: [{ columns: [column("e", { currency: ["£"] }), column("f", { currency: ["€"] })] }],
        },
      ],
    };
    expect(Object.fromEntries(unitsOf(config as never, "t"))).toEqual({ a: "eur", b: "percent", e: "gbp" });
    expect(unitsOf({}, "t").size).toBe(0);
  });
});

describe("a filter on rows without a value", () => {
  it("is NULL in SQL, alone, negated, and in a list", () => {
    const where = (choice: "eq" | "ne" | "in" | "not_in", text: string) =>
      emptyFilters("region", "string", choice, text)?.map((filter) => condition(filter, "string"));
    expect(where("eq", "(empty)")).toEqual(["region IS NULL"]);
    expect(where("ne", "(empty)")).toEqual(["region IS NOT NULL"]);
    expect(where("in", "(empty)")).toEqual(["region IS NULL"]);
    expect(where("not_in", "(empty), West")).toEqual([
      "(region IS NULL OR region NOT IN ('West'))",
      "region IS NOT NULL",
    ]);
    expect(() => where("in", "(empty), West")).toThrow("(empty) can't be one of several values");
    expect(where("eq", "West")).toBeUndefined();
  });
  it("is one of the values of a dashboard's filter, but not of one that an earlier version made", () => {
    const use = { param: "region", kind: "select" as const, column: "region" };
    const sql = (params: object[]) => statementOf({ ...revenue, params } as ChartChoice);
    expect(sql([{ ...use, empty: true }])).toContain(
      "list_contains($region, coalesce(CAST(region AS VARCHAR), '(empty)'))",
    );
    expect(sql([use])).toContain("list_contains($region, CAST(region AS VARCHAR))");
    expect(choiceOf({ ...revenue, params: [{ ...use, empty: true }] })?.params).toEqual([{ ...use, empty: true }]);
  });
});

describe("stored chart choice", () => {
  it("survives a round trip", () => {
    const choice = withSplit(
      { ...revenue, filters: [{ column: "region", operator: "in", value: '["a"]', type: "string" }] },
      "customer",
      known,
    );
    expect(choiceOf(JSON.parse(JSON.stringify(choice)))).toEqual(choice);
  });
  it("drops invalid units, bin widths and value counts", () => {
    const by = { column: "a", type: "date", grain: "x') --", bin: "1; DROP", top: -1 };
    expect(choiceOf({ ...revenue, by, params: [{ param: "p; x", kind: "select", column: "a" }] })).toEqual({
      ...revenue,
      by: { column: "a", type: "date" },
    });
    for (const other of [null, 1, {}, { ...revenue, kind: "toString" }, { ...revenue, source: 1 }])
      expect(choiceOf(other)).toBeUndefined();
  });
});

describe("profile", () => {
  it("queries the value ranges of a table's columns", () => {
    const columns = [
      { name: "sold", type: "timestamp" },
      { name: "shop", type: "string" },
    ];
    expect(profileSql("t", columns)).toBe(
      "SELECT count(*), approx_count_distinct(sold), min(sold), max(sold), bool_or(sold <> date_trunc('day', sold)), approx_count_distinct(shop), NULL, NULL, NULL FROM t",
    );
    const row = [9, 3, "2024-01-01T00:00:00", "2024-01-02T12:00:00", true, 2, null, null, null];
    expect(profileOf(row, columns)).toEqual({
      rows: 9,
      columns: [
        column("sold", "timestamp", 3, Date.UTC(2024, 0, 1), Date.UTC(2024, 0, 2, 12), true),
        column("shop", "string", 2),
      ],
    });
  });
});
