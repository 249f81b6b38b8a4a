import { config, CSV, drawn, panel } from "./support/sales";
import { expect, expectAccessible, type Page, test } from "./support/test";

const SLOW = { timeout: 60_000 };
const chartOf = (page: Page) => page.getByRole("region", { name: "Chart of the table" });
const canvas = (page: Page) => page.locator(".build-shown .chart-canvas[data-drawn] canvas").first();

test("from a table's chart to a published dashboard, without SQL or YAML", async ({ page, api }) => {
  // The page has a grid, a chart and its table, all of which are checked for accessibility.
  test.slow();
  await api.pipeline("build", config, { "sales.csv": CSV });
  await page.goto("/p/build/data/sales");
  await page.getByRole("button", { name: "Chart" }).click();
  const chart = chartOf(page);
  await expect(chart.getByRole("heading")).toHaveText("Total amount per day");
  await expect(canvas(page)).toBeVisible();
  await chart.getByLabel("Time unit").selectOption("Month");
  await chart.getByLabel("Split by").selectOption("shop");
  await expect(chart.getByRole("heading")).toHaveText("Total amount per month by shop");
  await expect(chart.getByRole("table", { name: /3 rows|6 rows/ })).toContainText("North");
  await expectAccessible(page);

  // The chart is part of the URL, and its SQL one click away.
  await page.reload();
  await expect(chart.getByRole("heading")).toHaveText("Total amount per month by shop");
  await chart.getByRole("button", { name: "SQL" }).click();
  await expect(chart.getByLabel("SQL of the chart")).toContainText("date_trunc('month', day) AS month");

  await chart.getByRole("button", { name: "Add chart to dashboard" }).click();
  const dialog = page.getByRole("dialog", { name: "Add chart to dashboard" });
  await expect(dialog.getByLabel("Title of the panel")).toHaveValue("Total amount per month by shop");
  await dialog.getByLabel("Title of the dashboard").fill("Shops");
  await dialog.getByRole("button", { name: "Add panel" }).click();
  await expect(page).toHaveURL(/\/p\/build\/dashboards\/shops\/edit$/);
  await drawn(page, "total_amount_per_month_by_shop");
  await expect(page.getByText("No problems. Ready to publish.")).toBeVisible(SLOW);
  await page.getByRole("button", { name: "Publish" }).click();
  await page.getByRole("dialog", { name: "Publish shops" }).getByRole("button", { name: "Publish" }).click();
  await expect(page.getByRole("heading", { name: "Shops", exact: true })).toBeVisible();
  await drawn(page, "total_amount_per_month_by_shop");
  await expect(panel(page, "total_amount_per_month_by_shop").getByRole("table")).toContainText("North");
});

test("a query's result is charted, aggregated and added to an existing dashboard whose comments stay", async ({
  page,
  api,
}) => {
  await api.pipeline("build-query", config, { "sales.csv": CSV });
  const text = `# About the shops
version: 2
title:  Shops   # one line
queries:
  all: { sql: SELECT * FROM sales } # all of them
panels:
  - { id: list, type: table, query: all,   height: 200 }
`;
  await api.put("/api/p/build-query/dashboards/shops", text, "application/yaml");
  const sql = "SELECT shop, kind, amount FROM sales";
  await page.goto(`/p/build-query/query?sql=${encodeURIComponent(sql)}`);
  await page.getByRole("button", { name: "Run query" }).click();
  await expect(page.getByRole("status").filter({ hasText: /^60 rows/ })).toBeVisible();
  await page.getByRole("button", { name: "Chart", exact: true }).click();
  await page.getByLabel("Measure").selectOption("Average of");
  await page.getByLabel("X axis").selectOption("kind");
  await expect(canvas(page)).toBeVisible();
  await expect(page.getByRole("table", { name: "Average amount by kind: 2 rows" })).toBeAttached();
  await expectAccessible(page);
  await page.getByRole("button", { name: "Add chart to dashboard" }).click();
  const dialog = page.getByRole("dialog", { name: "Add chart to dashboard" });
  await expect(dialog.getByLabel("Dashboard", { exact: true })).toHaveValue("shops");
  await dialog.getByRole("button", { name: "Add panel" }).click();
  await drawn(page, "average_amount_by_kind");
  const stored = await (await page.request.get("/api/p/build-query/dashboards/shops?draft=1")).text();
  for (const line of text.trimEnd().split("\n")) expect(stored).toContain(line);
  expect(stored).toContain(
    "WITH result AS (\n        SELECT shop, kind, amount FROM sales".replace("        ", "      "),
  );
});

