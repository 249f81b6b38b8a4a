import { readFile } from "node:fs/promises";
import { PAYLOADS } from "./support/payloads";
import type { Locator } from "@playwright/test";
import { config, CSV, drawn, everything, panel, published } from "./support/sales";
import { expect, expectAccessible, test } from "./support/test";

const SLOW = { timeout: 60_000 };
/** Replaces the editor's text. */
async function write(editor: Locator, text: string): Promise<void> {
  await editor.click();
  await editor.press("ControlOrMeta+a");
  await editor.page().keyboard.insertText(text);
}

test("the sample's dashboard shows its queries' results, and parameters change them", async ({ page, api }) => {
  // Statements over 336,776 rows, in a debug build.
  test.slow();
  await api.sample();
  const { rows } = await api.post<{ rows: [number][] }>("/api/p/flights/query", {
    sql: "SELECT count(*) FROM flights WHERE flight_date BETWEEN '2013-07-01' AND '2013-12-31'",
  });
  await page.goto("/p/flights/dashboards/punctuality");
  const flights = panel(page, "flights").locator(".dash-kpi-value");
  await expect(flights).toHaveText(Number(rows[0]?.[0]).toLocaleString("en-US"), SLOW);
  await expect(panel(page, "late").locator(".dash-kpi-change")).toContainText("vs. 41,238 in the previous period");
  for (const id of ["trend", "share", "months", "hours", "wind"]) await drawn(page, id);
  await expect(panel(page, "airlines").getByText("United Air Lines Inc.").first()).toBeVisible();
  await expect(panel(page, "origins").getByRole("rowheader", { name: "Jul 2013" })).toBeVisible();
  await expectAccessible(page);

  await page.getByRole("button", { name: "Airport Any" }).click();
  await page.getByRole("combobox", { name: "Search Airport" }).fill("kennedy");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/origin=JFK/);
  const { rows: fewer } = await api.post<{ rows: [number][] }>("/api/p/flights/query", {
    sql: "SELECT count(*) FROM flights WHERE origin = 'JFK' AND flight_date BETWEEN '2013-07-01' AND '2013-12-31'",
  });
  const told = Number(fewer[0]?.[0]).toLocaleString("en-US");
  await expect(flights).toHaveText(told, SLOW);
  await page.reload();
  await expect(flights).toHaveText(told, SLOW);
  await page.goBack();
  await expect(flights).not.toHaveText(told, SLOW);
});

test("a dashboard shows all types of panels, and a broken one doesn't affect the others", async ({ page, api }) => {
  const broken = "  - { id: broken, type: table, title: Broken, query: failing }\n";
  const failing = everything(broken).replace(
    "panels:",
    "  failing: { sql: SELECT CAST(shop AS INTEGER) AS a FROM sales }\npanels:",
  );
  await published(api, "dash-all", failing);
  await page.goto("/p/dash-all/dashboards/all");
  await expect(panel(page, "kpi").locator(".dash-kpi-value")).toHaveText("$1,348.50");
  for (const id of ["line", "area", "bar", "pie", "scatter", "heatmap"]) await drawn(page, id);
  await expect(panel(page, "table").getByText("Sold")).toBeVisible();
  await expect(panel(page, "table").getByText("$32.50")).toBeVisible();
  await expect(panel(page, "pivot").getByRole("rowheader", { name: "North" })).toBeVisible();
  await expect(panel(page, "text").getByRole("link", { name: "a way" })).toHaveAttribute("rel", /noopener/);
  await expect(panel(page, "broken").getByRole("alert")).toContainText("Couldn't load this panel");
  await page.getByLabel("Least pieces").fill("11");
  await expect(page.getByText("Enter at most 10.")).toBeVisible();

  await panel(page, "pie").getByRole("button", { name: "More actions for Pie" }).click();
  const download = page.waitForEvent("download");
  await page.getByRole("menuitem", { name: "Download CSV" }).click();
  const text = await readFile(await (await download).path(), "utf8");
  expect(text).toMatch(/^day,shop,kind,amount,pieces\r\n2024-02-01,/);
  await panel(page, "pie").getByRole("button", { name: "More actions for Pie" }).click();
  await page.getByRole("menuitem", { name: "Open query" }).click();
  await expect(page.getByRole("textbox", { name: "SQL" })).toContainText("DATE '2024-02-01'");
});

