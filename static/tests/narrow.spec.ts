import { readFile } from "node:fs/promises";
import { config, CSV, everything, published } from "./support/sales";
import { expect, test, type Page } from "./support/test";

const WIDTH = 390;
/** Other rows than those of `CSV`, which another file would be taken for. */
const OTHER = CSV.split("\n")
  .map((line, at) => (at === 0 ? line : line.replace(/^[^,]*/, "2031-01-01")))
  .join("\n");
const SELECT_PX_MIN = 60;
/** Least height of a control that a finger hits. */
const TOUCH_PX_MIN = 40;

/** Buttons, fields and tabs that are too small for a finger. Links within text aren't controls. */
function tooSmall(page: Page): Promise<string[]> {
  return page.evaluate(
    (least) =>
      [
        ...document.querySelectorAll<HTMLElement>(
          "main .button, main select.input, main input.input, .data-filter select, .data-filter input, button.grid-title, .dash-modes button, .dash-title, .dash-handle, .tabs a, .data-tabs a, .topbar .button, .uploads .button, dialog .button",
        ),
      ]
        .filter((node) => node.checkVisibility())
        .filter((node) => {
          const { width, height } = node.getBoundingClientRect();
          const isIcon = node.matches(".icon-only") && !node.closest(".job-id");
          return !node.closest(".job-id") && (height < least || (isIcon && width < least));
        })
        .map((node) => `${node.className} ${node.getAttribute("aria-label") ?? node.textContent}`),
    TOUCH_PX_MIN,
  );
}

