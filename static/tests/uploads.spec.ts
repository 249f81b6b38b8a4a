import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, expectAccessible, test, type Page } from "./support/test";

const SLOW = { timeout: 60_000 };

/** A zstd frame with uncompressed content: one raw block, with its size. */
function zstd(text: string): Buffer {
  const content = Buffer.from(text);
  const head = Buffer.alloc(12);
  head.writeUInt32LE(0xfd2fb528, 0);
  head.writeUInt8(0xa0, 4);
  head.writeUInt32LE(content.length, 5);
  head.writeUIntLE(content.length * 8 + 1, 9, 3);
  return Buffer.concat([head, content]);
}

const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `${from + at},name ${at % 9}`);
const csv = (from: number, to: number) => `id,name\n${lines(from, to).join("\n")}\n`;
const file = (name: string, content: string | Buffer) => ({
  name,
  mimeType: "application/octet-stream",
  buffer: Buffer.from(content),
});

const rowsOf = async (page: Page, slug: string, table: string): Promise<unknown> => {
  const answer = await page.request.post(`/api/p/${slug}/query`, {
    data: { sql: `SELECT count(*), count(DISTINCT id), max(id) FROM ${table}` },
  });
  return ((await answer.json()) as { rows: unknown[][] }).rows[0];
};

test("several plain and compressed files uploaded together become one table", async ({ page }) => {
  await page.goto("/new");
  await page
    .getByLabel("CSV files")
    .setInputFiles([
      file("people-1.csv", csv(0, 50)),
      file("people-2.csv.gz", gzipSync(csv(50, 90))),
      file("people-3.csv.zst", zstd(csv(90, 120))),
    ]);
  await expect(page.getByText("people-1.csv and 2 more files")).toBeVisible(SLOW);
  await page.getByLabel("URL name").fill("up-packed");
  await page.getByLabel("Table", { exact: true }).fill("people");
  await page.getByRole("button", { name: "Create pipeline" }).click(SLOW);
  await expect(page).toHaveURL(/\/p\/up-packed\/data\/people\?chart=1/, SLOW);
  expect(await rowsOf(page, "up-packed", "people")).toEqual([120, 120, 119]);
});

test("a file is left out of a choice of several, and the panel goes once everything is loaded and seen", async ({
  page,
}) => {
  await page.goto("/new");
  await page
    .getByLabel("CSV files")
    .setInputFiles([
      file("north-1.csv", csv(0, 50)),
      file("north-1 v2.csv", csv(0, 60)),
      file("north-2.csv", csv(60, 90)),
    ]);
  await expect(page.getByText("north-1 v2.csv looks like another version of north-1.csv.")).toBeVisible(SLOW);
  await page.getByRole("button", { name: "Leave out north-1.csv" }).first().click();
  await expect(page.getByText("north-1 v2.csv and 1 more file")).toBeVisible(SLOW);
  await expect(page.getByText("looks like another version")).toHaveCount(0);
  await page.getByText("Show files").click();
  await expect(page.getByRole("button", { name: /^Leave out / })).toHaveCount(2);
  await page.getByLabel("URL name").fill("up-left");
  await page.getByLabel("Table", { exact: true }).fill("people");
  await page.getByRole("button", { name: "Create pipeline" }).click(SLOW);
  await expect(page).toHaveURL(/\/p\/up-left\/data\/people\?chart=1/, SLOW);
  expect(await rowsOf(page, "up-left", "people")).toEqual([90, 90, 89]);

  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Upload", exact: true }).click();
  await (await choosing).setFiles([file("north-3.csv", csv(95, 99))]);
  await page.getByRole("dialog", { name: "Add north-3.csv" }).getByRole("button", { name: "Upload" }).click(SLOW);
  const panel = page.getByRole("region", { name: "Uploads" });
  await expect(panel).toContainText("4 rows loaded into people", SLOW);
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await expect(panel).toHaveCount(0);
});

