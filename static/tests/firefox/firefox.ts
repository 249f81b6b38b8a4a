/** Firefox as the system has it, driven over WebDriver BiDi: Playwright drives builds of its own only. */
import { test as base } from "@playwright/test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import puppeteer, { type Browser, type ElementHandle, type Page } from "puppeteer-core";
import { instance, workerFixture, type Instance } from "../support/instance";
import { spawnOwned, type Owned } from "../support/owned";
import { Api, expect } from "../support/test";

export { expect };

const FIREFOX = process.env.LAKEMILL_TEST_FIREFOX ?? "firefox-esr";
const START_MS_MAX = 60_000;
const END_MS_MAX = 10_000;
const WAIT_MS_MAX = 30_000;
const POLL_MS = 50;
const ANSWER_MS_MAX = 10_000;

/** No requests to its vendor's hosts, no first-run pages, no restore after a crash. */
const PREFERENCES = {
  "app.normandy.enabled": false,
  "app.update.disabledForTesting": true,
  "browser.aboutwelcome.enabled": false,
  "browser.shell.checkDefaultBrowser": false,
  "browser.sessionstore.resume_from_crash": false,
  "datareporting.policy.dataSubmissionEnabled": false,
  "extensions.update.enabled": false,
  "intl.accept_languages": "en-US",
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "signon.rememberSignons": false,
  "toolkit.telemetry.enabled": false,
};

interface Running {
  browser: Browser;
  close: () => Promise<void>;
}

/** The address at which it listens, which it prints. */
function listening(child: Owned): Promise<string> {
  const log: string[] = [];
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Firefox didn't start:\n${log.join("\n")}`)), START_MS_MAX);
    child.once("error", reject);
    child.once("exit", (status) => reject(new Error(`Firefox ended with ${status}:\n${log.join("\n")}`)));
    child.stdout.resume();
    createInterface({ input: child.stderr }).on("line", (line) => {
      const address = /WebDriver BiDi listening on (ws:\S+)/.exec(line)?.[1];
      if (!address) return void log.push(line);
      clearTimeout(timer);
      resolve(`${address}/session`);
    });
  });
}