/** Numbers, times, selects and buttons that are cut off, or lie outside of the window where nothing scrolls sideways. */
function cutOff(page: Page): Promise<string[]> {
  return page.evaluate(
    ([width, selectMin]) => {
      const scrollsSideways = (node: Element | null): boolean => {
        if (!node) return false;
        const { overflowX } = getComputedStyle(node);
        return overflowX === "auto" || overflowX === "scroll" || scrollsSideways(node.parentElement);
      };
      return [
        ...document.querySelectorAll<HTMLElement>(
          "main .num, main time, main .dash-kpi-value, main .button, main select",
        ),
      ]
        .filter((node) => node.checkVisibility())
        .filter((node) => {
          const { left, right } = node.getBoundingClientRect();
          const cuts = [node, node.closest<HTMLElement>(".cut")].filter((one) => one !== null);
          const clipped = cuts.some(
            (one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline",
          );
          const squeezed = node.matches("select.input") && node.clientWidth < selectMin;
          const outside = right > left && (left < -1 || right > width + 1);
          return clipped || squeezed || (outside && !scrollsSideways(node.closest(".shell > main *")));
        })
        .map((node) => `${node.className}: ${node.textContent}`);
    },
    [WIDTH, SELECT_PX_MIN] as const,
  );
}

/** Tabs whose names aren't whole on the screen. */
function clippedTabs(page: Page): Promise<string[]> {
  return page.evaluate(
    (width) =>
      [...document.querySelectorAll<HTMLElement>(".tabs a, .data-tabs a")]
        .filter((node) => {
          const { left, right } = node.getBoundingClientRect();
          return left < 0 || right > width;
        })
        .map((node) => node.textContent),
    WIDTH,
  );
}

test("on a narrow screen nothing overflows, and no number is cut off", async ({ page, api }) => {
  test.slow();
  await published(api, "narrow", everything());
  await api.post("/api/pipelines", { slug: "narrow-none", template: "blank" });
  await api.pipeline("narrow-wrong", { ...config, mappings: [{ table: "sales" }] }, { "sales.csv": CSV });
  const { jobs } = await api.get<{ jobs: { job_id: string }[] }>("/api/p/narrow/jobs");
  await page.setViewportSize({ width: WIDTH, height: 844 });
  for (const path of [
    "/",
    "/new",
    "/lake?prefix=pipelines%2Fnarrow%2F",
    "/settings",
    "/p/narrow",
    "/p/narrow/data/sales",
    "/p/narrow/data/sales?tab=schema",
    "/p/narrow/data/sales?tab=sources",
    "/p/narrow/data/sales?tab=partitions",
    "/p/narrow/data/sales?tab=versions",
    "/p/narrow/query",
    "/p/narrow/dashboards",
    "/p/narrow/dashboards/all",
    "/p/narrow/dashboards/all/edit",
    "/p/narrow/jobs",
    `/p/narrow/jobs/${jobs[0]?.job_id ?? ""}`,
    "/p/narrow/config",
    "/p/narrow-none",
    "/p/narrow-none/data",
    "/p/narrow-none/jobs",
    "/p/narrow-wrong",
    "/p/narrow-wrong/jobs",
  ]) {
    await page.goto(path);
    await expect(page.locator("main h1, main h2, dialog h2").first()).toBeAttached();
    await expect(page.locator(".skeleton")).toHaveCount(0);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBe(WIDTH);
    expect(await cutOff(page), path).toEqual([]);
    expect(await tooSmall(page), path).toEqual([]);
    expect(await clippedTabs(page), path).toEqual([]);
  }
});

test("on a narrow screen tables have their counts of rows and files", async ({ page, api }) => {
  await api.pipeline("narrow-counts", config, { "sales.csv": CSV });
  await page.setViewportSize({ width: WIDTH, height: 844 });
  await page.goto("/p/narrow-counts");
  const row = page.getByRole("table", { name: "Tables" }).getByRole("row", { name: /sales/ });
  for (const cell of await row.getByRole("cell").all()) await expect(cell).toBeInViewport({ ratio: 1 });
  await expect(row.locator("td[data-label]")).toHaveText(["60", "5", /B$/, "1", "1"]);
  await page.goto("/p/narrow-counts/data/sales");
  await expect(page.getByText(/^60 rows · 5 columns · 1 CSV · 1 Parquet file · /)).toBeInViewport({ ratio: 1 });
});

test("a table's head has one row of actions, which stays where it is when the chart opens", async ({ page, api }) => {
  await api.pipeline("narrow-head", config, { "sales.csv": CSV });
  for (const width of [WIDTH, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/p/narrow-head/data/sales");
    const actions = page.locator(".data-head .button");
    await expect(actions).toHaveCount(4);
    const places = () =>
      actions.evaluateAll((nodes) =>
        nodes.map((node) => {
          const { x, y, width, height } = node.getBoundingClientRect();
          return { x, y, width, height };
        }),
      );
    const before = await places();
    expect(new Set(before.map(({ y }) => y)).size, `rows at ${width} px`).toBe(1);
    await page.getByRole("button", { name: "Chart", exact: true }).click();
    await expect(page.getByRole("region", { name: "Chart of the table" })).toBeVisible();
    expect(await places()).toEqual(before);
  }
});

const rejecting = { ...config, mappings: config.mappings.map((one) => ({ ...one, rejects: { max_ratio: 1 } })) };
const LONG = "returns-of-the-garden-furniture-supplier-2024-01.csv";
const BAD =
  "day,shop,kind,amount,pieces\n2024-13-01,North,a,1.00,1\n2024-01-02,North,a,much,2\n2024-01-03,South,b,2.00,3\n";

test("rejected rows show their cause first, are filtered by reason and column, and can be downloaded", async ({
  page,
  api,
}) => {
  await api.pipeline("narrow-rejected", rejecting, { [LONG]: BAD });
  await page.setViewportSize({ width: WIDTH, height: 844 });
  await page.goto("/p/narrow-rejected/data/sales?tab=rejected");
  const heads = page.getByRole("columnheader");
  await expect(heads.filter({ hasText: "reason" })).toBeInViewport({ ratio: 1 });
  await expect(heads.filter({ hasText: "column" })).toBeInViewport({ ratio: 1 });
  await expect(page.getByRole("gridcell", { name: "2024-13-01", exact: true })).toBeInViewport();
  const tab = page.getByRole("link", { name: "Rejected 2" });
  await expect(tab).toBeInViewport({ ratio: 1 });
  await page.getByRole("button", { name: "wrong type amount 1" }).click();
  await expect(page.getByText("1 rejected row", { exact: true })).toBeVisible();
  await expect(page.getByRole("button", { name: "wrong type day 1" })).toHaveAttribute("aria-pressed", "false");
  await expect(page).toHaveURL(/column=amount/);
  const begun = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download rejected rows of sales" }).click();
  await page.getByRole("menuitem", { name: /CSV/ }).click();
  const file = await begun;
  expect(file.suggestedFilename()).toBe("sales-rejected.csv");
  const text = await readFile(await file.path(), "utf8");
  expect(text.trim().split(/\r?\n/)).toHaveLength(2);
  expect(text).toContain("much");
  await page.goto("/p/narrow-rejected/data/sales?tab=versions");
  await expect(page.getByRole("link", { name: "Versions" })).toBeInViewport({ ratio: 0.99 });
});

test("a wizard for many columns with long names has nothing out of reach", async ({ page }) => {
  const names = Array.from({ length: 25 }, (_, at) => `a_column_of_the_supplier_with_a_long_name_${at}`);
  const rows = Array.from({ length: 120 }, (_, at) =>
    names.map((_, column) => (at === 60 && column === 3 ? "many" : String(at + column))).join(","),
  );
  await page.setViewportSize({ width: WIDTH, height: 844 });
  await page.goto("/new");
  await page.getByLabel("CSV files").setInputFiles({
    name: LONG,
    mimeType: "text/csv",
    buffer: Buffer.from([names.join(","), ...rows].join("\n")),
  });
  await expect(page.getByText("1 of 120 rows would be rejected")).toBeVisible();
  const rejected = page.getByRole("region", { name: "Rejected rows" });
  expect(await rejected.evaluate((node) => node.scrollWidth - node.clientWidth)).toBeLessThanOrEqual(0);
  await expect(rejected).toContainText("isn't a whole number");
  expect(await cutOff(page)).toEqual([]);
  expect(await tooSmall(page)).toEqual([]);
  const foot = page.locator(".new-foot");
  await page.getByLabel("URL name").scrollIntoViewIfNeeded();
  await page.mouse.wheel(0, 20_000);
  await expect
    .poll(async () => Math.round(((await foot.boundingBox())?.y ?? 0) + ((await foot.boundingBox())?.height ?? 0)))
    .toBe(844);
});

test("the toolbar of a changed config fits in one row", async ({ page, api }) => {
  await api.pipeline("narrow-config", config, { "sales.csv": CSV });
  await page.setViewportSize({ width: WIDTH, height: 844 });
  await page.goto("/p/narrow-config/config");
  await page.getByRole("textbox", { name: "Config of narrow-config" }).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(" ");
  await expect(page.getByText("unsaved", { exact: false }).first()).toBeVisible();
  const boxes = await page.locator(".config-bar .button").evaluateAll((nodes) =>
    nodes.map((node) => {
      const { y, right } = node.getBoundingClientRect();
      return { y, right };
    }),
  );
  expect(new Set(boxes.map(({ y }) => y)).size).toBe(1);
  expect(Math.max(...boxes.map(({ right }) => right))).toBeLessThanOrEqual(WIDTH);
  expect(await tooSmall(page)).toEqual([]);
});

test("the version of a table is chosen beside the other actions", async ({ page, api }) => {
  const mappings = config.mappings.map((one) => ({ ...one, keep_history: "1d" }));
  await api.pipeline("narrow-versions", { ...config, mappings }, { "sales.csv": CSV });
  await api.upload("pipelines/narrow-versions/more.csv", CSV);
  await api.run("narrow-versions");
  await page.goto("/p/narrow-versions/data/sales");
  const version = page.getByRole("combobox", { name: "Version" });
  await expect(version).toBeVisible();
  const [select, chart] = [
    await version.boundingBox(),
    await page.getByRole("button", { name: "Chart", exact: true }).boundingBox(),
  ];
  expect(select?.y).toBe(chart?.y);
});

test("uploads show whole names, and the dialog of a long name can be closed", async ({ page, api }) => {
  await api.pipeline("narrow-upload", config, { "sales.csv": CSV });
  await page.setViewportSize({ width: WIDTH, height: 844 });
  await page.goto("/p/narrow-upload/data/sales");
  await page.route(/api\/lake\?key=.*2024-01/, (route) =>
    route.fulfill({ status: 400, contentType: "application/json", body: '{"error":{"code":"bad","message":"no"}}' }),
  );
  const choose = async (names: string[]) => {
    const choosing = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Upload", exact: true }).click();
    await (await choosing).setFiles(names.map((name) => ({ name, mimeType: "text/csv", buffer: Buffer.from(OTHER) })));
  };
  await choose([LONG]);
  const dialog = page.getByRole("dialog", { name: `Add ${LONG}` });
  await expect(dialog.getByRole("button", { name: "Upload" })).toBeEnabled();
  expect(await tooSmall(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Close" }).click();
  await choose([LONG, LONG.replace("01.csv", "02.csv"), LONG.replace("01.csv", "03.csv")]);
  await page.getByRole("dialog").getByRole("button", { name: "Upload" }).click();
  const dock = page.getByRole("region", { name: "Uploads" });
  await expect(dock.getByText(/2 of 3 files uploaded.*1 failed/)).toBeVisible();
  for (const name of await dock.locator(".uploads-file .cut").all())
    expect(await name.evaluate((node) => node.scrollWidth - node.clientWidth)).toBeLessThanOrEqual(0);
  const head = dock.locator(".uploads-head");
  expect(await head.evaluate((node) => node.scrollHeight - node.clientHeight)).toBeLessThanOrEqual(0);
  expect(await tooSmall(page)).toEqual([]);
  await expect(dock.getByText(/rows? loaded into sales/)).toBeInViewport({ timeout: 60_000 });
});

test("a dashboard's title isn't cut off in the editor", async ({ page, api }) => {
  await api.pipeline("narrow-title", config, { "sales.csv": CSV });
  await api.put(
    "/api/p/narrow-title/dashboards/sums",
    "version: 2\ntitle: Revenue of the year 2026\nqueries: {}\npanels: []\n",
    "application/yaml",
  );
  await page.setViewportSize({ width: WIDTH, height: 844 });
  await page.goto("/p/narrow-title/dashboards/sums/edit");
  const title = page.locator(".dash-title");
  await expect(title).toHaveValue("Revenue of the year 2026");
  expect(await title.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
});
