import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Locator } from "@playwright/test";
import { type Api, expect, expectAccessible, type Page, test } from "./support/test";

const CSV = "id,fare,city\n1,2.50,Rome\n2,many,Oslo\n3,4.00,Bern\n";

const config = (title: string) => `{
  "version": 1,
  "title": "${title}",
  "description": "Fares.",
  "auto_run": false,
  "mappings": [
    {
      "table": "fares",
      "files": ["*.csv"],
      "columns": [
        { "name": "id", "type": "int32" },
        { "name": "fare", "type": "string" },
        { "name": "city", "type": "string" }
      ]
    }
  ]
}
`;

async function prepared(api: Api, slug: string): Promise<void> {
  await api.post("/api/pipelines", { slug, template: "blank" });
  await api.upload(`pipelines/${slug}/fares.csv`, CSV);
  await api.put(`/api/p/${slug}/config`, config(slug));
}

const stored = (api: Api, slug: string) => api.get<Record<string, unknown>>(`/api/p/${slug}/config`);

async function opened(page: Page, slug: string): Promise<Locator> {
  await page.goto(`/p/${slug}/config`);
  const editor = page.getByRole("textbox", { name: `Config of ${slug}` });
  await expect(editor).toContainText('"version"');
  return editor;
}

/** Replaces the match of the editor's own search with `text`. */
async function replace(page: Page, editor: Locator, found: string, text: string): Promise<void> {
  await editor.click();
  await page.keyboard.press("Control+f");
  const find = page.getByRole("textbox", { name: "Find" });
  await find.fill(found);
  await find.dispatchEvent("change");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await page.keyboard.insertText(text);
}

const saveDialog = (page: Page) => page.getByRole("dialog", { name: "Save config" });

async function save(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Save…" }).click();
  await saveDialog(page).getByRole("button", { name: "Save", exact: true }).click();
}

test("keys and values are completed from the schema, and a problem is marked at its position", async ({
  page,
  api,
}) => {
  await prepared(api, "config-typing");
  const answered = page.waitForResponse(/schemas\/pipeline/);
  const editor = await opened(page, "config-typing");
  await answered;
  await replace(page, editor, '"auto_run": false,', '"auto_run": ');
  await page.keyboard.press("Control+Space");
  await expect(page.getByRole("option", { name: "true" })).toBeVisible();
  await page.keyboard.type("fa");
  await page.getByRole("option", { name: "false" }).click();
  await page.keyboard.type(",");
  await expect(page.getByText("The config is valid.")).toBeVisible();

  await replace(page, editor, '"type": "int32"', '"type": "int33", ');
  await page.keyboard.type('"');
  await expect(page.getByRole("option", { name: /^nullable/ })).toBeVisible();
  await page.keyboard.type("on_e");
  // The list ignores keys at first, so that it doesn't take input meant for the text.
  await page.getByRole("option", { name: /^on_error/ }).click();
  await expect(editor).toContainText('"on_error": ');
  const reject = page.getByRole("option", { name: /^reject/ });
  await expect(async () => {
    // Requested explicitly if it didn't open.
    if (!(await reject.isVisible())) await page.keyboard.press("Control+Space");
    await reject.click({ timeout: 2_000 });
    await expect(editor).toContainText('"type": "int33", "on_error": "reject"', { timeout: 2_000 });
  }).toPass();

  const problem = page.getByRole("region", { name: "Problems" }).getByRole("button", { name: /int33/ });
  await expect(problem).toContainText("/mappings/0/columns/0/type");
  await expect(page.locator(".cm-lintRange-error").filter({ hasText: "int33" })).toBeVisible();
  await problem.click();
  await expect(editor).toBeFocused();
  await expectAccessible(page);
});

test("invalid JSON is reported with its line, and isn't saved", async ({ page, api }) => {
  await prepared(api, "config-broken");
  const editor = await opened(page, "config-broken");
  await replace(page, editor, '"version": 1,', '"version": 1');
  await expect(page.getByText("Invalid JSON: expected , or }")).toBeVisible();
  await page.getByRole("button", { name: "Save…" }).click();
  await expect(page.getByText("Couldn't save the config: line 3")).toBeVisible();
});

test("a value that a named reader misreads is a warning at its position, and the config can be saved", async ({
  page,
  api,
}) => {
  await prepared(api, "config-readers");
  const editor = await opened(page, "config-readers");
  await replace(page, editor, '"name": "fare", "type": "string"', '"name": "fare", "type": "uuid"');
  await replace(page, editor, '"table":', '"parquet": { "readers": ["spark-3.5"] },\n      "table":');
  await expect(page.getByText(/^1 warning/)).toBeVisible();
  const problems = page.getByRole("region", { name: "Problems" });
  await expect(problems.getByRole("listitem")).toContainText("Warning: ");
  await expectAccessible(page);
});

