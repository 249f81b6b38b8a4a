import { expect, expectAccessible, test, type Page } from "./support/test";

const grid = (page: Page) => page.getByRole("grid");
/** A row by its number, counted from 1. */
const row = (page: Page, number: number) => page.locator(`[role=row][aria-rowindex="${number + 1}"]`);
const cell = (page: Page, number: number, column: number) =>
  row(page, number).locator(`[role=gridcell][aria-colindex="${column + 1}"]`);

/** Responses for a table too large to create: a value contains its row and column. */
async function imagined(page: Page, slug: string, rows: number, columns: number): Promise<number[]> {
  const offsets: number[] = [];
  const schema = Array.from({ length: columns }, (_, at) => ({ name: `c${at}`, type: "string", nullable: true }));
  const table = { name: "t", schema, file_count: 1, rows, bytes: 1, system: false };
  await page.route(`**/api/p/${slug}/tables`, (route) => route.fulfill({ json: { tables: [table] } }));
  await page.route(`**/api/p/${slug}/tables/t/rows?*`, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const offset = Number(query.get("offset"));
    const count = Math.min(Number(query.get("limit")), rows - offset);
    offsets.push(offset);
    const answer = Array.from({ length: count }, (_, at) =>
      Array.from({ length: columns }, (_, column) => `r${offset + at} c${column}`),
    );
    return route.fulfill({ json: { columns: schema, rows: answer, total: rows, truncated: false } });
  });
  return offsets;
}

const blank = { version: 1, mappings: [{ table: "t", files: ["*.csv"], columns: [{ name: "c0", type: "string" }] }] };

test("a million rows can be scrolled from first to last", async ({ page, api }) => {
  const lines = ["n,half,name"];
  for (let n = 0; n < 1_000_000; n += 1) lines.push(`${n},${n >> 1},x${n % 1000}`);
  const columns = [
    { name: "n", type: "int32" },
    { name: "half", type: "int32" },
    { name: "name", type: "string" },
  ];
  await api.pipeline(
    "grid-million",
    { version: 1, mappings: [{ table: "t", files: ["*.csv"], columns }] },
    { "big.csv": lines.join("\n") },
  );
  await page.goto("/p/grid-million/data/t");
  await expect(cell(page, 1, 1)).toHaveText("0");
  await expect(grid(page)).toHaveAttribute("aria-rowcount", "1000001");

  await grid(page).focus();
  await page.keyboard.press("Control+End");
  await expect(cell(page, 1_000_000, 1)).toHaveText("999,999");
  await expect(cell(page, 1_000_000, 3)).toHaveText("x999");
  await expect(cell(page, 1_000_000, 1)).toBeInViewport();

  // In the middle, by the scrollbar: each visible row shows its own number.
  await grid(page).evaluate((node) => node.scrollTo(0, node.scrollHeight / 2));
  await expect
    .poll(async () => Number((await page.locator("[role=row][data-row]").nth(20).getAttribute("data-row")) ?? 0))
    .toBeGreaterThan(400_000);
  await expect(page.locator(".grid-rows [role=row]").nth(20).getByRole("gridcell").first()).toHaveText(/^[\d,]+$/);
  await expect(page.locator(".grid-cell.waiting")).toHaveCount(0);
  const seen = await page
    .locator(".grid-rows [role=row]")
    .evaluateAll((rows) =>
      rows.map((one) => [Number((one as HTMLElement).dataset.row), one.querySelector("[role=gridcell]")?.textContent]),
    );
  expect(seen.length).toBeGreaterThan(20);
  for (const [index, text] of seen) expect(text).toBe(Number(index).toLocaleString("en-US"));
});

test("all of a hundred million rows and two thousand columns are reachable", async ({ page, api }) => {
  await api.pipeline("grid-vast", blank, {});
  const rows = 100_000_000;
  const offsets = await imagined(page, "grid-vast", rows, 2_000);
  await page.goto("/p/grid-vast/data/t");
  await expect(cell(page, 1, 1)).toHaveText("r0 c0");
  expect(await page.locator("[role=gridcell]").count()).toBeLessThan(2_000);

  await grid(page).focus();
  await page.keyboard.press("Control+End");
  await expect(cell(page, rows, 2_000)).toHaveText("r99999999 c1999");
  await expect(cell(page, rows, 2_000)).toBeInViewport();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Home");
  await expect(cell(page, rows - 1, 1)).toHaveClass(/active/);
  await expect(cell(page, rows - 1, 1)).toBeInViewport();

  // The scrollbar jumps anywhere, the wheel scrolls to the next rows.
  await grid(page).evaluate((node) => node.scrollTo(0, node.scrollHeight / 2));
  await expect(page.locator(".grid-cell.waiting")).toHaveCount(0);
  const middle = async () =>
    page.locator(".grid-rows").evaluate((node) => {
      const top = node.parentElement?.querySelector(".grid-header")?.getBoundingClientRect().bottom ?? 0;
      const rows = [...node.querySelectorAll<HTMLElement>("[role=row]")];
      return Number(rows.find((one) => one.getBoundingClientRect().bottom > top + 1)?.dataset.row);
    });
  await expect.poll(middle).toBeGreaterThan(40_000_000);
  const before = await middle();
  await grid(page).hover();
  await page.mouse.wheel(0, 280);
  await expect.poll(middle).toBe(before + 10);
  await page.mouse.wheel(0, -280);
  await expect.poll(middle).toBe(before);
  // Few pages were requested, though the whole table was scrolled.
  expect(offsets.length).toBeLessThan(20);
});

