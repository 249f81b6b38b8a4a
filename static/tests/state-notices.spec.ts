import { expect, expectAccessible, test, type Page } from "./support/test";

const SLOW = { timeout: 60_000 };
// Without automatic runs, which would apply a config and remove rows before a test looks.
const config = (column = "n") => ({
  version: 1,
  auto_run: false,
  mappings: [{ table: "nums", files: ["nums/*.csv"], columns: [{ name: column, from: "n", type: "int64" }] }],
});

/** The views that show the state of a pipeline's tables. */
async function everywhere(page: Page, slug: string, text: RegExp, label: string): Promise<void> {
  await page.goto(`/p/${slug}`);
  await expect(page.locator(".overview-sentence")).toContainText(text);
  await expect(page.locator(".pipeline-head")).toContainText(label);
  for (const place of [`/p/${slug}/data/nums`, `/p/${slug}/data/nums?tab=schema`, `/p/${slug}/query`]) {
    await page.goto(place);
    await expect(page.locator(".state-notice")).toContainText(text);
    await expect(page.getByText(label, { exact: true }).first()).toBeVisible();
  }
  // By name: other tests' pipelines may fill the first cards.
  await page.goto(`/?q=${slug}`);
  await expect(page.locator(`[data-slug="${slug}"]`)).toContainText(label);
}

test("a config that isn't applied yet is shown in all views, with the run that applies it", async ({ page, api }) => {
  await api.pipeline("truth-config", config(), { "nums/a.csv": "n\n1\n2\n" });
  await api.put("/api/p/truth-config/config", config("renamed"));
  await everywhere(page, "truth-config", /Config changed, not applied yet/, "config not applied");
  await page.goto("/p/truth-config/data/nums?tab=schema");
  // The schema is that of the stored rows.
  await expect(page.getByRole("cell", { name: /^n\b/ })).toBeVisible();
  await expectAccessible(page);
  await page.getByRole("button", { name: "Run now" }).click();
  await expect(page.locator(".state-notice")).toBeHidden(SLOW);
  await expect(page.getByRole("cell", { name: /^renamed\b/ })).toBeVisible();
});

test("after a failed run, views say that the table shows the last successful run, and when it was", async ({
  page,
  api,
}) => {
  await api.pipeline("truth-last", config(), { "nums/a.csv": "n\n1\n" });
  await api.put("/api/p/truth-last/config", { version: 1, mappings: [{ table: "nums" }] });
  await api.run("truth-last");
  const shown = /the last successful run \([A-Z][a-z]+ \d+, \d{4}, \d+:\d\d [AP]M\)/;
  await page.goto("/p/truth-last/data/nums");
  await expect(page.locator(".state-notice")).toContainText("The config has problems, so runs fail.");
  await expect(page.locator(".state-notice")).toContainText(shown);
  await page.goto("/p/truth-last");
  await expect(page.locator(".overview-health")).toContainText(shown);
  await expect(page.locator(".overview-health")).toContainText("1 row");
});

test("rows whose CSV was deleted are counted everywhere, and a run removes them", async ({ page, api }) => {
  await api.pipeline("truth-gone", config(), { "nums/a.csv": "n\n1\n2\n", "nums/b.csv": "n\n3\n4\n5\n" });
  await api.delete("/api/lake?key=pipelines/truth-gone/nums/b.csv");
  await everywhere(page, "truth-gone", /3 rows are from a deleted CSV \(b\.csv\)/, "rows of removed CSVs");
  await page.goto("/p/truth-gone");
  await page.getByRole("button", { name: "Run now" }).click();
  await expect(page.locator(".overview-sentence")).toContainText("up to date with 1 file", SLOW);
});

