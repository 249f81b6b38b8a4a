import { expect, expectAccessible, test } from "./support/test";

const CONFIG = {
  version: 1,
  mappings: [{ table: "harbours", files: ["*.csv"], columns: [{ name: "id", type: "int32" }] }],
};

test("the keyboard alone leads from anywhere to a table, and back to recent items", async ({ page, api }) => {
  await api.pipeline("palette-go", CONFIG, { "one.csv": "id\n1\n" });
  await page.goto("/settings");
  await expect(page.getByRole("heading", { name: "Settings", exact: true })).toBeVisible();
  await page.keyboard.press("ControlOrMeta+k");
  const box = page.getByRole("combobox", { name: "Search pages and actions" });
  await expect(box).toBeFocused();
  await expectAccessible(page);
  await page.keyboard.type("palette-go harb");
  const option = page.getByRole("option", { name: /harbours/ });
  await expect(option).toHaveAttribute("aria-selected", "true");
  await expect(box).toHaveAttribute("aria-activedescendant", (await option.getAttribute("id")) ?? "");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/p\/palette-go\/data\/harbours$/);
  await expect(page.getByRole("dialog")).toBeHidden();
  await page.keyboard.press("ControlOrMeta+k");
  await expect(page.getByRole("dialog").getByRole("option").first()).toHaveText(/harbours/);
  await page.keyboard.type("no such thing");
  await expect(page.getByText("No results.")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toBeHidden();
});

test("the palette opens immediately, runs commands, and confirms a clean run", async ({ page, api }) => {
  await api.pipeline("palette-act", CONFIG, { "one.csv": "id\n1\n" });
  await page.goto("/p/palette-act/jobs");
  await expect(page.getByRole("heading", { name: "palette-act", exact: true })).toBeVisible();
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("change theme");
  await page.keyboard.press("Enter");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("clean");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Clean run of palette-act" });
  await dialog.getByRole("button", { name: "Start clean run" }).click();
  await expect(dialog).toBeHidden();
  await expect
    .poll(async () => {
      const { jobs } = await api.get<{ jobs: { clean_run: boolean }[] }>("/api/p/palette-act/jobs");
      return jobs.some(({ clean_run }) => clean_run);
    })
    .toBe(true);
});

test("the palette has the focus before the next key event", async ({ page }) => {
  await page.goto("/settings");
  await expect(page.getByRole("heading", { name: "Settings", exact: true })).toBeVisible();
  const focused = await page.evaluate(async () => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }));
    // Only work of the event itself: no frame, no timer, no other event.
    for (let turn = 0; turn < 8; turn += 1) await Promise.resolve();
    return document.activeElement?.getAttribute("aria-label");
  });
  expect(focused).toBe("Search pages and actions");
});

test("help explains the view and its keys", async ({ page, api }) => {
  await api.pipeline("palette-help", CONFIG, { "one.csv": "id\n1\n" });
  await page.goto("/p/palette-help/query");
  await expect(page.getByRole("button", { name: "Run query" })).toBeVisible();
  await page.getByRole("button", { name: "Help" }).click();
  const help = page.getByRole("dialog", { name: "Help: Query" });
  await expect(help).toContainText("A query is a single SELECT");
  await expect(help.getByRole("heading", { name: "In this view", exact: true })).toBeVisible();
  await expect(help).toContainText("Run the query or the selection");
  await expect(help).toContainText("Go to Data");
  await expect(help).toContainText("Open the command palette");
  await expectAccessible(page);
  await page.keyboard.press("Escape");
  await expect(help).toBeHidden();
});