test("the preview shows converted rows, rejects with their reason, and the tables that the next run rebuilds", async ({
  page,
  api,
}) => {
  await prepared(api, "config-effect");
  const editor = await opened(page, "config-effect");
  await expect(page.getByText("3 rows read: 3 written, 0 rejected")).toBeVisible();
  await replace(page, editor, '"fare", "type": "string"', '"fare", "type": "decimal(6,2)"');
  await expect(page.getByText("3 rows read: 2 written, 1 rejected")).toBeVisible();
  const rejects = page.getByRole("table", { name: "Rejected rows" });
  await expect(rejects.getByRole("row").nth(1)).toContainText("many");
  await expect(rejects.getByRole("link", { name: "3" })).toHaveAttribute("href", /fares\.csv&line=3/);
  await expect(page.getByRole("grid", { name: "Preview of the first rows" })).toContainText("Rome");
  await expect(page.getByText("columns change; the table will be rebuilt")).toBeVisible();
  await expectAccessible(page);
});

test("an unsaved config is checked against all files, and nothing is written", async ({ page, api }) => {
  await prepared(api, "config-all");
  await api.upload("pipelines/config-all/more.csv", "id,fare,city\n4,1.00,Lima\n5,free,Kiev\n");
  const editor = await opened(page, "config-all");
  await replace(page, editor, '"fare", "type": "string"', '"fare", "type": "decimal(6,2)"');
  // The list of completions covers the button.
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Check all files" }).click();
  await expect(page.getByText(/A run would fail: .*rejected/)).toBeVisible({ timeout: 30_000 });
  const failing = page.getByRole("table", { name: "Rejected rows that fail the run" });
  await expect(failing.getByRole("row", { name: /more\.csv 3 fare free/ })).toBeVisible();
  await expect(failing.getByRole("link", { name: "3" }).last()).toHaveAttribute("href", /more\.csv&line=3/);

  await replace(page, editor, '"files": ["*.csv"],', '"files": ["*.csv"], "rejects": { "max_ratio": 1 },');
  await page.keyboard.press("Escape");
  await expect(page.getByText("The config has changed since this check.")).toBeVisible();
  await page.getByRole("button", { name: "Check all files" }).click();
  await expect(page.getByText("5 rows of 2 files read: 2 rows would be rejected.")).toBeVisible({ timeout: 30_000 });
  const tables = page.getByRole("table", { name: "Tables after a run of this config" });
  await expect(tables.getByRole("row", { name: "fares 2 3 2 0" })).toBeVisible();
  const rejects = page.getByRole("table", { name: "Rejected rows of all files" });
  await expect(rejects.getByRole("row", { name: /more\.csv 3 fare free/ })).toBeVisible();
  await expect(rejects.getByRole("link", { name: "3" }).last()).toHaveAttribute("href", /more\.csv&line=3/);
  await expect(page.locator(".config-outcome.stale")).toHaveCount(0);
  await expectAccessible(page);
  expect(await api.get("/api/p/config-all/jobs")).toEqual({ jobs: [], next: null });
  expect(await api.get("/api/p/config-all/tables")).toMatchObject({ tables: [{ name: "fares", state: "new" }] });
});

test("saving shows the changes, stores them, and offers a run", async ({ page, api }) => {
  await prepared(api, "config-save");
  const editor = await opened(page, "config-save");
  await replace(page, editor, '"title": "config-save"', '"title": "Saved"');
  await page.keyboard.press("Control+s");
  const dialog = saveDialog(page);
  await expect(dialog.getByRole("textbox", { name: "Changes: Yours" })).toContainText('"title": "Saved"');
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("It applies from the next run")).toBeVisible();
  expect(await stored(api, "config-save")).toMatchObject({ title: "Saved" });
  await page.getByRole("button", { name: "Run now" }).click();
  await expect
    .poll(async () => (await api.get<{ jobs: unknown[] }>("/api/p/config-save/jobs")).jobs.length)
    .toBeGreaterThan(0);
});

