/**
 * Load time of the UI, scrolling, sorting and jumps in a grid with two million rows, a dashboard, and the creation of one;
 * in a new browser each time.
 */
import { chromium, expect, test, type Browser, type CDPSession, type Page } from "@playwright/test";
import { get } from "node:http";
import { gunzipSync } from "node:zlib";
import config from "../playwright.config.ts";
import { instance, type Instance } from "../tests/support/instance";
import { Api } from "../tests/support/test";

const ROUNDS = Number(process.env.LAKEMILL_BENCH_ROUNDS ?? 5);
const ROWS = 2_000_000;
const SCROLL_MS = 4_000;
/** Scroll steps of a fast wheel, a free-spinning one, and a dragged scrollbar, where every frame shows other rows. */
const SCROLL_STEPS_PX = [100, 400, 4_000];
/** One and a half frames at 60 Hz. */
const LATE_MS = 25;
/** Time limit of a view. */
const SIGN_MS_MAX = 60_000;

/** The main element of each view: the view is usable once the first of these is visible. */
const VIEWS = [
  ["pipelines", "/", ".pipelines-card"],
  ["a table's rows", "/p/flights/data/airlines", ".grid-rows [role=gridcell]"],
  ["jobs", "/p/flights/jobs", ".jobs-table tbody tr"],
] as const;

declare global {
  interface Window {
    usableAt?: number;
    longTasks?: number[];
  }
}

interface Start {
  paint: number;
  usable: number;
  bytes: number;
}

const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const ms = (values: number[]): string =>
  `${median(values).toFixed(0)} (${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)})`;
const kilobytes = (bytes: number): string => (bytes / 1_000).toFixed(0);
const log = (what: string): void => void process.stderr.write(`${what}\n`);

async function loggedIn(browser: Browser, site: Instance): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: "en-US" });
  const page = await context.newPage();
  const answer = await page.request.post(`${site.url}/api/auth/login`, { data: { password: site.password } });
  expect(answer.status()).toBe(200);
  return page;
}

/** Transfer size of a script or style, compressed by gzip. */
function packed(url: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { "Accept-Encoding": "gzip" } }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => resolve(Buffer.concat(parts)));
      response.on("error", reject);
    }).on("error", reject);
  });
}

