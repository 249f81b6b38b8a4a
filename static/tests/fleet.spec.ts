import { test as base } from "@playwright/test";
import { fleet, type Fleet } from "./support/fleet";
import { workerFixture } from "./support/instance";
import { Api, expect, Watch } from "./support/test";

const test = base.extend<object, { site: Fleet }>({
  site: workerFixture(fleet, 120_000),
});

test("on Redis and S3 the sample is created, watched live, queried and shown as a dashboard", async ({
  page,
  site,
}) => {
  test.setTimeout(180_000);
  const watch = new Watch(page);
  await page.goto(site.url);
  await page.getByLabel("Password").fill(site.password);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("button", { name: /flights sample/i }).click();
  await expect(page).toHaveURL(/\/p\/flights/);
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  // Without a reload: the row updates live.
  await expect(page.locator(".badge", { hasText: /^completed$/ }).first()).toBeVisible({ timeout: 120_000 });

  const api = new Api(page.request, site.url);
  const { tables } = await api.get<{ tables: { name: string; rows: number }[] }>("/api/p/flights/tables");
  expect(tables.find(({ name }) => name === "flights")?.rows).toBe(336_776);

  await page.getByRole("link", { name: "Data", exact: true }).click();
  await expect(page.getByRole("link", { name: /airlines/ }).first()).toBeVisible();
  await page.getByRole("link", { name: "Dashboards", exact: true }).click();
  await page
    .getByRole("link", { name: /punctuality/i })
    .first()
    .click();
  await expect(page.getByText("Flights", { exact: true }).first()).toBeVisible();
  watch.check();
});