test("a config with problems is refused, and saved on confirmation", async ({ page, api, watch }) => {
  watch.expected.push(/422/);
  await prepared(api, "config-strict");
  const editor = await opened(page, "config-strict");
  await replace(page, editor, '"type": "int32"', '"type": "number"');
  await save(page);
  const dialog = saveDialog(page);
  await expect(dialog.getByText("The config has 1 problem.")).toBeVisible();
  expect(JSON.stringify(await stored(api, "config-strict"))).not.toContain("number");
  await dialog.getByRole("button", { name: "Save anyway" }).click();
  await expect(page.getByText("It applies from the next run")).toBeVisible();
  expect(JSON.stringify(await stored(api, "config-strict"))).toContain("number");
});

test("a save without a worker's check is retried once a worker responds", async ({ page, api, watch }) => {
  watch.expected.push(/502/);
  await prepared(api, "config-unchecked");
  const editor = await opened(page, "config-unchecked");
  await replace(page, editor, '"title": "config-unchecked"', '"title": "Checked"');
  const failure = { error: "worker_unavailable", message: "no worker answers" };
  await page.route(
    "**/api/p/config-unchecked/config?strict=1",
    (route) => route.fulfill({ status: 502, json: failure }),
    { times: 1 },
  );
  await save(page);
  const dialog = saveDialog(page);
  await expect(dialog.getByText("no worker is available (no worker answers)")).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Save anyway" })).toBeVisible();
  await expectAccessible(page);
  expect(await stored(api, "config-unchecked")).toMatchObject({ title: "config-unchecked" });
  await dialog.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByText("It applies from the next run")).toBeVisible();
  expect(await stored(api, "config-unchecked")).toMatchObject({ title: "Checked" });
});

test("concurrent edits in two browsers are merged", async ({ page, api, watch, browser, site }) => {
  watch.expected.push(/412/);
  await prepared(api, "config-two");
  const context = await browser.newContext({ baseURL: site.url, locale: "en-US" });
  await context.request.post("/api/auth/login", { data: { password: site.password } });
  const other = await context.newPage();
  const mine = await opened(page, "config-two");
  const theirs = await opened(other, "config-two");

  await replace(page, mine, '"title": "config-two"', '"title": "Mine"');
  await replace(page, mine, '"name": "city"', '"name": "town", "from": "city"');
  await replace(other, theirs, '"title": "config-two"', '"title": "Theirs"');
  await replace(other, theirs, '"auto_run": false', '"auto_run": true');
  await save(other);
  await expect(other.getByText("It applies from the next run")).toBeVisible();

  await save(page);
  const dialog = page.getByRole("dialog", { name: "Merge config changes" });
  await expect(dialog.getByText("1 conflict to resolve.")).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Use merged config" })).toBeDisabled();
  await dialog.getByRole("radio", { name: "Mine" }).check();
  await expect(dialog.getByText("The result has no problems.")).toBeVisible();
  await dialog.getByRole("button", { name: "Use merged config" }).click();
  await saveDialog(page).getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("It applies from the next run")).toBeVisible();
  const now = await stored(api, "config-two");
  expect(now).toMatchObject({ title: "Mine", auto_run: true });
  expect(JSON.stringify(now)).toContain("town");
  await context.close();
});

test("two browsers that create the first config choose between the two", async ({
  page,
  api,
  watch,
  browser,
  site,
}) => {
  watch.expected.push(/412/);
  await api.upload("pipelines/config-first/fares.csv", CSV);
  const context = await browser.newContext({ baseURL: site.url, locale: "en-US" });
  await context.request.post("/api/auth/login", { data: { password: site.password } });
  const other = await context.newPage();
  for (const [one, title] of [
    [page, "Mine"],
    [other, "Theirs"],
  ] as const) {
    await one.goto("/p/config-first/config");
    await one.getByRole("button", { name: "Start from scratch" }).click();
    const editor = one.getByRole("textbox", { name: "Config of config-first" });
    await replace(one, editor, '"title": "config-first"', `"title": "${title}"`);
  }
  await save(other);
  await expect(other.getByText("It applies from the next run")).toBeVisible();

  await save(page);
  const dialog = page.getByRole("dialog", { name: "Merge config changes" });
  await dialog.getByRole("radio", { name: "Mine" }).check();
  await dialog.getByRole("button", { name: "Use merged config" }).click();
  expect(await stored(api, "config-first")).toMatchObject({ title: "Theirs" });
  await saveDialog(page).getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("It applies from the next run")).toBeVisible();
  expect(await stored(api, "config-first")).toMatchObject({ title: "Mine" });
  await context.close();
});

