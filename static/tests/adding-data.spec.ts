import { expect, expectAccessible, test, type Page } from "./support/test";

const SLOW = { timeout: 60_000 };
const config = {
  version: 1,
  mappings: [
    {
      table: "orders",
      files: ["orders/*.csv", "orders/*.csv.gz"],
      columns: [
        { name: "id", type: "int64" },
        { name: "note", type: "string" },
      ],
    },
  ],
};
const csv = (from: number, to: number) =>
  `id,note\n${Array.from({ length: to - from }, (_, at) => `${from + at},n`).join("\n")}\n`;

/** Drops files in the middle of the view. */
async function drop(page: Page, files: Record<string, string>): Promise<void> {
  const data = await page.evaluateHandle((given) => {
    const transfer = new DataTransfer();
    for (const [name, text] of Object.entries(given)) transfer.items.add(new File([text], name));
    return transfer;
  }, files);
  // The view may not listen yet.
  await expect(async () => {
    await page.dispatchEvent("#view", "dragenter", { dataTransfer: data });
    await expect(page.locator(".drop-over")).toBeVisible({ timeout: 2_000 });
  }).toPass();
  await page.dispatchEvent("#view", "drop", { dataTransfer: data });
  await expect(page.locator(".drop-over")).toBeHidden();
}

const rowsOf = async (page: Page, slug: string, table: string) => {
  const answer = await page.request.post(`/api/p/${slug}/query`, { data: { sql: `SELECT count(*) FROM ${table}` } });
  return ((await answer.json()) as { rows?: number[][] }).rows?.[0]?.[0];
};

test("a CSV dropped on any view of a pipeline goes to where its table reads it", async ({ page, api }) => {
  await api.pipeline("in-drop", config, { "orders/a.csv": csv(0, 3) });
  let at = 10;
  for (const view of ["", "/data/orders", "/query", "/dashboards", "/jobs", "/config"]) {
    await page.goto(`/p/in-drop${view}`);
    await expect(page.getByRole("button", { name: "Upload", exact: true })).toBeVisible();
    await drop(page, { [`orders-${at}.csv`]: csv(at, at + 2) });
    const dialog = page.getByRole("dialog", { name: `Add orders-${at}.csv` });
    await expect(dialog.getByText("pipelines/in-drop/orders/")).toBeVisible();
    if (at === 10) await expectAccessible(page);
    await dialog.getByRole("button", { name: "Upload" }).click();
    await expect(page.getByRole("region", { name: "Uploads" })).toContainText(/1 of 1 file/);
    at += 10;
  }
  const { files } = await api.get<{ files: unknown[] }>("/api/lake?prefix=pipelines/in-drop/orders/");
  expect(files).toHaveLength(7);
  await expect.poll(() => rowsOf(page, "in-drop", "orders"), SLOW).toBe(15);
});

test("a CSV dropped at home asks for pipeline and table", async ({ page, api }) => {
  await api.pipeline("in-home", config, { "orders/a.csv": csv(0, 3) });
  await page.goto("/?q=in-home");
  await expect(page.locator('[data-slug="in-home"]')).toBeVisible();
  await drop(page, { "more.csv": csv(3, 5) });
  const dialog = page.getByRole("dialog", { name: "Add more.csv" });
  await dialog.getByLabel("Pipeline").selectOption("in-home");
  await expect(dialog.getByLabel("Table")).toHaveValue("orders");
  await dialog.getByRole("button", { name: "Upload" }).click();
  await expect.poll(() => rowsOf(page, "in-home", "orders"), SLOW).toBe(5);
});

