import { expect, expectAccessible, test, type Api } from "./support/test";

const SLOW = { timeout: 60_000 };

const config = (columns: object[]) => ({
  version: 1,
  auto_run: false,
  mappings: [{ table: "sales", files: ["sales/*.csv"], columns }],
});
const columns = [
  { name: "id", type: "int64", nullable: false },
  { name: "price", type: "float64" },
];

const rowsOf = async (api: Api, slug: string) =>
  (await api.get<{ tables: { rows: number }[] }>(`/api/p/${slug}/tables`)).tables[0]?.rows;

test("a new column of the CSVs is added without editing the config", async ({ page, api }) => {
  await api.pipeline("adapt-column", config(columns), {
    "sales/may.csv": "id,price\n1,5\n2,6\n",
    "sales/june.csv": "id,price,channel\n3,7,web\n4,8,shop\n",
  });
  await page.goto("/p/adapt-column/data/sales");
  await expect(page.getByText("sales: the files have a new column, channel.")).toBeVisible(SLOW);
  await page.getByRole("button", { name: "Add column…" }).click();
  const dialog = page.getByRole("dialog", { name: "Add channel to sales" });
  await expect(dialog.getByLabel("Add column channel (text)")).toBeChecked(SLOW);
  await expect(dialog.getByText("All 2 rows can be read.")).toBeVisible(SLOW);
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Save and run" }).click();
  await expect(dialog).toBeHidden(SLOW);
  const rows = "/api/p/adapt-column/tables/sales/rows?limit=10";
  await expect
    .poll(async () => (await api.get<{ rows: unknown[][] }>(rows)).rows.map((row) => row[2]), SLOW)
    .toContain("web");
  expect(await rowsOf(api, "adapt-column")).toBe(4);
  await page.reload();
  await expect(page.getByRole("columnheader", { name: /channel/ })).toBeVisible(SLOW);
  await expect(page.getByText(/new column in the CSVs/)).toBeHidden();
});

test("numbers, nulls and totals that failed a run are read after a fix by clicks", async ({ page, api }) => {
  await api.pipeline("adapt-values", config(columns), { "sales/may.csv": "id,price\n1,5\n2,6\n" });
  await api.upload("pipelines/adapt-values/sales/june.csv", 'id,price\n3,"$1,234.50"\n4,N/A\n5,$7.00\nTotal,\n');
  await api.run("adapt-values");
  await page.goto("/p/adapt-values/data/sales");
  await expect(page.locator(".state-notice")).toContainText("because the last run failed", SLOW);
  await page.locator(".state-notice").getByRole("button", { name: "Fix…" }).click();
  const dialog = page.getByRole("dialog", { name: "Adapt sales to its files" });
  await expect(dialog.getByLabel("Read price as decimal number, thousands separator comma, with $")).toBeChecked(SLOW);
  await expect(dialog.getByLabel("Read “N/A” as null")).toBeChecked();
  await expect(dialog.getByLabel("Skip last rows starting with “Total”")).toBeChecked();
  await expect(dialog.getByText("All 3 rows can be read.")).toBeVisible(SLOW);
  await dialog.getByLabel("Skip last rows starting with “Total”").uncheck();
  await expect(dialog.getByText("In june.csv, 1 of 4 rows would be rejected")).toBeVisible(SLOW);
  await expect(
    dialog.getByText(/With all files of sales, 1 row of 6 would be rejected, more than allowed/),
  ).toBeVisible();
  await dialog.getByLabel("Skip last rows starting with “Total”").check();
  await dialog.getByRole("button", { name: "Save and run" }).click();
  await expect.poll(() => rowsOf(api, "adapt-values"), SLOW).toBe(5);
});

test("a failed run's page offers the fix, and rejected rows can be allowed in it", async ({ page, api }) => {
  await api.pipeline("adapt-job", config(columns), { "sales/may.csv": "id,price\n1,5\n2,six\n3,7\n4,8\n" });
  const { jobs } = await api.get<{ jobs: { job_id: string }[] }>("/api/p/adapt-job/jobs");
  await page.goto(`/p/adapt-job/jobs/${jobs[0]?.job_id ?? ""}`);
  await page.getByRole("button", { name: "Fix sales…" }).click(SLOW);
  const dialog = page.getByRole("dialog", { name: "Adapt sales to its files" });
  await expect(dialog.getByText("In may.csv, 1 of 4 rows would be rejected")).toBeVisible(SLOW);
  await expect(dialog.getByRole("button", { name: "Save and run" })).toBeDisabled();
  await dialog.getByLabel("Rejected rows allowed").selectOption("any number");
  await dialog.getByRole("button", { name: "Save and run" }).click();
  await expect.poll(() => rowsOf(api, "adapt-job"), SLOW).toBe(3);
});

