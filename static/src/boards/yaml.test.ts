import { describe, expect, it } from "vitest";
import {
  addPanel,
  addParam,
  choicesOf,
  copyPanel,
  edited,
  movePanel,
  parsed,
  removePanel,
  replacePanel,
  resizePanel,
  valueOf,
} from "./yaml";

const TEXT = `# A dashboard of trips
version: 2
title:   Trips   # shown on top

params:
  - {name: period, type: date_range,   default: last_30_days}
  - { name: vendor, type: select, multiple: true, options: { query: vendors } }

queries:
  vendors: { sql: SELECT DISTINCT vendor AS value FROM trips ORDER BY 1 }
  # trips a day
  daily:
    sql: |
      SELECT pickup_day, count(*) AS trips FROM trips
      WHERE pickup_day BETWEEN $period_start AND $period_end
      GROUP BY ALL ORDER BY 1

panels:
  # the headline
  - { id: revenue, type: kpi, query: daily, value: { field: trips, aggregate: sum,   format: usd0 }, compare: previous_period, width: 3 }
  - { id: trend, type: line, query: daily, x: pickup_day, y: [trips], width: 9, height: 320 } # the trend
  - id: list
    type: table
    query: vendors   # a list
`;

const changedLines = (before: string, after: string) => {
  const old = new Set(before.split("\n"));
  return after.split("\n").filter((line) => !old.has(line));
};
const comments = (text: string) => (text.match(/#.*/g) ?? []).map((one) => one.trim());

describe("YAML edits", () => {
  it("resizing changes one line and keeps every comment", () => {
    const after = edited(TEXT, (document) => resizePanel(document, "trend", { width: 6, height: 400 }));
    expect(changedLines(TEXT, after)).toEqual([
      "  - { id: trend, type: line, query: daily, x: pickup_day, y: [ trips ], width: 6, height: 400 } # the trend",
    ]);
    expect(after.split("\n")).toHaveLength(TEXT.split("\n").length);
    expect(comments(after)).toEqual(comments(TEXT));
  });

  it("moving a panel keeps its comments", () => {
    const after = edited(TEXT, (document) => movePanel(document, "list", 0));
    expect((valueOf(parsed(after)) as { panels: { id: string }[] }).panels.map(({ id }) => id)).toEqual([
      "list",
      "revenue",
      "trend",
    ]);
    expect([...comments(after)].sort()).toEqual([...comments(TEXT)].sort());
  });

  it("adding a panel adds its query and chart choice", () => {
    const choice = { source: { table: "trips" }, kind: "number", aggregate: "count" } as const;
    const after = edited(TEXT, (document) =>
      addPanel(
        document,
        { id: "all", type: "kpi", query: "all", value: { field: "rows" }, width: 3 },
        { name: "all", sql: "SELECT count(*) AS rows\nFROM trips", choice },
      ),
    );
    expect(after.startsWith(TEXT.slice(0, TEXT.indexOf("panels:") - 1))).toBe(true);
    expect(after).toContain("  all:\n    sql: |\n      SELECT count(*) AS rows\n      FROM trips\n");
    expect(after).toContain("  - { id: all, type: kpi, query: all, value: { field: rows }, width: 3 }\n");
    expect(choicesOf(valueOf(parsed(after))).get("all")).toEqual(choice);
    const back = edited(after, (document) => removePanel(document, "all"));
    expect(back).toBe(TEXT);
  });

  it("replacing a panel's content keeps settings that the builder doesn't manage", () => {
    const after = edited(TEXT, (document) =>
      replacePanel(document, "revenue", { type: "kpi", title: "Trips", query: "daily", value: { field: "trips" } }),
    );
    const [panel] = (valueOf(parsed(after)) as { panels: Record<string, unknown>[] }).panels;
    expect(panel).toEqual({
      id: "revenue",
      type: "kpi",
      query: "daily",
      value: { field: "trips" },
      compare: "previous_period",
      width: 3,
      title: "Trips",
    });
    expect(comments(after)).toEqual(comments(TEXT));
  });

  it("copies a panel after the original, and adds parameters before the queries", () => {
    const copied = edited(TEXT, (document) => copyPanel(document, "revenue", "revenue_2"));
    expect((valueOf(parsed(copied)) as { panels: { id: string }[] }).panels.map(({ id }) => id)).toEqual([
      "revenue",
      "revenue_2",
      "trend",
      "list",
    ]);
    const bare = "version: 2\ntitle: t\nqueries: {}\npanels: []\n";
    const after = edited(bare, (document) =>
      addParam(
        document,
        { name: "shop", type: "select", options: { query: "shops" } },
        { name: "shops", sql: "SELECT 1" },
      ),
    );
    expect(after).toBe(
      "version: 2\ntitle: t\nparams:\n  - { name: shop, type: select, options: { query: shops } }\nqueries:\n  shops:\n    sql: |\n      SELECT 1\npanels: []\n",
    );
  });

  it("rejects invalid YAML, and panels written as aliases", () => {
    expect(() => edited("a: [1\nb: 2", () => undefined)).toThrow(/line \d+ isn't valid YAML/);
    const alias = "x-a: &a { id: a, type: table, query: q }\npanels:\n  - *a\n";
    expect(() => edited(alias, (document) => resizePanel(document, "a", { width: 3 }))).toThrow("edit it in the YAML");
  });
});