test("panels are moved and resized by keyboard and pointer, and every change can be undone", async ({ page, api }) => {
  await api.pipeline("build-move", config, { "sales.csv": CSV });
  const text = `version: 2
title: Moving
queries:
  days: { sql: "SELECT day, shop, amount FROM sales" }
panels:
  - { id: a, type: table, title: First, query: days, width: 6, height: 240 } # the first
  - { id: b, type: table, title: Second, query: days, width: 6, height: 240 }
  - { id: c, type: bar, title: Third, query: days, x: day, y: [amount], width: 12 }
`;
  await api.put("/api/p/build-move/dashboards/moving", text, "application/yaml");
  await page.goto("/p/build-move/dashboards/moving/edit");
  await drawn(page, "c");
  const order = () =>
    page.locator("[data-panel]").evaluateAll((nodes) => nodes.map((node) => (node as HTMLElement).dataset.panel));
  await page.getByRole("button", { name: "Move First" }).focus();
  await page.keyboard.press("ArrowRight");
  await expect.poll(order).toEqual(["b", "a", "c"]);
  await expect(page.getByText("First moved to position 2 of 3")).toBeAttached();
  await expect(page.getByRole("button", { name: "Move First" })).toBeFocused();
  await page.getByRole("button", { name: "Resize First" }).focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowDown");
  await expect(page.getByRole("button", { name: "Resize First" })).toHaveAttribute("title", /^5 of 12 columns, 260 px/);
  await expectAccessible(page);

  // By pointer, below the last panel.
  const from = await page.getByRole("button", { name: "Move Second" }).boundingBox();
  const to = await panel(page, "c").boundingBox();
  if (!from || !to) throw new Error("no panel");
  await page.mouse.move(from.x + 5, from.y + 5);
  await page.mouse.down();
  await page.mouse.move(to.x + 200, to.y + to.height - 60, { steps: 5 });
  // While it is dragged, it is shown where it lands.
  await expect(panel(page, "b")).toHaveClass(/dragged/);
  const shown = await panel(page, "b").boundingBox();
  await page.mouse.up();
  await expect(panel(page, "b")).not.toHaveClass(/dragged/);
  expect(await panel(page, "b").boundingBox()).toEqual(shown);
  await expect.poll(order).toEqual(["a", "c", "b"]);
  const corner = await page.getByRole("button", { name: "Resize Third" }).boundingBox();
  if (!corner) throw new Error("no corner");
  await page.mouse.move(corner.x + 12, corner.y + 12);
  await page.mouse.down();
  await page.mouse.move(corner.x - corner.x / 2, corner.y + 52, { steps: 5 });
  await page.mouse.up();
  await expect(page.getByRole("button", { name: "Resize Third" })).not.toHaveAttribute("title", /^12 of/);

  const stored = async () => (await page.request.get("/api/p/build-move/dashboards/moving?draft=1")).text();
  await expect.poll(stored).toContain("width: 5, height: 260 } # the first");
  for (let steps = 0; steps < 5; steps += 1) await page.getByRole("button", { name: "Undo" }).click();
  await expect.poll(order).toEqual(["a", "b", "c"]);
  await expect(page.getByRole("button", { name: "Undo" })).toBeDisabled();
  // No draft is left: it would equal what is published.
  const dashboard = "/api/p/build-move/dashboards/moving";
  await expect.poll(async () => (await page.request.get(`${dashboard}?draft=1`)).status()).toBe(404);
  expect(await (await page.request.get(dashboard)).text()).toBe(text);
  await page.keyboard.press("ControlOrMeta+y");
  await expect.poll(order).toEqual(["b", "a", "c"]);
});