async function start(): Promise<Running> {
  const profile = await mkdtemp(join(tmpdir(), "lakemill-firefox-"));
  const lines = Object.entries(PREFERENCES).map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`);
  await writeFile(join(profile, "user.js"), lines.join(""));
  const args = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"];
  const child = spawnOwned(FIREFOX, args, { env: { ...process.env, HOME: profile } });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()).once("error", () => resolve()));
  const close = async () => {
    const timer = setTimeout(() => child.kill("SIGKILL"), END_MS_MAX);
    child.kill("SIGTERM");
    await ended;
    clearTimeout(timer);
    await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
  try {
    const browser = await puppeteer.connect({
      browserWSEndpoint: await listening(child),
      protocol: "webDriverBiDi",
      protocolTimeout: WAIT_MS_MAX,
      defaultViewport: { width: 1440, height: 900 },
    });
    return { browser, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Acts on a page like a user: finds texts, presses named controls, types. Every wait has a deadline. */
export class Screen {
  constructor(
    readonly page: Page,
    private readonly url: string,
  ) {}

  async open(path: string): Promise<void> {
    await this.page.goto(this.url + path, { waitUntil: "load", timeout: WAIT_MS_MAX });
  }

  /** The first element that the function finds in the page, once there is one. */
  private async found<T extends Element>(
    find: (text: string) => T | undefined,
    text: string,
  ): Promise<ElementHandle<T>> {
    const found = await this.page.waitForFunction(find, { polling: POLL_MS, timeout: WAIT_MS_MAX }, text);
    return found as unknown as ElementHandle<T>;
  }

  /** Presses the button of that name. Puppeteer's `aria/` selectors take seconds in Firefox. */
  async press(name: string): Promise<void> {
    const button = await this.found(
      (text) =>
        [...document.querySelectorAll("button")].find(
          (one) => one.checkVisibility() && !one.disabled && (one.ariaLabel ?? one.innerText.trim()) === text,
        ),
      name,
    );
    await button.click();
  }

  /** The field with that label. */
  private field(label: string): Promise<ElementHandle<HTMLInputElement | HTMLSelectElement>> {
    return this.found(
      (text) =>
        [...document.querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")].find(
          (one) =>
            one.checkVisibility() &&
            (one.ariaLabel === text || [...(one.labels ?? [])].some((own) => own.textContent.trim() === text)),
        ),
      label,
    );
  }

  async fill(label: string, text: string): Promise<void> {
    const node = await this.field(label);
    await node.click({ count: 3 });
    await node.type(text);
  }

  async choose(label: string, option: string): Promise<void> {
    const node = await this.field(label);
    const value = await node.evaluate(
      (one, text) => [...(one as HTMLSelectElement).options].find((each) => each.text === text)?.value,
      option,
    );
    await node.select(value ?? option);
  }

  /** The visible text of the first element that matches, `undefined` without one. Fails when Firefox doesn't answer. */
  async text(selector: string): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`Firefox didn't answer within ${ANSWER_MS_MAX} ms`)), ANSWER_MS_MAX);
    });
    const answer = this.page.evaluate((css) => document.querySelector<HTMLElement>(css)?.innerText, selector);
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  }

  texts(selector: string): Promise<string[]> {
    return this.page.$$eval(selector, (nodes) => nodes.map((node) => node.textContent.trim()));
  }

  /** Waits until the element shows the text. */
  async sees(text: string | RegExp, selector = "body"): Promise<void> {
    const shown = expect.poll(() => this.text(selector), { timeout: WAIT_MS_MAX });
    await (typeof text === "string" ? shown.toContain(text) : shown.toMatch(text));
  }

  async isAt(path: RegExp): Promise<void> {
    await expect.poll(() => this.page.url(), { timeout: WAIT_MS_MAX }).toMatch(path);
  }

  /** Waits until a chart is drawn, and not blank. */
  async drawn(selector: string): Promise<void> {
    const drawnPixels = (css: string) => {
      const node = document.querySelector<HTMLCanvasElement>(`${css} .chart-canvas[data-drawn] canvas`);
      const data = node?.getContext("2d")?.getImageData(0, 0, node.width, node.height).data;
      let pixels = 0;
      for (let at = 3; at < (data?.length ?? 0); at += 4) if (data?.[at]) pixels += 1;
      return pixels;
    };
    await expect.poll(() => this.page.evaluate(drawnPixels, selector), { timeout: WAIT_MS_MAX }).toBeGreaterThan(500);
  }
}

interface Fixtures {
  /** A page with a session and a monitored console. */
  ui: Screen;
  api: Api;
}

interface WorkerFixtures {
  site: Instance;
  firefox: Browser;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  site: workerFixture(instance, 90_000),
  firefox: [
    async ({}, use) => {
      const { browser, close } = await start();
      await use(browser);
      await close();
    },
    { scope: "worker", timeout: START_MS_MAX + WAIT_MS_MAX },
  ],
  ui: async ({ firefox, site }, use, info) => {
    const context = await firefox.createBrowserContext();
    const page = await context.newPage();
    const offences: string[] = [];
    page.on("console", (message) => {
      if (message.type() === "error") offences.push(message.text());
    });
    page.on("pageerror", (error) => offences.push(`thrown: ${String(error)}`));
    const ui = new Screen(page, site.url);
    await ui.open("/");
    await ui.fill("Password", site.password);
    await ui.press("Log in");
    await page.waitForSelector(".sidebar", { visible: true, timeout: WAIT_MS_MAX });
    await use(ui);
    if (info.errors.length > 0) {
      const shown = await ui.text("body").catch(String);
      const lines = [`page: ${page.url()}`, ...offences, ...(shown ?? "").split("\n")];
      process.stdout.write(lines.map((line) => `  screen | ${line}\n`).join(""));
    }
    await context.close();
    expect(offences, "errors in the browser's console").toEqual([]);
  },
  api: async ({ request, site }, use) => {
    const answer = await request.post(`${site.url}/api/auth/login`, { data: { password: site.password } });
    expect(answer.status()).toBe(200);
    await use(new Api(request, site.url));
  },
});