test("a second table comes from a CSV dropped on the pipeline", async ({ page, api }) => {
  await api.pipeline("in-second", config, { "orders/a.csv": csv(0, 3) });
  await page.goto("/p/in-second");
  await drop(page, { "customers.csv": "name,city\nAnn,Rome\nBob,Oslo\n" });
  const dialog = page.getByRole("dialog", { name: "Add customers.csv" });
  await dialog.getByLabel("Table").selectOption({ label: "New table" });
  await dialog.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByRole("heading", { name: "New table from CSV", exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Create table" }).click(SLOW);
  await expect(page).toHaveURL(/\/p\/in-second\/data\/customers/, SLOW);
  expect([await rowsOf(page, "in-second", "customers"), await rowsOf(page, "in-second", "orders")]).toEqual([2, 3]);
});

test("files of two shapes become two tables of one pipeline", async ({ page }) => {
  await page.goto("/new");
  await drop(page, {
    "sales_q1.csv": csv(0, 4),
    "sales_q2.csv": csv(4, 8),
    "people.csv": "name,age\nAnn,30\nBob,40\n",
  });
  await expect(page.getByText("The files differ in their columns, so they become 2 tables.")).toBeVisible();
  await page.getByLabel("URL name").fill("in-shapes");
  await page.getByRole("button", { name: "Create pipeline" }).click(SLOW);
  await expect(page).toHaveURL(/\/p\/in-shapes\/data\/sales/, SLOW);
  expect([await rowsOf(page, "in-shapes", "sales"), await rowsOf(page, "in-shapes", "people")]).toEqual([8, 2]);
});

test("months in other formats become one table, each file read in its own", async ({ page, api }) => {
  const rows = (from: number, line: (id: number) => string) =>
    Array.from({ length: 5 }, (_, at) => line(from + at)).join("\n");
  const german = (id: number) => `${id};0${(id % 9) + 1}.02.2024;1.00${id % 10},50`;
  await page.goto("/new");
  await drop(page, {
    "shop 2024-01.csv": `id,day,price\n${rows(0, (id) => `${id},2024-01-0${(id % 9) + 1},100${id % 10}.50`)}\n`,
    "shop 2024-02.csv": `id;day;price\n${rows(5, german)}\n`,
    "shop 2024-03.csv": `Report of March\nTill 4\n\nid;day;price\n${rows(10, german)}\n`,
    "shop 2024-04.csv": `id,day,price,code\n${rows(15, (id) => `${id},2024-04-01,7.25,A${id}`)}\n`,
  });
  await expect(page.getByText("The files have 3 formats. They become one table")).toBeVisible(SLOW);
  await expect(page.getByRole("grid", { name: "Preview of the first rows" })).toContainText("1,000.50");
  await expect(page.getByText(/^Other format/)).toHaveCount(2);
  await page
    .getByText(/^Other format/)
    .first()
    .click();
  await expect(
    page.getByText("shop 2024-03.csv: semicolon-separated, UTF-8, header in line 4, decimal comma"),
  ).toBeVisible();
  await expectAccessible(page);
  await page.getByLabel("URL name").fill("in-formats");
  await page.getByRole("button", { name: "Create pipeline" }).click(SLOW);
  await expect(page).toHaveURL(/\/p\/in-formats\/data\/shop/, SLOW);
  const sql = "SELECT count(*), sum(price)::VARCHAR, count(DISTINCT month(day)), count(code) FROM shop";
  const answer = await page.request.post("/api/p/in-formats/query", { data: { sql } });
  expect(((await answer.json()) as { rows: unknown[][] }).rows).toEqual([[20, "15098.75", 3, 5]]);
  const { mappings } = await api.get<{ mappings: { variants: { files: string[] }[] }[] }>("/api/p/in-formats/config");
  expect(mappings[0]?.variants.flatMap(({ files }) => files).sort()).toEqual([
    "shop/shop 2024-02.csv",
    "shop/shop 2024-03.csv",
  ]);
});

test("a new month in another format goes into its table, and is read in its own", async ({ page, api }) => {
  const columns = [
    { name: "id", type: "int64" },
    { name: "day", type: "date" },
    { name: "price", type: "decimal(12,2)" },
  ];
  const sales = { version: 1, mappings: [{ table: "sales", files: ["sales/*.csv"], columns }] };
  await api.pipeline("in-odd", sales, { "sales/may.csv": "id,day,price\n1,2024-05-01,1000.50\n" });
  await page.goto("/p/in-odd");
  await drop(page, { "june.csv": "Till 4\n\nid;day;price\n2;13.06.2024;1.006,50\n3;14.06.2024;7,25\n" });
  const dialog = page.getByRole("dialog", { name: "Add june.csv" });
  await expect(dialog).toContainText(
    "june.csv has the columns of sales in another format. It is read in its own.",
    SLOW,
  );
  await expect(dialog.getByText("semicolon-separated, UTF-8, header in line 3, decimal comma")).toBeVisible(SLOW);
  await expect(dialog.getByText("All 2 rows can be read.")).toBeVisible(SLOW);
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Upload" }).click();
  await expect.poll(() => rowsOf(page, "in-odd", "sales"), SLOW).toBe(3);
  const { rows } = await api.get<{ rows: unknown[][] }>("/api/p/in-odd/tables/sales/rows?limit=10");
  expect(rows.map(([id, day, price]) => [id, day, Number(price)])).toEqual([
    [2, "2024-06-13", 1006.5],
    [3, "2024-06-14", 7.25],
    [1, "2024-05-01", 1000.5],
  ]);
  await drop(page, { "july.csv": "id,day,price\n4,2024-07-01,1.00\n" });
  const next = page.getByRole("dialog", { name: "Add july.csv" });
  await expect(next.getByRole("button", { name: "Upload" })).toBeEnabled(SLOW);
  await expect(next).not.toContainText("another format");
  await next.getByRole("button", { name: "Cancel" }).click();
  await drop(page, { "export 77.csv": "id,day,price\n3,2024-06-14,7.25\n2,2024-06-13,1006.50\n" });
  const copy = page.getByRole("dialog", { name: "Add export 77.csv" });
  await expect(copy).toContainText("sales already has the first rows of export 77.csv.", SLOW);
  await expectAccessible(page);
  await copy.getByRole("button", { name: "Cancel" }).click();
  await drop(page, { "august.csv": "id,day,price\n3,2024-06-14,7.25\n9,2024-08-01,7.25\n" });
  const other = page.getByRole("dialog", { name: "Add august.csv" });
  await expect(other.getByText("All 2 rows can be read.")).toBeVisible(SLOW);
  await expect(other).not.toContainText("already has");
});

test("a file in UTF-8 isn't read as the letters of its table's encoding, nor the other way round", async ({
  page,
  api,
}) => {
  const table = (encoding: string) => ({
    version: 1,
    mappings: [{ ...config.mappings[0], csv: { encoding, null_values: ["", "N/A"] } }],
  });
  const text = (letters: string) => `id,note\n1,${letters}\n2,N/A\n`;
  const old = Buffer.from(text("Café"), "latin1");
  const cases = [
    { slug: "in-old", encoding: "windows-1252", stored: old, file: Buffer.from(text("Décor")) },
    { slug: "in-new", encoding: "utf-8", stored: Buffer.from(text("Décor")), file: old },
  ];
  for (const { slug, encoding, stored, file } of cases) {
    await api.post("/api/pipelines", { slug, template: "blank" });
    await api.put(`/api/p/${slug}/config`, table(encoding));
    await api.upload(`pipelines/${slug}/orders/a.csv`, stored);
    await api.run(slug);
    await page.goto(`/p/${slug}`);
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Upload", exact: true }).click();
    await (await chooser).setFiles([{ name: "b.csv", mimeType: "text/csv", buffer: file }]);
    const dialog = page.getByRole("dialog", { name: "Add b.csv" });
    await expect(dialog).toContainText("b.csv has the columns of orders in another format.", SLOW);
    await dialog.getByRole("button", { name: "Upload" }).click();
    await expect.poll(() => rowsOf(page, slug, "orders"), SLOW).toBe(4);
    const sql = "SELECT DISTINCT note FROM orders WHERE note IS NOT NULL ORDER BY note";
    const answer = await api.post<{ rows: string[][] }>(`/api/p/${slug}/query`, { sql });
    expect(answer.rows.flat()).toEqual(["Café", "Décor"]);
  }
});

test("empty files of a drop are left out, and the others are added", async ({ page }) => {
  await page.goto("/new");
  await drop(page, { "empty.csv": "", "full.csv": csv(0, 3) });
  await expect(page.getByText("Not added: empty.csv is empty")).toBeVisible();
  await expect(page.getByRole("button", { name: "Create pipeline" })).toBeEnabled(SLOW);
});

test("an empty file isn't sent, and one with other columns is said not to fit the table", async ({ page, api }) => {
  await api.pipeline("in-foreign", config, { "orders/a.csv": csv(0, 3) });
  await page.goto("/p/in-foreign");
  await drop(page, { "empty.csv": "" });
  const empty = page.getByRole("dialog", { name: "Add empty.csv" });
  await expect(empty).toContainText("empty.csv is empty: it has no rows.", SLOW);
  await expect(empty.getByRole("button", { name: "Upload" })).toBeDisabled();
  await empty.getByRole("button", { name: "Cancel" }).click();
  await drop(page, { "staff.csv": "employee,hired\nAnn,2020-01-01\nBob,2021-01-01\n" });
  const foreign = page.getByRole("dialog", { name: "Add staff.csv" });
  await expect(foreign).toContainText("staff.csv has none of the columns of orders, so a run would fail.", SLOW);
  await expectAccessible(page);
});

for (const [width, height] of [
  [1440, 900],
  [390, 844],
] as const)
  test(`nothing of a view is below the panel of uploads, ${width} pixels wide`, async ({ page, api }) => {
    const slug = `in-panel-${width}`;
    await api.pipeline(slug, config, { "orders/a.csv": csv(0, 90) });
    await page.setViewportSize({ width, height });
    await page.goto(`/p/${slug}/data/orders`);
    await drop(page, { "orders-2.csv": csv(90, 95) });
    // It isn't answered, so that the upload stays.
    await page.route(/api\/lake\?key=pipelines.{1,3}in-panel.*orders-2/, () => undefined);
    await page.getByRole("dialog").getByRole("button", { name: "Upload" }).click();
    const panel = page.getByRole("region", { name: "Uploads" });
    await panel.getByRole("button", { name: "Show files" }).click();
    await expect(panel.getByText("sending")).toBeVisible();
    // The parts of Jobs scroll on their own, and end with a gap.
    const lowest = () =>
      page.evaluate(() => {
        const gap = (node: Element) =>
          node.matches(".page > *") ? 0 : parseFloat(getComputedStyle(node).paddingBottom);
        const nodes = [...document.querySelectorAll(".page.full > :not(.jobs), .jobs-list, .jobs-detail")];
        return Math.max(...nodes.map((node) => node.getBoundingClientRect().bottom - gap(node)));
      });
    const top = (await panel.boundingBox())?.y ?? 0;
    for (const view of ["Data", "Query", "Jobs", "Config"]) {
      await page.getByRole("link", { name: view, exact: true }).click();
      await expect(page).toHaveTitle(new RegExp(`^(${view}|orders) `));
      expect(await lowest(), view).toBeLessThanOrEqual(top);
    }
    await panel.getByRole("button", { name: "Cancel all uploads" }).click();
    await panel.getByRole("button", { name: "Dismiss" }).click();
    await expect.poll(lowest).toBeGreaterThan(top);
  });

test("new columns and rows that don't fit are named before the upload", async ({ page, api }) => {
  await api.pipeline("in-check", config, { "orders/a.csv": csv(0, 3) });
  await page.goto("/p/in-check");
  await drop(page, { "orders-2.csv": "id,note,Promo Code\n7,n,A\nseven,n,B\n" });
  const dialog = page.getByRole("dialog", { name: "Add orders-2.csv" });
  await expect(dialog).toContainText("1 new column: Promo Code. orders doesn't have it yet.", SLOW);
  await expect(dialog).toContainText(
    "1 row of 2 would be rejected, more than allowed, so the run would fail and orders would stay as it is:",
  );
  await expect(dialog).toContainText("line 3, id: seven isn't a whole number in this column's format.");
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await drop(page, { "orders-3.csv": csv(7, 9) });
  const fine = page.getByRole("dialog", { name: "Add orders-3.csv" });
  await expect(fine.getByText("All 2 rows can be read.")).toBeVisible(SLOW);
  await fine.getByRole("button", { name: "Upload" }).click();
  await expect.poll(() => rowsOf(page, "in-check", "orders"), SLOW).toBe(5);
  // Samples leave no pipelines behind.
  await expect(async () => {
    const { folders } = await api.get<{ folders: string[] }>("/api/lake?prefix=pipelines/");
    expect(folders.filter((folder) => folder.includes("draft-"))).toEqual([]);
  }).toPass(SLOW);
});

test("a file that another table has is named before it is uploaded into a second one, and can be skipped", async ({
  page,
  api,
}) => {
  const [orders] = config.mappings;
  const mappings = [orders, { ...orders, table: "returns", files: ["returns/*.csv"] }];
  await api.pipeline(
    "in-both",
    { ...config, mappings },
    { "orders/sales-1.csv": csv(0, 3), "orders/sales-2.csv": csv(3, 6) },
  );
  await page.goto("/p/in-both");
  // The second has the same name and size, and other rows.
  await drop(page, { "sales-1.csv": csv(0, 3), "sales-2.csv": csv(6, 9) });
  const dialog = page.getByRole("dialog", { name: "Add 2 files" });
  await dialog.getByLabel("Table").selectOption("returns");
  const choice = dialog.getByLabel("sales-1.csv is already in table orders");
  await expect(choice).toHaveValue("add", SLOW);
  await expect(dialog.getByLabel("sales-2.csv is already in table orders")).toHaveCount(0);
  await expectAccessible(page);
  await choice.selectOption("Don't upload it");
  await dialog.getByRole("button", { name: "Upload" }).click();
  await expect.poll(() => rowsOf(page, "in-both", "returns"), SLOW).toBe(3);
  const { files } = await api.get<{ files: { key: string }[] }>("/api/lake?prefix=pipelines/in-both/returns/");
  expect(files.map(({ key }) => key)).toEqual(["pipelines/in-both/returns/sales-2.csv"]);
});

test("values that the table can't hold are fixed in the upload dialog, before anything is sent", async ({
  page,
  api,
}) => {
  const day = { name: "day", type: "date", formats: ["%Y-%m-%d"] };
  const { mappings } = config;
  const columns = [...(mappings[0]?.columns ?? []), day];
  await api.pipeline(
    "in-fix",
    { ...config, mappings: [{ ...mappings[0], columns }] },
    {
      "orders/a.csv": "id,note,day\n1,n,2024-01-01\n2,n,2024-01-02\n",
    },
  );
  await page.goto("/p/in-fix");
  await drop(page, { "orders-2.csv": "id,note,day\n7,n,31.01.2024\nA8,n,30.01.2024\n" });
  const upload = page.getByRole("dialog", { name: "Add orders-2.csv" });
  await expect(upload).toContainText("2 rows of 2 would be rejected", SLOW);
  await upload.getByRole("button", { name: "Fix…" }).click();
  const fix = page.getByRole("dialog", { name: "Adapt orders to its files" });
  await expect(fix.getByLabel("Read day as DD.MM.YYYY, too")).toBeChecked(SLOW);
  await expect(fix.getByText("In orders-2.csv, 1 of 2 rows would be rejected")).toBeVisible(SLOW);
  await expect(
    fix.getByText("With all files of orders, 1 row of 4 would be rejected, more than allowed"),
  ).toBeVisible();
  await expectAccessible(page);
  await fix.getByLabel("Read id as text").check();
  await expect(fix.getByText("All 2 rows can be read.")).toBeVisible(SLOW);
  await fix.getByRole("button", { name: "Apply" }).click();
  await expect(upload).toContainText(
    "Uploading changes the config of orders: Read id as text; Read day as DD.MM.YYYY, too.",
  );
  await expect(upload.getByText("All 2 rows can be read.")).toBeVisible(SLOW);
  expect(await api.text("/api/p/in-fix/config")).not.toContain("%d.%m.%Y");
  await upload.getByRole("button", { name: "Upload" }).click();
  await expect.poll(() => rowsOf(page, "in-fix", "orders"), SLOW).toBe(4);
  const { jobs } = await api.get<{ jobs: { status: string }[] }>("/api/p/in-fix/jobs");
  expect(jobs.map(({ status }) => status)).not.toContain("failed");
});

test("a title that a spreadsheet pads, and a total, are left out of a new table", async ({ page, api }) => {
  const rows = (from: number) =>
    Array.from({ length: 30 }, (_, at) => `SO-${from + at},04/${10 + (at % 20)}/2025,${at + 1},"$1,0${10 + at}.50"`);
  const header = "Order ID,Order Date,Quantity,Revenue";
  await page.goto("/new");
  await drop(page, {
    "sales_mar.csv": [header, ...rows(100), ""].join("\r\n"),
    "sales_apr.csv": ["Sales report April,,,", ",,,", header, ...rows(200), 'Total,,465,"$30,750.00"', ""].join("\r\n"),
  });
  await page.getByLabel("URL name").fill("in-padded");
  await page.getByRole("button", { name: "Create pipeline" }).click(SLOW);
  await expect(page).toHaveURL(/\/p\/in-padded\/data\/sales/, SLOW);
  const sql = "SELECT count(*), sum(quantity)::INT, sum(revenue)::VARCHAR FROM sales";
  const answer = await page.request.post("/api/p/in-padded/query", { data: { sql } });
  expect(((await answer.json()) as { rows: unknown[][] }).rows).toEqual([[60, 930, "61500.00"]]);
  expect(await api.get("/api/p/in-padded/jobs")).toMatchObject({ jobs: [{ status: "completed" }] });
});

test("a file that can't be read says why nothing can be created, and can be left out", async ({ page }) => {
  await page.goto("/new");
  await drop(page, { "a.csv": csv(0, 4), "b.csv": "\n\n" });
  const create = page.getByRole("button", { name: "Create pipeline" });
  await expect(page.locator(".new-foot")).toContainText("b.csv can't be read. Leave it out.", SLOW);
  await expect(create).toBeDisabled();
  await page.getByRole("navigation", { name: "New tables" }).getByRole("button", { name: /^b/ }).click();
  await page.getByLabel("Create this table from b.csv").uncheck();
  await expect(create).toBeEnabled(SLOW);
});

test("null values that are ticked make their columns nullable, and nothing is created before it can run", async ({
  page,
  api,
}) => {
  const rows = Array.from({ length: 60 }, (_, at) => `${at},${at % 3 === 0 ? "x?" : at}`);
  await page.goto("/new");
  await page.getByLabel("CSV files").setInputFiles({
    name: "odd.csv",
    mimeType: "text/csv",
    buffer: Buffer.from(`id,amount\n${rows.join("\n")}\n`),
  });
  const create = page.getByRole("button", { name: "Create pipeline" });
  await expect(create).toBeEnabled(SLOW);
  await page.getByLabel("Type of amount").selectOption({ label: "whole number (int64)" });
  await expect(page.locator(".new-foot")).toContainText("20 rows of 60 would be rejected, more than allowed");
  await expect(create).toBeDisabled();
  expect(await api.get<string[]>("/api/pipelines")).not.toContain("odd");
  await page.getByLabel("Rejected rows allowed").selectOption({ label: "any number" });
  await expect(create).toBeEnabled(SLOW);
});

test("a spreadsheet says what to do, and a zip of CSVs is opened", async ({ page }) => {
  const { zipSync, strToU8 } = await import("fflate");
  await page.goto("/new");
  await page.getByLabel("CSV files").setInputFiles({ name: "Q1.xlsx", mimeType: "", buffer: Buffer.from("PK") });
  await expect(page.getByText(/Q1\.xlsx is a spreadsheet.*save each sheet as “CSV UTF-8”/)).toBeVisible();
  const zip = zipSync({
    "data/may.csv": strToU8(csv(0, 5)),
    "__MACOSX/._may.csv": strToU8("x"),
    "readme.md": strToU8(""),
  });
  await page
    .getByLabel("CSV files")
    .setInputFiles({ name: "all.zip", mimeType: "application/zip", buffer: Buffer.from(zip) });
  await expect(page.getByText("data-may.csv").first()).toBeVisible();
  await page.getByLabel("URL name").fill("in-zip", SLOW);
  await page.getByRole("button", { name: "Create pipeline" }).click(SLOW);
  await expect(page).toHaveURL(/\/p\/in-zip\/data\//, SLOW);
});

test("a CSV beyond the upload limit goes up in compressed parts, and its correction replaces them", async ({
  page,
  api,
}) => {
  await api.pipeline("in-large", config, { "orders/a.csv": csv(0, 1) });
  await page.goto("/p/in-large");
  // Generated within the page: 110 MB, which may be split only at the end of a row.
  const data = await page.evaluateHandle(() => {
    const line = `,${"x".repeat(1_000)}\n`;
    const pieces = Array.from({ length: 110_000 }, (_, at) => `${at + 1}${line}`);
    const transfer = new DataTransfer();
    transfer.items.add(new File(["id,note\n", ...pieces], "orders-large.csv"));
    return transfer;
  });
  await page.dispatchEvent("#view", "dragenter", { dataTransfer: data });
  await page.dispatchEvent("#view", "drop", { dataTransfer: data });
  const dialog = page.getByRole("dialog", { name: "Add orders-large.csv" });
  await expect(dialog.getByText(/sent in parts, each\s+with the header/)).toBeVisible(SLOW);
  await dialog.getByRole("button", { name: "Upload" }).click();
  await expect(page.getByRole("region", { name: "Uploads" })).toContainText("2 of 2 files uploaded", SLOW);
  await expect.poll(() => rowsOf(page, "in-large", "orders"), { timeout: 120_000 }).toBe(110_001);

  const corrected = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["id,note\n7,x\n8,y\n"], "orders-large.csv"));
    return transfer;
  });
  await page.dispatchEvent("#view", "dragenter", { dataTransfer: corrected });
  await page.dispatchEvent("#view", "drop", { dataTransfer: corrected });
  await dialog.getByRole("button", { name: "Upload" }).click();
  const replace = page.getByRole("dialog", { name: "Replace 1 file?" });
  await expect(replace).toContainText("orders-large-part-001.csv.gz, orders-large-part-002.csv.gz");
  await expectAccessible(page);
  await replace.getByRole("button", { name: "Replace" }).click();
  await expect.poll(() => rowsOf(page, "in-large", "orders"), { timeout: 120_000 }).toBe(3);
});

