import { type Api, expect, expectAccessible, type Page, test } from "./support/test";

const CONFIG = {
  version: 1,
  mappings: [{ table: "trips", files: ["*.csv"], columns: [{ name: "city", type: "string" }] }],
};

async function opened(page: Page, api: Api, slug: string) {
  await api.post("/api/pipelines", { slug, template: "blank" });
  await api.upload(`pipelines/${slug}/a.csv`, "city\nOslo\n");
  await api.put(`/api/p/${slug}/config`, `${JSON.stringify(CONFIG, null, 2)}\n`);
  await page.goto(`/p/${slug}/config`);
  const editor = page.getByRole("textbox", { name: `Config of ${slug}` });
  await expect(editor).toContainText('"version"');
  await editor.focus();
  return editor;
}

test("typed text is completed by keyboard, undone and redone", async ({ page, api }) => {
  const editor = await opened(page, api, "editor-keys");
  await page.keyboard.press("ControlOrMeta+Home");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  const offer = page.getByRole("option").filter({ hasText: "title" });
  // A suggestion can be accepted a moment after it appeared; before, the key goes to the text.
  await expect(async () => {
    await page.keyboard.type('"ti');
    await expect(offer).toHaveAttribute("aria-selected", "true", { timeout: 2_000 });
    await page.keyboard.press("Enter");
    await expect(editor).toContainText('"title":', { timeout: 500 });
  }).toPass();
  await expect(async () => {
    await page.keyboard.press("ControlOrMeta+z");
    await expect(editor).not.toContainText('"title"', { timeout: 200 });
  }).toPass();
  await expect(async () => {
    await page.keyboard.press("ControlOrMeta+Shift+z");
    await expect(editor).toContainText('"ti', { timeout: 200 });
  }).toPass();
});

test("problems are marked, and reachable by keyboard", async ({ page, api }) => {
  const editor = await opened(page, api, "editor-marks");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(JSON.stringify({ ...CONFIG, mapings: [], auto_run: "yes" }, null, 2));
  await expect(page.locator(".cm-lintRange-error").first()).toBeVisible();
  await page.keyboard.press("ControlOrMeta+Home");
  await page.keyboard.press("F8");
  await expect(page.locator(".cm-activeLineGutter").last()).not.toHaveText("1");
  await expect(page.locator(".cm-tooltip-lint")).toBeVisible();
  await expect(editor).toBeFocused();
  // The same problems are listed below, with links to their places.
  const below = page.getByRole("region", { name: "Problems" }).getByRole("button").last();
  await below.focus();
  await page.keyboard.press("Enter");
  await expect(editor).toBeFocused();
  await expectAccessible(page);
});

test("Tab indents, and Escape then Tab leaves the editor", async ({ page, api }) => {
  const editor = await opened(page, api, "editor-tab");
  await page.keyboard.press("ControlOrMeta+Home");
  const before = await editor.innerText();
  await page.keyboard.press("Tab");
  await expect(editor).toBeFocused();
  expect(await editor.innerText()).not.toBe(before);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  await expect(editor).not.toBeFocused();
});

test("find and replace works by keyboard", async ({ page, api }) => {
  const editor = await opened(page, api, "editor-find");
  await page.keyboard.press("ControlOrMeta+f");
  const find = page.locator(".cm-search").getByPlaceholder("Find");
  await expect(find).toBeFocused();
  await find.pressSequentially("trips");
  await page.keyboard.press("Enter");
  await expect(page.locator(".cm-searchMatch").first()).toBeVisible();
  await page.locator(".cm-search").getByPlaceholder("Replace").pressSequentially("rides");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await expect(page.locator(".cm-search")).toBeHidden();
  await expect(editor).toContainText('"rides"');
  await expect(editor).toBeFocused();
});
