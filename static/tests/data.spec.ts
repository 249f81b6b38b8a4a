import { readFile } from "node:fs/promises";
import { expect, expectAccessible, test, type Page } from "./support/test";

const cells = (page: Page, column: number) => page.locator(`.grid-rows [role=gridcell][aria-colindex="${column + 1}"]`);
const header = (page: Page, name: string) => page.getByRole("columnheader", { name: new RegExp(`^${name}\\b`) });

const ORDERS = {
  version: 1,
  mappings: [
    {
      table: "orders",
      files: ["orders/*.csv"],
      columns: [
        { name: "id", type: "int64", nullable: false },
        { name: "city", type: "string" },
        { name: "amount", type: "decimal(10,2)" },
        { name: "day", type: "date", nullable: false },
      ],
      partition_by: ["day"],
      rejects: { max_ratio: 1 },
    },
  ],
};

/** 600 orders; each city has 200 of them. */
function orders(from: number, day: string): string {
  const lines = ["id,city,amount,day"];
  for (let id = from; id < from + 300; id += 1) {
    const city = ["Köln", "Paris", "Oslo"][id % 3] ?? "";
    lines.push(`${id},${city},${(id * 1.5).toFixed(2)},${day}`);
  }
  return lines.join("\n");
}

const FILES = {
  "orders/jan.csv": orders(0, "2024-01-01"),
  "orders/feb.csv": `${orders(300, "2024-02-01")}\nwrong,Rome,1.00,2024-02-01\n`,
};

test("the service sorts, filters and pages rows, and the URL contains the view", async ({ page, api }) => {
  await api.pipeline("data-rows", ORDERS, FILES);
  await page.goto("/p/data-rows/data");
  await expect(page).toHaveURL(/\/data\/orders$/);
  await expect(page.getByRole("status").filter({ hasText: "600 rows" })).toBeVisible();

  await header(page, "amount").getByRole("button").click();
  await header(page, "amount").getByRole("button").click();
  await expect(header(page, "amount")).toHaveAttribute("aria-sort", "descending");
  await expect(cells(page, 3).first()).toHaveText("898.50");
  await expect(page).toHaveURL(/sort=-amount/);

  await page.getByLabel("Filter city", { exact: true }).fill("ö");
  await expect(page.getByText("200 of 600 rows")).toBeVisible();
  await expect(cells(page, 1).first()).toHaveText("597");
  await page.getByLabel("Operator for id").selectOption("between");
  await page.getByLabel("Filter id", { exact: true }).fill("30 .. 39");
  await page.keyboard.press("Enter");
  await expect(page.getByText("4 of 600 rows")).toBeVisible();
  await expect(cells(page, 1)).toHaveText(["39", "36", "33", "30"]);

  await page.reload();
  await expect(cells(page, 1)).toHaveText(["39", "36", "33", "30"]);
  await expect(page.getByLabel("Filter id", { exact: true })).toHaveValue("30 .. 39");

  await page.getByRole("link", { name: "Schema" }).first().click();
  await expect(page.getByRole("columnheader", { name: "Empty cells" })).toBeVisible();
  const id = page.getByRole("row").filter({ has: page.getByText("id", { exact: true }) });
  await expect(id.getByRole("cell", { name: "whole number int64", exact: true })).toBeVisible();
  await expect(id.getByRole("cell", { name: "not allowed", exact: true })).toBeVisible();
  await page.goBack();
  await expect(cells(page, 1)).toHaveText(["39", "36", "33", "30"]);
  await page.getByRole("button", { name: "Clear filters" }).click();
  // Until the response arrives the previous rows stay, and keys navigate them.
  await expect(page.getByRole("status").filter({ hasText: /^600 rows$/ })).toBeVisible();
  await page.getByRole("grid").focus();
  await page.keyboard.press("Control+End");
  await expect(cells(page, 1).last()).toHaveText("0");
});

