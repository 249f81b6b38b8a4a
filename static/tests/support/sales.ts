/** Sales of three shops over sixty days, and a dashboard with all kinds of elements. */
import { type Api, expect, type Page } from "./test";

export const CSV = ["day,shop,kind,amount,pieces", ...rows()].join("\n");

function rows(): string[] {
  return Array.from({ length: 60 }, (_, at) => {
    const day = new Date(Date.UTC(2024, 0, 1 + at)).toISOString().slice(0, 10);
    return `${day},${["North", "South", "West"][at % 3]},${at % 2 ? "a" : "b"},${at + 1}.50,${at % 7}`;
  });
}

export const config = {
  version: 1,
  mappings: [
    {
      table: "sales",
      files: ["*.csv"],
      columns: [
        { name: "day", type: "date" },
        { name: "shop", type: "string" },
        { name: "kind", type: "string" },
        { name: "amount", type: "decimal(10,2)" },
        { name: "pieces", type: "int32" },
      ],
    },
  ],
};

export const everything = (extra = "") => `version: 2
title: Everything
description: All that can stand in a dashboard
params:
  - { name: period, title: Period, type: date_range, default: { start: 2024-02-01, end: 2024-02-29 } }
  - { name: shop, title: Shop, type: select, multiple: true, options: { query: shops } }
  - { name: least, title: Least pieces, type: number, default: 0, min: 0, max: 10, integer: true }
  - { name: kind, title: Kind, type: text, placeholder: any }
queries:
  shops: { sql: SELECT DISTINCT shop AS value FROM sales ORDER BY 1 }
  rows:
    sql: |
      SELECT * FROM sales WHERE day BETWEEN $period_start AND $period_end AND pieces >= $least
        AND ($shop IS NULL OR list_contains($shop, shop)) AND ($kind IS NULL OR kind = $kind) ORDER BY day
panels:
  - { id: kpi, type: kpi, title: Amount, query: rows, value: { field: amount, aggregate: sum, format: usd }, compare: previous_period, width: 3 }
  - { id: line, type: line, title: Line, query: rows, x: day, y: [amount], compare: previous_period, width: 9 }
  - { id: area, type: area, title: Area, query: rows, x: day, y: [amount], series: shop, stacked: true, width: 6 }
  - { id: bar, type: bar, title: Bar, query: rows, x: day, y: [pieces], width: 6 }
  - { id: pie, type: pie, title: Pie, query: rows, x: shop, y: amount, donut: true, width: 4 }
  - { id: scatter, type: scatter, title: Scatter, query: rows, x: amount, y: pieces, series: shop, size: pieces, label: kind, width: 4 }
  - { id: heatmap, type: heatmap, title: Heatmap, query: rows, x: day, y: shop, value: amount, width: 4 }
  - { id: table, type: table, title: Table, query: rows, columns: [day, { field: amount, title: Sold, format: usd }], width: 6 }
  - { id: pivot, type: pivot, title: Pivot, query: rows, rows: [shop], columns: [kind], values: [{ field: amount, format: usd0 }], width: 6 }
  - { id: text, type: markdown, title: Text, text: "Some **bold** words and [a way](https://example.org)" }
${extra}`;

export async function published(api: Api, slug: string, text: string): Promise<void> {
  await api.pipeline(slug, config, { "sales.csv": CSV });
  await api.put(`/api/p/${slug}/dashboards/all`, text, "application/yaml");
}

export const panel = (page: Page, id: string) => page.locator(`[data-panel="${id}"]`);

/** Whether a chart's image is drawn, and not blank. */
export async function drawn(page: Page, id: string): Promise<void> {
  await expect(panel(page, id).locator(".chart-canvas[data-drawn] canvas").first()).toBeVisible();
  await expect
    .poll(() =>
      panel(page, id)
        .locator("canvas")
        .first()
        .evaluate((node: HTMLCanvasElement) => {
          const { data } = node.getContext("2d")?.getImageData(0, 0, node.width, node.height) ?? { data: [] };
          let inked = 0;
          for (let at = 3; at < data.length; at += 4) if (data[at]) inked += 1;
          return inked > 500;
        }),
    )
    .toBe(true);
}
