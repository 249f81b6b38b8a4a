import { expect, test } from "./support/test";

test("an empty workspace, a CSV, one confirmation: a table with a chart", async ({ page, api }) => {
  const rows = Array.from(
    { length: 400 },
    (_, at) => `2024-${String((at % 12) + 1).padStart(2, "0")}-01,shop ${at % 3},${at}`,
  );
  await page.goto("/new");
  await page.getByLabel("CSV files").setInputFiles({
    name: "visits.csv",
    mimeType: "text/csv",
    buffer: Buffer.from(`day,shop,visitors\n${rows.join("\n")}\n`),
  });
  await page.getByRole("button", { name: "Create, upload and run" }).click({ timeout: 30_000 });
  await expect(page).toHaveURL(/\/p\/visits\/data\/visits\?chart=1/, { timeout: 60_000 });
  const { tables } = await api.get<{ tables: { name: string; rows: number }[] }>("/api/p/visits/tables");
  expect(tables).toMatchObject([{ name: "visits", rows: 400 }]);
});