test("a filter with an invalid value shows the expected form and sends no request", async ({ page, api, watch }) => {
  await api.pipeline("data-filter", ORDERS, { "orders/jan.csv": FILES["orders/jan.csv"] });
  await page.goto("/p/data-filter/data/orders");
  const field = page.getByLabel("Filter id", { exact: true });
  await field.fill("1.5");
  await page.keyboard.press("Enter");
  await expect(field).toHaveAttribute("aria-invalid", "true");
  await expect(page.locator("[title='found 1.5, expected a whole number']")).toBeVisible();
  await expect(page).not.toHaveURL(/[?&]filter=/);
  await field.fill("7");
  await page.keyboard.press("Enter");
  await expect(page.getByText("1 of 300 rows")).toBeVisible();

  await page.getByLabel("Operator for city").selectOption("is_null");
  await expect(page.getByRole("heading", { name: "No rows match these filters", exact: true })).toBeVisible();

  // Problems that only the service finds are shown at their filter, too.
  watch.expected.push(/400/);
  await page.goto("/p/data-filter/data/orders?filter=id:ge:10");
  await expect(page.getByText("290 of 300 rows")).toBeVisible();
  await page.getByLabel("Operator for day").selectOption("eq");
  const day = page.getByLabel("Filter day", { exact: true });
  await day.fill("2024-02-31");
  await page.keyboard.press("Enter");
  await expect(day).toHaveAttribute("aria-invalid", "true");
  await expect(day).toHaveAccessibleDescription(/found `2024-02-31`, expected a date such as `2013-01-31`/);
  await expect(page.getByLabel("Filter id", { exact: true })).not.toHaveAttribute("aria-invalid");
  await expect(page.getByRole("heading", { name: "Invalid filter on day", exact: true })).toBeVisible();
  await expectAccessible(page);

  // It stays while the same request is repeated, for example after an outage; previous rows don't show through.
  const gate = { open: () => undefined as void };
  const opened = new Promise<void>((resolve) => (gate.open = resolve));
  await page.route(/\/rows\?.*day/, async (route) => {
    await opened;
    await route.continue();
  });
  await page.evaluate(() => {
    window.dispatchEvent(new Event("offline"));
    window.dispatchEvent(new Event("online"));
  });
  await expect(page.locator(".data-grid")).toHaveAttribute("aria-busy", "true");
  await expect(page.getByRole("heading", { name: "Invalid filter on day", exact: true })).toBeVisible();
  await expect(page.locator(".grid-number")).toHaveCount(0);
  gate.open();
  await expect(page.locator(".data-grid")).toHaveAttribute("aria-busy", "false");
  await expect(day).toHaveAttribute("aria-invalid", "true");

  await day.fill("2024-01-01");
  await expect(day).not.toHaveAttribute("aria-invalid");
  await expect(page.getByText("290 of 300 rows")).toBeVisible();
  await day.fill("2024-02-31");
  await page.getByRole("button", { name: "Clear filter", exact: true }).click();
  await expect(page.getByText("290 of 300 rows")).toBeVisible();
  await expect(day).toHaveValue("");

  await page.goto("/p/data-filter/data/orders?filter=ciyt:eq:x");
  await expect(page.getByText("did you mean city?")).toBeVisible();
  await page.getByRole("button", { name: "Clear filters and sort" }).click();
  await expect(page.getByText("300 rows", { exact: true })).toBeVisible();
});

test("a row links to the sources of its partition, and each source shows its row counts", async ({ page, api }) => {
  await api.pipeline("data-lineage", ORDERS, FILES);
  await page.goto("/p/data-lineage/data/orders?filter=id:eq:301");
  await page.locator(".grid-number").first().click();
  const drawer = page.getByRole("dialog", { name: "Row 1" });
  await expect(drawer.getByText("451.50")).toBeVisible();
  await expect(drawer.getByText("day = 2024-02-01")).toBeVisible();
  await expect(drawer.getByRole("link", { name: "orders/feb.csv" })).toHaveAttribute(
    "href",
    "/lake?prefix=pipelines%2Fdata-lineage%2Forders%2F&file=pipelines%2Fdata-lineage%2Forders%2Ffeb.csv",
  );
  await expect(page).toHaveURL(/row=1/);
  await expectAccessible(page);
  await page.keyboard.press("Escape");

  await page.getByRole("link", { name: "Sources" }).click();
  const source = page.getByRole("row", { name: /feb\.csv/ });
  await expect(source.getByRole("cell")).toContainText(["orders/feb.csv", "301", "300", "1", "0"]);
  await expectAccessible(page);
  await page.getByRole("link", { name: "Partitions" }).click();
  await expect(page.getByRole("row", { name: /2024-01-01/ })).toContainText("300");
  await expectAccessible(page);
});

