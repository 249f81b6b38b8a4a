import { readFile } from "node:fs/promises";
import { instance } from "./support/instance";
import { expect, expectAccessible, test, type Page } from "./support/test";

const CONFIG = {
  version: 1,
  title: "Orders",
  mappings: [{ table: "orders", files: ["*.csv"], columns: [{ name: "id", type: "int32" }] }],
};

/** The card of a pipeline. To be found by name, with `?q=`: other tests' pipelines may fill the first page. */
const card = (page: Page, slug: string) => page.locator(`[data-slug="${slug}"]`);

async function choose(page: Page, slug: string, action: string): Promise<void> {
  await page.getByRole("button", { name: `Actions for ${slug}`, exact: true }).click();
  await page.getByRole("menuitem", { name: action }).click();
}

test("an empty workspace leads to the sample, whose first run is shown live", async ({ page }) => {
  // Slow enough to be observed.
  const site = await instance([], { FAILPOINTS: "convert::piece=sleep(500)" });
  try {
    const login = await page.request.post(`${site.url}/api/auth/login`, { data: { password: site.password } });
    expect(login.status()).toBe(200);
    await page.goto(site.url);
    await expect(page.getByRole("heading", { name: "Drop CSVs here", exact: true })).toBeVisible();
    await expectAccessible(page);
    await page
      .getByLabel("CSV files")
      .setInputFiles({ name: "a.csv", mimeType: "text/csv", buffer: Buffer.from("a\n1\n") });
    await expect(page).toHaveURL(/\/new$/);
    await page.goto(site.url);
    await page.getByRole("button", { name: "Try the flights sample" }).click();
    await expect(page).toHaveURL(/\/p\/flights$/);
    const bar = page.locator("a.run-bar");
    await expect(bar).toBeVisible();
    await expect(page.getByText(/^(A run is queued|Run in progress)/)).toBeVisible();
    await page.getByRole("link", { name: "Config", exact: true }).click();
    await expect(page).toHaveURL(/\/config$/);
    await expect(bar).toContainText(/planning|converting|publishing|Waiting|starting/);
    await bar.click();
    await expect(page).toHaveURL(/\/jobs\/.+/);
    await expect(page.getByText(/^The run completed: 367,687 rows loaded in/)).toBeVisible({ timeout: 60_000 });
    await expect(page.locator(".run-bar").first()).toBeVisible();
    await page.getByRole("link", { name: "Overview" }).click();
    await expect(page.getByText("All 5 tables are up to date with 16 files.")).toBeVisible({ timeout: 30_000 });
    await expect(page.getByRole("row", { name: /^flights 336,776/ })).toBeVisible();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Open dashboard Punctuality" }).click();
    await expect(page).toHaveURL(/\/p\/flights\/dashboards\/punctuality$/);
    await expect(page.locator("[data-panel]").first()).toBeVisible();
    // Before the service ends, which the page would report.
    await page.goto("about:blank");
  } finally {
    await site.remove();
  }
});

test("an empty pipeline gets its slug from its title, and a taken slug is refused while typing", async ({ page }) => {
  await page.goto("/");
  const open = async () => {
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.keyboard.press("n");
    await page.getByRole("button", { name: "Blank" }).click();
  };
  await open();
  await page.getByRole("textbox", { name: "Title" }).fill("Daily sales (EU)");
  await expect(page.getByRole("textbox", { name: "URL name" })).toHaveValue("daily-sales-eu");
  await page.getByRole("button", { name: "Create" }).click();
  await expect(page).toHaveURL(/\/p\/daily-sales-eu$/);
  await expect(page.getByRole("heading", { name: "Daily sales (EU)", exact: true })).toBeVisible();
  await expect(page.getByText("The config defines no tables yet.")).toBeVisible();
  await page.goto("/?q=daily-sales-eu");
  await expect(card(page, "daily-sales-eu")).toContainText("no runs yet");
  await open();
  await page.getByRole("textbox", { name: "URL name" }).fill("daily-sales-eu");
  await expect(page.getByRole("alert")).toHaveText("daily-sales-eu is taken.");
  await expect(page.getByRole("button", { name: "Create" })).toBeDisabled();
  await page.getByRole("textbox", { name: "URL name" }).fill("Sales!");
  await expect(page.getByRole("alert")).toContainText("“S” isn't allowed");
  await expectAccessible(page);
});

