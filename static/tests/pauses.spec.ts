import { expect, expectAccessible, test } from "./support/test";

const config = {
  version: 1,
  auto_run: false,
  mappings: [{ table: "numbers", files: ["*.csv"], columns: [{ name: "n", type: "int32" }] }],
};

// A failed test leaves no pause to the next ones of its instance.
test.afterEach(async ({ api }) => {
  await api.delete("/api/pause");
});

test("runs of a pipeline are paused with a reason, wait, and go on when resumed", async ({ page, api }) => {
  await api.pipeline("held", config, { "a.csv": "n\n1\n2\n" });
  await page.goto("/p/held/jobs");
  await page.getByRole("button", { name: "More run options" }).click();
  await page.getByRole("menuitem", { name: /^Pause runs/ }).click();
  const dialog = page.getByRole("dialog", { name: "Pause runs of held" });
  await dialog.getByLabel("Reason").fill("The source is being reloaded");
  await dialog.getByRole("button", { name: "Pause" }).click();
  await expect(dialog).toBeHidden();
  await expect(page.getByText(/^Runs were paused .*: The source is being reloaded$/)).toBeVisible();
  await expectAccessible(page);

  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.locator("a.run-bar")).toContainText("Waiting: runs are paused");
  await page.goto("/?q=held");
  await expect(page.locator('[data-slug="held"]').getByText("paused", { exact: true })).toBeVisible();
  await page.goto("/settings");
  const paused = page.getByRole("list", { name: "Paused pipelines" });
  await expect(paused.getByRole("link", { name: "held", exact: true })).toBeVisible();
  await expectAccessible(page);
  await page.goto("/p/held/jobs");
  await page.getByRole("button", { name: "Resume runs" }).click();
  await expect(page.getByText(/^Runs were paused/)).toBeHidden();
  await expect(page.locator("tr[data-job]").first()).toContainText("completed");
});

test("all pipelines are paused in the settings, and resumed on the home page", async ({ page, api }) => {
  await api.pipeline("held-by-all", config, { "a.csv": "n\n1\n" });
  await page.goto("/settings");
  await page.getByRole("button", { name: "Pause all…" }).click();
  await page.getByRole("dialog", { name: "Pause all pipelines" }).getByRole("button", { name: "Pause" }).click();
  const notice = page.getByText(/^All pipelines were paused/);
  await expect(notice).toBeVisible();
  await expectAccessible(page);
  await page.goto("/p/held-by-all");
  await expect(notice).toBeVisible();
  await page.goto("/");
  await page.getByRole("button", { name: "Resume all" }).click();
  await expect(notice).toBeHidden();
  expect(await api.get("/api/pauses")).toEqual({ all: null, pipelines: [] });
});

test("while runs are paused, neither the header nor uploads say otherwise", async ({ page, api }) => {
  await api.pipeline("held-uploads", { ...config, auto_run: true }, { "a.csv": "n\n1\n2\n" });
  await api.put("/api/p/held-uploads/pause", { reason: "" });
  await page.goto("/p/held-uploads");
  const header = page.locator(".pipeline-head");
  await expect(header.getByText("paused", { exact: true })).toBeVisible();
  await expect(header.getByText(/healthy|up to date/)).toHaveCount(0);
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Upload", exact: true }).click();
  await (await chooser).setFiles([{ name: "b.csv", mimeType: "text/csv", buffer: Buffer.from("n\n3\n") }]);
  const dialog = page.getByRole("dialog", { name: "Add b.csv" });
  await expect(dialog.getByText("Runs are paused: the files are loaded after you resume them.")).toBeVisible();
  await expect(dialog.getByText(/A run starts/)).toHaveCount(0);
  await dialog.getByRole("button", { name: "Upload" }).click();
  const uploads = page.getByRole("region", { name: "Uploads" });
  await expect(uploads).toContainText("Runs are paused: numbers will be loaded after you resume them.");
});