test("rejected rows show their reason, and link to their line in the lake", async ({ page, api }) => {
  await api.pipeline("data-rejected", ORDERS, FILES);
  await page.goto("/p/data-rejected/data/orders");
  await page.getByRole("link", { name: "Rejected 1" }).click();
  await expect(page.getByRole("button", { name: "wrong type id 1" })).toBeVisible();
  await expect(cells(page, 5).first()).toHaveText("wrong");
  await expect(cells(page, 7).first()).toHaveText("wrong,Rome,1.00,2024-02-01");
  await expectAccessible(page);
  await page.getByRole("grid").focus();
  await page.keyboard.press("Enter");
  const link = page.getByRole("dialog").getByRole("link", { name: "Open orders/feb.csv at line 302 in the lake" });
  await link.click();
  await expect(page).toHaveURL(/\/lake\?.*feb\.csv&line=302$/);
});

test("a download contains the shown rows, and a query takes over the view", async ({ page, api }) => {
  await api.pipeline("data-download", ORDERS, { "orders/jan.csv": FILES["orders/jan.csv"] });
  await page.goto("/p/data-download/data/orders?filter=id:in:3,1&sort=-id");
  await expect(page.getByText("2 of 300 rows")).toBeVisible();
  const begun = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download orders" }).click();
  await page.getByRole("menuitem", { name: /CSV/ }).click();
  const file = await begun;
  expect(file.suggestedFilename()).toBe("orders.csv");
  const text = await readFile(await file.path(), "utf8");
  expect(text.trim().split(/\r?\n/)).toEqual([
    "id,city,amount,day",
    "3,Köln,4.50,2024-01-01",
    "1,Paris,1.50,2024-01-01",
  ]);

  await page.getByRole("button", { name: "Query this table" }).click();
  const statement = page.getByRole("textbox", { name: "SQL" });
  for (const line of ["SELECT *", "FROM orders", "WHERE id IN (3, 1)", "ORDER BY id DESC NULLS LAST", "LIMIT 100"]) {
    await expect(statement).toContainText(line);
  }
});

test("a pipeline without tables, and a table without rows, show the next step", async ({ page, api, watch }) => {
  watch.expected.push(/404/);
  await api.pipeline("data-empty", ORDERS, {});
  await page.goto("/p/data-empty/data/orders");
  await expect(page.getByRole("heading", { name: "orders has no rows yet", exact: true })).toBeVisible();
  await expectAccessible(page);
  await page.goto("/p/data-empty/data/nothing");
  await expect(page.getByRole("heading", { name: "Table nothing not found", exact: true })).toBeVisible();
  await api.put("/api/p/data-empty/config", { version: 1, mappings: [] });
  await page.goto("/p/data-empty/data");
  await expect(page.getByRole("heading", { name: /No tables yet|The config has problems/ })).toBeVisible();
});

test("tables that can't be read show the reason, and can be retried", async ({ page, api, watch }) => {
  watch.expected.push(/400/);
  await api.pipeline("data-failing", ORDERS, { "orders/jan.csv": FILES["orders/jan.csv"] });
  let failing = true;
  await page.route("**/api/p/data-failing/tables/orders/rows?*", (route) =>
    failing
      ? route.fulfill({ status: 400, json: { error: "invalid_request", message: "the store is away" } })
      : route.fallback(),
  );
  await page.goto("/p/data-failing/data/orders");
  await expect(page.getByText("the store is away")).toBeVisible();
  failing = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByText("300 rows", { exact: true })).toBeVisible();
});

const PAYLOADS = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(2)>",
  "<svg onload=alert(3)>",
  "<svg><script>alert(4)</script></svg>",
  "'\"><script>alert(5)</script>",
  "javascript:alert(6)",
  "<iframe src=javascript:alert(7)>",
  "<body onload=alert(8)>",
  "<a href=javascript:alert(9)>x</a>",
  "{{constructor.constructor('alert(10)')()}}",
  "${alert(11)}",
  "<details open ontoggle=alert(12)>",
  "<math><mtext></mtext><img src=x onerror=alert(13)></math>",
  "<style>@import 'javascript:alert(14)'</style>",
  "<input autofocus onfocus=alert(15)>",
  "</textarea><script>alert(16)</script>",
  "<object data=javascript:alert(17)>",
  "<video><source onerror=alert(18)></video>",
  "--><script>alert(19)</script><!--",
  "<form action=javascript:alert(20)><button>x",
  "<template><img src=x onerror=alert(21)></template>",
  "__proto__",
];

