import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PAYLOADS } from "./support/payloads";
import { expect, expectAccessible, test, type Page } from "./support/test";

const many = (n: number, text = "a,b\n1,2\n") =>
  Array.from({ length: n }, (_, at) => ({
    name: `f${String(at).padStart(3, "0")}.csv`,
    mimeType: "text/csv",
    buffer: Buffer.from(text),
  }));
const upload = (page: Page, files: ReturnType<typeof many>) => page.getByLabel("Files to upload").setInputFiles(files);
const row = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });

test.describe("the lake", () => {
  test("uploads 200 files, retries transient failures, and shows the result", async ({ page, api, watch }) => {
    watch.expected.push(/ERR_FAILED|Failed to load resource/);
    let broken = 0;
    await page.route(/api\/lake\?key=.*f042/, (route) => {
      broken += 1;
      return broken === 1 ? route.abort() : route.continue();
    });
    await page.goto("/lake?prefix=many/");
    await upload(page, many(200));
    const dock = page.getByRole("region", { name: "Uploads" });
    await expect(dock.getByText(/of 200 files/)).toBeVisible();
    await expect(dock.getByRole("progressbar")).toBeVisible();
    // It continues in another view.
    await page.getByRole("link", { name: "Settings" }).click();
    await expect(dock.getByText("200 of 200 files uploaded")).toBeVisible({ timeout: 60_000 });
    expect(broken).toBe(2);
    const { files } = await api.get<{ files: unknown[] }>("/api/lake?prefix=many/&limit=1000");
    expect(files).toHaveLength(200);
    await dock.getByRole("button", { name: "Dismiss" }).click();
    await expect(dock).toBeHidden();
  });

  test("asks once about existing files, rejects invalid ones, and pauses", async ({ page, api, watch }) => {
    watch.expected.push(/412/);
    await api.upload("twice/f000.csv", "old");
    await api.upload("twice/f001.csv", "old");
    await page.goto("/lake?prefix=twice/");
    const dock = page.getByRole("region", { name: "Uploads" });
    const gate = { open: () => undefined as void };
    const opened = new Promise<void>((resolve) => (gate.open = resolve));
    await page.route(/api\/lake\?key=.*f002/, async (route) => {
      await opened;
      await route.continue().catch(() => undefined);
    });
    await upload(page, [...many(3, "new"), { name: "bad\\name.csv", mimeType: "text/csv", buffer: Buffer.from("x") }]);
    await expect(dock.getByText("f000.csv, f001.csv already exist.")).toBeVisible();
    await expect(dock.getByText(/backslash/)).toBeVisible();
    await dock.getByRole("button", { name: "Pause" }).click();
    await expect(dock.getByText(/paused/)).toBeVisible();
    gate.open();
    await dock.getByRole("button", { name: "Replace" }).click();
    await dock.getByRole("button", { name: "Resume" }).click();
    await expect(dock.getByText("3 of 4 files uploaded, 1 failed")).toBeVisible();
    expect(await (await page.request.get("/api/lake/object?key=twice/f000.csv")).text()).toBe("new");
    await expectAccessible(page);
  });

  test("cancels uploads in progress", async ({ page }) => {
    await page.goto("/lake?prefix=stopped/");
    await page.route(/api\/lake\?key=/, () => undefined);
    await upload(page, many(5));
    const dock = page.getByRole("region", { name: "Uploads" });
    await dock.getByRole("button", { name: "Cancel all uploads" }).click();
    await expect(dock.getByText("0 of 5 files uploaded, 5 cancelled")).toBeVisible();
  });

  test("uploads dropped files into the open folder", async ({ page, api }) => {
    await page.goto("/lake?prefix=dropped/");
    await expect(page.getByText("This folder is empty")).toBeVisible();
    const data = await page.evaluateHandle(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(["a,b\n1,2\n"], "drop.csv"));
      return transfer;
    });
    await page.dispatchEvent("#view", "dragenter", { dataTransfer: data });
    await expect(page.getByText("Drop to dropped/")).toBeVisible();
    await page.dispatchEvent("#view", "drop", { dataTransfer: data });
    await expect(page.getByRole("link", { name: "drop.csv" })).toBeVisible();
    expect((await api.get<{ files: { key: string }[] }>("/api/lake?prefix=dropped/")).files[0]?.key).toBe(
      "dropped/drop.csv",
    );
  });

  test("rejects files below pipelines/ outside of a pipeline, and offers to create one", async ({ page, api }) => {
    await api.post("/api/pipelines", { slug: "lake-known", template: "blank" });
    await page.goto("/lake?prefix=pipelines/");
    await expect(page.getByRole("link", { name: "lake-known" })).toBeVisible();
    const folder = await mkdtemp(join(tmpdir(), "lakemill-stray-"));
    try {
      await mkdir(join(folder, "tree"));
      for (const name of ["a.csv", "b.csv"]) await writeFile(join(folder, "tree", name), "id,name\n1,x\n2,y\n");
      await page.getByLabel("Folder to upload").setInputFiles(join(folder, "tree"));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
    const dialog = page.getByRole("dialog", { name: "Nothing was uploaded" });
    await expect(dialog).toContainText("there is no pipeline tree");
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await api.get<string[]>("/api/pipelines")).not.toContain("tree");

    await page.getByRole("button", { name: "New folder" }).click();
    const named = page.getByRole("dialog", { name: "New folder" });
    await named.getByLabel("Name").fill("tree");
    await expect(named.getByText(/there is no pipeline tree/)).toBeVisible();
    await expect(named.getByRole("button", { name: "Open" })).toBeDisabled();
    await named.getByLabel("Name").fill("lake-known");
    await named.getByRole("button", { name: "Open" }).click();
    await upload(page, many(1));
    await expect(page.getByRole("link", { name: "f000.csv" })).toBeVisible();

    await page.goto("/lake?prefix=pipelines/");
    await upload(page, many(2));
    await dialog.getByRole("button", { name: "New pipeline from these files" }).click();
    await expect(page).toHaveURL(/\/new$/);
    await expect(page.getByText("f000.csv and 1 more file")).toBeVisible();
  });

  test("moves, reports conflicts, downloads and deletes", async ({ page, api, watch }) => {
    watch.expected.push(/409/);
    for (const key of ["from/a.csv", "from/b.csv"]) await api.upload(key, key);
    await api.upload("to/b.csv", "another");
    await page.goto("/lake?prefix=from/");
    await page.getByLabel("Select all").check();
    await page.getByRole("button", { name: "Move" }).click();
    await page.getByLabel("Move to folder").fill("to/");
    await page.getByRole("dialog").getByRole("button", { name: "Move" }).click();
    await expect(page.getByText(/1 of 2 files weren't moved/)).toBeVisible();
    await expect(page.getByText(/already has an object `to\/b.csv`/)).toBeVisible();
    await page.getByRole("button", { name: "Cancel" }).click();
    await expect(row(page, "a.csv")).toBeHidden();
    await row(page, "b.csv").getByRole("checkbox").check();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("b.csv");
    await page.getByRole("grid").getByLabel("Entries").press("Delete");
    await page.getByRole("dialog", { name: "Delete b.csv" }).getByRole("button", { name: "Delete" }).click();
    await expect(page.getByText("This folder is empty")).toBeVisible();
  });

  test("works by keyboard, and filters", async ({ page, api }) => {
    for (const key of ["keys/in/x.csv", "keys/one.csv", "keys/two.csv"]) await api.upload(key, "a\n1\n");
    await page.goto("/lake?prefix=keys/");
    const list = page.getByLabel("Entries");
    await list.press("ArrowDown");
    await list.press("Enter");
    await expect(page).toHaveURL(/prefix=keys%2Fin%2F/);
    await expect(page.getByRole("link", { name: "x.csv" })).toBeVisible();
    await page.getByLabel("Entries").press("Backspace");
    await expect(page.getByRole("link", { name: "two.csv" })).toBeVisible();
    await page.keyboard.press("/");
    await page.keyboard.type("tw");
    await expect(page.getByText("1 of 3 entries")).toBeVisible();
  });

  test("shows a file at the line in the URL, as text and as table", async ({ page, api }) => {
    const lines = Array.from({ length: 2_000 }, (_, at) => `${at + 1};name ${at + 1}`);
    await api.upload("look/long.csv", `id;name\n${lines.join("\n")}\n`);
    await page.goto("/jobs");
    await page.goto("/lake?file=look/long.csv&line=1500");
    const marked = page.locator(".lake-line[aria-current=true]");
    await expect(marked).toContainText("1499;name 1499");
    await expect(marked).toBeInViewport();
    await page.getByRole("tab", { name: "Table" }).click();
    await expect(page.getByText("name 1", { exact: true })).toBeVisible();
    await expectAccessible(page);
    const close = page.getByRole("button", { name: "Close" });
    await close.click();
    await expect(page.getByRole("link", { name: "long.csv" })).toBeVisible();
    await expectAccessible(page);
    // Back opens no file again, whichever way it was opened.
    await page.getByRole("link", { name: "long.csv" }).click();
    await close.click();
    await expect(close).toBeHidden();
    await expect(page).toHaveURL(/\/lake\?prefix=look%2F$/);
    await page.goBack();
    await expect(page).toHaveURL(/\/jobs$/);
  });

  test("shows hostile names and contents as text", async ({ page, api }) => {
    await page.addInitScript(() =>
      Object.assign(window, { hits: [], hit: (n: number) => (window as unknown as { hits: number[] }).hits.push(n) }),
    );
    const texts = PAYLOADS.slice(0, 25);
    const names = texts
      .map((text) => text.replace(/[/\\\n\r\t\0]/g, "_").slice(0, 200))
      .filter((name) => name.trim() !== "");
    for (const name of names.slice(0, 18)) await api.upload(`attack/${name}.csv`, `${texts.join("\n")}\n`);
    await page.goto("/lake?prefix=attack/");
    await expect(page.getByRole("row")).toHaveCount(19);
    const first = page.getByRole("gridcell").getByRole("link").first();
    await first.click();
    await expect(page.locator(".lake-line").first()).toContainText("script");
    await page.getByRole("tab", { name: "Table" }).click();
    await expect(page.getByRole("grid", { name: "First lines as a table" })).toBeVisible();
    expect(await page.evaluate(() => (window as unknown as { hits: number[] }).hits)).toEqual([]);
  });
});