test("a folder is uploaded with its subfolders, without system files", async ({ page, api }) => {
  const folder = await mkdtemp(join(tmpdir(), "lakemill-folder-"));
  try {
    await mkdir(join(folder, "tree/2024/may"), { recursive: true });
    for (const name of ["tree/a.csv", "tree/2024/b.csv", "tree/2024/may/c.csv", "tree/.DS_Store"])
      await writeFile(join(folder, name), "a\n1\n");
    await page.goto("/lake?prefix=folders/");
    await page.getByLabel("Folder to upload").setInputFiles(join(folder, "tree"));
    await expect(
      page
        .getByRole("region", { name: "Uploads" })
        .getByText("3 of 3 files uploaded")
        .or(page.getByText(/3 of 3 files/)),
    ).toBeVisible();
    await page.getByRole("link", { name: "tree" }).click();
    await expect(page.getByRole("link", { name: "a.csv" })).toBeVisible();
    await page.getByRole("link", { name: "2024" }).click();
    await expect(page.getByRole("link", { name: "b.csv" })).toBeVisible();
    const { files } = await api.get<{ files: { key: string }[] }>("/api/lake?prefix=folders/tree/2024/may/");
    expect(files.map(({ key }) => key)).toEqual(["folders/tree/2024/may/c.csv"]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("files uploaded before the first listing arrived are listed", async ({ page }) => {
  const gate = { open: () => undefined as void };
  const opened = new Promise<void>((resolve) => (gate.open = resolve));
  await page.route(
    (url) => url.pathname === "/api/lake" && url.searchParams.get("prefix") === "early/",
    async (route) => {
      const answer = await route.fetch();
      await opened;
      await route.fulfill({ response: answer });
    },
    { times: 1 },
  );
  await page.goto("/lake?prefix=early/");
  await page.getByLabel("Files to upload").setInputFiles([file("early.csv", csv(0, 3))]);
  await expect(page.getByText("1 of 1 file uploaded")).toBeVisible(SLOW);
  gate.open();
  await expect(page.getByRole("link", { name: "early.csv" })).toBeVisible(SLOW);
});

test("a session that expires during an upload is renewed in place, and the upload continues", async ({
  page,
  watch,
  site,
}) => {
  watch.expected.push(/401/);
  const gate = { open: () => undefined as void };
  const opened = new Promise<void>((resolve) => (gate.open = resolve));
  await page.route(/api\/lake\?key=pipelines%2Fup-session/, async (route) => {
    if (!/part-[0-2]/.test(route.request().url())) await opened;
    await route.continue();
  });
  await page.goto("/new");
  const parts = Array.from({ length: 8 }, (_, at) => file(`part-${at}.csv`, csv(at * 10, at * 10 + 10)));
  await page.getByLabel("CSV files").setInputFiles(parts);
  await page.getByLabel("URL name").fill("up-session", SLOW);
  await page.getByLabel("Table", { exact: true }).fill("parts");
  await page.getByRole("button", { name: "Create pipeline" }).click(SLOW);
  await expect(page.getByText(/3 of 8 files/).first()).toBeVisible();

  await page.request.post("/api/auth/logout");
  gate.open();
  const login = page.getByRole("dialog", { name: "Your session has ended" });
  await login.getByLabel("Password").fill(site.password);
  await login.getByRole("button", { name: "Log in" }).click();
  await expect(login).toBeHidden();
  await expect(page).toHaveURL(/\/p\/up-session\/data\/parts\?chart=1/, SLOW);
  expect(await rowsOf(page, "up-session", "parts")).toEqual([80, 80, 79]);
});

test("files of several tables are uploaded table by table", async ({ page, api }) => {
  const mapping = (table: string, second: string) => ({
    table,
    files: [`${table}/*.csv`],
    columns: [
      { name: "id", type: "int64" },
      { name: second, type: "string" },
    ],
  });
  const reasons = (from: number, to: number) => csv(from, to).replace("id,name", "id,reason");
  await api.pipeline(
    "up-tables",
    { version: 1, mappings: [mapping("sales", "name"), mapping("returns", "reason")] },
    { "sales/a.csv": csv(0, 3), "returns/a.csv": reasons(0, 2) },
  );
  const choose = async (files: ReturnType<typeof file>[]) => {
    const choosing = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Upload", exact: true }).click();
    await (await choosing).setFiles(files);
  };
  await page.goto("/p/up-tables");
  // One is named like its table, the others have its columns.
  await choose([
    file("sales-b.csv", csv(3, 10)),
    file("may.csv", reasons(2, 6)),
    file("june.csv", csv(10, 12)),
    file("staff.csv", "employee,hired\nAnn,2020-01-01\n"),
  ]);
  const sales = page.getByRole("dialog", { name: "Add 2 files" });
  await expect(sales).toContainText("Step 1 of 3: 2 files for sales. Next: 1 file for returns.", SLOW);
  await expect(sales).toContainText("sales-b.csv, june.csv");
  await expect(sales.getByLabel("Table")).toHaveValue("sales");
  await expectAccessible(page);
  await sales.getByRole("button", { name: "Upload" }).click(SLOW);
  const returns = page.getByRole("dialog", { name: "Add may.csv" });
  await expect(returns).toContainText("Step 2 of 3: 1 file for returns. Next: 1 file without a matching table.");
  await expect(returns.getByLabel("Table")).toHaveValue("returns");
  await returns.getByRole("button", { name: "Upload" }).click(SLOW);
  const staff = page.getByRole("dialog", { name: "Add staff.csv" });
  await expect(staff).toContainText("Step 3 of 3: 1 file.");
  await expect(staff.getByLabel("Table")).toHaveValue("?");
  await expect(staff.getByRole("button", { name: "Upload" })).toBeDisabled();
  await staff.getByRole("button", { name: "Cancel" }).click();
  await expect(staff).toBeHidden();
  await expect.poll(() => rowsOf(page, "up-tables", "sales"), SLOW).toEqual([12, 12, 11]);
  await expect.poll(() => rowsOf(page, "up-tables", "returns"), SLOW).toEqual([6, 6, 5]);
  expect(JSON.stringify(await api.get("/api/lake?prefix=pipelines/up-tables/"))).not.toContain("staff");

  // Files for a new table are previewed last; skipped ones are left out.
  await choose([
    file("sales-c.csv", csv(12, 14)),
    file("returns-c.csv", reasons(6, 8)),
    file("staff.csv", "employee,hired\nAnn,2020-01-01\n"),
  ]);
  const first = page.getByRole("dialog", { name: "Add sales-c.csv" });
  await first.getByLabel("Table").selectOption({ label: "New table" });
  await expect(first).toContainText("Step 1 of 3: 1 file. Next: 1 file for returns.");
  await first.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("dialog", { name: "Add returns-c.csv" }).getByRole("button", { name: "Upload" }).click(SLOW);
  await expect(staff).toContainText("Step 3 of 3: 1 file. Next: the preview of 1 file.");
  await staff.getByRole("button", { name: "Skip" }).click();
  await expect(page.getByRole("heading", { name: "New table from CSV", exact: true })).toBeVisible(SLOW);
  await expect(page.locator("#view")).toContainText("sales-c.csv", SLOW);
  await expect.poll(() => rowsOf(page, "up-tables", "returns"), SLOW).toEqual([8, 8, 7]);
});
