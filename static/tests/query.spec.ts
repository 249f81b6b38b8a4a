import { readFile } from "node:fs/promises";
import { expect, expectAccessible, test, type Api, type Page } from "./support/test";

const CONFIG = {
  version: 1,
  mappings: [
    {
      table: "trips",
      files: ["trips/*.csv"],
      columns: [
        { name: "id", type: "int32" },
        { name: "city", type: "string" },
        { name: "fare", type: "float64" },
      ],
    },
  ],
};
const TRIPS = "id,city,fare\n1,Oslo,10.5\n2,Rome,20\n3,Oslo,7.25\n";
/** A join that would take minutes. */
const LONG = "SELECT count(*) FROM range(4000000) a, range(4000000) b WHERE (a.range * b.range) % 7 = 3";

const prepared = (api: Api, slug: string) => api.pipeline(slug, CONFIG, { "trips/one.csv": TRIPS });
/** The number of rows, and the duration. */
const summary = (page: Page) => page.locator(".query-summary");
const editor = (page: Page) => page.getByRole("textbox", { name: "SQL" });

async function write(page: Page, sql: string): Promise<void> {
  await editor(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(sql);
}

async function open(page: Page, slug: string, query = ""): Promise<void> {
  await page.goto(`/p/${slug}/query${query}`);
  await expect(page.getByRole("button", { name: "Run query" })).toBeVisible();
}

test("a query runs by keyboard, shows its rows as grid and chart, and stays while other views are open", async ({
  page,
  api,
}) => {
  await prepared(api, "query-run");
  await open(page, "query-run");
  await expect(page.getByText("No result yet")).toBeVisible();
  await page.getByRole("button", { name: "Columns of trips" }).isVisible();
  await write(page, "SELECT city, sum(fare) AS revenue FROM trips GROUP BY 1 ORDER BY 1");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(summary(page)).toContainText("2 rows");
  await expect(page.getByText("17.75")).toBeVisible();
  await expectAccessible(page);
  await page.getByRole("button", { name: "Chart", exact: true }).click();
  await expect(page.getByLabel("Values")).toHaveValue("revenue");
  await expect(page.getByLabel("revenue by city")).toBeVisible();
  await page.getByLabel("Chart", { exact: true }).selectOption("pie");
  await expect(page.getByLabel("Slices")).toHaveValue("city");
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await expect(page).toHaveURL(/jobs/);
  await page.getByRole("link", { name: "Query", exact: true }).click();
  await expect(summary(page)).toContainText("2 rows");
  await expect(page.getByLabel("Slices")).toHaveValue("city");
  await page.reload();
  await expect(editor(page)).toContainText(/sum\(fare\)/);
});

test("clicking a column inserts its name at the cursor; the history restores earlier queries", async ({
  page,
  api,
}) => {
  await prepared(api, "query-side");
  await open(page, "query-side");
  await write(page, "SELECT max(");
  await page.getByTitle(/^fare: float64/).click();
  await expect(editor(page)).toContainText("SELECT max(fare");
  await expect(editor(page)).toBeFocused();
  await page.keyboard.insertText(") AS most FROM trips");
  await expect(editor(page)).toContainText("FROM trips");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(summary(page)).toContainText("1 row");
  await write(page, "SELECT 2 AS never_run");
  await page.getByRole("tab", { name: "History" }).click();
  await page.getByRole("button", { name: /max\(fare\)/ }).click();
  await expect(editor(page)).toContainText("SELECT max(fare) AS most FROM trips");
  // Text that was typed but never run isn't lost.
  await expect(page.getByRole("button", { name: /never_run.*not run/ })).toBeVisible();
  await page.getByRole("button", { name: "Clear history" }).click();
  await expect(page.getByText("No queries yet")).toBeVisible();
});

test("an error is marked at its position, described below, and gone once the text changes", async ({
  page,
  api,
  watch,
}) => {
  watch.expected.push(/400/);
  await prepared(api, "query-fault");
  await open(page, "query-fault");
  await write(page, "SELECT city,\n  nocol\nFROM trips");
  await page.keyboard.press("ControlOrMeta+Enter");
  const problem = page.getByRole("alert");
  await expect(problem).toContainText("nocol");
  await expect(problem).toContainText("invalid_sql");
  await problem.getByRole("button", { name: "Go to line 2, column 3" }).click();
  await expect(page.locator(".cm-lintRange-error")).toHaveText("nocol");
  await expect(editor(page)).toBeFocused();
  await write(page, "SELECT city FROM trips");
  await expect(page.locator(".cm-lintRange-error")).toHaveCount(0);
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(summary(page)).toContainText("3 rows");
});

test("a long query shows its duration and can be cancelled", async ({ page, api, watch }) => {
  watch.expected.push(/422/, /404/);
  await prepared(api, "query-cancel");
  await open(page, "query-cancel");
  await write(page, LONG);
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(page.getByText(/^Running \d/)).toBeVisible();
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(page.getByText(/^Cancelled after/)).toBeVisible();
  await write(page, "SELECT 41 + 1 AS answer");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(page.getByText("42", { exact: true })).toBeVisible();
});

test("a truncated result says so, and can be downloaded completely", async ({ page, api }) => {
  await prepared(api, "query-download");
  await open(page, "query-download", `?sql=${encodeURIComponent("SELECT range AS n FROM range(12000)")}`);
  await expect(page).toHaveURL(/query$/);
  await page.getByRole("button", { name: "Run query" }).click();
  await expect(summary(page)).toContainText("Showing the first 10,000 rows");
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download all", exact: true }).click(),
  ]);
  expect(file.suggestedFilename()).toBe("query-download-query.csv");
  const lines = (await readFile(await file.path(), "utf8")).trim().split(/\r?\n/);
  expect([lines.length, lines[0], lines.at(-1)]).toEqual([12_001, "n", "11999"]);
  await page.getByRole("button", { name: "Download all rows" }).click();
  const [json] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: /JSON/ }).click(),
  ]);
  const rows = JSON.parse(await readFile(await json.path(), "utf8")) as { n: number }[];
  expect(rows).toHaveLength(12_000);
});