test("readers and print see the editor's layout, print has the filters in words, and full screen the title", async ({
  page,
  api,
}) => {
  const text = everything().replace("compare: previous_period, width: 9", "width: 12");
  await published(api, "dash-layout", text);
  const sizes = (id: string) =>
    panel(page, id).evaluate((node) => node.clientWidth / (node.parentElement?.clientWidth ?? 1));
  await page.goto("/p/dash-layout/dashboards/all/edit");
  await drawn(page, "line");
  const edited = await sizes("kpi");
  expect(edited).toBeLessThan(0.26);
  await page.goto("/p/dash-layout/dashboards/all?shop=North&shop=South");
  await drawn(page, "line");
  expect(await sizes("kpi")).toBeCloseTo(edited, 1);

  await page.getByRole("button", { name: "Full screen" }).click();
  const exit = page.getByRole("button", { name: "Exit full screen" });
  await expect(page.locator(":fullscreen > .dash-full-head > p")).toHaveText("Everything");
  await exit.click();
  await expect(page.locator(":fullscreen")).toHaveCount(0);
  await expect(exit).toHaveCount(0);
  await panel(page, "line").getByRole("button", { name: "More actions for Line" }).click();
  await page.getByRole("menuitem", { name: "Full screen" }).click();
  await expect(page.locator(":fullscreen > .dash-full-head > p")).toHaveText("Everything");
  await exit.click();
  await expect(page.locator(":fullscreen")).toHaveCount(0);

  await page.setViewportSize({ width: 760, height: 1_000 });
  await page.emulateMedia({ media: "print" });
  const filters = page.getByRole("group", { name: "Filters" });
  await expect(filters.getByRole("term").first()).toBeVisible();
  await expect(filters).toContainText("Period: Feb 1, 2024 to Feb 29, 2024");
  await expect(filters).toContainText("Shop: North or South");
  for (const control of ["button", "combobox", "textbox"] as const)
    await expect(filters.getByRole(control)).toHaveCount(0);
  expect(await sizes("kpi")).toBeCloseTo(edited, 1);
  // Charts are scaled to the paper, however wide the screen is.
  for (const id of ["line", "bar"]) {
    const right = async (selector: string) => {
      const box = await page.locator(`[data-panel="${id}"] ${selector}`).first().boundingBox();
      return (box?.x ?? 0) + (box?.width ?? Number.POSITIVE_INFINITY);
    };
    expect(await right("canvas")).toBeLessThanOrEqual((await right(".dash-panel-body")) + 1);
  }
  // Layers of a chart lie upon each other, and the panel ends below them.
  const layers = await panel(page, "heatmap")
    .locator("canvas")
    .evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().top)));
  expect(new Set(layers).size).toBe(1);
  await expect(panel(page, "table").getByText(/^\d+ rows? in all$/)).toBeVisible();
});

test("on a phone the head scrolls away, and tables show that they scroll sideways", async ({ page, api }) => {
  const wide = Array.from({ length: 12 }, (_, at) => `amount AS some_long_name_${at}`).join(", ");
  const text = everything("  - { id: wide, type: table, title: Wide, query: wide, height: 600 }\n").replace(
    "panels:",
    `  wide: { sql: "SELECT ${wide} FROM sales" }\npanels:`,
  );
  await published(api, "dash-phone", text);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/p/dash-phone/dashboards/all");
  const grid = panel(page, "wide").locator(".grid");
  await grid.scrollIntoViewIfNeeded();
  await expect(grid).toHaveAttribute("data-more", "right");
  await expect(page.getByRole("button", { name: "Upload" })).not.toBeInViewport();
  await expect(page.getByRole("navigation", { name: "Pipeline" })).toBeInViewport();
  await grid.locator(".grid-scroll").evaluate((node) => node.scrollTo({ left: 200 }));
  await expect(grid).toHaveAttribute("data-more", "left right");
  await grid.locator(".grid-scroll").evaluate((node) => node.scrollTo({ left: 100_000 }));
  await expect(grid).toHaveAttribute("data-more", "left");
});