test("a panel is edited by the builder, and a filter from a column applies to the charts", async ({ page, api }) => {
  await api.pipeline("build-edit", config, { "sales.csv": CSV });
  await page.goto("/p/build-edit/data/sales");
  await page.getByRole("button", { name: "Create dashboard" }).click();
  await expect(page).toHaveURL(/\/dashboards\/sales\/edit$/);
  await drawn(page, "chart");
  await expect(panel(page, "rows").locator(".dash-kpi-value")).toHaveText("60");
  await page.getByRole("button", { name: "Edit Total amount per day" }).click();
  const dialog = page.getByRole("dialog", { name: "Edit Total amount per day" });
  await dialog.getByLabel("Time unit").selectOption("Week");
  await expect(dialog.getByLabel("Title")).toHaveValue("Total amount per week");
  await expect(canvas(page)).toBeVisible();
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(panel(page, "chart").getByRole("heading")).toHaveText("Total amount per week");
  await drawn(page, "chart");

  await page.getByRole("button", { name: "Add filter" }).click();
  const adding = page.getByRole("dialog", { name: "Add filter" });
  await adding.getByLabel("Column").selectOption("shop");
  await expect(adding.getByText(/^Applies to \d+ charts of sales/)).toBeVisible();
  await adding.getByRole("button", { name: "Add filter" }).click();
  await page.getByRole("button", { name: "Shop Any" }).click();
  await page.getByRole("option", { name: "North" }).click();
  await page.keyboard.press("Escape");
  await expect(panel(page, "rows").locator(".dash-kpi-value")).toHaveText("20");

  await page.getByRole("button", { name: "More actions for Total amount per week" }).click();
  await page.getByRole("menuitem", { name: "Remove" }).click();
  await expect(panel(page, "chart")).toHaveCount(0);
  await page.keyboard.press("ControlOrMeta+z");
  await drawn(page, "chart");
});

test("a pivot table and a grouped table are made by clicks, with written times and a title", async ({ page, api }) => {
  await api.pipeline("build-pivot", config, { "sales.csv": CSV });
  await page.goto("/p/build-pivot/data/sales?chart=1");
  await page.getByRole("combobox", { name: "Chart" }).selectOption("Pivot table");
  await page.getByLabel("Time unit").selectOption("Month");
  await page.getByLabel("Columns", { exact: true }).selectOption("shop");
  const shown = page.getByRole("region", { name: "Total amount per month by shop (pivot table), scrolls" });
  await expect(shown.getByRole("columnheader")).toHaveText(["month", "North", "South", "West", "Total"]);
  await page.getByLabel("Totals").selectOption("None");
  await expect(shown.getByRole("columnheader")).toHaveText(["month", "North", "South", "West"]);
  await page.getByLabel("Totals").selectOption("Shown");
  await expect(shown.getByRole("rowheader").first()).toHaveText(/^[A-Z][a-z]{2} 2\d{3}$/);
  await expectAccessible(page);
  await page.getByRole("button", { name: "Add chart to dashboard" }).click();
  const adding = page.getByRole("dialog", { name: "Add chart to dashboard" });
  await adding.getByLabel("Title of the dashboard").fill("Shops");
  await adding.getByRole("button", { name: "Add panel" }).click();
  await expect(page).toHaveURL(/\/edit$/);
  const made = page.getByRole("region", { name: "Total amount per month by shop (pivot table), scrolls" });
  await expect(made.getByRole("columnheader")).toHaveText(["month", "North", "South", "West", "Total"]);
  const cells = await made.getByRole("row").nth(1).getByRole("cell").allTextContents();
  const [total = 0, ...parts] = cells.map((text) => Number(text.replace(/[^\d.-]/g, ""))).reverse();
  expect(total).toBeGreaterThan(0);
  expect(total).toBeCloseTo(
    parts.reduce((sum, one) => sum + one, 0),
    2,
  );

  await page.getByRole("button", { name: "Edit Total amount per month by shop (pivot table)" }).click();
  const dialog = page.getByRole("dialog", { name: "Edit Total amount per month by shop (pivot table)" });
  await dialog.getByRole("combobox", { name: "Chart" }).selectOption("Table");
  await dialog.getByRole("button", { name: "Apply" }).click();
  const grid = page.getByRole("grid", { name: "Total amount per month by shop (table)" });
  await expect(grid.getByRole("columnheader", { name: "Total amount" })).toBeVisible();
  await expect(grid.getByRole("gridcell", { name: /^[A-Z][a-z]{2} 2\d{3}$/ }).first()).toBeVisible();
});