test("the proposal shows the last rows, where totals are, before any setting", async ({ page }) => {
  const rows = Array.from({ length: 80 }, (_, at) => `2024-01-${String((at % 28) + 1).padStart(2, "0")},shop,${at}.50`);
  await page.goto("/new");
  await page.getByLabel("CSV files").setInputFiles({
    name: "totals.csv",
    mimeType: "text/csv",
    buffer: Buffer.from(`day,shop,amount\n${rows.join("\n")}\n,,3200.00\n`),
  });
  const last = page.getByRole("grid", { name: "Preview of the last rows" });
  await expect(last).toContainText("3,200.00", SLOW);
  await expect(page.getByLabel("Delimiter", { exact: true })).toBeHidden();
  await page.getByText("Detected format").click();
  await expect(page.getByLabel("Delimiter", { exact: true })).toBeVisible();
});

test("the last rows of a file in another format are read in that format", async ({ page }) => {
  const rows = (line: (at: number) => string) => Array.from({ length: 80 }, (_, at) => line(at)).join("\n");
  const plain = `id,amount\n${rows((at) => `${at},${at}.50`)}\n`;
  await page.goto("/new");
  await drop(page, {
    "till-1.csv": `Till 1\n\nid;amount\n${rows((at) => `${at};1.00${at % 10},50`)}\n`,
    "till-2.csv": plain,
    "till-3.csv": plain,
  });
  await expect(page.getByText("The files have 2 formats.")).toBeVisible(SLOW);
  const last = page.getByRole("grid", { name: "Preview of the last rows" });
  await expect(last).toContainText("1,009.50", SLOW);
});

