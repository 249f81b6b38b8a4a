import { drawn, everything, panel, published } from "./support/sales";
import { expect, expectAccessible, type Page, test } from "./support/test";

const CHARTS = ["line", "area", "bar", "pie", "scatter", "heatmap"];
const ink = (page: Page, id: string) =>
  panel(page, id)
    .locator("canvas")
    .first()
    .evaluate((node: HTMLCanvasElement) => node.toDataURL());

test("all ten kinds of panels render their queries in light and dark mode, with a text alternative", async ({
  page,
  api,
}) => {
  await published(api, "charts-all", everything());
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto("/p/charts-all/dashboards/all");
  for (const id of CHARTS) {
    await panel(page, id).scrollIntoViewIfNeeded();
    await drawn(page, id);
    await expect(panel(page, id).getByRole("img")).toHaveAttribute("aria-label", /\S/);
    await expect(panel(page, id).locator(".for-readers caption")).toContainText(/\d+ rows/);
  }
  await expect(panel(page, "kpi")).toContainText("$");
  await expect(panel(page, "table").getByRole("grid", { name: "Table" })).toContainText("$");
  await expect(panel(page, "pivot").getByRole("table")).toContainText("North");
  await expect(panel(page, "text").getByText("bold")).toBeVisible();

  const light = await Promise.all(CHARTS.map((id) => ink(page, id)));
  await page.emulateMedia({ colorScheme: "dark" });
  for (const [at, id] of CHARTS.entries()) {
    await expect.poll(async () => (await ink(page, id)) === light[at], `${id} in dark`).toBe(false);
    await drawn(page, id);
  }
  await expectAccessible(page);
});

test("a pie with many parts colours the largest ones and groups the others", async ({ page, api }) => {
  const text = `version: 2
title: Parts
queries:
  rows:
    sql: SELECT day, sum(amount) AS amount FROM sales GROUP BY 1
panels:
  - { id: pie, type: pie, title: Pie, query: rows, x: day, y: amount }
`;
  await published(api, "charts-pie", text);
  await page.goto("/p/charts-pie/dashboards/all");
  await drawn(page, "pie");
  await expect(panel(page, "pie")).toContainText("Showing the 7 largest of 60 parts");
});