test("a panel that is added again gets another title, and a filter is suggested for the time, then for a category", async ({
  page,
  api,
}) => {
  await api.pipeline("build-again", config, { "sales.csv": CSV });
  for (const title of ["Total amount per day", "Total amount per day (line)"]) {
    await page.goto("/p/build-again/data/sales?chart=1");
    await expect(canvas(page)).toBeVisible();
    await page.getByRole("button", { name: "Add chart to dashboard" }).click();
    const dialog = page.getByRole("dialog", { name: "Add chart to dashboard" });
    await expect(dialog.getByLabel("Title of the panel")).toHaveValue(title);
    await dialog.getByRole("button", { name: "Add panel" }).click();
    await expect(page.getByRole("heading", { name: title, exact: true })).toBeVisible();
  }
  const adding = page.getByRole("dialog", { name: "Add filter" });
  for (const column of ["day", "shop"]) {
    await page.getByRole("button", { name: "Add filter" }).click();
    await expect(adding.getByLabel("Column")).toHaveValue(column);
    await adding.getByRole("button", { name: "Add filter" }).click();
    await expect(adding).toBeHidden();
  }
  const filters = page.getByRole("group", { name: "Filters" });
  await expect(filters.getByText("From", { exact: true })).toBeVisible();
  await expect(filters.getByText("To", { exact: true })).toBeVisible();
});

test("a range of days filters a chart, and one that can't be read says why", async ({ page, api }) => {
  await api.pipeline("build-filter", config, { "sales.csv": CSV });
  await page.goto("/p/build-filter/data/sales");
  await page.getByRole("button", { name: "Create dashboard" }).click();
  await drawn(page, "by_shop");
  // Viewers choose a range without a preset, too: both of its days are needed.
  await page.getByLabel("Period, from").fill("2024-02-01");
  await expect(page.getByLabel("Period, to")).toHaveAccessibleDescription("Enter a last day.");
  await page.getByLabel("Period, to").fill("2024-02-10");
  await expect(panel(page, "rows").locator(".dash-kpi-value")).toHaveText("10");
  await page.getByRole("combobox", { name: "Period", exact: true }).selectOption("Any day");
  await expect(panel(page, "rows").locator(".dash-kpi-value")).toHaveText("60");
  await page.getByRole("button", { name: "Edit Total amount by shop" }).click();
  const dialog = page.getByRole("dialog", { name: "Edit Total amount by shop" });
  await dialog.getByRole("button", { name: "Add filter" }).click();
  const form = dialog.getByRole("form", { name: "New filter" });
  await expect(form.getByText("day goes from Jan 1, 2024 to Feb 29, 2024.")).toBeVisible();
  await form.getByLabel("From").fill("2024-02-01");
  await form.getByLabel("To", { exact: true }).fill("2024-01-01");
  // It isn't applied yet, so that the chart can't be either.
  await expect(form.getByText("The filter applies after you add it.")).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Apply" })).toBeDisabled();
  await form.getByRole("button", { name: "Add" }).click();
  await expect(form.getByLabel("To", { exact: true })).toHaveAccessibleDescription(/expected 2024-02-01 or later/);
  const paste = (text: string) =>
    form.getByLabel("To", { exact: true }).evaluate((node, text) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text", text);
      node.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, text);
  await paste("soon");
  await expect(form.getByLabel("To", { exact: true })).toHaveAccessibleDescription(/found soon, expected a date/);
  await paste("10.02.2024");
  await expect(form.getByLabel("To", { exact: true })).toHaveValue("2024-02-10");
  await form.getByRole("button", { name: "Add" }).click();
  const chip = dialog.getByRole("button", { name: "day from Feb 1, 2024 to Feb 10, 2024", exact: true });
  await expect(chip).toBeVisible();
  await expectAccessible(page);

  // A filter is changed in place.
  await chip.click();
  await dialog.getByLabel("Filter column").selectOption("amount");
  await dialog.getByLabel("From").fill("many");
  await dialog.getByRole("button", { name: "Change" }).click();
  await expect(dialog.getByLabel("From")).toHaveAccessibleDescription(/found many, expected a number/);
  await dialog.getByLabel("From").fill("40");
  await dialog.getByRole("button", { name: "Change" }).click();
  await dialog.getByRole("button", { name: "amount at least 40", exact: true }).click();
  await dialog.getByLabel("Operator").selectOption("not from … to");
  await dialog.getByLabel("To", { exact: true }).fill("50");
  await dialog.getByRole("button", { name: "Change" }).click();
  await expect(dialog.getByRole("button", { name: "Remove filter amount not from 40 to 50" })).toBeVisible();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(dialog).toBeHidden();
  await drawn(page, "by_shop");
});