test("a panel's query opens with the chosen values, and runs immediately", async ({ page, api }) => {
  await published(api, "dash-query", everything());
  await page.goto("/p/dash-query/dashboards/all?shop=North&least=3");
  await panel(page, "table").getByRole("button", { name: "More actions for Table" }).click();
  await page.getByRole("menuitem", { name: "Open query" }).click();
  const editor = page.getByRole("textbox", { name: "SQL" });
  for (const part of [
    "BETWEEN DATE '2024-02-01' AND DATE '2024-02-29'",
    "pieces >= 3",
    "list_contains(['North'], shop)",
  ])
    await expect(editor).toContainText(part);
  await expect(editor).not.toContainText("$");
  // On five of this shop's nine days in February three pieces or more were sold.
  await expect(page.getByRole("status").filter({ hasText: /^5 rows/ })).toBeVisible();
  await expect(page).toHaveURL(/\/p\/dash-query\/query$/);
});

test("from a table to a published dashboard: a draft, an error at its line, the fixed text, the changes", async ({
  page,
  api,
}) => {
  test.slow();
  await api.pipeline("dash-new", config, { "sales.csv": CSV });
  await page.goto("/p/dash-new/dashboards");
  await page.getByRole("button", { name: "New dashboard" }).click();
  await expect(page.getByLabel("Name")).toHaveValue("sales");
  await page.getByRole("button", { name: "Create draft" }).click();
  await expect(page).toHaveURL(/dashboards\/sales\/edit$/);
  await expect(panel(page, "rows").locator(".dash-kpi-value")).toHaveText("60");
  await drawn(page, "chart");
  await expect(page.getByText("No problems. Ready to publish.")).toBeVisible();
  await expectAccessible(page);

  await page.getByRole("button", { name: "YAML", exact: true }).click();
  const editor = page.getByRole("textbox", { name: "YAML of the dashboard sales" });
  const text = await (await page.request.get("/api/p/dash-new/dashboards/sales?draft=1")).text();
  await write(editor, text.replace("field: rows, format: integer", "field: rowz, format: integer"));
  const problems = page.getByRole("region", { name: "Problems" });
  await expect(problems.getByRole("button", { name: /rowz/ })).toBeVisible();
  const line = text.split("\n").findIndex((one) => one.includes("id: rows")) + 1;
  await expect(problems.getByRole("button", { name: /rowz/ })).toContainText(`${line}:`);

  await write(editor, text.replace("title: Rows, query", "title: All rows, query"));
  await expect(page.getByText("No problems. Ready to publish.")).toBeVisible();
  await page.getByRole("button", { name: "Publish" }).click();
  const dialog = page.getByRole("dialog", { name: "Publish sales" });
  await expect(dialog.getByText(/^Everyone who can sign in to this service sees the dashboard/)).toBeVisible();
  await dialog.getByRole("button", { name: "Publish" }).click();
  await expect(page).toHaveURL(/dashboards\/sales$/);
  await expect(page.getByRole("heading", { name: "All rows", exact: true })).toBeVisible();
});

test("a dashboard published in another browser is visible immediately, despite a cached listing", async ({
  page,
  api,
}) => {
  await api.pipeline("dash-other", config, { "sales.csv": CSV });
  await api.put("/api/p/dash-other/dashboards/all?draft=1", everything(), "application/yaml");
  await page.goto("/p/dash-other/dashboards/all");
  await expect(page.getByRole("heading", { name: "Not published yet", exact: true })).toBeVisible();
  // The listing is never stale.
  await page.clock.setFixedTime(new Date());
  await page.getByRole("link", { name: "Dashboards" }).click();
  await expect(page.getByRole("table").getByRole("link", { name: "Everything" })).toBeVisible();
  await api.post("/api/p/dash-other/dashboards/all/publish");
  await page.goBack();
  await expect(page.getByRole("heading", { name: "Everything", exact: true })).toBeVisible();
});