test("one bad file of several is left out, and the others are loaded", async ({ page, api }) => {
  await api.pipeline("adapt-out", config(columns), { "sales/may.csv": "id,price\n1,5\n2,6\n" });
  await api.upload("pipelines/adapt-out/sales/june.csv", "id,price\n3,7\n");
  await api.upload("pipelines/adapt-out/sales/bad [1].csv", "id,price\nx,y\n");
  await api.run("adapt-out");
  await page.goto("/p/adapt-out");
  await page.getByRole("button", { name: "Fix…" }).click(SLOW);
  const dialog = page.getByRole("dialog", { name: "Adapt sales to its files" });
  await expect(dialog.getByLabel("Leave out sales/june.csv")).toHaveCount(0);
  await dialog.getByLabel("Leave out sales/bad [1].csv").check(SLOW);
  await expect(dialog.getByText(/bad \[1\]\.csv stays in the lake, but 1 row won't be in the table/)).toBeVisible();
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Save and run" }).click();
  await expect.poll(() => rowsOf(api, "adapt-out"), SLOW).toBe(3);
  const stored = await api.get<{ mappings: { files: string[] }[] }>("/api/p/adapt-out/config");
  expect(stored.mappings[0]?.files).toEqual(["sales/*.csv", "!sales/bad [[]1[]].csv"]);
  // It isn't reported as forgotten.
  await expect(page.locator(".overview-sentence")).toContainText("up to date with 2 files", SLOW);

  // It can be loaded, or deleted, later.
  await api.upload("pipelines/adapt-out/sales/bad [1].csv", "id,price\n8,9\n");
  await page.goto("/p/adapt-out/data/sales?tab=sources");
  const row = page.getByRole("row", { name: /bad \[1\]\.csv/ });
  await expect(row).toContainText("left out");
  await row.getByRole("button", { name: "Load it" }).click();
  await expect.poll(() => rowsOf(api, "adapt-out"), SLOW).toBe(4);
  const again = await api.get<{ mappings: { files: string[] }[] }>("/api/p/adapt-out/config");
  expect(again.mappings[0]?.files).toEqual(["sales/*.csv"]);
});

test("a failed run is named before the config that it couldn't apply, and the new column of its file starts ticked", async ({
  page,
  api,
}) => {
  await api.pipeline("adapt-first", config(columns), { "sales/may.csv": "id,price\n1,5\n" });
  await api.put("/api/p/adapt-first/config", config([columns[0] ?? {}, { name: "price", type: "date" }]));
  await api.upload("pipelines/adapt-first/sales/june.csv", "id,price,channel\n3,7,web\n");
  await api.run("adapt-first");
  for (const place of ["/p/adapt-first", "/p/adapt-first/data/sales"]) {
    await page.goto(place);
    await expect(page.getByText(/Config changed, not applied yet/)).toBeVisible(SLOW);
    await expect(page.getByRole("button", { name: "Run now" })).toBeVisible();
    await expect(page.getByRole("button", { name: "Fix…" })).toBeVisible();
  }
  await page.getByRole("button", { name: "Fix…" }).click();
  const dialog = page.getByRole("dialog", { name: "Adapt sales to its files" });
  await expect(dialog.getByLabel("Add column channel (text)")).toBeChecked(SLOW);
});

test("a file of another format is read in its own after a fix by clicks", async ({ page, api }) => {
  const dated = [...columns, { name: "day", type: "date" }];
  await api.pipeline("adapt-format", config(dated), { "sales/may.csv": "id,price,day\n1,5.5,2024-05-01\n" });
  await api.upload(
    "pipelines/adapt-format/sales/june.csv",
    "Till 4\n\nid;price;day\n2;1.006,5;13.06.2024\n3;7,25;14.06.2024\n",
  );
  await api.run("adapt-format");
  await page.goto("/p/adapt-format/data/sales");
  await page.locator(".state-notice").getByRole("button", { name: "Fix…" }).click(SLOW);
  const dialog = page.getByRole("dialog", { name: "Adapt sales to its files" });
  const own = "Read june.csv in its own format: semicolon-separated, UTF-8, header in line 3, decimal comma";
  await expect(dialog.getByLabel(own)).toBeChecked(SLOW);
  await expect(dialog.getByText("All 2 rows can be read.")).toBeVisible(SLOW);
  await dialog.getByRole("button", { name: "Save and run" }).click();
  await expect.poll(() => rowsOf(api, "adapt-format"), SLOW).toBe(3);
  const { rows } = await api.get<{ rows: unknown[][] }>("/api/p/adapt-format/tables/sales/rows?limit=10");
  expect(rows.map(([id, price, day]) => [id, Number(price), day])).toEqual([
    [2, 1006.5, "2024-06-13"],
    [3, 7.25, "2024-06-14"],
    [1, 5.5, "2024-05-01"],
  ]);
});

test("a file with another date format is read without harm to the others", async ({ page, api }) => {
  const dated = [
    { name: "id", type: "int64" },
    { name: "day", type: "date", formats: ["%m/%d/%Y"] },
  ];
  await api.pipeline("adapt-dates", config(dated), { "sales/may.csv": "id,day\n1,05/28/2024\n2,05/03/2024\n" });
  await api.upload("pipelines/adapt-dates/sales/june.csv", "id,day\n3,2024-06-13\n4,2024-06-14\n");
  await api.upload("pipelines/adapt-dates/sales/july.csv", "id,day\n5,28/07/2024\n6,03/07/2024\n");
  await api.run("adapt-dates");
  await page.goto("/p/adapt-dates/data/sales");
  await page.locator(".state-notice").getByRole("button", { name: "Fix…" }).click(SLOW);
  const dialog = page.getByRole("dialog", { name: "Adapt sales to its files" });
  // Either order of day and month would read 03/07/2024: the files get a format of their own.
  await expect(dialog.getByLabel(/^Read .* in their own format: .*, day as .*DD\/MM\/YYYY/)).toBeChecked(SLOW);
  await expect(dialog.getByText("All 4 rows of 2 files can be read.")).toBeVisible(SLOW);
  await expect(dialog.getByText("no longer read as now")).toBeHidden();
  await dialog.getByRole("button", { name: "Save and run" }).click();
  await expect.poll(() => rowsOf(api, "adapt-dates"), SLOW).toBe(6);
  const { rows } = await api.get<{ rows: unknown[][] }>("/api/p/adapt-dates/tables/sales/rows?limit=10");
  expect(rows.map(([id, day]) => [id, day])).toEqual([
    [5, "2024-07-28"],
    [6, "2024-07-03"],
    [3, "2024-06-13"],
    [4, "2024-06-14"],
    [1, "2024-05-28"],
    [2, "2024-05-03"],
  ]);
});

test("a fix says which dashboards it would break, and an invalid one isn't offered", async ({ page, api }) => {
  const dated = [...columns, { name: "day", type: "date" }];
  const { mappings, ...rest } = config(dated);
  await api.pipeline("adapt-impact", config(dated), { "sales/may.csv": "id,price,day\n1,5,2024-05-01\n" });
  const sql = "SELECT date_trunc('month', day) AS month, sum(price) AS total FROM sales GROUP BY 1";
  await api.put(
    "/api/p/adapt-impact/dashboards/board",
    `version: 2\ntitle: Revenue 2026\nqueries:\n  q:\n    sql: ${sql}\npanels:\n  - id: t\n    type: table\n    title: Total amount\n    query: q\n`,
    "application/yaml",
  );
  await api.upload("pipelines/adapt-impact/sales/june.csv", "id,price,day\n2,6,soon\n3,7,2024-06-01\n");
  await api.run("adapt-impact");
  await page.goto("/p/adapt-impact/data/sales");
  await page.locator(".state-notice").getByRole("button", { name: "Fix…" }).click(SLOW);
  const dialog = page.getByRole("dialog", { name: "Adapt sales to its files" });
  await dialog.getByLabel("Read day as text").check(SLOW);
  await expect(dialog.getByText(/^1 of 2 rows can't be read: soon isn't a date/)).toBeVisible();
  await expect(dialog.getByText(/Total amount: it uses date_trunc, which doesn't take the new type/)).toBeVisible(SLOW);
  await expect(dialog.getByRole("link", { name: "Revenue 2026" })).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Save and run" })).toBeEnabled(SLOW);
  await expectAccessible(page);
  await page.keyboard.press("Escape");

  // Partitions by month need dates.
  const monthly = { ...mappings[0], partition_by: [{ column: "day", transform: "month" }] };
  await api.put("/api/p/adapt-impact/config", { ...rest, mappings: [monthly] });
  await page.locator(".state-notice").getByRole("button", { name: "Fix…" }).click(SLOW);
  await dialog.getByLabel("Read day as text").check(SLOW);
  await expect(dialog.getByText(/partitioning by month requires/)).toBeVisible(SLOW);
  await expect(dialog.getByRole("button", { name: "Save and run" })).toBeDisabled();
});
