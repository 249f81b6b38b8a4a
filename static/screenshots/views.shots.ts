/** Every view, wide and narrow, light and dark, with realistic data. */
import { chromium, expect, test, type Browser, type Cookie, type Page } from "@playwright/test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import config from "../playwright.config.ts";
import { instance } from "../tests/support/instance";
import { Api } from "../tests/support/test";
import { furnish, type Furnished } from "./workspace";

const OUT = process.env.LAKEMILL_SCREENSHOTS ?? "screenshots/out";
const SIZES = [
  { name: "1440", width: 1440, height: 900 },
  { name: "390", width: 390, height: 844 },
] as const;
const THEMES = ["light", "dark"] as const;
const WAIT_MS_MAX = 30_000;
const IDLE_MS_MAX = 10_000;
const only = process.env.LAKEMILL_SCREENSHOTS_ONLY;

/** A view: its route, and the steps before the screenshot. */
interface Shot {
  name: string;
  path: (made: Furnished) => string;
  prepare?: (page: Page) => Promise<void>;
}

const press = (keys: string) => async (page: Page) => {
  await page.locator("main").focus();
  for (const key of keys.split(" ")) await page.keyboard.press(key);
};

const click = (name: RegExp) => (page: Page) => page.getByRole("button", { name }).first().click({ timeout: 5_000 });

/** There is one on narrow screens only. */
async function openSidebar(page: Page): Promise<void> {
  const menu = page.getByRole("button", { name: "Menu", exact: true });
  if (await menu.isVisible()) await menu.click();
}

async function goOffline(page: Page): Promise<void> {
  await page.context().setOffline(true);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.locator(".toast")).toBeVisible();
}

async function failRequests(page: Page): Promise<void> {
  await page.route("**/api/**", (route) =>
    route.fulfill({ status: 503, json: { error: "unavailable", message: "the store doesn't answer" } }),
  );
  await page.reload();
  await expect(page.getByRole("alert").first()).toBeVisible();
}

async function upload(page: Page): Promise<void> {
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Upload", exact: true }).click();
  const buffer = Buffer.from("id,kind\n1,a\n2,b\n");
  await (await choosing).setFiles({ name: "kinds.csv", mimeType: "text/csv", buffer });
  await expect(page.getByText("kinds.csv").first()).toBeVisible();
}

const SHOTS: Shot[] = [
  { name: "pipelines", path: () => "/" },
  { name: "new-pipeline", path: () => "/", prepare: click(/^new pipeline/i) },
  { name: "from-csv", path: ({ looseKey }) => `/new?key=${encodeURIComponent(looseKey)}` },
  { name: "overview", path: () => "/p/flights" },
  { name: "overview-rejects", path: () => "/p/orders" },
  { name: "overview-empty", path: () => "/p/blank" },
  { name: "data", path: () => "/p/flights/data/flights" },
  { name: "data-schema", path: () => "/p/flights/data/weather?tab=schema" },
  { name: "data-partitions", path: () => "/p/flights/data/flights?tab=partitions" },
  { name: "data-rejected", path: () => "/p/orders/data/orders?tab=rejected" },
  {
    name: "query",
    path: () =>
      `/p/flights/query?sql=${encodeURIComponent("SELECT carrier, count(*) AS flights, avg(arr_delay) AS delay\nFROM flights\nGROUP BY carrier\nORDER BY flights DESC")}`,
    prepare: click(/^run query/i),
  },
  { name: "dashboards", path: () => "/p/flights/dashboards" },
  { name: "dashboard", path: () => "/p/flights/dashboards/punctuality" },
  { name: "dashboard-editor", path: () => "/p/flights/dashboards/punctuality/edit" },
  { name: "jobs", path: () => "/p/orders/jobs" },
  { name: "job-completed", path: ({ flightsJob }) => `/p/flights/jobs/${flightsJob}` },
  { name: "job-failed", path: ({ failedJob }) => `/p/broken/jobs/${failedJob}` },
  { name: "config", path: () => "/p/flights/config" },
  { name: "config-problems", path: () => "/p/broken/config" },
  { name: "lake", path: () => "/lake?prefix=pipelines%2Forders%2F2024%2F" },
  {
    name: "lake-file",
    path: ({ ordersFile }) => `/lake?prefix=pipelines%2Forders%2F2024%2F&file=${encodeURIComponent(ordersFile)}`,
  },
  { name: "settings", path: () => "/settings" },
  { name: "palette", path: () => "/p/flights", prepare: press("Control+k") },
  { name: "help", path: () => "/p/flights/data/flights", prepare: press("?") },
  { name: "nowhere", path: () => "/p/flights/nothing" },
  { name: "missing-pipeline", path: () => "/p/nothing" },
  { name: "pipelines-none-found", path: () => "/?q=nothing" },
  { name: "pipeline-menu", path: () => "/", prepare: click(/^actions for flights/i) },
  { name: "from-csv-start", path: () => "/new" },
  { name: "data-empty", path: () => "/p/blank/data" },
  { name: "data-sources", path: () => "/p/orders/data/orders?tab=sources" },
  { name: "data-versions", path: () => "/p/orders/data/orders?tab=versions" },
  { name: "data-chart", path: () => "/p/flights/data/flights?chart=1" },
  { name: "data-row", path: () => "/p/orders/data/orders?row=2" },
  { name: "data-none-found", path: () => "/p/orders/data/orders?filter=city:contains:Nowhere" },
  { name: "data-missing", path: () => "/p/orders/data/nothing" },
  { name: "query-empty", path: () => "/p/orders/query" },
  {
    name: "query-error",
    path: () => `/p/orders/query?sql=${encodeURIComponent("SELECT city,\n  amuont\nFROM orders")}`,
    prepare: click(/^run query/i),
  },
  {
    name: "query-chart",
    path: () => `/p/orders/query?sql=${encodeURIComponent("SELECT city, amount FROM orders")}`,
    prepare: async (page) => {
      await click(/^run query/i)(page);
      await settled(page);
      await click(/^chart$/i)(page);
    },
  },
  { name: "dashboards-empty", path: () => "/p/orders/dashboards" },
  { name: "dashboards-blank", path: () => "/p/blank/dashboards" },
  { name: "dashboard-new", path: () => "/p/orders/dashboards", prepare: click(/^new dashboard/i) },
  { name: "dashboard-missing", path: () => "/p/flights/dashboards/nothing" },
  {
    name: "dashboard-panel",
    path: () => "/p/flights/dashboards/punctuality/edit",
    prepare: click(/^edit /i),
  },
  { name: "dashboard-add-chart", path: () => "/p/flights/dashboards/punctuality/edit", prepare: click(/^add chart/i) },
  { name: "jobs-empty", path: () => "/p/blank/jobs" },
  { name: "jobs-none-found", path: () => "/p/orders/jobs?status=failed" },
  { name: "jobs-failed", path: () => "/p/broken/jobs" },
  { name: "job-missing", path: () => "/p/orders/jobs/0190a0b0-0000-7000-8000-000000000000" },
  { name: "config-blank", path: () => "/p/blank/config" },
  { name: "lake-root", path: () => "/lake" },
  { name: "lake-empty", path: () => "/lake?prefix=pipelines%2Fblank%2F" },
  { name: "sidebar", path: () => "/p/flights", prepare: openSidebar },
  { name: "offline", path: () => "/p/orders/jobs", prepare: goOffline },
  { name: "failed", path: () => "/p/orders", prepare: failRequests },
  { name: "upload", path: () => "/p/blank", prepare: upload },
];

