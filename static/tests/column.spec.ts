import { type Api, expect, expectAccessible, type Page, test } from "./support/test";

const SLOW = { timeout: 60_000 };

const TEXT = `{
  "version": 1,
  "title": "Sales",
  "auto_run": false,
  "mappings": [
    {
      "table": "sales",
      "files": ["sales/*.csv"],
      "columns": [
        { "name": "id",  "type": "int64" },
        { "name": "day", "type": "string" },
        { "name": "price", "type": "string" }
      ]
    }
  ]
}
`;
const MAY = "id,day,price\n1,31.12.2024,$5.50\n2,13.01.2025,\n3,14.01.2025,$7\n";

async function prepared(api: Api, slug: string, text = TEXT, files: Record<string, string> = {}): Promise<void> {
  await api.post("/api/pipelines", { slug, template: "blank" });
  await api.put(`/api/p/${slug}/config`, text);
  for (const [key, csv] of Object.entries({ "sales/may.csv": MAY, ...files }))
    await api.upload(`pipelines/${slug}/${key}`, csv);
  await api.run(slug);
}

const stored = (api: Api, slug: string) => api.text(`/api/p/${slug}/config`);

const rowsOf = async (api: Api, slug: string) =>
  (await api.get<{ rows: unknown[][] }>(`/api/p/${slug}/tables/sales/rows?limit=10`)).rows;

async function opened(page: Page, slug: string, column: string) {
  await page.goto(`/p/${slug}/data/sales?tab=schema`);
  await page.getByRole("button", { name: `Edit column ${column}` }).click(SLOW);
  return page.getByRole("dialog", { name: `Edit column ${column}` });
}

test("text becomes numbers with the signs that the files have, from a header's menu", async ({ page, api, watch }) => {
  await prepared(api, "column-number");
  await page.goto("/p/column-number/data/sales");
  await page.getByRole("columnheader", { name: /price/ }).click({ button: "right", ...SLOW });
  await page.getByRole("menuitem", { name: "Edit column…" }).click();
  const dialog = page.getByRole("dialog", { name: "Edit column price" });
  await expect(dialog.getByText("All 3 rows can be read.")).toBeVisible(SLOW);
  await expect(dialog.getByText(/^Detected in the files: decimal.*\$/)).toBeVisible(SLOW);
  await expect(dialog.getByRole("button", { name: "Save and run" })).toBeDisabled();
  await dialog.getByLabel("Type", { exact: true }).selectOption("decimal(18,2)");
  await expect(dialog.getByLabel("Currency")).toHaveValue("$");
  await expect(dialog.getByRole("row", { name: /^\$5\.50 → 5\.50?$/ })).toBeVisible(SLOW);
  await expect(dialog.getByText("The next run rebuilds sales from all its files.")).toBeVisible();
  await expect(dialog.getByText("All 3 rows can be read.")).toBeVisible(SLOW);
  await dialog.getByLabel("Currency").fill("€");
  await expect(dialog.getByText("2 of 3 rows would be rejected")).toBeVisible(SLOW);
  await expect(dialog.getByText(/more than allowed, so a run would fail/)).toBeVisible();
  await expectAccessible(page);
  await dialog.getByLabel("Currency").fill("$");
  await expect(dialog.getByText("All 3 rows can be read.")).toBeVisible(SLOW);
  await dialog.getByRole("button", { name: "Save and run" }).click();
  await expect(dialog).toBeHidden(SLOW);
  await expect
    .poll(async () => (await rowsOf(api, "column-number")).map((row) => Number(row[2])), SLOW)
    .toEqual([5.5, 0, 7]);
  expect(await stored(api, "column-number")).toBe(
    TEXT.replace(
      '"price", "type": "string" }',
      '"price", "type": "decimal(18,2)", "number_format": { "decimal": ".", "thousands": ",", "currency": ["$"] } }',
    ),
  );
  watch.check();
});