test("a renamed pipeline keeps its star", async ({ page, api }) => {
  await api.post("/api/pipelines", { slug: "ren-before" });
  await api.post("/api/pipelines", { slug: "ren-other" });
  await page.goto("/?q=ren-");
  await card(page, "ren-before").getByRole("button", { name: "Star this pipeline" }).click();
  await choose(page, "ren-before", "Rename…");
  await page.getByRole("textbox", { name: "URL name" }).fill("ren-after");
  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await expect(card(page, "ren-after")).toBeVisible();
  await expect(card(page, "ren-before")).toHaveCount(0);
  await expect(card(page, "ren-after").getByRole("button", { name: "Unstar this pipeline" })).toBeVisible();
});

test("the dialog that renames a pipeline changes its title, too", async ({ page, api }) => {
  await api.pipeline("titled", CONFIG, { "a.csv": "id\n1\n" });
  await page.goto("/p/titled/config");
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Rename…" }).click();
  const dialog = page.getByRole("dialog", { name: "Rename titled" });
  await expect(dialog.getByRole("button", { name: "Rename" })).toBeDisabled();
  await dialog.getByLabel("Title").fill("Orders of the shop");
  await expectAccessible(page);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "Orders of the shop" })).toBeVisible();
  await expect(page.getByRole("textbox", { name: "Config of titled" })).toContainText("Orders of the shop");
  const { versions } = await api.get<{ versions: unknown[] }>("/api/p/titled/config/versions");
  expect(versions.length).toBeGreaterThan(1);
  expect(await api.get("/api/p/titled/config")).toMatchObject({
    title: "Orders of the shop",
    mappings: CONFIG.mappings,
  });
});

test("a slug that the service refuses is reported at its field", async ({ page, api, watch }) => {
  watch.expected.push(/409/);
  await api.post("/api/pipelines", { slug: "taken-a" });
  await api.post("/api/pipelines", { slug: "taken-b" });
  await page.goto("/?q=taken-a");
  await choose(page, "taken-a", "Rename…");
  await page.getByLabel("URL name").fill("taken-b");
  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("taken-b");
  await expect(page.getByLabel("URL name")).toHaveValue("taken-b");
});

test("deleting lists what is lost and requires the slug", async ({ page, api }) => {
  await api.pipeline("del", CONFIG, { "a.csv": "id\n1\n", "b/c.csv": "id\n2\n" });
  await page.goto("/?q=del");
  await choose(page, "del", "Delete…");
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("2 files in the lake");
  await expect(dialog).toContainText("1 table");
  const button = dialog.getByRole("button", { name: "Delete del" });
  await expect(button).toBeDisabled();
  await dialog.getByLabel("Type del to confirm").fill("de");
  await expect(button).toBeDisabled();
  await dialog.getByLabel("Type del to confirm").fill("del");
  await expectAccessible(page);
  await button.click();
  await expect(card(page, "del")).toHaveCount(0);
  expect(await api.get<string[]>("/api/pipelines")).not.toContain("del");
});

test("renaming and deleting wait for a run in progress", async ({ page, api, watch }) => {
  watch.expected.push(/409/);
  await api.post("/api/pipelines", { slug: "busy", template: "blank" });
  let refusals = 0;
  await page.route("**/api/pipelines/busy*", async (route) => {
    if (refusals >= 2) return route.continue();
    refusals += 1;
    const json = { error: "pipeline_busy", message: "the pipeline `busy` has a run in progress", request_id: "r" };
    await route.fulfill({ status: 409, json });
  });
  await page.goto("/?q=busy");
  await choose(page, "busy", "Rename…");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("URL name").fill("busy-after");
  await dialog.getByRole("button", { name: "Rename", exact: true }).click();
  await expect(dialog.getByText("A run is in progress. The pipeline will be renamed when the run ends.")).toBeVisible();
  await expect(card(page, "busy-after")).toBeVisible();

  refusals = 0;
  await choose(page, "busy-after", "Delete…");
  await dialog.getByLabel("Type busy-after to confirm").fill("busy-after");
  await dialog.getByRole("button", { name: "Delete busy-after" }).click();
  await expect(dialog.getByText("A run is in progress. The pipeline will be deleted when the run ends.")).toBeVisible();
  await expect(card(page, "busy-after")).toHaveCount(0);
});

