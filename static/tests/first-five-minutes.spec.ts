import { instance, type Instance } from "./support/instance";
import { expect, expectAccessible, test, type Page } from "./support/test";

const SLOW = { timeout: 60_000 };
const SHOPS = ["Harbour", "Market", "Station"];

/** A year of sales: one amount of 1,100 is invalid, dates have the German format. */
function sales(): string {
  const lines = Array.from({ length: 1_100 }, (_, at) => {
    const day = new Date(Date.UTC(2024, 0, 1 + Math.floor(at / 3))).toISOString().slice(0, 10).split("-").reverse();
    const amount = at === 700 ? "open" : (10 + ((at * 37) % 500) / 10).toFixed(2);
    return `${day.join(".")},${SHOPS[at % 3] ?? ""},${amount}`;
  });
  return `day,shop,amount\n${lines.join("\n")}\n`;
}

async function logIn(page: Page, site: Instance): Promise<void> {
  await page.goto(site.url);
  await page.getByLabel("Password").fill(site.password);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { name: "Turn CSVs into tables", exact: true })).toBeVisible();
}

/** Drags a file onto the page's drop zone for CSVs, and drops it. */
async function drop(page: Page, name: string, text: string): Promise<void> {
  const transfer = await page.evaluateHandle(
    ([fileName, content]) => {
      const made = new DataTransfer();
      made.items.add(new File([content], fileName, { type: "text/csv" }));
      return made;
    },
    [name, text] as const,
  );
  const zone = page.locator(".drop-zone").filter({ hasText: "Drop CSVs here" });
  await zone.dispatchEvent("dragenter", { dataTransfer: transfer });
  await expect(page.locator(".drop-over")).toBeVisible();
  await zone.dispatchEvent("drop", { dataTransfer: transfer });
}

const panel = (page: Page, id: string) => page.locator(`[data-panel="${id}"]`);
const drawn = (page: Page, id: string) =>
  expect(panel(page, id).locator(".chart-canvas[data-drawn] canvas").first()).toBeVisible(SLOW);

test("an empty workspace, a CSV, one confirmation: a table, a chart, and a published dashboard", async ({
  page,
  watch,
}) => {
  // Without a session the first request is refused with that status.
  watch.expected.push(/401/);
  const site = await instance();
  try {
    await logIn(page, site);
    await drop(page, "shop sales.csv", sales());

    await expect(page).toHaveURL(/\/new$/);
    const confirm = page.getByRole("button", { name: "Create pipeline" });
    await expect(confirm).toBeEnabled(SLOW);
    await expect(page.getByLabel("Delimiter", { exact: true })).toHaveValue('","');
    await expect(page.getByRole("heading", { name: "3 columns", exact: true })).toBeVisible();
    await expect(page.getByLabel("Type of day")).toHaveValue('["date",["%d.%m.%Y"]]');
    await expect(page.getByLabel("Format of day")).toHaveValue("DD.MM.YYYY");
    await page.getByRole("button", { name: "Details of day" }).click();
    await expect(page.getByText(/distinct values/)).toBeVisible();
    await page.getByLabel("Type of amount").selectOption({ label: "decimal number (decimal(18,2))" });
    await expect(page.getByText("1 of 1,100 rows would be rejected")).toBeVisible();
    await expect(page.getByRole("region", { name: "Rejected rows" })).toContainText("open");
    await expect(page.getByRole("grid", { name: /first rows/ })).toContainText("Harbour");
    // So few rows are not worth partitions.
    await expect(page.getByLabel("Partitions")).toHaveText("none · 1 file");
    await page.getByLabel("Rejected rows allowed").selectOption({ label: "up to 1% of the rows" });
    await expectAccessible(page);

    await confirm.click();
    await expect(page.getByText("First run")).toBeVisible();
    await expect(page.getByText(/You can leave this page/)).toBeVisible();
    await expect(page).toHaveURL(/\/p\/shop-sales\/data\/shop_sales\?chart=1/, SLOW);
    const chart = page.getByRole("region", { name: "Chart of the table" });
    await expect(chart.getByRole("heading")).toHaveText(/^Total amount per (day|month)$/);
    await expect(chart.locator(".chart-canvas[data-drawn] canvas").first()).toBeVisible(SLOW);
    await expect(page.locator(".data-facts")).toContainText("1,099 rows");
    await expectAccessible(page);

    await page.getByRole("button", { name: "Create dashboard" }).click();
    await expect(page).toHaveURL(/\/p\/shop-sales\/dashboards\/shop-sales\/edit$/, SLOW);
    await expect(page.getByText("No problems. Ready to publish.")).toBeVisible(SLOW);
    await drawn(page, "chart");
    await page.getByRole("button", { name: "Publish" }).click();
    await page.getByRole("dialog", { name: "Publish shop_sales" }).getByRole("button", { name: "Publish" }).click();
    await expect(page).toHaveURL(/\/p\/shop-sales\/dashboards\/shop-sales$/, SLOW);
    await expect(panel(page, "rows").locator(".dash-kpi-value")).toHaveText("1,099", SLOW);
    await expect(panel(page, "total").locator(".dash-kpi-value")).toHaveText(/^\d\d,\d{3}/);
    await expect(panel(page, "average").locator(".dash-kpi-value")).toHaveText(/^\d\d/);
    await drawn(page, "chart");
    await expect(panel(page, "latest").getByText("Market").first()).toBeVisible();

    await page.getByRole("link", { name: "Overview", exact: true }).click();
    const dashboards = page.locator("section", { has: page.getByRole("heading", { name: "Dashboards", exact: true }) });
    await dashboards.getByRole("link", { name: /^shop_sales/ }).click();
    await expect(page).toHaveURL(/\/p\/shop-sales\/dashboards\/shop-sales$/);
  } finally {
    // A page that still polls would log that the service is gone.
    await page.goto("about:blank");
    await site.remove();
  }
});

test("a CSV chosen by file dialog is proposed like a dropped one", async ({ page, watch }) => {
  watch.expected.push(/401/);
  const site = await instance();
  try {
    await logIn(page, site);
    const choosing = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Choose CSVs" }).click();
    const rows = Array.from({ length: 40 }, (_, at) => `${at},${String.fromCharCode(97 + (at % 5))}`);
    await (
      await choosing
    ).setFiles({ name: "kinds.csv", mimeType: "text/csv", buffer: Buffer.from(`id,kind\n${rows.join("\n")}\n`) });
    await page.getByRole("button", { name: "Create pipeline" }).click(SLOW);
    await expect(page).toHaveURL(/\/p\/kinds\/data\/kinds\?chart=1/, SLOW);
    await page.getByRole("link", { name: "Open in Query" }).click();
    await expect(page).toHaveURL(/\/p\/kinds\/query$/);
    await expect(page.getByText(/5 rows/).first()).toBeVisible();
  } finally {
    // A page that still polls would log that the service is gone.
    await page.goto("about:blank");
    await site.remove();
  }
});