test("fast scrolling shows row numbers, and loads the rows where it stops", async ({ page, api }) => {
  await api.pipeline("grid-rush", blank, {});
  const offsets = await imagined(page, "grid-rush", 1_000_000, 8);
  await page.clock.install();
  await page.goto("/p/grid-rush/data/t");
  await expect(cell(page, 1, 1)).toHaveText("r0 c0");
  // A clock that advances by one frame: rows scroll at the same speed on every machine.
  await page.clock.pauseAt(Date.now() + 60_000);
  const before = offsets.length;
  for (let frame = 0; frame < 16; frame += 1) {
    await grid(page).evaluate(async (node) => {
      const moved = new Promise((done) => node.addEventListener("scroll", done, { once: true }));
      node.scrollTop += 4_000;
      await moved;
    });
    await page.clock.runFor(16);
  }
  const last = await grid(page).evaluate((node) => {
    const [row, ...more] = [...node.querySelectorAll(".grid-rows [role=row]")];
    const cells = [row, ...more].map((one) => one?.querySelectorAll("[role=gridcell]").length);
    return { number: row?.querySelector("[role=rowheader]")?.textContent, cells: Math.max(...cells.map(Number)) };
  });
  expect(last.cells).toBe(0);
  expect(Number(last.number?.replaceAll(",", ""))).toBeGreaterThan(2_000);
  await page.clock.resume();
  const seen = page.locator(".grid-rows [role=row]").nth(20);
  await expect(seen.getByRole("gridcell").first()).toHaveText(/^r\d+ c0$/);
  await expect(page.locator(".grid-cell.waiting")).toHaveCount(0);
  expect(offsets.length - before).toBeLessThan(4);
});

test("hovering over a cell shows its whole value", async ({ page, api }) => {
  await api.pipeline("grid-title", blank, {});
  await imagined(page, "grid-title", 50, 4);
  await page.goto("/p/grid-title/data/t");
  await cell(page, 3, 2).hover();
  await expect(cell(page, 3, 2)).toHaveAttribute("title", "r2 c1");
});

test("column widths survive a reload", async ({ page, api }) => {
  await api.pipeline("grid-width", blank, {});
  await imagined(page, "grid-width", 50, 4);
  await page.goto("/p/grid-width/data/t");
  const header = page.getByRole("columnheader", { name: /c1/ });
  const width = async () => Math.round((await header.boundingBox())?.width ?? 0);
  await expect(cell(page, 1, 1)).toBeVisible();
  const before = await width();

  const box = await header.boundingBox();
  if (!box) throw new Error("the header has no box");
  await page.mouse.move(box.x + box.width, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width + 60, box.y + 10, { steps: 4 });
  await page.mouse.up();
  await expect.poll(width).toBe(before + 60);

  await grid(page).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Control+Shift+ArrowRight");
  await expect.poll(width).toBe(before + 76);
  await page.reload();
  await expect.poll(width).toBe(before + 76);
});

test("cells and rows are copied, opened and navigated by keyboard", async ({ page, api, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await api.pipeline(
    "grid-keys",
    {
      version: 1,
      mappings: [
        {
          table: "t",
          files: ["*.csv"],
          columns: [
            { name: "big", type: "uint64" },
            { name: "text", type: "string" },
          ],
        },
      ],
    },
    { "a.csv": 'big,text\n18446744073709551615,"one\ntwo"\n7,\n' },
  );
  await page.goto("/p/grid-keys/data/t");
  await expect(cell(page, 1, 1)).toHaveText("18,446,744,073,709,551,615");
  await expect(cell(page, 2, 2)).toHaveText("null");
  await expectAccessible(page);

  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await grid(page).focus();
  await expect(grid(page)).toHaveAttribute("aria-activedescendant", /-0-0$/);
  await page.keyboard.press("Control+c");
  await expect.poll(copied).toBe("18446744073709551615");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Control+c");
  await expect.poll(copied).toBe("one\ntwo");
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: /Copy row as JSON/ }).click();
  await expect.poll(copied).toContain('"text": "one\\ntwo"');

  await expect(grid(page)).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog", { name: "Row 2" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(grid(page)).toBeFocused();

  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("columnheader", { name: /text/ })).toHaveAttribute("aria-sort", "ascending");
});

test("rows that couldn't be read are marked, and can be retried", async ({ page, api, watch }) => {
  watch.expected.push(/400/);
  await api.pipeline("grid-failing", blank, {});
  await imagined(page, "grid-failing", 10_000, 3);
  let failing = true;
  await page.route(/tables\/t\/rows\?.*offset=9[0-9]{3}/, (route) =>
    failing
      ? route.fulfill({ status: 400, json: { error: "invalid_request", message: "not this time" } })
      : route.fallback(),
  );
  await page.goto("/p/grid-failing/data/t");
  await expect(cell(page, 1, 1)).toHaveText("r0 c0");
  await grid(page).focus();
  await page.keyboard.press("Control+End");
  await expect(page.getByRole("alert")).toContainText("not this time");
  failing = false;
  await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
  await expect(cell(page, 10_000, 3)).toHaveText("r9999 c2");
  await expect(page.getByRole("alert")).toHaveCount(0);
});