test("an export can be imported under another slug, and an invalid archive changes nothing", async ({
  page,
  api,
  watch,
}) => {
  watch.expected.push(/422/);
  await api.pipeline("exp", CONFIG, { "a.csv": "id\n1\n2\n" });
  const board =
    "version: 2\ntitle: Ids\nqueries: { ids: { sql: SELECT id FROM orders } }\npanels: [{ id: ids, type: table, query: ids }]\n";
  await api.put("/api/p/exp/dashboards/ids", board, "application/yaml");
  await page.goto("/?q=exp");
  const downloading = page.waitForEvent("download");
  await choose(page, "exp", "Export");
  const archive = await readFile(await (await downloading).path());
  await page.getByRole("button", { name: "New pipeline" }).click();
  await page.getByRole("button", { name: "Import" }).click();
  await page
    .getByLabel("Archive", { exact: true })
    .setInputFiles({ name: "no.zip", mimeType: "application/zip", buffer: Buffer.from("no") });
  await page.getByRole("button", { name: "Import", exact: true }).last().click();
  await expect(page.getByRole("alert")).toContainText("Nothing was imported");
  await page
    .getByLabel("Archive", { exact: true })
    .setInputFiles({ name: "exp.zip", mimeType: "application/zip", buffer: archive });
  await page.getByRole("textbox", { name: "URL name" }).fill("exp-again");
  await page.getByRole("button", { name: "Import", exact: true }).last().click();
  await expect(page).toHaveURL(/\/p\/exp-again$/);
  const { tables } = await api.get<{ tables: { rows: number }[] }>("/api/p/exp-again/tables");
  expect(tables.map(({ rows }) => rows)).toEqual([2]);
  await page.getByRole("link", { name: /^ids/i }).click();
  await expect(page).toHaveURL(/\/p\/exp-again\/dashboards\/ids$/);
  await expect(page.locator("[data-panel=ids]").getByRole("gridcell", { name: "2" })).toBeVisible();
});

const PAYLOADS = [
  "<script>window.hit=1</script>",
  "<img src=x onerror=window.hit=1>",
  "<svg/onload=window.hit=1>",
  '"><iframe srcdoc="<script>parent.hit=1</script>">',
  "javascript:window.hit=1",
  "{{constructor.constructor('window.hit=1')()}}",
  "</title><script>window.hit=1</script>",
  "<style>*{display:none}</style>",
  "<a href=javascript:window.hit=1>x</a>",
  "<math><mtext></form><form><mglyph><style></math><img src onerror=window.hit=1>",
];

test("hostile titles are shown as text", async ({ page, api }) => {
  for (const [at, title] of PAYLOADS.entries()) {
    await api.post("/api/pipelines", { slug: `xss-title-${at}` });
    await api.put(`/api/p/xss-title-${at}/config`, { version: 1, title, mappings: [] });
  }
  await page.goto("/?q=xss-title");
  for (const [at, title] of PAYLOADS.entries()) {
    await expect(card(page, `xss-title-${at}`).getByRole("heading")).toHaveText(title);
  }
  await page.goto("/p/xss-title-1");
  await expect(page.getByRole("heading", { name: PAYLOADS[1] ?? "", exact: true })).toBeVisible();
  expect(await page.evaluate(() => "hit" in window)).toBe(false);
});

test("pipelines are searched and sorted, and the URL contains both", async ({ page, api }) => {
  await api.post("/api/pipelines", { slug: "zebra-one" });
  await api.post("/api/pipelines", { slug: "zebra-two" });
  await page.goto("/");
  await page.getByRole("heading", { name: "Pipelines", exact: true }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("zebra");
  await page.getByLabel("Sort", { exact: true }).selectOption("By name");
  await expect(page).toHaveURL(/q=zebra&sort=name/);
  await page.reload();
  await expect(page.locator("[data-slug]")).toHaveCount(2);
  await expectAccessible(page);
  await page.locator(".pipelines-search").getByLabel("Search pipelines").fill("nowhere");
  await expect(page.getByText("No pipelines found")).toBeVisible();
});