test("compatible changes are merged automatically", async ({ page, api, watch }) => {
  watch.expected.push(/412/);
  await prepared(api, "config-fits");
  const editor = await opened(page, "config-fits");
  await replace(page, editor, '"name": "city"', '"name": "town", "from": "city"');
  await api.put("/api/p/config-fits/config", config("Theirs"));
  await save(page);
  const dialog = page.getByRole("dialog", { name: "Merge config changes" });
  await expect(dialog.getByText("No conflicts. Both sets of changes are kept.")).toBeVisible();
  await expect(dialog.getByText("The result has no problems.")).toBeVisible();
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Use merged config" }).click();
  await saveDialog(page).getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("It applies from the next run")).toBeVisible();
  const now = await stored(api, "config-fits");
  expect(now).toMatchObject({ title: "Theirs" });
  expect(JSON.stringify(now)).toContain("town");
});

test("a session that ends while typing loses nothing", async ({ page, api, watch, site }) => {
  watch.expected.push(/401/);
  await prepared(api, "config-session");
  const editor = await opened(page, "config-session");
  await replace(page, editor, '"title": "config-session"', '"title": "Kept"');
  await page.getByRole("button", { name: "Save…" }).click();
  await page.context().clearCookies();
  // All further requests are refused, also those of other clients.
  const login = page.getByRole("dialog", { name: "Your session has ended" });
  await expect(login).toBeVisible();
  await login.getByLabel("Password").fill(site.password);
  await login.getByRole("button", { name: "Log in" }).click();
  await expect(login).toBeHidden();
  await expect(saveDialog(page)).toBeVisible();
  await saveDialog(page).getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("It applies from the next run")).toBeVisible();
  expect(await stored(api, "config-session")).toMatchObject({ title: "Kept" });
});

