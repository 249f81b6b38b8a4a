/** How fast the UI is there, and how smoothly a grid of a million rows scrolls, in a fresh browser each time. */
import { chromium, expect, test, type Browser, type Page } from "@playwright/test";
import config from "../playwright.config.ts";
import { instance, type Instance } from "../tests/support/instance";
import { Api } from "../tests/support/test";

const ROUNDS = Number(process.env.LAKEMILL_BENCH_ROUNDS ?? 5);
const ROWS = 1_000_000;
const SCROLL_MS = 4_000;
const SCROLL_STEP_PX = 4_000;

const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const ms = (values: number[]): string =>
  `${median(values).toFixed(0)} (${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)})`;

async function loggedIn(browser: Browser, site: Instance): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: "en-US" });
  const page = await context.newPage();
  const answer = await page.request.post(`${site.url}/api/auth/login`, { data: { password: site.password } });
  expect(answer.status()).toBe(200);
  return page;
}

/** With nothing in the cache: milliseconds from the start of the navigation. */
async function start(page: Page, url: string, sign: RegExp): Promise<{ paint: number; usable: number; bytes: number }> {
  await page.goto(url, { waitUntil: "commit" });
  // What a person would use is there, and a frame was drawn with it.
  await page.getByText(sign).first().waitFor();
  return page.evaluate(async () => {
    const usable = await new Promise<number>((done) =>
      requestAnimationFrame(() => setTimeout(() => done(performance.now()))),
    );
    const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN;
    const files = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
    const bytes = files
      .filter(({ name }) => /\.(js|css)$/.test(name))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
    return { paint, usable, bytes };
  });
}

/** Milliseconds between frames while the grid is scrolled through. */
async function scroll(page: Page): Promise<number[]> {
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
    { time: SCROLL_MS, step: SCROLL_STEP_PX },
  );
}

test("the UI", async () => {
  const site = await instance();
  const lines: string[] = [];
  try {
    const first = await chromium.launch(config.use?.launchOptions ?? {});
    const page = await loggedIn(first, site);
    const api = new Api(page.request, site.url);
    await api.sample();
    await api.post("/api/pipelines", { slug: "million", template: "blank" });
    const columns = [
      { name: "id", type: "int64" },
      { name: "name", type: "string" },
      { name: "amount", type: "decimal(12,2)" },
    ];
    await api.put("/api/p/million/config", {
      version: 1,
      title: "Million",
      mappings: [{ table: "numbers", files: ["*.csv"], columns }],
    });
    const rows = Array.from({ length: ROWS }, (_, n) => `${n},name ${n % 977},${(n % 10_000) / 100}`);
    await api.upload("pipelines/million/numbers.csv", `id,name,amount\n${rows.join("\n")}\n`);
    await api.run("million");
    await first.close();

    for (const [name, path, sign] of [
      ["pipelines", "/", /flights/],
      ["a table's rows", "/p/flights/data/airlines", /Endeavor|9E/],
      ["jobs", "/p/flights/jobs", /completed/],
    ] as const) {
      const taken: { paint: number; usable: number; bytes: number }[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const browser = await chromium.launch(config.use?.launchOptions ?? {});
        taken.push(await start(await loggedIn(browser, site), site.url + path, sign));
        await browser.close();
      }
      const of = (key: "paint" | "usable" | "bytes") => taken.map((one) => one[key]);
      lines.push(`| ${name} | ${ms(of("paint"))} | ${ms(of("usable"))} | ${(median(of("bytes")) / 1024).toFixed(0)} |`);
    }
    const browser = await chromium.launch(config.use?.launchOptions ?? {});
    const grid = await loggedIn(browser, site);
    await grid.goto(`${site.url}/p/million/data/numbers`);
    const frames = (await scroll(grid)).sort((a, b) => a - b);
    const at = (share: number) => (frames[Math.floor(frames.length * share)] ?? Number.NaN).toFixed(1);
    const late = frames.filter((frame) => frame > 25).length;
    await browser.close();
    lines.push(
      "",
      `A grid of ${ROWS} rows, scrolled by ${SCROLL_STEP_PX} px a frame: ${frames.length} frames, p50 ${at(0.5)} ms, p95 ${at(0.95)}, p99 ${at(0.99)}; ${late} took more than 25 ms.`,
    );
  } finally {
    await site.remove();
  }
  const head = [
    "| cold start of | first contentful paint, ms | usable, ms | script and style, KiB packed |",
    "|---|---|---|---|",
  ];
  process.stdout.write(`\n${[...head, ...lines].join("\n")}\n`);
});