test("one filter applies to the charts of several tables", async ({ page, api }) => {
  const files = {
    "sales_us.csv": "region,amount\nNorth,10.50\nSouth,20.50\nNorth,1.00",
    "sales_eu.csv": "region,amount\nNorth,30.25\nEast,40.25",
    "costs.csv": "place,amount\nNorth,5.00\nEast,6.00",
    "returns.csv": "region,amount\nNorth,1.00\nEast,2.00",
  };
  const mappings = Object.keys(files).map((file) => ({
    table: file.replace(".csv", ""),
    files: [file],
    columns: [
      { name: file === "costs.csv" ? "place" : "region", type: "string" },
      { name: "amount", type: "decimal(10,2)" },
    ],
  }));
  await api.pipeline("build-several", { version: 1, mappings }, files);
  await page.goto("/p/build-several/data/sales_us?chart=1");
  await expect(canvas(page)).toBeVisible();
  await page.getByRole("button", { name: "Add chart to dashboard" }).click();
  const first = page.getByRole("dialog", { name: "Add chart to dashboard" });
  await first.getByLabel("Title of the panel").fill("US");
  await first.getByLabel("Title of the dashboard").fill("Sales");
  await first.getByRole("button", { name: "Add panel" }).click();
  await drawn(page, "us");
  for (const [table, title] of [
    ["sales_eu", "EU"],
    ["costs", "Costs"],
  ] as const) {
    await page.getByRole("button", { name: "Add chart", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Add chart" });
    await dialog.getByLabel("Table", { exact: true }).selectOption(table);
    // The chart of the chosen table is there, and with it the automatic title.
    await expect(dialog.getByRole("table", { name: /: 2 rows/ })).toContainText("East");
    await dialog.getByLabel("Title").fill(title);
    await dialog.getByRole("button", { name: "Add chart" }).click();
    await drawn(page, title.toLowerCase());
  }

  await page.getByRole("button", { name: "Add filter" }).click();
  const adding = page.getByRole("dialog", { name: "Add filter" });
  await expect(adding.getByLabel("Table")).toHaveAccessibleDescription(
    "Without returns: no chart here was made from it.",
  );
  await adding.getByLabel("Table").selectOption("sales_us");
  await adding.getByLabel("Column").selectOption("region");
  const other = adding.getByRole("checkbox");
  await expect(other).toHaveAccessibleName("Also filter the chart of sales_eu (region)");
  await expect(
    adding.getByText(/^Applies to 2 charts of sales_us and sales_eu\. Charts of costs \(no column region\), and/),
  ).toBeVisible();
  await expectAccessible(page);
  await other.uncheck();
  await expect(
    adding.getByText(/^Applies to 1 chart of sales_us\. Charts of sales_eu and costs \(no column region\), and/),
  ).toBeVisible();
  await other.check();
  await adding.getByRole("button", { name: "Add filter" }).click();
  await expect(page.getByText("No problems. Ready to publish.")).toBeVisible(SLOW);
  await page.getByRole("button", { name: "Publish" }).click();
  await page.getByRole("dialog", { name: "Publish sales" }).getByRole("button", { name: "Publish" }).click();

  const rows = (id: string) => panel(page, id).getByRole("table").locator("tbody tr");
  await expect(rows("us")).toHaveCount(2);
  await expect(rows("eu")).toHaveCount(2);
  await page.getByRole("button", { name: "Region Any" }).click();
  await expect(page.getByRole("option")).toHaveText(["East", "North", "South"]);
  await page.getByRole("option", { name: "North" }).click();
  await page.keyboard.press("Escape");
  await expect(rows("us")).toHaveText(["North11.50"]);
  await expect(rows("eu")).toHaveText(["North30.25"]);
  await expect(rows("costs")).toHaveCount(2);
  const stored = await (await page.request.get("/api/p/build-several/dashboards/sales")).text();
  expect(stored.match(/type: select/g)).toHaveLength(1);
});

test("the automatic title follows the chart until one is typed, and Back closes the dialog before the dashboard", async ({
  page,
  api,
}) => {
  await api.pipeline("build-title", config, { "sales.csv": CSV });
  await page.goto("/p/build-title/data/sales");
  await page.getByRole("button", { name: "Create dashboard" }).click();
  await drawn(page, "by_shop");
  const dialog = page.getByRole("dialog", { name: "Edit Total amount" });
  await page.getByRole("button", { name: "Edit Total amount by shop" }).click();
  const title = dialog.getByLabel("Title");
  await dialog.getByLabel("Show").selectOption("Top 5 only");
  await expect(title).toHaveValue("Total amount by shop (top 5)");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(panel(page, "by_shop").getByRole("heading")).toHaveText("Total amount by shop (top 5)");

  await page.getByRole("button", { name: "Edit Total amount by shop" }).click();
  await dialog.getByLabel("Split by").selectOption("kind");
  await dialog.getByLabel("Measure").selectOption("Average of");
  await expect(title).toHaveValue("Average amount by shop (top 5) and kind");
  await title.fill("Best shops");
  await dialog.getByLabel("Measure").selectOption("Sum of");
  await expect(title).toHaveValue("Best shops");

  const ask = page.getByRole("dialog", { name: "Discard changes" });
  // The navigation doesn't happen, so that nothing waits for it.
  const back = () => page.evaluate(() => history.back());
  await back();
  await expect(ask).toContainText("the chart Total amount by shop (top 5)");
  await ask.getByRole("button", { name: "Cancel" }).click();
  await expect(title).toHaveValue("Best shops");
  await page.keyboard.press("Escape");
  await ask.getByRole("button", { name: "Discard" }).click();
  await expect(dialog).toBeHidden();
  await expect(page).toHaveURL(/\/dashboards\/sales\/edit$/);

  // Without changes, nothing is asked.
  await page.getByRole("button", { name: "Edit Total amount by shop" }).click();
  await expect(dialog.getByLabel("Split by")).toBeVisible();
  await back();
  await expect(dialog).toBeHidden();
  await expect(page).toHaveURL(/\/dashboards\/sales\/edit$/);
  await back();
  await expect(page).toHaveURL(/\/data\/sales/);
});

test("lists show the titles of dashboards, and publishing says who will see one", async ({ page, api }) => {
  await api.pipeline("build-lists", config, { "sales.csv": CSV });
  const text = (title: string) => `version: 2\ntitle: ${title}\nqueries: {}\npanels: []\n`;
  await api.put("/api/p/build-lists/dashboards/a", text("Zebras"), "application/yaml");
  await api.put("/api/p/build-lists/dashboards/z?draft=1", text("Apples"), "application/yaml");
  for (const path of ["/p/build-lists/dashboards", "/p/build-lists"]) {
    await page.goto(path);
    const links = page.getByRole("main").getByRole("link", { name: /^(Apples|Zebras)/ });
    await expect(links).toHaveCount(2);
    await expect(links.first()).toContainText("Apples");
  }
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox", { name: "Search pages and actions" }).fill("zebras");
  await expect(page.getByRole("option").first()).toContainText("Zebras");
  await page.keyboard.press("Escape");

  await page.goto("/p/build-lists/data/sales?chart=1");
  await page.getByRole("button", { name: "Add chart to dashboard" }).click();
  const options = page.getByRole("dialog").getByLabel("Dashboard", { exact: true }).locator("option");
  await expect(options).toHaveText(["Apples (draft)", "Zebras", "New dashboard"]);

  await page.goto("/p/build-lists/dashboards/z/edit");
  await page.getByRole("button", { name: "Publish" }).click();
  const publish = page.getByRole("dialog", { name: "Publish Apples" });
  await expect(publish).toContainText("Everyone who can sign in to this service sees the dashboard");
  await expect(publish).toContainText("Nobody sees it without signing in.");
});

test("on a phone the builder and the editor fit the screen", async ({ page, api }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await api.pipeline("build-phone", config, { "sales.csv": CSV });
  await page.goto("/p/build-phone/data/sales?chart=1");
  await canvas(page).scrollIntoViewIfNeeded();
  await expect(canvas(page)).toBeVisible();
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth);
  expect(await wide()).toBeLessThanOrEqual(390);
  await page.getByRole("button", { name: "Create dashboard" }).click();
  await drawn(page, "chart");
  expect(await wide()).toBeLessThanOrEqual(390);
  await page.getByRole("button", { name: "Edit Total amount per day" }).click();
  await expect(canvas(page)).toBeVisible();
  expect(await wide()).toBeLessThanOrEqual(390);
});

/** Sales of a year, with signs, and of no region in every fifth row. */
const SIGNED = [
  "month,region,amount,rate",
  ...Array.from({ length: 60 }, (_, at) => {
    const month = String(1 + (at % 12)).padStart(2, "0");
    return `2024-${month}-01,${["North", "South", "West", "East", ""][at % 5]},$${at + 1}.50,${at % 40}.5%`;
  }),
].join("\n");
const signed = {
  version: 1,
  mappings: [
    {
      table: "sales",
      files: ["*.csv"],
      columns: [
        { name: "month", type: "date" },
        { name: "region", type: "string" },
        { name: "amount", type: "decimal(10,2)", number_format: { currency: ["$"] } },
        { name: "rate", type: "decimal(8,4)", number_format: { percent: true } },
      ],
      csv: { null_values: [""] },
    },
  ],
};

test("amounts with signs have their currency, rows without a value are called empty and can be chosen, and a pivot of a year is whole", async ({
  page,
  api,
}) => {
  test.slow();
  await api.pipeline("build-signed", signed, { "sales.csv": SIGNED });
  await page.goto("/p/build-signed/data/sales?chart=1");
  const chart = chartOf(page);
  await chart.getByLabel("Split by").selectOption("region");
  const readers = chart.getByRole("table", { name: /60 rows/ });
  await expect(readers).toContainText("(empty)");
  await expect(readers).toContainText("Jan 2024");
  await expect(readers).toContainText("$1.50");
  await expect(chart).not.toContainText("null");
  await chart.getByRole("combobox", { name: "Chart", exact: true }).selectOption("Pivot table");
  const pivot = page.getByRole("region", { name: /pivot table.*scrolls/ });
  await expect(pivot.getByRole("columnheader", { name: "(empty)" })).toBeVisible();
  for (const select of await chart.getByRole("combobox").all())
    expect(
      await select.evaluate((node: HTMLSelectElement) => {
        const pen = document.createElement("canvas").getContext("2d");
        const style = getComputedStyle(node);
        if (!pen) return "no canvas";
        pen.font = style.font;
        const room = node.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        return [...node.options].map(({ text }) => text).find((text) => pen.measureText(text).width > room);
      }),
      "an option that is cut",
    ).toBeUndefined();

  const regions = pivot.getByRole("columnheader");
  for (const [value, shown] of [
    ["is", ["month", "(empty)"]],
    ["is not", ["month", "East", "North", "South", "West", "Total"]],
  ] as const) {
    await chart.getByRole("button", { name: "Add filter" }).click();
    await chart.getByLabel("Filter column").selectOption("region");
    await chart.getByLabel("Operator").selectOption(value);
    await expect(chart.locator('datalist option[value="(empty)"]')).toBeAttached();
    await chart.getByLabel("Value", { exact: true }).fill("(empty)");
    await chart.getByRole("button", { name: "Add", exact: true }).click();
    await expect(chart.getByRole("button", { name: `region ${value} empty`, exact: true })).toBeVisible();
    await expect(regions).toHaveText([...shown]);
    await chart.getByRole("button", { name: `Remove filter region ${value} empty` }).click();
  }
  await chart.getByRole("button", { name: "Add chart to dashboard" }).click();
  const adding = page.getByRole("dialog", { name: "Add chart to dashboard" });
  await adding.getByLabel("Title of the dashboard").fill("Signed");
  await adding.getByRole("button", { name: "Add panel" }).click();
  await expect(page).toHaveURL(/\/edit$/);
  // The title is there once, to be edited.
  await expect(page.getByLabel("Title of the dashboard")).toHaveValue("Signed");
  await expect(page.getByRole("heading", { name: "Signed", exact: true })).toHaveClass("for-readers");
  const foot = page.locator("[data-panel] .pivot tfoot");
  await expect(foot).toBeVisible();
  const inside = () =>
    foot.evaluate((node) => {
      const box = node.closest(".pivot");
      return box !== null && box.scrollHeight <= box.clientHeight && node.getBoundingClientRect().height > 0;
    });
  expect(await inside()).toBe(true);

  await page.getByRole("button", { name: "Add filter" }).click();
  const dialog = page.getByRole("dialog", { name: "Add filter" });
  await dialog.getByLabel("Column").selectOption("region");
  await dialog.getByRole("button", { name: "Add filter" }).click();
  await page.getByRole("button", { name: "Region Any" }).click();
  await page.getByRole("option", { name: "(empty)" }).click();
  await page.keyboard.press("Escape");
  await expect(page.locator("[data-panel] .pivot thead th")).toHaveText(["month", "(empty)"]);
});
