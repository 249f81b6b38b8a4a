/** Load time of the UI, and scrolling of a grid with a million rows, in a new browser each time. */
import { chromium, expect, test, type Browser, type CDPSession, type Page } from "@playwright/test";
import { get } from "node:http";
import { gunzipSync } from "node:zlib";
import config from "../playwright.config.ts";
import { instance, type Instance } from "../tests/support/instance";
import { Api } from "../tests/support/test";

const ROUNDS = Number(process.env.LAKEMILL_BENCH_ROUNDS ?? 5);
const ROWS = 1_000_000;
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

/** A pipeline whose table has a million rows. */
async function million(api: Api): Promise<void> {
  await api.post("/api/pipelines", { slug: "million", template: "blank" });
  const columns = [
    { name: "id", type: "int64" },
    { name: "name", type: "string" },
    { name: "amount", type: "decimal(12,2)" },
  ];
  const mappings = [{ table: "numbers", files: ["*.csv"], columns }];
  await api.put("/api/p/million/config", { version: 1, title: "Million", mappings });
  const rows = Array.from({ length: ROWS }, (_, n) => `${n},name ${n % 977},${(n % 10_000) / 100}`);
  await api.upload("pipelines/million/numbers.csv", `id,name,amount\n${rows.join("\n")}\n`);
  await api.run("million");
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
    await page.goto(`${site.url}/p/million/data/numbers`);
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

test("the UI", async () => {
  const site = await instance();
  const lines = [
    "| cold start of | first contentful paint, ms | interactive, ms | script and style, kB gzip |",
    "|---|---|---|---|",
  ];
  try {
    log("loading the sample and a million rows");
    await inBrowser(site, async (page) => {
      const api = new Api(page.request, site.url);
      await api.sample();
      await million(api);
    });
    lines.push(...(await starts(site)), "");
    lines.push(`All scripts and styles together: ${kilobytes(await wholeBytes(site))} kB gzip.`);
    log("scrolling");
    for (const step of SCROLL_STEPS_PX) lines.push(await frames(site, step));
  } finally {
    await site.remove();
  }
  process.stdout.write(`\n${lines.join("\n")}\n`);
});