async function packedBytes(urls: string[]): Promise<number> {
  const sizes = await Promise.all(urls.map(async (url) => (await packed(url)).length));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** All scripts and styles that the page may load, by their imports. */
async function wholeBytes(site: Instance): Promise<number> {
  const seen = new Map<string, number>();
  const todo = [site.url];
  for (let url = todo.pop(); url; url = todo.pop()) {
    if (seen.has(url)) continue;
    const body = await packed(url);
    seen.set(url, url === site.url ? 0 : body.length);
    // Small files aren't compressed.
    const text = (body[0] === 0x1f && body[1] === 0x8b ? gunzipSync(body) : body).toString();
    for (const [, name] of text.matchAll(/(?:assets|\.)\/([\w.-]+\.(?:js|css))\b/g))
      todo.push(`${site.url}/assets/${name ?? ""}`);
  }
  return [...seen.values()].reduce((sum, size) => sum + size, 0);
}

/** With an empty cache: milliseconds from the start of the navigation. */
async function start(page: Page, url: string, sign: string): Promise<Start> {
  // Checked by the page itself in each frame: a driver's polling would be late.
  await page.addInitScript((selector) => {
    const look = () => {
      // The frame is drawn, and then the page is ready for input.
      if (document.querySelector(selector)?.checkVisibility()) setTimeout(() => (window.usableAt = performance.now()));
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, sign);
  await page.goto(url, { waitUntil: "commit" });
  await page.waitForFunction(() => window.usableAt !== undefined, undefined, { timeout: SIGN_MS_MAX });
  const { urls, ...found } = await page.evaluate(() => ({
    usable: window.usableAt ?? Number.NaN,
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
    urls: performance
      .getEntriesByType("resource")
      .map(({ name }) => name)
      .filter((name) => /\.(js|css)$/.test(name)),
  }));
  return { ...found, bytes: await packedBytes(urls) };
}

/** Milliseconds between frames while the grid is scrolled. */
async function scroll(page: Page, step: number): Promise<number[]> {
  const grid = page.getByRole("grid").first();
  await expect(grid.getByRole("row").nth(5)).toBeVisible();
  return grid.evaluate(
    async (node, { time, step }) => {
      const inner = [node, ...node.querySelectorAll("*"), node.parentElement].filter(
        (one) => one instanceof HTMLElement,
      );
      const scroller = inner.find((one) => one.scrollHeight > one.clientHeight * 4);
      if (!scroller) throw new Error("nothing scrolls");
      const frames: number[] = [];
      let last = performance.now();
      const end = last + time;
      while (last < end) {
        scroller.scrollTop += step;
        const now = await new Promise<number>((done) => requestAnimationFrame(done));
        frames.push(now - last);
        last = now;
      }
      return frames.slice(2);
    },
    { time: SCROLL_MS, step },
  );
}

/** A pipeline whose table has two million rows. */
async function large(api: Api): Promise<void> {
  await api.post("/api/pipelines", { slug: "large", template: "blank" });
  const columns = [
    { name: "id", type: "int64" },
    { name: "name", type: "string" },
    { name: "amount", type: "decimal(12,2)" },
  ];
  const mappings = [{ table: "numbers", files: ["*.csv"], columns }];
  await api.put("/api/p/large/config", { version: 1, title: "Large", mappings });
  const rows = Array.from({ length: ROWS }, (_, n) => `${n},name ${n % 977},${(n % 10_000) / 100}`);
  await api.upload("pipelines/large/numbers.csv", `id,name,amount\n${rows.join("\n")}\n`);
  await api.run("large");
}

async function inBrowser<T>(site: Instance, work: (page: Page) => Promise<T>): Promise<T> {
  const browser = await chromium.launch(config.use?.launchOptions ?? {});
  try {
    return await work(await loggedIn(browser, site));
  } finally {
    await browser.close();
  }
}

async function starts(site: Instance): Promise<string[]> {
  const lines: string[] = [];
  for (const [name, path, sign] of VIEWS) {
    const taken: Start[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const one = await inBrowser(site, (page) => start(page, site.url + path, sign));
      log(`${name}: painted after ${one.paint.toFixed(0)} ms, usable after ${one.usable.toFixed(0)}`);
      taken.push(one);
    }
    const of = (key: keyof Start) => taken.map((one) => one[key]);
    lines.push(`| ${name} | ${ms(of("paint"))} | ${ms(of("usable"))} | ${kilobytes(median(of("bytes")))} |`);
  }
  return lines;
}

/** CPU time of the page's thread in milliseconds, independent of the machine's load. */
async function worked(driver: CDPSession): Promise<number> {
  const { metrics } = await driver.send("Performance.getMetrics");
  return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN) * 1_000;
}

async function frames(site: Instance, step: number): Promise<string> {
  const { taken, work } = await inBrowser(site, async (page) => {
    const driver = await page.context().newCDPSession(page);
    await driver.send("Performance.enable", { timeDomain: "threadTicks" });
    await page.goto(`${site.url}/p/large/data/numbers`);
    await expect(page.getByRole("grid").first().getByRole("row").nth(5)).toBeVisible();
    const before = await worked(driver);
    const all: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) all.push(...(await scroll(page, step)));
    return { taken: all.sort((a, b) => a - b), work: (await worked(driver)) - before };
  });
  const at = (share: number) => (taken[Math.floor(taken.length * share)] ?? Number.NaN).toFixed(1);
  const late = taken.filter((frame) => frame > LATE_MS).length;
  const mean = taken.reduce((sum, frame) => sum + frame, 0) / taken.length;
  return (
    `A grid of ${ROWS} rows, scrolled by ${step} px a frame: ${taken.length} frames, ` +
    `${(1_000 / mean).toFixed(1)} a second; p50 ${at(0.5)} ms, p95 ${at(0.95)}, p99 ${at(0.99)}; ` +
    `${late} took more than ${LATE_MS} ms. The page's thread works ${(work / taken.length).toFixed(1)} ms a frame.`
  );
}

/** Milliseconds of the tasks of the page's thread that took more than 50 ms. */
const watchLongTasks = (page: Page) =>
  page.addInitScript(() => {
    const tasks: number[] = (window.longTasks = []);
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) tasks.push(duration);
    }).observe({ type: "longtask", buffered: true });
  });

const longest = async (page: Page): Promise<number> =>
  Math.max(0, ...(await page.evaluate(() => window.longTasks ?? [])));

/** Cold start of the sample's dashboard, until every panel is drawn. */
async function dashboard(site: Instance): Promise<string> {
  const whole: number[] = [];
  const data: number[] = [];
  const tasks: number[] = [];
  let panels = 0;
  let asks = 0;
  for (let round = 0; round < ROUNDS; round += 1)
    await inBrowser(site, async (page) => {
      // All panels are in sight: those that aren't would be drawn later.
      await page.setViewportSize({ width: 1_440, height: 3_000 });
      await watchLongTasks(page);
      const path = "/p/flights/dashboards/punctuality";
      const isData = (url: string) => new URL(url).pathname === `/api${path}/data`;
      asks = 0;
      page.on("request", (request) => (asks += isData(request.url()) ? 1 : 0));
      await page.goto(site.url + path, { waitUntil: "commit" });
      await page.waitForFunction(
        () => {
          const all = [...document.querySelectorAll("[data-panel]")];
          const isDrawn = (panel: Element) =>
            panel.getAttribute("aria-busy") !== "true" &&
            [...panel.querySelectorAll(".chart-canvas")].every((chart) => chart.hasAttribute("data-drawn"));
          if (all.length === 0 || !all.every(isDrawn)) return false;
          window.usableAt ??= performance.now();
          return true;
        },
        undefined,
        { timeout: SIGN_MS_MAX, polling: "raf" },
      );
      panels = await page.locator("[data-panel]").count();
      const found = await page.evaluate(() => ({
        usable: window.usableAt ?? Number.NaN,
        data: performance
          .getEntriesByType("resource")
          .filter(({ name }) => /\/dashboards\/[^/]+\/data/.test(name))
          .reduce((last, { startTime, duration }) => Math.max(last, startTime + duration), 0),
        first: performance
          .getEntriesByType("resource")
          .filter(({ name }) => /\/dashboards\/[^/]+\/data/.test(name))
          .reduce((first, { startTime }) => Math.min(first, startTime), Number.POSITIVE_INFINITY),
      }));
      whole.push(found.usable);
      data.push(found.data - found.first);
      tasks.push(await longest(page));
      log(`dashboard: drawn after ${found.usable.toFixed(0)} ms`);
    });
  return (
    `A dashboard of ${panels} panels over 336,776 rows in 365 partitions: drawn after ${ms(whole)} ms from a cold start; ` +
    `${asks} request for its data, ${ms(data)} ms; longest task of the page's thread ${ms(tasks)} ms.`
  );
}