test("text becomes dates of a format, and values that can't be read are left empty", async ({ page, api }) => {
  await prepared(api, "column-date", TEXT, { "sales/june.csv": "id,day,price\n4,soon,9\n" });
  const dialog = await opened(page, "column-date", "day");
  await dialog.getByLabel("Type", { exact: true }).selectOption("date");
  await dialog.getByLabel("Format", { exact: true }).fill("DD.MM.YYYY");
  await expect(dialog.getByText("1 of 4 rows would be rejected")).toBeVisible(SLOW);
  await expect(dialog.getByText("Now none of them would be rejected.")).toBeVisible();
  await expect(dialog.getByRole("row", { name: /june\.csv 2 day soon/ })).toBeVisible();
  await dialog.getByLabel("Values that can’t be read").selectOption("Leave the cell empty");
  await expect(dialog.getByText("1 value in 4 rows can’t be read and would be left empty")).toBeVisible(SLOW);
  await dialog.getByRole("button", { name: "Add format" }).click();
  await dialog.getByLabel("Format 2", { exact: true }).fill("%Y-%m-%d");
  await dialog.getByRole("button", { name: "Remove format 2" }).click();
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await expect(dialog).toBeHidden(SLOW);
  expect(await stored(api, "column-date")).toBe(
    TEXT.replace('"day", "type": "string" }', '"day", "type": "date", "formats": ["%d.%m.%Y"], "on_error": "null" }'),
  );
  // Nothing has run yet, and the view offers it.
  await page.locator(".state-notice").getByRole("button", { name: "Run now" }).click(SLOW);
  await expect
    .poll(async () => (await rowsOf(api, "column-date")).map((row) => row[1]), SLOW)
    .toEqual([null, "2024-12-31", "2025-01-13", "2025-01-14"]);
});