test("a header below lines of text is found, and its line can be changed", async ({ page }) => {
  const rows = Array.from({ length: 9 }, (_, at) => `${at},2024-01-0${at + 1},${at}.5`).join("\n");
  await page.goto("/new");
  await page.getByLabel("CSV files").setInputFiles({
    name: "titled.csv",
    mimeType: "text/csv",
    buffer: Buffer.from(`Sales report 2024\nAcme Ltd, all regions\n\nid,day,amount\n${rows}\n`),
  });
  await expect(page.getByText("The header is in line 4; the 3 lines before it are skipped.")).toBeVisible(SLOW);
  const grid = page.getByRole("grid", { name: "Preview of the first rows" });
  await expect(grid.getByRole("columnheader", { name: /^day/ })).toContainText("date", SLOW);
  await page.getByText("Detected format").click();
  const before = page.getByLabel("Lines before the header");
  await expect(before).toHaveValue("3");
  await before.fill("4");
  await before.blur();
  await expect(grid.getByRole("columnheader", { name: /^day/ })).toHaveCount(0, SLOW);
  await before.fill("3");
  await before.blur();
  await page.getByLabel("URL name").fill("in-titled");
  await page.getByRole("button", { name: "Create pipeline" }).click(SLOW);
  await expect(page).toHaveURL(/\/p\/in-titled\/data\/titled/, SLOW);
  expect(await rowsOf(page, "in-titled", "titled")).toBe(9);
});

