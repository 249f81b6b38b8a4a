import AxeBuilder from "@axe-core/playwright";
import { test as base, expect, type APIRequestContext, type Page, type Request } from "@playwright/test";
import { readFile } from "node:fs/promises";
import { instance, workerFixture, type Instance } from "./instance";

export { expect, type Page };

/** Bounds of what is printed of a failed test's page. */
const SCREEN_LINES_MAX = 60;
const SCREEN_MS_MAX = 5_000;

/** Events that fail a test: logged errors, exceptions, violations of the content security policy. */
export class Watch {
  readonly offences: string[] = [];
  /** Messages that a test provokes, e.g. the browser's own about a 422 response. */
  readonly expected: RegExp[] = [];
  private readonly pending = new Map<Request, number>();

  constructor(private readonly page: Page) {
    page.on("request", (request) => this.pending.set(request, Date.now()));
    page.on("requestfinished", (request) => this.pending.delete(request));
    page.on("requestfailed", (request) => this.pending.delete(request));
    page.on("console", (message) => {
      if (message.type() === "error") this.offences.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.offences.push(`thrown: ${error.message}\n${error.stack ?? ""}`));
  }

  check(): void {
    const left = this.offences.filter((one) => !this.expected.some((expected) => expected.test(one)));
    expect(left, "errors in the browser's console").toEqual([]);
  }

  /** What the page shows and waits for, for the report of a failed test. */
  async describe(): Promise<string> {
    const { page, pending, offences } = this;
    const waiting = [...pending].map(([request, since]) => {
      return `waiting for ${((Date.now() - since) / 1_000).toFixed(1)} s: ${request.method()} ${request.url()}`;
    });
    const screen = await page.locator("body").ariaSnapshot({ timeout: SCREEN_MS_MAX }).catch(String);
    const lines = screen.split("\n").slice(0, SCREEN_LINES_MAX);
    return [`page: ${page.url()}`, ...waiting, ...offences, ...lines].map((line) => `  screen | ${line}`).join("\n");
  }
}

/** The service's API with a session, for the setup of tests. */
export class Api {
  constructor(
    private readonly request: APIRequestContext,
    private readonly url: string,
  ) {}

  private async checked(method: string, path: string, options: Record<string, unknown> = {}) {
    const response = await this.request.fetch(this.url + path, { method, ...options });
    if (!response.ok()) throw new Error(`${method} ${path}: ${response.status()} ${await response.text()}`);
    return response;
  }

  async get<T>(path: string): Promise<T> {
    return (await (await this.checked("GET", path)).json()) as T;
  }

  async text(path: string): Promise<string> {
    return (await this.checked("GET", path)).text();
  }

  async post<T>(path: string, data: unknown = undefined): Promise<T> {
    return (await (await this.checked("POST", path, data === undefined ? {} : { data })).json()) as T;
  }

  async put(path: string, data: string | Buffer | object, type = "application/json"): Promise<void> {
    await this.checked("PUT", path, { data, headers: { "Content-Type": type } });
  }

  async delete(path: string): Promise<void> {
    await this.checked("DELETE", path);
  }

  async upload(key: string, text: string | Buffer): Promise<void> {
    await this.put(`/api/lake?key=${encodeURIComponent(key)}`, Buffer.from(text), "application/octet-stream");
  }

  /** A pipeline with this config and these files (keys within the pipeline), after its run. */
  async pipeline(slug: string, config: object, files: Record<string, string>): Promise<void> {
    await this.post("/api/pipelines", { slug, template: "blank" });
    await this.put(`/api/p/${slug}/config`, config);
    for (const [key, text] of Object.entries(files)) await this.upload(`pipelines/${slug}/${key}`, text);
    await this.run(slug);
  }

  /** Enqueues a run and waits for its end. */
  async run(slug: string): Promise<void> {
    const { job_id } = await this.post<{ job_id: string }>(`/api/p/${slug}/jobs`);
    await this.ended(slug, job_id);
  }

  async ended(slug: string, id: string): Promise<void> {
    await expect
      .poll(async () => (await this.get<{ status: string }>(`/api/p/${slug}/jobs/${id}`)).status, { timeout: 60_000 })
      .toMatch(/completed|failed/);
  }

  /** The loaded sample pipeline; created if it doesn't exist. */
  async sample(): Promise<void> {
    const slugs = await this.get<string[]>("/api/pipelines");
    if (!slugs.includes("flights")) await this.post("/api/pipelines", { slug: "flights", template: "flights" });
    const done = async () => {
      const { jobs } = await this.get<{ jobs: { status: string }[] }>("/api/p/flights/jobs");
      return jobs.some((job) => job.status === "completed");
    };
    if (!(await done())) await this.run("flights");
    expect(await done()).toBe(true);
  }
}

interface Fixtures {
  /** A page with a session. */
  page: Page;
  /** Fails a test that uses it on errors in the console. */
  watch: Watch;
  /** Prints the screen of every test that fails. */
  report: undefined;
  api: Api;
}

interface WorkerFixtures {
  site: Instance;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  site: workerFixture(instance, 90_000),
  baseURL: async ({ site }, use) => use(site.url),
  watch: async ({ page }, use) => {
    const watch = new Watch(page);
    await use(watch);
    watch.check();
  },
  report: [
    async ({ page }, use, info) => {
      const watch = new Watch(page);
      await use(undefined);
      if (info.status !== info.expectedStatus) process.stdout.write(`${await watch.describe()}\n`);
    },
    { auto: true },
  ],
  api: async ({ page, site }, use) => use(new Api(page.request, site.url)),
  page: async ({ page, site }, use) => {
    // With the page's own cookies, like a browser with a session.
    const answer = await page.request.post(`${site.url}/api/auth/login`, { data: { password: site.password } });
    expect(answer.status()).toBe(200);
    await use(page);
  },
});

/** Fails on axe violations of severity serious or critical, in light and in dark mode. */
export async function expectAccessible(page: Page): Promise<void> {
  // Colours during the transition between themes are ignored.
  await page.emulateMedia({ reducedMotion: "reduce" });
  for (const theme of ["light", "dark"] as const) {
    await page.evaluate((chosen) => (document.documentElement.dataset.theme = chosen), theme);
    const { violations } = await new AxeBuilder({ page }).analyze();
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    const told = serious.map(
      ({ id, nodes }) =>
        `${theme}: ${id}: ${nodes.map(({ target, failureSummary }) => `${target.join(" ")} ${failureSummary}`).join("; ")}`,
    );
    expect(told, "findings of axe").toEqual([]);
  }
  await page.evaluate(() => delete document.documentElement.dataset.theme);
  await page.emulateMedia({ reducedMotion: null });
}

/** A file of the repository's `testdata/`. */
export const testdata = (path: string): Promise<Buffer> =>
  readFile(new URL(`../../../testdata/${path}`, import.meta.url));