test("a column without empty cells, an invalid format and a broken dashboard's query are shown before the save", async ({
  page,
  api,
}) => {
  await prepared(api, "column-problems");
  await api.put(
    "/api/p/column-problems/dashboards/board",
    "version: 2\ntitle: Board\nqueries:\n  q:\n    sql: SELECT price FROM sales\npanels:\n  - id: t\n    type: table\n    query: q\n",
    "application/yaml",
  );
  const query = { name: "Prices", sql: "SELECT max(price) FROM sales" };
  const { id } = await api.post<{ id: string }>("/api/p/column-problems/queries", query);
  let dialog = await opened(page, "column-problems", "price");
  await dialog.getByLabel("Allow empty cells").uncheck();
  await expect(dialog.getByText("1 of 3 rows would be rejected")).toBeVisible(SLOW);
  await expect(dialog.getByText("The cell is empty, and this column needs a value.")).toBeVisible();
  await dialog.getByLabel("Name").fill("id");
  await expect(dialog.getByRole("alert").first()).toContainText("id", SLOW);
  await expect(dialog.getByLabel("Name")).toHaveAttribute("aria-invalid");
  await expect(dialog.getByRole("button", { name: "Save", exact: true })).toBeDisabled();
  await dialog.getByLabel("Name").fill("amount");
  await expect(dialog.getByText(/Dashboard Board, query q: it uses the column price, which is gone/)).toBeVisible(SLOW);
  await expect(dialog.getByText(/replace the old name/)).toBeVisible();
  await expect(dialog.getByRole("link", { name: "Prices" })).toHaveAttribute("href", new RegExp(`saved=${id}`));
  await page.keyboard.press("Escape");
  await expect(page.getByText("the column price", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Discard" }).click();

  await page.getByRole("button", { name: "Edit column day" }).click();
  dialog = page.getByRole("dialog", { name: "Edit column day" });
  await dialog.getByLabel("Type", { exact: true }).selectOption("date");
  await dialog.getByLabel("Format", { exact: true }).fill("%Q");
  await expect(dialog.getByLabel("Format", { exact: true })).toHaveAttribute("aria-invalid", "true", SLOW);
  await expectAccessible(page);
});

test("a column gets its values from the names of the files", async ({ page, api }) => {
  await prepared(api, "column-path", TEXT, { "sales/north.csv": "id,day,price\n4,01.06.2025,$1\n" });
  await page.goto("/p/column-path/data/sales?tab=schema");
  await page.getByRole("button", { name: "Add column from file names" }).click(SLOW);
  const dialog = page.getByRole("dialog", { name: "Add column from file names" });
  const values = dialog.getByLabel("Values");
  await expect(values).toHaveValue("{}", SLOW);
  await values.fill("north");
  await expect(values).toHaveAccessibleDescription("may.csv: no value · north.csv: north");
  await dialog.getByLabel("Column from file names").fill("region");
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Save and run" }).click();
  await expect(page.getByRole("button", { name: "Edit column region" })).toBeVisible(SLOW);
  expect((await rowsOf(api, "column-path")).map((row) => [row[0], row[3]])).toEqual([
    [1, null],
    [2, null],
    [3, null],
    [4, "north"],
  ]);
  await page.getByRole("button", { name: "Edit column region" }).click();
  const editing = page.getByRole("dialog", { name: "Edit column region" });
  await expect(editing.getByText("From the path of each file: north")).toBeVisible(SLOW);
  await expect(editing.getByText("All 4 rows of 2 files can be read.")).toBeVisible(SLOW);
});

test("a save of another editor meanwhile isn't overwritten", async ({ page, api, watch }) => {
  watch.expected.push(/412/);
  await prepared(api, "column-conflict");
  const dialog = await opened(page, "column-conflict", "id");
  await dialog.getByLabel("Type", { exact: true }).selectOption("int32");
  await expect(dialog.getByRole("button", { name: "Save", exact: true })).toBeEnabled(SLOW);
  await api.put("/api/p/column-conflict/config", TEXT.replace('"Sales"', '"Theirs"'));
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await expect(dialog.getByText("Someone else saved the config meanwhile.")).toBeVisible(SLOW);
  await expect(dialog.getByLabel("Type", { exact: true })).toHaveValue("int32");
  await dialog.getByRole("button", { name: "Save", exact: true }).click(SLOW);
  await expect(dialog).toBeHidden(SLOW);
  expect(await stored(api, "column-conflict")).toBe(TEXT.replace('"Sales"', '"Theirs"').replace("int64", "int32"));
});

test("unsaved changes of the config in this browser stay, and the editor merges them", async ({ page, api }) => {
  await prepared(api, "column-draft");
  page.on("dialog", (dialog) => void dialog.accept());
  await page.goto("/p/column-draft/config");
  const editor = page.getByRole("textbox", { name: "Config of column-draft" });
  await expect(editor).toContainText('"version"');
  await editor.press("Control+End");
  await page.keyboard.type("\n");
  await expect(page.getByText("unsaved changes")).toBeVisible();
  const dialog = await opened(page, "column-draft", "id");
  await expect(dialog.getByText(/This browser has unsaved changes of the config/)).toBeVisible(SLOW);
  await dialog.getByLabel("Type", { exact: true }).selectOption("int32");
  await dialog.getByRole("button", { name: "Save", exact: true }).click(SLOW);
  await expect(dialog).toBeHidden(SLOW);
  await page.goto("/p/column-draft/config");
  await expect(page.getByRole("button", { name: "Restore and merge…" })).toBeVisible(SLOW);
  expect(await stored(api, "column-draft")).toBe(TEXT.replace("int64", "int32"));
});

test("the config editor changes a column of its text, that of the cursor first", async ({ page, api }) => {
  await prepared(api, "column-editor");
  await page.goto("/p/column-editor/config?at=/mappings/0/columns/1/type");
  const editor = page.getByRole("textbox", { name: "Config of column-editor" });
  await expect(editor).toContainText('"version"');
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: /Edit column…/ }).click();
  await expect(page.getByRole("dialog", { name: "Edit column day" })).toBeVisible();
  await page.getByLabel("Column", { exact: true }).selectOption("id");
  const dialog = page.getByRole("dialog", { name: "Edit column id" });
  await dialog.getByLabel("Type", { exact: true }).selectOption("int32");
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Apply to the editor" }).click(SLOW);
  await expect(editor).toContainText('{ "name": "id",  "type": "int32" }');
  expect(await stored(api, "column-editor")).toBe(TEXT);
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("dialog", { name: "Save config" }).getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("button", { name: "Run now" })).toBeVisible(SLOW);
});