test("a name that the header has twice is said, and the second column can be renamed", async ({ page }) => {
  await page.goto("/new");
  await page.getByLabel("CSV files").setInputFiles({
    name: "twice.csv",
    mimeType: "text/csv",
    buffer: Buffer.from("id,amount,amount\n1,2,3\n2,4,5\n"),
  });
  await expect(page.getByText(/the name amount is not unique\. Rename them below\./)).toBeVisible(SLOW);
  await page.getByLabel("Name of column 3").fill("amount_net");
  await page.getByLabel("URL name").fill("in-twice");
  await page.getByRole("button", { name: "Create pipeline" }).click(SLOW);
  await expect(page).toHaveURL(/\/p\/in-twice\/data\/twice/, SLOW);
  await expect(page.getByRole("columnheader", { name: /amount_net/ })).toBeVisible(SLOW);
});

test("a PDF under the name of a CSV isn't sent, whatever way it comes; the other files are", async ({ page, api }) => {
  await api.pipeline("in-kinds", config, { "orders/a.csv": csv(0, 3) });
  const puts: string[] = [];
  page.on("request", (request) => request.method() === "PUT" && puts.push(request.url()));
  const refused = page.getByText(/Not added: report\.csv is a PDF\. Export the data as CSV first/);
  const pdf = "%PDF-1.7\n1 0 obj\n";
  await page.goto("/p/in-kinds");
  await drop(page, { "report.csv": pdf, "orders-b.csv": csv(3, 5) });
  await expect(refused).toBeVisible();
  await expect(page.getByRole("dialog", { name: "Add orders-b.csv" })).toBeVisible();
  await page.keyboard.press("Escape");

  await page.goto("/new");
  const input = (name: string, text: string) => ({ name, mimeType: "text/csv", buffer: Buffer.from(text) });
  await page.getByLabel("CSV files").setInputFiles([input("page.csv", "<!doctype html><title>404</title>")]);
  await expect(page.getByText(/No files added: page\.csv is a web page \(HTML\)/)).toBeVisible();

  await page.goto("/lake?prefix=pipelines/in-kinds/orders/");
  await page.getByLabel("Files to upload").setInputFiles([input("report.csv", pdf), input("c.csv", csv(5, 6))]);
  await expect(refused).toBeVisible();
  await expect(page.getByRole("link", { name: "c.csv" })).toBeVisible();
  expect(puts.filter((url) => /report|page/.test(url))).toEqual([]);
});