test("a file that a failed run left out is shown in the table, in the lake and by the upload", async ({
  page,
  api,
}) => {
  await api.pipeline("truth-failed", config(), { "nums/a.csv": "n\n1\n" });
  await page.goto("/p/truth-failed/data/nums");
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Upload", exact: true }).click();
  await (await choosing).setFiles({ name: "bad.csv", mimeType: "text/csv", buffer: Buffer.from("n\nx\ny\n") });
  const dialog = page.getByRole("dialog", { name: "Add bad.csv" });
  await expect(dialog.getByLabel("Table")).toHaveValue("nums");
  await expect(dialog.getByText("pipelines/truth-failed/nums/")).toBeVisible();
  await dialog.getByRole("button", { name: "Upload" }).click();
  await expect(page.getByRole("region", { name: "Uploads" })).toContainText("1 of 1 file uploaded", SLOW);
  await api.run("truth-failed");
  await expect(page.getByRole("region", { name: "Uploads" })).toContainText("Not loaded into nums", SLOW);
  await expect(page.locator(".state-notice")).toContainText("because the last run failed", SLOW);
  // The corrected file came after that run, which says nothing about it.
  await api.upload("pipelines/truth-failed/nums/bad.csv", "n\n2\ny\n3\n4\n");
  await expect(page.locator(".state-notice")).toContainText("1 file (bad.csv) is new or changed", SLOW);
  await expect(page.getByRole("region", { name: "Uploads" })).toContainText("automatic runs are off", SLOW);
  await api.upload("pipelines/truth-failed/nums/bad.csv", "n\nx\ny\n");
  await api.run("truth-failed");
  await page.goto("/lake?prefix=pipelines/truth-failed/nums/");
  await expect(page.getByText("not loaded", { exact: true })).toBeVisible();
  await expect(page.getByRole("link", { name: "run failed" })).toBeVisible();
});

test("a CSV that no table reads is reported, and becomes a table of the pipeline", async ({ page, api }) => {
  await api.pipeline("truth-unread", config(), { "nums/a.csv": "n\n1\n", "other.csv": "x,y\n1,2\n3,4\n" });
  await page.goto("/p/truth-unread");
  await expect(page.locator(".overview-sentence")).toContainText("1 CSV isn't read by any table: other.csv.");
  await page.getByRole("link", { name: "Add a table" }).click();
  await page.getByRole("button", { name: "Create table" }).click(SLOW);
  await expect(page).toHaveURL(/\/p\/truth-unread\/data\/other/, SLOW);
  await expect(page.locator(".data-facts")).toContainText("2 rows", SLOW);
});

