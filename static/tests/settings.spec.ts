import { expect, expectAccessible, test } from "./support/test";

interface Settings {
  workspace_name: string;
  display_name: string;
  starred: string[];
}

const EMPTY: Settings = { workspace_name: "Lakemill", display_name: "", starred: [] };

test.beforeEach(async ({ api }) => api.put("/api/settings", EMPTY));

test("names are saved, shown as stored, and appear in the sidebar and the title", async ({ page, api }) => {
  await page.goto("/settings");
  await expect(page.getByText("store connected")).toBeVisible();
  await expect(page.getByText(/, DuckDB \d/)).toBeVisible();
  await expectAccessible(page);
  await page.getByRole("textbox", { name: "Workspace" }).fill("Harbour \u202e data");
  await page.getByLabel("Your name").fill("Ada");
  await page.keyboard.press("Enter");
  await expect(page.getByText("Saved. Invisible characters were removed.")).toBeVisible();
  await expect(page.getByRole("textbox", { name: "Workspace" })).toHaveValue("Harbour  data");
  await expect(page).toHaveTitle("Settings · Harbour  data");
  expect(await api.get<Settings>("/api/settings")).toMatchObject({ display_name: "Ada" });
});

test("another user's changes stay; a conflicting change is asked about", async ({ page, api, watch }) => {
  watch.expected.push(/412/);
  await api.post("/api/pipelines", { slug: "settings-star", template: "blank" });
  await page.goto("/settings");
  const name = page.getByRole("textbox", { name: "Workspace" });
  await name.fill("Mine");
  await api.put("/api/settings", { ...EMPTY, starred: ["settings-star"] });
  await page.keyboard.press("Enter");
  await expect(page.getByText("Saved.", { exact: true })).toBeVisible();
  expect(await api.get<Settings>("/api/settings")).toMatchObject({
    workspace_name: "Mine",
    starred: ["settings-star"],
  });
  await expect(page.getByRole("button", { name: "Unstar settings-star" })).toBeVisible();

  await name.fill("Mine again");
  await api.put("/api/settings", { ...EMPTY, workspace_name: "Theirs" });
  await page.keyboard.press("Enter");
  await expect(page.getByText(/Someone else changed the workspace name/)).toContainText("Theirs");
  await page.getByRole("button", { name: "Save mine" }).click();
  await expect(page.getByText("Saved.", { exact: true })).toBeVisible();
  expect(await api.get<Settings>("/api/settings")).toMatchObject({ workspace_name: "Mine again" });
});

test("the sidebar has the order of the stars", async ({ page, api }) => {
  for (const slug of ["settings-a", "settings-b"]) await api.post("/api/pipelines", { slug, template: "blank" });
  await api.put("/api/settings", { ...EMPTY, starred: ["settings-a", "settings-b"] });
  await page.goto("/settings");
  await page.getByRole("button", { name: "Move settings-b up" }).click();
  const sidebar = page.getByRole("navigation", { name: "Workspace" });
  await expect(sidebar.getByRole("link", { name: /settings-/ }).first()).toHaveText(/settings-b/);
  await expect
    .poll(async () => (await api.get<Settings>("/api/settings")).starred)
    .toEqual(["settings-b", "settings-a"]);
});

test("the theme is set before the first paint, also after a reload", async ({ page }) => {
  await page.goto("/settings");
  await page.getByLabel("Dark").check();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  // Without the app's own script, only the script before it can have set the theme.
  await page.route("**/assets/*.js", (route) => route.fulfill({ body: "", contentType: "text/javascript" }));
  await page.reload({ waitUntil: "domcontentloaded" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  expect(await page.locator("#app").textContent()).toBe("");
});

test("unsaved names ask for confirmation before leaving by link, keyboard or Back", async ({ page }) => {
  await page.goto("/lake");
  await page.getByRole("link", { name: "Settings", exact: true }).click();
  await page.getByLabel("Your name").fill("Grace");
  const dialog = page.getByRole("dialog", { name: "Leave without saving" });
  await page.getByRole("link", { name: "Lake", exact: true }).click();
  await expect(dialog).toContainText("the names in Settings");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(page).toHaveURL(/settings$/);
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("lake");
  await page.keyboard.press("Enter");
  await expect(dialog).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page).toHaveURL(/settings$/);
  // `evaluate` would wait for a page that doesn't load.
  await page.evaluate(() => setTimeout(() => history.back()));
  await expect(dialog).toBeVisible();
  await dialog.getByRole("button", { name: "Leave" }).click();
  await expect(page).toHaveURL(/lake$/);
});

test("logging out leads to the login", async ({ page, watch }) => {
  watch.expected.push(/401/);
  await page.goto("/settings");
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByLabel("Password")).toBeFocused();
});