test("a file whose name exists is announced, and replaced or kept by choice", async ({ page, api }) => {
  await api.pipeline("in-same", config, { "orders/a.csv": csv(0, 3) });
  await page.goto("/p/in-same");
  await drop(page, { "a.csv": csv(0, 7), "b.csv": csv(10, 12) });
  const dialog = page.getByRole("dialog", { name: "Add 2 files" });
  await expect(dialog.getByText(/a\.csv exists already: .*, uploaded/)).toBeVisible();
  await expect(dialog.getByText("The upload replaces it, and the next run replaces its rows.")).toBeVisible();
  await expectAccessible(page);
  await dialog.getByLabel("The existing file").selectOption("skip");
  await dialog.getByRole("button", { name: "Upload" }).click();
  await expect.poll(() => rowsOf(page, "in-same", "orders"), SLOW).toBe(5);
  await drop(page, { "a.csv": csv(0, 7) });
  await page.getByRole("dialog", { name: "Add a.csv" }).getByRole("button", { name: "Upload" }).click();
  await expect.poll(() => rowsOf(page, "in-same", "orders"), SLOW).toBe(9);
});

test("rejected rows of a file that an upload replaces don't count against it", async ({ page, api }) => {
  const [mapping] = config.mappings;
  const allowing = { version: 1, mappings: [{ ...mapping, rejects: { max_rows: 1 } }] };
  await api.pipeline("in-instead", allowing, { "orders/a.csv": `${csv(0, 3)}x,n\n` });
  await page.goto("/p/in-instead");
  await drop(page, { "a.csv": `${csv(0, 4)}x,n\n` });
  const dialog = page.getByRole("dialog", { name: "Add a.csv" });
  await expect(dialog.getByText("1 row of 5 would be rejected, and not be in orders:")).toBeVisible();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await drop(page, { "b.csv": `${csv(4, 8)}x,n\n` });
  const more = page.getByRole("dialog", { name: "Add b.csv" });
  await expect(more.getByText("1 row of 5 would be rejected, more than allowed, so the run would fail")).toBeVisible();
});