/** Milliseconds from an action until the page shows what `isShown` looks for. */
async function until(page: Page, act: () => Promise<void>, isShown: (text: string) => boolean, text: string) {
  const start = await page.evaluate(() => performance.now());
  await act();
  await page.waitForFunction(isShown, text, { timeout: SIGN_MS_MAX, polling: "raf" });
  return (await page.evaluate(() => performance.now())) - start;
}

/** Whether the first visible row has a cell with the text. */
const inFirstRow = (text: string): boolean =>
  [...(document.querySelector(".grid-rows [data-row]")?.querySelectorAll("[role=gridcell]") ?? [])].some(
    (cell) => cell.textContent === text,
  );
const inAnyRow = (text: string): boolean =>
  [...document.querySelectorAll(".grid-rows [role=gridcell]")].some((cell) => cell.textContent === text);

/** Sorting, and a jump to the end. */
async function sorting(site: Instance): Promise<string> {
  const sorted: number[] = [];
  const jumped: number[] = [];
  const last = ROWS.toLocaleString("en-US");
  for (let round = 0; round < ROUNDS; round += 1)
    await inBrowser(site, async (page) => {
      await page.goto(`${site.url}/p/large/data/numbers`);
      await expect(page.getByRole("grid").first().getByRole("row").nth(5)).toBeVisible();
      const header = page
        .getByRole("grid")
        .first()
        .getByRole("button", { name: /^amount/ });
      // The second click sorts in descending order: 99.99 isn't among the first rows of the file.
      await header.click();
      await expect(page).toHaveURL(/sort=/);
      sorted.push(await until(page, () => header.click(), inFirstRow, "99.99"));
      await page.getByRole("gridcell").first().click();
      jumped.push(await until(page, () => page.keyboard.press("ControlOrMeta+End"), inAnyRow, "0.00"));
      log(`sorted after ${sorted.at(-1)?.toFixed(0) ?? ""} ms, jumped after ${jumped.at(-1)?.toFixed(0) ?? ""}`);
    });
  return `A table of ${last} rows: sorted by a decimal after ${ms(sorted)} ms; a jump to its last row ${ms(jumped)} ms.`;
}

/** From the click on "Create dashboard" to its first sign, and to the first panel. */
async function creation(site: Instance): Promise<string> {
  const signs: number[] = [];
  const panels: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    await inBrowser(site, async (page) => {
      await page.goto(`${site.url}/p/flights/data/flights`);
      const button = page.getByRole("button", { name: "Create dashboard" });
      await expect(button).toBeEnabled();
      const start = Date.now();
      const shown = (selector: string) =>
        page.waitForFunction((one) => document.querySelector(one)?.checkVisibility(), selector, { polling: "raf" });
      const busy = page.waitForFunction(
        () => [...document.querySelectorAll("button")].some((one) => one.textContent === "Creating dashboard…"),
        undefined,
        { polling: "raf" },
      );
      await button.click();
      await Promise.race([busy, shown("[data-panel]")]);
      signs.push(Date.now() - start);
      await shown("[data-panel]");
      panels.push(Date.now() - start);
      log(`created: first sign after ${signs.at(-1) ?? ""} ms, panels after ${panels.at(-1) ?? ""}`);
    });
  return `"Create dashboard" shows its first sign after ${ms(signs)} ms, and its panels after ${ms(panels)} ms.`;
}

test("the UI", async () => {
  const site = await instance();
  const lines = [
    "| cold start of | first contentful paint, ms | interactive, ms | script and style, kB gzip |",
    "|---|---|---|---|",
  ];
  try {
    log("loading the sample and two million rows");
    await inBrowser(site, async (page) => {
      const api = new Api(page.request, site.url);
      await api.sample();
      await large(api);
    });
    lines.push(...(await starts(site)), "");
    lines.push(`All scripts and styles together: ${kilobytes(await wholeBytes(site))} kB gzip.`);
    log("scrolling");
    for (const step of SCROLL_STEPS_PX) lines.push(await frames(site, step));
    lines.push(await sorting(site), await dashboard(site), await creation(site));
  } finally {
    await site.remove();
  }
  process.stdout.write(`\n${lines.join("\n")}\n`);
});