test("hostile texts in cells and headers are shown as text", async ({ page, api }) => {
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const csv = [PAYLOADS.map(quoted).join(","), PAYLOADS.map(quoted).join(","), PAYLOADS.map(() => "x").join(",")];
  const columns = PAYLOADS.map((name) => ({ name, type: "string" }));
  const numbers = { name: "n", type: "int32", from: PAYLOADS[0], nullable: false };
  await api.pipeline(
    "data-xss",
    {
      version: 1,
      mappings: [
        { table: "t", files: ["*.csv"], columns },
        { table: "refused", files: ["*.csv"], columns: [numbers], rejects: { max_ratio: 1 } },
      ],
    },
    { "<img src=x onerror=alert(22)>.csv": csv.join("\n") },
  );
  await page.goto("/p/data-xss/data/t");
  await expect(cells(page, 1).first()).toHaveText(PAYLOADS[0] ?? "");
  await page.getByRole("grid").focus();
  for (const [at, payload] of PAYLOADS.entries()) {
    await expect(cells(page, at + 1).first()).toHaveText(payload);
    await expect(page.locator(`[role=columnheader][data-column="${at}"]`)).toContainText(payload);
    await page.keyboard.press("ArrowRight");
  }
  await page.keyboard.press("Enter");
  await expect(
    page
      .getByRole("dialog")
      .getByText(PAYLOADS[1] ?? "")
      .first(),
  ).toBeVisible();
  await page.keyboard.press("Escape");
  for (const tab of ["schema", "partitions", "sources"]) {
    await page.goto(`/p/data-xss/data/t?tab=${tab}&chart=1`);
    await expect(
      page
        .getByRole("table")
        .getByText(/<img src=x/)
        .first(),
    ).toBeVisible();
  }
  await page.goto("/p/data-xss/data/refused?tab=rejected");
  await expect(cells(page, 5).first()).toHaveText(PAYLOADS[0] ?? "");
  expect(dialogs).toEqual([]);
  await expect(page.locator("#app script, #app iframe, #app object, #app img[onerror]")).toHaveCount(0);
});

