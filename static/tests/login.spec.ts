import { expect, expectAccessible, test } from "./support/test";

test.describe("logging in", () => {
  test.use({ storageState: undefined });

  test("an anonymous visitor sees the login at any URL, and continues there afterwards", async ({
    page,
    site,
    watch,
  }) => {
    watch.expected.push(/401/);
    await page.context().clearCookies();
    await page.goto("/settings");
    await expect(page.getByRole("heading", { name: "Lakemill", exact: true })).toBeVisible();
    await expectAccessible(page);
    await page.getByLabel("Password").fill("wrong");
    await page.getByRole("button", { name: "Log in" }).click();
    await expect(page.getByText("Incorrect password.")).toBeVisible();
    await page.getByLabel("Password").fill(site.password);
    await page.keyboard.press("Enter");
    await expect(page.getByRole("heading", { name: "Settings", exact: true })).toBeVisible();
    await expect(page).toHaveURL(/\/settings$/);
  });

  test("a first visit logs nothing to the console", async ({ page }) => {
    await page.context().clearCookies();
    await page.goto("/");
    await expect(page.getByLabel("Password")).toBeVisible();
  });
});