/** Waits until the page is idle: no requests, no loading states in sight. */
async function settled(page: Page): Promise<void> {
  await expect(page.locator(".skeleton")).toHaveCount(0, { timeout: 30_000 });
  const isReady = () =>
    [...document.querySelectorAll('[aria-busy="true"]')].every((one) => one.getBoundingClientRect().top >= innerHeight);
  await page.waitForFunction(isReady, undefined, { timeout: 30_000 });
  await page.waitForLoadState("networkidle", { timeout: IDLE_MS_MAX }).catch(() => undefined);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

async function take(browser: Browser, url: string, cookies: Cookie[], made: Furnished): Promise<string[]> {
  const failed: string[] = [];
  for (const { name: size, width, height } of SIZES) {
    for (const theme of THEMES) {
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme: theme,
        locale: "en-US",
        timezoneId: "Europe/Berlin",
      });
      await context.addCookies(cookies);
      const page = await context.newPage();
      page.setDefaultTimeout(WAIT_MS_MAX);
      for (const shot of SHOTS) {
        if (only && !shot.name.includes(only)) continue;
        try {
          await page.goto(url + shot.path(made));
          await settled(page);
          await shot.prepare?.(page);
          await settled(page);
        } catch (error) {
          failed.push(
            `${shot.name} ${size} ${theme}: ${error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error)}`,
          );
        }
        await page.screenshot({ path: join(OUT, `${shot.name}-${size}-${theme}.png`) });
        await page.unrouteAll({ behavior: "ignoreErrors" });
        await context.setOffline(false);
      }
      if (!only || only === "login") {
        await context.clearCookies();
        await page.goto(url);
        await settled(page);
        await page.screenshot({ path: join(OUT, `login-${size}-${theme}.png`) });
      }
      await context.close();
    }
  }
  return failed;
}

async function takeEmpty(browser: Browser): Promise<void> {
  const site = await instance();
  try {
    for (const { name: size, width, height } of SIZES) {
      for (const theme of THEMES) {
        const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, locale: "en-US" });
        const page = await context.newPage();
        await page.request.post(`${site.url}/api/auth/login`, { data: { password: site.password } });
        await page.goto(site.url);
        await settled(page);
        await page.screenshot({ path: join(OUT, `empty-${size}-${theme}.png`) });
        await context.close();
      }
    }
  } finally {
    await site.remove();
  }
}

test("pictures of every view", async () => {
  mkdirSync(OUT, { recursive: true });
  const browser = await chromium.launch(config.use?.launchOptions ?? {});
  const site = await instance();
  try {
    const context = await browser.newContext();
    await context.request.post(`${site.url}/api/auth/login`, { data: { password: site.password } });
    const made = await furnish(new Api(context.request, site.url));
    const failed = await take(browser, site.url, await context.cookies(), made);
    if (!only || only === "empty") await takeEmpty(browser);
    expect(failed, "what couldn't be prepared").toEqual([]);
  } finally {
    await browser.close();
    await site.remove();
  }
});
