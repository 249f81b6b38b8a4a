import { expect, test } from "./support/test";

const CONFIG = {
  version: 1,
  // The run of an upload would load it again after a restore.
  auto_run: false,
  mappings: [
    {
      table: "sales",
      files: ["*.csv"],
      keep_history: "1d",
      columns: [
        { name: "id", type: "int64" },
        { name: "amount", type: "int64" },
      ],
    },
  ],
};

test("a version shows what it changed, is viewed, and is restored as a new one", async ({ page, api }) => {
  await api.pipeline("versions", CONFIG, { "a.csv": "id,amount\n1,10\n2,20\n" });
  await api.upload("pipelines/versions/b.csv", "id,amount\n3,30\n");
  await api.run("versions");

  await page.goto("/p/versions/data/sales?tab=versions");
  const rows = page.getByRole("group", { name: "Versions of sales" }).locator("tbody > tr");
  await expect(rows.first()).toContainText("current");
  await expect(page.getByText("1 source in 1 partition: +1 row.")).toBeVisible();
  await expect(page.getByRole("listitem").filter({ hasText: "b.csv" })).toContainText("added");

  const first = rows.filter({ has: page.getByRole("button", { name: "1", exact: true }) });
  await first.getByRole("button", { name: "View rows" }).click();
  await expect(page).toHaveURL(/as_of=1/);
  await expect(page.getByRole("combobox", { name: "Version" })).toHaveValue("1");

  await page.goto("/p/versions/data/sales?tab=versions");
  await first.getByRole("button", { name: "Restore…" }).click();
  const dialog = page.getByRole("dialog", { name: "Restore version 1 of sales?" });
  await expect(dialog).toContainText("2 rows");
  await dialog.getByRole("button", { name: "Restore" }).click();
  await expect(page.getByText("Version 1 restored as version 3")).toBeVisible();
  await expect(rows.first()).toContainText("Restored from version 1");
  await expect(page.locator(".data-facts")).toContainText("2 rows");

  await page.goto("/p/versions");
  const changes = page.locator(".section", { hasText: "Latest changes" });
  await expect(changes).toContainText("Earlier versions restored");
  await expect(changes).toContainText("−1 row");

  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/p/versions/data/sales?tab=versions");
  const box = await first.getByRole("button", { name: "Restore…" }).boundingBox();
  expect((box?.x ?? 999) + (box?.width ?? 999)).toBeLessThanOrEqual(390);
});

test("the time that versions are kept is chosen where the versions are", async ({ page, api }) => {
  const mappings = CONFIG.mappings.map((mapping) => ({ ...mapping, keep_history: undefined }));
  await api.pipeline("versions-keep", { version: 1, mappings }, { "a.csv": "id,amount\n1,10\n" });
  await page.goto("/p/versions-keep/data/sales?tab=versions");
  const kept = page.getByLabel("Keep earlier versions for");
  await expect(kept).toHaveValue("0s");
  await kept.selectOption("30 days");
  await expect(page.getByText("Versions of sales are kept for 30 days after a run replaces them")).toBeVisible();
  const stored = await api.get<{ mappings: { keep_history: string }[] }>("/api/p/versions-keep/config");
  expect(stored.mappings[0]?.keep_history).toBe("30d");
  await kept.selectOption("7 days");
  await expect(page.getByText("The next run deletes versions that were replaced more than 7 days ago.")).toBeVisible();
  await page.getByRole("dialog").getByRole("button", { name: "Keep fewer versions" }).click();
  await expect(kept).toHaveValue("7d");
});
