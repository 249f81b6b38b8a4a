import { instance } from "./support/instance";
import { expect, expectAccessible, test } from "./support/test";

test("the banner appears while the service is unavailable, and disappears afterwards", async ({ page, watch }) => {
  watch.expected.push(/Failed to load resource/);
  const own = await instance();
  try {
    await page.request.post(`${own.url}/api/auth/login`, { data: { password: own.password } });
    await page.goto(`${own.url}/settings`);
    await expect(page.getByText("store connected")).toBeVisible();
    await own.stop();
    const banner = page.getByText(/The service can't be reached/);
    await expect(banner).toBeVisible();
    await page.getByLabel("Your name").fill("typed while it was gone");
    await own.start();
    await expect(banner).toBeHidden({ timeout: 30_000 });
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByText("Saved.", { exact: true })).toBeVisible();
  } finally {
    await own.remove();
  }
});

test("a view that the updated service no longer has asks to reload the page", async ({ page, watch }) => {
  watch.expected.push(/Failed to load resource/, /dynamically imported module/);
  await page.goto("/settings");
  await expect(page.getByText("store connected")).toBeVisible();
  await page.route(/assets\/lake-[^/]*\.js/, (route) => route.fulfill({ status: 404, body: "" }));
  await page.getByRole("link", { name: "Lake", exact: true }).click();
  await expect(page.getByText("Lakemill was updated. Reload the page.")).toBeVisible();
  await expectAccessible(page);
  await page.unroute(/assets\/lake-[^/]*\.js/);
  await page.getByRole("button", { name: "Reload", exact: true }).click();
  await expect(page).toHaveTitle(/^Lake ·/);
});

test("a browser that reports no network shows and changes what the service has", async ({ page, api }) => {
  await api.post("/api/pipelines", { slug: "no-network", template: "blank" });
  await page.goto("/settings");
  await expect(page.getByText("store connected")).toBeVisible();
  await page.evaluate(() => window.dispatchEvent(new Event("offline")));
  await page.getByRole("link", { name: "no-network" }).click();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await expect(page.getByRole("cell", { name: "manual", exact: true })).toBeVisible();
});

test("an unknown URL says so, and links back", async ({ page, watch }) => {
  // The browser's own message about the page.
  watch.expected.push(/status of 404/);
  const response = await page.goto("/blah/more?x=1");
  expect(response?.status()).toBe(404);
  await expect(page.getByRole("heading", { name: "Page not found", exact: true })).toBeVisible();
  await expect(page.getByText("/blah/more", { exact: true })).toBeVisible();
  await page.getByRole("link", { name: "All pipelines" }).click();
  await expect(page).toHaveURL(/\/$/);
});

test("in a narrow window the sidebar is a sheet that keeps the focus and closes with Esc", async ({ page, api }) => {
  await api.post("/api/pipelines", { slug: "shell-sheet", template: "blank" });
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto("/settings");
  const menu = page.getByRole("button", { name: "Menu", exact: true });
  const sidebar = page.getByRole("navigation", { name: "Workspace" });
  await expect(page.getByText("store connected")).toBeVisible();
  await expect(sidebar).toBeHidden();
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(await overflow()).toBeLessThanOrEqual(0);
  await menu.click();
  await expect(sidebar.getByRole("link", { name: "Lakemill" })).toBeFocused();
  await expect(page.locator("main")).toHaveAttribute("inert");
  await expectAccessible(page);
  await page.keyboard.press("Escape");
  await expect(sidebar).toBeHidden();
  await expect(menu).toBeFocused();
  await menu.click();
  await sidebar.getByRole("link", { name: "shell-sheet" }).click();
  await expect(page).toHaveURL(/\/p\/shell-sheet$/);
  await expect(sidebar).toBeHidden();
  expect(await overflow()).toBeLessThanOrEqual(0);
});

test("navigation moves the focus to the heading and sets the page title", async ({ page, api }) => {
  await api.post("/api/pipelines", { slug: "shell-focus", template: "blank" });
  await page.goto("/p/shell-focus/query");
  await expect(page).toHaveTitle(/^Query · shell-focus · Lakemill$/);
  await expect(page.getByRole("heading", { name: "No tables yet", exact: true })).toBeVisible();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("main")).toBeFocused();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await expect(page).toHaveURL(/settings$/);
  await expect(page.getByRole("heading", { name: "Settings", exact: true })).toBeFocused();
  await expect(page).toHaveTitle(/^Settings · /);
});

test("pipelines are found by a few letters in the sidebar", async ({ page }) => {
  const pipelines = Array.from({ length: 1_000 }, (_, n) => ({
    slug: `many-${n}`,
    title: null,
    tables: 0,
    starred: false,
  }));
  await page.route(/\/api\/pipelines\?/, (route) => route.fulfill({ json: { pipelines, truncated: false } }));
  await page.goto("/settings");
  const sidebar = page.getByRole("navigation", { name: "Workspace" });
  await expect(sidebar.getByRole("link", { name: "many-7", exact: true })).toBeVisible();
  await sidebar.getByLabel("Search pipelines").fill("many-99");
  await expect(sidebar.getByRole("link", { name: /^many-/ })).toHaveCount(11);
});