test("two editors of one draft: the second sees in words what changed on both sides, and chooses", async ({
  page,
  api,
  watch,
}) => {
  watch.expected.push(/412/);
  await published(api, "dash-two", everything());
  await page.goto("/p/dash-two/dashboards/all/edit");
  await page.getByRole("button", { name: "YAML", exact: true }).click();
  const editor = page.getByRole("textbox", { name: "YAML of the dashboard all" });
  await expect(panel(page, "kpi").locator(".dash-kpi-value")).toHaveText("$1,348.50");
  await write(editor, everything().replace("title: Everything", "title: Mine"));
  await expect(page.getByText("Draft saved")).toBeVisible();
  await api.put(
    "/api/p/dash-two/dashboards/all?draft=1",
    everything().replace("title: Everything", "title: Theirs").replace("title: Heatmap", "title: Warm"),
    "application/yaml",
  );
  await write(editor, everything().replace("title: Everything", "title: Mine again"));
  const dialog = page.getByRole("dialog", { name: "Someone else changed this draft" });
  await expect(dialog.getByRole("listitem")).toHaveText([
    "Renamed the dashboard to “Mine again”",
    "Renamed the dashboard to “Theirs”",
    "Renamed the panel “Heatmap” to “Warm”",
  ]);
  await expect(dialog.getByText("title: Theirs")).toHaveCount(0);
  await dialog.getByRole("button", { name: "Show both as YAML" }).click();
  await expect(dialog.getByText("title: Theirs")).toBeVisible();
  await dialog.getByRole("button", { name: "Take theirs" }).click();
  await expect(page.getByRole("heading", { name: "Theirs", exact: true, level: 1 })).toBeVisible();
  await page.getByRole("button", { name: "More actions for Theirs" }).click();
  await page.getByRole("menuitem", { name: /Discard draft/ }).click();
  await page.getByRole("button", { name: "Discard", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Everything", exact: true, level: 1 })).toBeVisible();
});

test("a filter on numbers reads them as people write them, and refuses what isn't one", async ({ page, api }) => {
  await published(
    api,
    "dash-number",
    "version: 2\ntitle: All\nparams:\n  - { name: least, type: number, title: At least }\n" +
      "queries:\n  q: { sql: SELECT $least AS n }\n" +
      "panels:\n  - { id: n, type: kpi, title: Least, query: q, value: { field: n } }\n",
  );
  await page.goto("/p/dash-number/dashboards/all");
  const field = page.getByLabel("At least");
  for (const [text, value] of [
    ["12.5%", "0.125"],
    ["$1,234.50", "1,234.5"],
  ] as const) {
    await field.fill(text);
    await field.press("Enter");
    await expect(panel(page, "n").locator(".dash-kpi-value")).toHaveText(value);
  }
  await field.fill("many");
  await field.press("Enter");
  await expect(page.getByText("many isn't a number.")).toBeVisible();
});

test("hostile texts are shown as text everywhere in a dashboard", async ({ page, api }) => {
  const attacks = PAYLOADS.slice(0, 40).map((one) => one.replace(/[\r\n\t]/g, " "));
  const quoted = (text: string) => JSON.stringify(text);
  const csv = [
    "day,shop,kind,amount,pieces",
    ...attacks.map((text, at) => `2024-02-01,"${text.replaceAll('"', '""')}",x,${at + 1}.00,1`),
  ];
  await api.pipeline("dash-xss", config, { "sales.csv": csv.join("\n") });
  const panels = attacks.map(
    (text, at) =>
      `  - { id: a${at}, type: markdown, title: ${quoted(text)}, description: ${quoted(text)}, text: ${quoted(`${text}\n\n[link](${text})`)}, width: 3 }`,
  );
  const text = [
    "version: 2",
    `title: ${quoted(attacks[0] ?? "")}`,
    `description: ${quoted(attacks[12] ?? "")}`,
    `params: [ { name: shop, title: ${quoted(attacks[13] ?? "")}, type: select, options: { query: shops } } ]`,
    "queries:",
    "  shops: { sql: SELECT DISTINCT shop AS value FROM sales }",
    "  rows: { sql: SELECT * FROM sales WHERE $shop IS NULL OR shop = $shop }",
    "panels:",
    "  - { id: table, type: table, query: rows }",
    "  - { id: pivot, type: pivot, query: rows, rows: [shop], values: [{ field: amount }] }",
    "  - { id: bar, type: bar, query: rows, x: day, y: [amount], series: shop }",
    "  - { id: pie, type: pie, query: rows, x: shop, y: amount }",
    ...panels,
  ].join("\n");
  await api.put("/api/p/dash-xss/dashboards/all", text, "application/yaml");
  await page.addInitScript("window.hits = []; window.hit = (n) => window.hits.push(n);");
  await page.goto("/p/dash-xss/dashboards/all");
  for (const id of ["bar", "pie"]) await drawn(page, id);
  await panel(page, "bar").hover();
  await panel(page, "pie").hover();
  expect(await page.locator(".dash-md a[href^=javascript i], .dash-md img, .dash-md script").count()).toBe(0);
  await expect(panel(page, "a0").getByRole("heading")).toHaveText(attacks[0] ?? "");
  expect(await page.evaluate("window.hits")).toEqual([]);
});