test("a query is saved under a name, opened by its URL, renamed, changed by another user, and deleted", async ({
  page,
  api,
  watch,
}) => {
  watch.expected.push(/409/);
  await prepared(api, "query-saved");
  const queries = "/api/p/query-saved/queries";
  await api.post(queries, { name: "Taken", sql: "SELECT 1" });
  await open(page, "query-saved");
  await write(page, "SELECT count(*) AS n FROM trips");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("taken");
  await page.keyboard.press("Enter");
  await expect(dialog.getByRole("alert")).toContainText("A saved query named taken already exists");
  await dialog.getByLabel("Name").fill("Number of trips");
  await page.keyboard.press("Enter");
  await expect(dialog).toBeHidden();
  await expect(page).toHaveURL(/saved=/);
  const address = page.url();

  await page.getByRole("tab", { name: "Saved" }).click();
  await page.getByRole("button", { name: /^Taken/ }).click();
  await expect(editor(page)).toContainText("SELECT 1");
  await page.goto(address);
  await expect(editor(page)).toContainText("SELECT count(*) AS n FROM trips");

  const { queries: saved } = await api.get<{ queries: { id: string; name: string }[] }>(queries);
  const id = saved.find(({ name }) => name === "Number of trips")?.id ?? "";
  await write(page, "SELECT count(*) AS mine FROM trips");
  await expect(page.getByText("edited")).toBeVisible();
  await api.put(`${queries}/${id}`, { name: "Number of trips", sql: "SELECT 0 AS theirs" });
  // Also once this page's list contains it.
  await page.reload();
  await page.getByRole("tab", { name: "Saved" }).click();
  await expect(page.getByTitle("SELECT 0 AS theirs")).toBeVisible();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(dialog).toContainText("Someone else changed");
  await dialog.getByRole("button", { name: "Overwrite" }).click();
  await expect(dialog).toBeHidden();
  expect((await api.get<{ sql: string }>(`${queries}/${id}`)).sql).toBe("SELECT count(*) AS mine FROM trips");

  // Another user's SQL stays when only the name is changed.
  const more = page.getByRole("button", { name: "More actions for this saved query" });
  await api.put(`${queries}/${id}`, { name: "Number of trips", sql: "SELECT 1 AS later" });
  await more.click();
  await page.getByRole("menuitem", { name: "Rename…" }).click();
  await dialog.getByLabel("Name").fill("Trips");
  await dialog.getByRole("button", { name: "Rename" }).click();
  await expect(page.locator(".query-name")).toContainText("Trips");
  expect((await api.get<{ sql: string }>(`${queries}/${id}`)).sql).toBe("SELECT 1 AS later");
  await more.click();
  await page.getByRole("menuitem", { name: "Delete…" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(more).toBeHidden();
  await expect(page).toHaveURL(/query$/);
  await expect(editor(page)).toContainText("mine");
});

test("the splitter moves by arrow keys and is kept; a narrow window has no horizontal scroll and shows the tables in a sheet", async ({
  page,
  api,
}) => {
  await prepared(api, "query-narrow");
  await open(page, "query-narrow");
  const splitter = page.getByRole("separator", { name: "Editor height" });
  await splitter.focus();
  await page.keyboard.press("End");
  await expect(splitter).toHaveAttribute("aria-valuenow", "80");
  await page.reload();
  await expect(splitter).toHaveAttribute("aria-valuenow", "80");
  await splitter.focus();
  await page.keyboard.press("Home");
  await page.setViewportSize({ width: 360, height: 740 });
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(await overflow()).toBeLessThanOrEqual(0);
  await write(page, "SELECT * FROM ");
  await page.getByRole("button", { name: "Tables" }).click();
  await page.getByRole("dialog").getByTitle("Insert trips").click();
  await expect(editor(page)).toContainText("SELECT * FROM trips");
  await page.getByRole("button", { name: "Run query" }).click();
  await expect(summary(page)).toContainText("3 rows");
  expect(await overflow()).toBeLessThanOrEqual(0);
  await expectAccessible(page);
});

test("a pipeline without tables shows the next step", async ({ page, api }) => {
  await api.post("/api/pipelines", { slug: "query-none", template: "blank" });
  await page.goto("/p/query-none/query");
  await expect(page.getByRole("heading", { name: "No tables yet", exact: true })).toBeVisible();
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Upload CSVs" }).click();
  await choosing;
});

test("a selection runs alone, and its error is marked at its position", async ({ page, api, watch }) => {
  watch.expected.push(/400/);
  await prepared(api, "query-part");
  await open(page, "query-part");
  await write(page, "SELECT 1 AS first;\nSELECT nocol FROM trips");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(page.getByText("Select a single statement to run.")).toBeVisible();
  await page.keyboard.press("Shift+Home");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(page.getByRole("button", { name: "Go to line 2, column 8" })).toBeVisible();
});

test("tables of other pipelines are inserted with their pipeline, and can be joined", async ({ page, api }) => {
  const config = {
    version: 1,
    auto_run: false,
    mappings: [{ table: "n", files: ["*.csv"], columns: [{ name: "n", type: "int64" }] }],
  };
  for (const slug of ["query-here", "query-there"]) await api.pipeline(slug, config, { "a.csv": "n\n1\n2\n" });
  // So many that they are searched.
  for (let n = 0; n < 20; n += 1) await api.post("/api/pipelines", { slug: `query-many-${n}`, template: "blank" });
  await page.goto("/p/query-here/query");
  const side = page.getByRole("complementary", { name: "Tables, saved queries and history" });
  await side.getByRole("button", { name: "Other pipelines" }).click();
  await side.getByRole("searchbox", { name: "Search other pipelines" }).fill("query-there");
  await side.getByRole("button", { name: "Tables of query-there" }).click();
  const editor = page.getByRole("textbox", { name: "SQL" });
  await editor.click();
  await page.keyboard.insertText("SELECT sum(t.n) AS total FROM ");
  await side.getByTitle('Insert "query-there".n').click();
  await expect(editor).toContainText('FROM "query-there".n');
  await editor.press("Control+End");
  await page.keyboard.insertText(" AS t JOIN n USING (n)");
  await page.getByRole("button", { name: "Run query" }).click();
  await expect(page.getByRole("grid", { name: "Result" }).getByText("3", { exact: true })).toBeVisible();
});