test("a file that is there already isn't sent again, under its name or another", async ({ page, api }) => {
  await api.pipeline("in-again", config, { "orders/a.csv": csv(0, 3), "orders/2024-01.csv": csv(5, 9) });
  await page.goto("/p/in-again");
  await drop(page, { "a.csv": csv(0, 3) });
  const dialog = page.getByRole("dialog", { name: "Add a.csv" });
  await expect(dialog.getByText("a.csv exists already with the same content, and isn't uploaded again.")).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Upload" })).toBeDisabled();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await drop(page, { "2024-01 (1).csv": csv(5, 9), "new.csv": csv(20, 22) });
  const both = page.getByRole("dialog", { name: "Add 2 files" });
  await expect(both.getByLabel("2024-01 (1).csv has the same content as 2024-01.csv")).toHaveValue("skip");
  await both.getByRole("button", { name: "Upload" }).click();
  await expect.poll(() => rowsOf(page, "in-again", "orders"), SLOW).toBe(9);
});

test("a corrected version of a file replaces it or is added, as chosen", async ({ page, api }) => {
  await api.pipeline("in-versions", config, { "orders/2024-03.csv": csv(0, 30), "orders/2024-04.csv": csv(30, 60) });
  await page.goto("/p/in-versions");
  await drop(page, { "2024-03 (korrigiert).csv": csv(0, 31) });
  const dialog = page.getByRole("dialog", { name: "Add 2024-03 (korrigiert).csv" });
  const choice = dialog.getByLabel("2024-03 (korrigiert).csv looks like another version of 2024-03.csv");
  await expect(choice).toHaveValue("");
  await expect(dialog.getByText(/so those that are in both count twice/)).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Upload" })).toBeDisabled();
  await expectAccessible(page);
  await choice.selectOption({ label: "Replace 2024-03.csv" });
  await dialog.getByRole("button", { name: "Upload" }).click();
  await expect.poll(() => rowsOf(page, "in-versions", "orders"), SLOW).toBe(61);

  // A name that says nothing: the rows do.
  await drop(page, { "export.csv": csv(30, 61) });
  const other = page.getByRole("dialog", { name: "Add export.csv" });
  await other
    .getByLabel(/export\.csv begins with the columns and the rows or period of 2024-04\.csv/)
    .selectOption("add");
  await other.getByRole("button", { name: "Upload" }).click();
  await expect.poll(() => rowsOf(page, "in-versions", "orders"), SLOW).toBe(92);
});

test("a file for a table that it doesn't fit is called by its name, and the table that has its columns is named", async ({
  page,
  api,
}) => {
  const table = (name: string, names: string[]) => ({
    table: name,
    files: [`${name}/*.csv`],
    columns: names.map((one) => ({ name: one, type: "string" })),
  });
  const mappings = [table("sales", ["region", "amount"]), table("targets", ["region", "quarter"])];
  await api.pipeline(
    "in-unfit",
    { version: 1, auto_run: false, mappings },
    {
      "sales/a.csv": "region,amount\nWest,1\n",
      "targets/a.csv": "region,quarter\nWest,Q1\n",
    },
  );
  await page.goto("/p/in-unfit");
  await drop(page, { "july (1).csv": "region,amount\nEast,2\n" });
  const upload = page.getByRole("dialog", { name: "Add july (1).csv" });
  await upload.getByLabel("Table").selectOption("targets", SLOW);
  await expect(upload).toContainText("A run would fail: july (1).csv does not fit table targets", SLOW);
  await expect(upload).toContainText("Its columns are those of sales.", SLOW);
});