test("a file that a run failed to load is listed in Sources, and can be deleted there", async ({ page, api }) => {
  const columns = [{ name: "id", type: "int64" }];
  await api.pipeline(
    "src-failed",
    { version: 1, auto_run: false, mappings: [{ table: "orders", files: ["*.csv"], columns }] },
    { "a.csv": "id\n1\n2\n" },
  );
  await api.upload("pipelines/src-failed/bad.csv", "id\nx\n");
  await api.run("src-failed");
  await api.upload("pipelines/src-failed/later.csv", "id\n4\n");
  await page.goto("/p/src-failed/data/orders?tab=sources");
  const row = page.getByRole("row", { name: /bad\.csv/ });
  await expect(row).toContainText("failed");
  await expect(row).toContainText("Not loaded: the last run failed.");
  await expect(page.getByRole("row", { name: /later\.csv/ })).toContainText("waits for the next run");
  await page.getByLabel("Select bad.csv, failed").check();
  await page.getByRole("button", { name: "Delete…" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete bad.csv" });
  await expect(dialog).toContainText("1 file, 5 B");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(row).toBeHidden();
  await expect(page.getByRole("row", { name: /later\.csv/ })).toBeVisible();
});

test("sources are deleted with what tables lose, and their upload is no longer said to be loaded", async ({
  page,
  api,
}) => {
  const columns = [{ name: "id", type: "int64" }];
  await api.pipeline(
    "src-delete",
    {
      version: 1,
      auto_run: false,
      mappings: [
        { table: "orders", files: ["*.csv"], columns },
        { table: "all_orders", files: ["*.csv"], when_removed: "keep_rows", columns },
      ],
    },
    { "a.csv": "id\n1\n2\n", "b.csv": "id\n3\n" },
  );
  await page.goto("/p/src-delete/data/orders");
  await expect(page.locator(".data-head")).toContainText("3 rows");
  await page.getByRole("link", { name: "Sources" }).click();
  await expect(page.getByRole("button", { name: "Delete…" })).toBeDisabled();
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Upload", exact: true }).click();
  await (await chooser).setFiles([{ name: "c.csv", mimeType: "text/csv", buffer: Buffer.from("id\n4\n5\n6\n") }]);
  await page.getByRole("dialog", { name: "Add c.csv" }).getByLabel("Table").selectOption("orders");
  await page.getByRole("dialog", { name: "Add c.csv" }).getByRole("button", { name: "Upload" }).click();
  const uploads = page.getByRole("region", { name: "Uploads" });
  await expect(uploads).toContainText("Run the pipeline to load");
  await api.run("src-delete");
  await expect(uploads).toContainText("3 rows loaded into orders");

  await page.getByLabel("Select a.csv").check();
  await page.getByLabel("Select c.csv").check();
  await expect(page.getByText("2 files selected")).toBeVisible();
  await page.getByRole("button", { name: "Delete…" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete 2 files" });
  await expect(dialog.getByText("orders loses 5 rows of 2 files", { exact: true })).toBeVisible();
  await expect(dialog.getByText(/all_orders keeps 5 rows of 2 files, as its config says/)).toBeVisible();
  await expect(dialog.getByText(/Automatic runs of src-delete are off/)).toBeVisible();
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(dialog).toBeHidden();
  await expect(uploads).toContainText("Deleted from the lake since.");
  await expect(page.getByText(/5 rows are from 2 deleted CSVs/)).toBeVisible();
  await api.run("src-delete");
  await expect(page.getByRole("row", { name: /a\.csv/ })).toHaveCount(0);
  await expect(page.getByRole("row", { name: /b\.csv/ })).toBeVisible();
  await expect(page.locator(".data-head")).toContainText("1 row · 1 column · 1 CSV");
});

test("a column of percentages is shown in percent: rows, details, summary, chart and filters", async ({
  page,
  api,
}) => {
  const columns = [
    { name: "day", type: "date" },
    { name: "discount", type: "decimal(9,4)", number_format: { percent: true } },
  ];
  const rows = Array.from({ length: 40 }, (_, at) => `2024-01-${String((at % 28) + 1).padStart(2, "0")},${at + 0.5}%`);
  const config = { version: 1, mappings: [{ table: "orders", files: ["*.csv"], columns }] };
  await api.pipeline("data-percent", config, { "a.csv": ["day,discount", ...rows].join("\n") });
  await page.goto("/p/data-percent/data/orders");
  await expect(cells(page, 2).first()).toHaveText("0.5%");
  await page.getByLabel("Operator for discount").selectOption("ge");
  await page.getByLabel("Filter discount", { exact: true }).fill("38.5%");
  await expect(cells(page, 2)).toHaveText(["38.5%", "39.5%"]);
  await expect(page).toHaveURL(/discount%3Age%3A0\.385/);
  await page.reload();
  await expect(page.getByLabel("Filter discount", { exact: true })).toHaveValue("38.5%");

  await page.goto("/p/data-percent/data/orders?row=2");
  const drawer = page.getByRole("dialog");
  await expect(drawer.getByText("1.5%", { exact: true })).toBeVisible();
  await page.goto("/p/data-percent/data/orders?tab=schema");
  const summary = page.getByRole("row").filter({ hasText: "discount" });
  await expect(summary.getByText("39.5%", { exact: true })).toBeVisible();
  await expect(summary.getByRole("img", { name: "Histogram of discount from 0.5% to 39.5%" })).toBeVisible();

  await page.goto("/p/data-percent/data/orders?chart=1");
  const chart = page.getByRole("region", { name: "Chart of the table" });
  await expect(chart.getByRole("heading", { name: "Average discount per day" })).toBeVisible();
  await chart.getByRole("combobox", { name: "Chart", exact: true }).selectOption("number");
  await expect(chart.locator(".build-number")).toContainText("20.0%");
});

test("the schema fits its table, with types in words and their exact names below", async ({ page, api }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await api.sample();
  await page.goto("/p/flights/data/weather?tab=schema");
  const histograms = page.locator(".data-schema .dist");
  await expect(histograms.nth(8)).toBeVisible({ timeout: 60_000 });
  const box = page.locator(".table-box");
  expect(await box.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
  const type = page.getByRole("row", { name: "year" }).locator("td[data-label=Type]");
  await expect(type).toHaveText("whole number int16");
  // Two lines: the words aren't wrapped.
  expect((await type.locator(".data-type").boundingBox())?.height).toBeLessThan(30);
  expect((await type.boundingBox())?.height).toBeLessThan(52);
});