test("a dashboard that no longer fits its tables is marked, with the reason and a repair", async ({ page, api }) => {
  await api.pipeline("truth-board", config("amount"), { "nums/a.csv": "n\n1\n" });
  const board = `version: 2
title: Sums of the year 2026
queries:
  total: { sql: SELECT sum(amount) AS total FROM nums }
panels:
  - { id: total, type: kpi, title: Total, query: total, value: { field: total } }
`;
  await api.put("/api/p/truth-board/dashboards/sums", board, "application/yaml");
  await api.put("/api/p/truth-board/config", config("amount_eur"));
  await api.run("truth-board");
  for (const place of ["/p/truth-board", "/p/truth-board/dashboards"]) {
    await page.goto(place);
    await expect(page.getByText("broken", { exact: true })).toBeVisible(SLOW);
    await expect(page.getByText(/Replace amount by amount_eur/)).toBeVisible();
    await expect(page.getByText("The column amount doesn't exist.")).toBeVisible();
    await expect(page.getByRole("link", { name: "Fix dashboard" })).toHaveAttribute("href", /sums\/edit$/);
  }
  await expect(page.locator(".pipeline-head")).toContainText("1 broken dashboard");
  await page.goto("/p/truth-board");
  await expect(page.getByRole("link", { name: "Fix Sums of the year 2026" })).toBeVisible(SLOW);
  const card = page.locator(".overview-dashboards > li");
  await expect(card.getByRole("link", { name: "Fix dashboard" })).toBeVisible();
  await expect(card).toHaveClass("card");
  const title = card.getByText("Sums of the year 2026");
  expect(await title.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
  await page.getByRole("link", { name: "Fix dashboard" }).click();
  await expect(page.getByText("Names replaced in 1 place. Check the panels, then publish.")).toBeVisible(SLOW);
  await expect(page.getByText("No problems. Ready to publish.")).toBeVisible(SLOW);
});

test("after a rename in the config, all dashboards and a saved query get the new name", async ({
  page,
  api,
  watch,
}) => {
  watch.expected.push(/400/);
  await api.pipeline("truth-rename", config("amount"), { "nums/a.csv": "n\n1\n" });
  const board = (name: string) => `version: 2
title: ${name}
queries:
  total: { sql: SELECT sum(amount) AS total FROM nums }
panels:
  - { id: total, type: kpi, title: Total, query: total, value: { field: total } }
`;
  for (const name of ["sums", "totals"])
    await api.put(`/api/p/truth-rename/dashboards/${name}`, board(name), "application/yaml");
  const sql = "SELECT amount FROM nums";
  const { id } = await api.post<{ id: string }>("/api/p/truth-rename/queries", { name: "Amounts", sql });
  await api.put("/api/p/truth-rename/config", config("revenue"));
  await api.run("truth-rename");

  await page.goto("/p/truth-rename/dashboards");
  await expect(page.getByText("2 dashboards use names that were renamed in the config: amount → revenue.")).toBeVisible(
    SLOW,
  );
  await expectAccessible(page);
  await page.getByRole("button", { name: "Replace in all…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Replace", exact: true }).click();
  await expect(page.getByText("2 dashboards changed.")).toBeVisible(SLOW);
  await expect(page.getByText("broken", { exact: true })).toHaveCount(0, SLOW);
  for (const name of ["sums", "totals"])
    expect(await api.text(`/api/p/truth-rename/dashboards/${name}`)).toContain("sum(revenue) AS total");

  await page.goto(`/p/truth-rename/query?saved=${id}`);
  await expect(page.getByRole("textbox", { name: "SQL" })).toContainText("amount");
  await page.getByRole("button", { name: "Run query" }).click();
  await page.getByRole("button", { name: "Replace amount by revenue" }).click(SLOW);
  await expect(page.getByRole("textbox", { name: "SQL" })).toContainText("SELECT revenue AS amount FROM nums");
});

test("on a narrow screen the header of a pipeline keeps its buttons within the window", async ({ page, api }) => {
  const titled = { ...config(), title: "A pipeline with a rather long title" };
  await api.pipeline("truth-narrow", titled, { "nums/a.csv": "n\n1\n" });
  await api.delete("/api/lake?key=pipelines/truth-narrow/nums/a.csv");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/p/truth-narrow");
  await expect(page.locator(".overview-sentence")).toContainText("deleted CSV");
  for (const name of ["Upload", "Run", "More run options"]) {
    const box = await page.locator(".pipeline-head").getByRole("button", { name, exact: true }).boundingBox();
    expect((box?.x ?? 999) + (box?.width ?? 999), name).toBeLessThanOrEqual(390);
  }
  // One scrollbar: the page itself doesn't scroll.
  expect(await page.evaluate(() => document.documentElement.scrollHeight - window.innerHeight)).toBeLessThanOrEqual(0);
  // The sidebar names pipelines as people do.
  await page.getByRole("button", { name: "Menu" }).click();
  await expect(page.getByRole("navigation", { name: "Workspace" })).toContainText("rather long title");
});

test("a dashboard says of when its data is, and why, after a failed run and while files wait", async ({
  page,
  api,
}) => {
  await api.pipeline("truth-stale", config(), { "nums/a.csv": "n\n1\n" });
  await api.put(
    "/api/p/truth-stale/dashboards/all",
    "version: 2\ntitle: All\nqueries:\n  q: { sql: SELECT count(*) AS n FROM nums }\n" +
      "panels:\n  - { id: n, type: kpi, title: Rows, query: q, value: { field: n } }\n",
    "application/yaml",
  );
  await page.goto("/p/truth-stale/dashboards/all");
  await expect(page.locator(".dash-updated")).toHaveText(/^Data of [A-Z][a-z]+ \d+, \d{4}, \d+:\d\d [AP]M$/);
  await api.upload("pipelines/truth-stale/nums/b.csv", "n\nwrong\n");
  await page.reload();
  const notice = page.locator("main .note");
  await expect(notice).toHaveText(/^Data of [A-Z][a-z]+ \d+, \d{4}, \d+:\d\d [AP]M · nums: 1 file to load · See why$/);
  await expect(page.locator(".dash-updated")).toHaveCount(0);
  await api.run("truth-stale");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.reload();
  await expect(notice).toHaveText(/^Data of .* · the last run failed · See why$/);
  await expectAccessible(page);
  await notice.getByRole("link", { name: "See why" }).click();
  await expect(page).toHaveURL(/truth-stale\/jobs\//);
});

test("the sidebar and the open pipeline agree on a run that has just failed", async ({ page, api }) => {
  await api.pipeline("truth-dot", config(), { "nums/a.csv": "n\n1\n" });
  // The list is older than the jobs.
  const old = await api.get<object>("/api/pipelines?details=true");
  await api.upload("pipelines/truth-dot/nums/bad.csv", "n\nx\n");
  await api.run("truth-dot");
  await page.route(/\/api\/pipelines(\?|$)/, (route) => route.fulfill({ json: old }));
  await page.goto("/p/truth-dot/data/nums");
  await expect(page.locator(".pipeline-head").getByText("last run failed")).toBeVisible(SLOW);
  await expect(page.locator('.sidebar-pipelines a[aria-current="page"] .dot')).toHaveAttribute("data-status", "failed");
});
