import { expect, test } from "./support/test";

const CONFIG = {
  version: 1,
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
});