test("files of another format keep theirs, and can get another, on a narrow screen", async ({ page, api }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  const variant = { files: ["sales/b-*.csv"], csv: { delimiter: ";" }, columns: [{ name: "day", from: "Datum" }] };
  const text = TEXT.replace('"columns"', `"variants": [${JSON.stringify(variant)}],\n      "columns"`);
  await prepared(api, "column-variant", text, { "sales/b-1.csv": "id;Datum;price\n4;01/31/2025;9\n" });
  const dialog = await opened(page, "column-variant", "day");
  await expect(dialog.getByText("1 file of the format sales/b-*.csv: own format of this column")).toBeVisible(SLOW);
  await dialog.getByLabel("Type", { exact: true }).selectOption("date");
  await dialog.getByLabel("Format", { exact: true }).first().fill("DD.MM.YYYY");
  await expect(dialog.getByText("1 of 4 rows would be rejected")).toBeVisible(SLOW);
  await dialog.getByLabel("Format", { exact: true }).nth(1).fill("MM/DD/YYYY");
  await expect(dialog.getByText("All 4 rows of 2 files can be read.")).toBeVisible(SLOW);
  await expect(dialog.getByRole("row", { name: "01/31/2025 → 2025-01-31" })).toBeVisible();
  expect(await dialog.evaluate((node) => node.scrollWidth <= node.clientWidth)).toBe(true);
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Save and run" }).click();
  await expect
    .poll(async () => (await rowsOf(api, "column-variant")).map((row) => row[1]), SLOW)
    .toContain("2025-01-31");
  expect(await stored(api, "column-variant")).toContain('{"name":"day","from":"Datum","formats": ["%m/%d/%Y"]}');

  const again = await opened(page, "column-variant", "day");
  await again.getByLabel("Type", { exact: true }).selectOption("string");
  await expect(again.getByText(/their own format of this column \(MM\/DD\/YYYY\)/)).toBeVisible();
});

test("numbers get the separators of the files, and files of another format keep their own", async ({ page, api }) => {
  const variant = { files: ["sales/b-*.csv"], csv: { delimiter: ";", decimal: "," } };
  const text = TEXT.replace('"int64"', '"float64"').replace(
    '"columns"',
    `"variants": [${JSON.stringify(variant)}],\n      "columns"`,
  );
  await prepared(api, "column-separators", text, {
    "sales/may.csv": 'id,day,price\n1,a,5.50\n2,b,"1,234.50"\n',
    "sales/b-1.csv": "id;day;price\n3;c;9,5\n",
  });
  const number = await opened(page, "column-separators", "id");
  await expect(number.getByText("They are read as above, but numbers as 1234,5.")).toBeVisible(SLOW);
  await page.keyboard.press("Escape");
  const dialog = await opened(page, "column-separators", "price");
  await expect(dialog.getByText(/^Detected in the files: decimal/)).toBeVisible(SLOW);
  await dialog.getByLabel("Type", { exact: true }).selectOption("decimal(18,2)");
  await expect(dialog.getByRole("row", { name: "1,234.50 → 1234.50" })).toBeVisible(SLOW);
  await expect(dialog.getByRole("row", { name: "9,5 → 9.50" })).toBeVisible();
  await expect(dialog.getByText("All 3 rows of 2 files can be read.")).toBeVisible(SLOW);
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await expect(dialog).toBeHidden(SLOW);
  const { mappings } = JSON.parse(await stored(api, "column-separators")) as { mappings: object[] };
  expect(mappings[0]).toMatchObject({ variants: [{ ...variant, columns: [{ name: "price" }] }] });
});
