import { expect, expectAccessible, test } from "./support/test";

const config = (rejects = 0) => ({
  version: 1,
  title: "Numbers",
  auto_run: false,
  mappings: [
    {
      table: "numbers",
      files: ["*.csv"],
      columns: [{ name: "n", type: "int32", nullable: false }],
      rejects: { max_rows: rejects },
    },
  ],
});

test("the summary mentions rejected rows, and links to them", async ({ page, api }) => {
  await api.pipeline("over-reject", config(5), { "a.csv": "n\n1\nx\n" });
  await page.goto("/p/over-reject");
  await expect(
    page.getByText(/^The table is up to date with 1 file; 1 row (was rejected in the last run|is rejected)\.$/),
  ).toBeVisible();
  await expect(page.getByRole("link", { name: "Show rejected rows" })).toHaveAttribute(
    "href",
    "/p/over-reject/data/numbers?tab=rejected",
  );
  await expect(page.locator(".pipeline-head").getByText("1 rejected row")).toBeVisible();
  await expectAccessible(page);
  // A run that reads none of the files again rejects nothing: its bar has the same colour wherever it is shown.
  await api.run("over-reject");
  for (const [view, within] of [
    ["/p/over-reject", ".overview-runs"],
    ["/?q=over-reject", '[data-slug="over-reject"]'],
  ] as const) {
    await page.goto(view);
    const bars = page.locator(`${within} .sparkline rect`);
    await expect(bars).toHaveCount(2);
    await expect(bars.nth(0)).toHaveClass("warn");
    await expect(bars.nth(1)).toHaveClass("ok");
  }
});

test("the changes of the last run appear without a reload", async ({ page, api }) => {
  await api.pipeline("over-change", config(), { "a.csv": "n\n1\n2\n" });
  await page.goto("/p/over-change");
  await expect(page.getByRole("row", { name: /^numbers 2/ })).toBeVisible();
  await api.upload("pipelines/over-change/b.csv", "n\n3\n4\n5\n");
  await api.run("over-change");
  await expect(page.getByRole("row", { name: /^numbers 5/ })).toBeVisible();
  await expect(page.getByText("The table is up to date with 2 files.")).toBeVisible();
  const changed = page.locator("section", { hasText: "Latest changes" });
  await expect(changed.getByText("+3")).toBeVisible();
});

test("a failed run is shown first, with a link to its fix", async ({ page, api }) => {
  await api.pipeline("over-fail", config(), { "a.csv": "n\nx\n" });
  await page.goto("/p/over-fail");
  await expect(page.getByText(/^The last run failed: table/)).toBeVisible();
  await expect(page.getByText("No tables have been built yet.")).toBeVisible();
  await page.getByRole("link", { name: "How to fix this" }).click();
  await expect(page.getByRole("region", { name: "Failure" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Download all" })).toHaveAttribute("href", /\/rejects$/);
});

test("a pipeline without files explains how to add data", async ({ page, api }) => {
  await api.post("/api/pipelines", { slug: "over-new" });
  await api.put("/api/p/over-new/config", config());
  await page.goto("/p/over-new");
  await expect(page.getByText("No runs yet: 1 table is waiting for data.")).toBeVisible();
  await expect(page.getByText("pipelines/over-new/")).toBeVisible();
  await expect(page.getByRole("button", { name: "Choose files" })).toBeVisible();
  await expectAccessible(page);
});

test("a config with problems is reported, with a link to it", async ({ page, api }) => {
  await api.post("/api/pipelines", { slug: "over-bad" });
  await api.put("/api/p/over-bad/config", { version: 1, mappings: [{ table: "A B", files: ["*.csv"], columns: [] }] });
  await page.goto("/p/over-bad");
  await expect(page.getByText(/^The config has \d+ problems?, so the next run will fail\.$/)).toBeVisible();
  await page.getByRole("link", { name: "Fix config" }).click();
  await expect(page).toHaveURL(/\/p\/over-bad\/config$/);
});

test("an unavailable overview says so, and recovers automatically or on retry", async ({ page, api, watch }) => {
  watch.expected.push(/500/);
  await api.post("/api/pipelines", { slug: "over-500" });
  const jobs = /\/api\/p\/over-500\/jobs/;
  await page.route(jobs, (route) =>
    route.fulfill({ status: 500, json: { error: "internal", message: "the service had a problem", request_id: "r" } }),
  );
  await page.goto("/p/over-500");
  await expect(page.getByText("Couldn't load the overview")).toBeVisible();
  await page.unroute(jobs);
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByText("The config defines no tables yet.")).toBeVisible();
});