test("a draft that isn't JSON is kept, and says where it can't be read instead of what it does", async ({
  page,
  api,
}) => {
  await prepared(api, "config-unreadable");
  let editor = await opened(page, "config-unreadable");
  await replace(page, editor, '"title": "config-unreadable"', '"title" "Broken"');
  await expect(page.locator(".config-effect")).toContainText(/can't be read: line 3, column \d+: expected `:`/);
  await page.getByRole("link", { name: "Overview" }).click();
  const leaving = page.getByRole("dialog", { name: "Leave without saving" });
  await expect(leaving).toContainText("This browser keeps the changes until you come back");
  await leaving.getByRole("button", { name: "Leave" }).click();
  editor = await opened(page, "config-unreadable");
  await expect(editor).toContainText("Broken");
  await expect(page.locator(".config-effect")).toHaveText(/^The config can't be read: line 3, column \d+/);
});

test("a stored config that isn't JSON is opened as it is, and mended", async ({ page, api, site }) => {
  await prepared(api, "config-not-json");
  const object = join(site.folder, "objects/svc-pipelines/pipelines/config-not-json/pipeline.json");
  await writeFile(object, config("config-not-json").replace('"title":', '"title"'));
  const editor = await opened(page, "config-not-json");
  await expect(page.locator(".config-effect")).toContainText(/can't be read: line 3, column \d+: expected `:`/);
  await replace(page, editor, '"title" "config-not-json"', '"title": "Mended"');
  await page.getByRole("button", { name: "Save…" }).click();
  await saveDialog(page).getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("It applies from the next run")).toBeVisible();
  expect(await stored(api, "config-not-json")).toMatchObject({ title: "Mended" });
});

test("unsaved text survives a reload, and is merged if the config has changed", async ({ page, api }) => {
  await prepared(api, "config-reload");
  page.on("dialog", (dialog) => void dialog.accept());
  let editor = await opened(page, "config-reload");
  await replace(page, editor, '"title": "config-reload"', '"title": "Mine"');
  editor = await opened(page, "config-reload");
  await expect(page.getByText("Your unsaved changes were restored.")).toBeVisible();
  await expect(editor).toContainText('"title": "Mine"');

  await page.goto("about:blank");
  await api.put("/api/p/config-reload/config", config("config-reload").replace("Fares.", "All fares."));
  editor = await opened(page, "config-reload");
  await expect(page.getByText("the saved config was changed since then")).toBeVisible();
  await editor.click();
  await page.keyboard.type("lost");
  await expect(page.getByRole("button", { name: "Format" })).toBeDisabled();
  await expect(editor).not.toContainText("lost");
  await expect(editor).toContainText("All fares.");
  await page.getByRole("button", { name: "Restore and merge…" }).click();
  await expect(page.getByRole("dialog", { name: "Merge config changes" })).toBeVisible();
  await page.getByRole("dialog").getByRole("button", { name: "Back to editing" }).click();
  await page.getByRole("button", { name: "Discard" }).click();
  await expect(editor).toContainText("All fares.");
  await expect(page.getByText("saved", { exact: true })).toBeVisible();
});

test("a URL with a position in the config shows and selects it", async ({ page, api }) => {
  await prepared(api, "config-at");
  await page.goto("/p/config-at/config?at=%2Fmappings%2F0%2Fcolumns%2F1%2Ftype");
  const editor = page.getByRole("textbox", { name: "Config of config-at" });
  await expect(editor).toBeFocused();
  await page.keyboard.insertText('"int16"');
  await expect(editor).toContainText('"name": "fare", "type": "int16" }');

  // A new name resets the view, but not while that would discard unsaved text.
  await page.getByRole("button", { name: "More actions" }).click();
  const rename = page.getByRole("menuitem", { name: "Rename…" });
  await expect(rename).toHaveAttribute("aria-disabled", "true");
  await expect(rename).toContainText("Save or discard your changes first");
});

test("a table is added from a CSV in the lake", async ({ page, api }) => {
  await prepared(api, "config-add");
  await api.upload("pipelines/config-add/more/cities.csv", "city,people\nRome,2800000\nOslo,700000\n");
  const editor = await opened(page, "config-add");
  await page.getByRole("button", { name: "Add table from CSV…" }).click();
  await page.getByRole("button", { name: "Generate a table from more/cities.csv" }).click();
  const proposed = page.getByRole("dialog", { name: "Add table from CSV" });
  await expect(proposed.getByRole("columnheader", { name: "Empty cells" })).toBeVisible();
  await expect(proposed.getByRole("row", { name: /^city/ })).toContainText("text (string)");
  await expect(proposed.getByRole("row", { name: /^city/ })).toContainText(/allowed$/);
  await page.getByRole("button", { name: "Add to config" }).click();
  await expect(editor).toContainText('"table": "cities"');
  await expect(page.getByText("cities is new and will be built from the matching files.")).toBeVisible();
});

test("a pipeline is renamed, and deleted after its slug is typed", async ({ page, api, watch }) => {
  watch.expected.push(/409|404/);
  await prepared(api, "config-old");
  await prepared(api, "config-taken");
  await opened(page, "config-old");
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Rename…" }).click();
  await page.getByLabel("URL name").fill("config-taken");
  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("Choose another name.");
  await page.getByLabel("URL name").fill("config-new");
  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await expect(page).toHaveURL(/\/p\/config-new\/config/);
  await expect(page.getByRole("textbox", { name: "Config of config-new" })).toContainText('"version"');

  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Delete…" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete config-new" });
  await expect(dialog).toContainText("1 file in the lake");
  await expect(dialog.getByRole("button", { name: "Delete config-new" })).toBeDisabled();
  await dialog.getByLabel("Type config-new to confirm").fill("config-new");
  await dialog.getByRole("button", { name: "Delete config-new" }).click();
  await expect(page).toHaveURL(/\/$/);
  expect(await api.get<string[]>("/api/pipelines")).not.toContain("config-new");
});

test("the history shows what each save changed, and an earlier version is restored", async ({ page, api }) => {
  await prepared(api, "config-history");
  await api.put("/api/p/config-history/config", config("Second"));
  await opened(page, "config-history");
  await page.getByRole("button", { name: "History" }).click();
  const dialog = page.getByRole("dialog", { name: "Config history" });
  const versions = dialog.getByRole("group", { name: "Versions" }).getByRole("button");
  await expect(versions).toHaveText([/Version 3current.*Saved from/, /Version 2.*Saved from/, /Version 1.*Created/]);
  await expect(dialog.getByLabel("Changes: Version 3")).toContainText("Second");
  await expect(dialog.getByRole("button", { name: "Restore…" })).toBeDisabled();
  await versions.nth(1).click();
  await dialog.getByRole("combobox").selectOption({ label: "the current version" });
  await expect(dialog.getByLabel("Changes: Current version")).toContainText("Second");
  await expectAccessible(page);

  await dialog.getByRole("button", { name: "Restore version 2…" }).click();
  await saveDialog(page).getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Config saved", { exact: true })).toBeVisible();
  const notice = page.getByText("Config saved. It applies from the next run.");
  await expect(notice).toBeVisible();
  await api.run("config-history");
  await expect(notice).toBeHidden();
  expect((await stored(api, "config-history")).title).toBe("config-history");
  await page.getByRole("button", { name: "History" }).click();
  await expect(versions.first()).toHaveText(/Version 4current.*Version 2 restored/);
});
