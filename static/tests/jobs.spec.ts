import { expect, expectAccessible, test, type Page } from "./support/test";

const column = (name: string, type = "int32") => ({ name, type, nullable: false });
const config = (name: string, more: object = {}) => ({
  version: 1,
  title: "Numbers",
  // Only the tests request runs.
  auto_run: false,
  mappings: [{ table: "numbers", files: ["*.csv"], columns: [column(name)], ...more }],
});

const newest = (page: Page) => page.locator("tr[data-job]").first();

test("a failed run shows cause, position and advice, and succeeds once the config is fixed", async ({ page, api }) => {
  await api.pipeline("job-mend", config("n"), { "a.csv": "m\n1\n2\n" });
  await page.goto("/p/job-mend/jobs");
  await expect(newest(page)).toContainText("does not fit table numbers");
  await newest(page).getByRole("link").click();
  const why = page.getByRole("region", { name: "Failure" });
  await expect(why).toContainText("does not fit table numbers");
  await expect(why.getByRole("link", { name: "pipelines/job-mend/a.csv" })).toHaveAttribute(
    "href",
    "/lake?prefix=pipelines%2Fjob-mend%2F&file=pipelines%2Fjob-mend%2Fa.csv",
  );
  await expect(why).toContainText("Correct the CSV's header");
  await expectAccessible(page);
  const failed = page.url();
  await api.put("/api/p/job-mend/config", config("m"));
  await why.getByRole("button", { name: "Retry" }).click();
  await expect(page.getByText(/^The run completed: 2 rows loaded in/)).toBeVisible();
  expect(page.url()).not.toBe(failed);
  await page.goBack();
  await expect(why).toBeVisible();
});

test("a failed run says in words what happened, and keeps the service's own for engineers", async ({ page, api }) => {
  const day = { name: "day", type: "date", formats: ["%m/%d/%Y"] };
  await api.pipeline("job-words", config("n", { columns: [day] }), { "a.csv": "day\n31.12.2024\n" });
  await page.goto("/p/job-words/jobs");
  await expect(page.getByRole("columnheader", { name: "Queued" })).toBeVisible();
  await newest(page).getByRole("link").click();
  const why = page.getByRole("region", { name: "Failure" });
  await expect(why.getByRole("heading", { name: "More rows than allowed don't fit the table" })).toBeVisible();
  await expect(why).toContainText("Table numbers: 1 of 1 rows in all its files rejected");
  await expect(why).toContainText("31.12.2024 isn't a date in this column's format, MM/DD/YYYY.");
  await expect(why.getByText("%m/%d/%Y")).toHaveCount(0);
  await expect(why.getByText("too_many_rejects")).toBeVisible();
  await why.getByText("Technical details").click();
  await expect(why.getByText("(wrong_type)")).toBeVisible();
  await expectAccessible(page);
});

test("beside the list, reasons of rejected rows are readable, and uploads leave no gap below", async ({
  page,
  api,
}) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  const name = "numbers_of_the_west_in_late_july.csv";
  await api.pipeline("job-reasons", config("n"), { [name]: "n\n1\ntwelve pieces\n" });
  await page.goto("/p/job-reasons/jobs");
  await newest(page).getByRole("link").click();
  const reason = page.locator(".job-rejects td.whole");
  await expect(reason).toContainText("isn't a whole number");
  expect((await reason.boundingBox())?.width).toBeGreaterThan(300);
  await expect(page.getByText(/1 of 2 rows in all its files rejected/)).toBeVisible();
  await expect(page.getByText("Rows in this run")).toBeVisible();
  await page.evaluate(() => {
    const panel = document.createElement("div");
    panel.className = "uploads";
    document.body.append(panel);
  });
  const bottom = async (of: string) => {
    const box = await page.locator(of).boundingBox();
    return (box?.y ?? 0) + (box?.height ?? 0);
  };
  expect(await bottom(".jobs-detail")).toBe(await bottom(".page"));
});

test("a run that is started beside a failed job takes its place", async ({ page, api }) => {
  await api.pipeline("job-next", config("n"), { "a.csv": "m\n1\n2\n" });
  await page.goto("/p/job-next/jobs");
  await expect(newest(page)).toContainText("does not fit table numbers");
  await newest(page).getByRole("link").click();
  await expect(page.getByRole("region", { name: "Failure" })).toBeVisible();
  await api.put("/api/p/job-next/config", config("m"));
  await page.getByRole("button", { name: "Run", exact: true }).first().click();
  await expect(page.getByText(/^The run completed: 2 rows loaded in/)).toBeVisible();
  await expect(page.getByRole("region", { name: "Failure" })).toHaveCount(0);
});

test("a config problem links to its position in the config", async ({ page, api }) => {
  await api.pipeline("job-pointer", config("n", { columns: [column("n", "int3")] }), {});
  await page.goto("/p/job-pointer/jobs");
  await newest(page).getByRole("link").click();
  const why = page.getByRole("region", { name: "Failure" });
  await expect(why.getByRole("link", { name: "config /mappings/0" })).toHaveAttribute(
    "href",
    /^\/p\/job-pointer\/config\?at=%2Fmappings%2F0/,
  );
  await expect(why).toContainText("Fix the config");
});

test("the rows of each file add up", async ({ page, api }) => {
  await api.pipeline("job-count", config("n", { where: "n < 100", rejects: { max_rows: 10 } }), {
    "a.csv": "n\n1\nx\n2\ny\n300\n",
    "b.csv": "n\n3\n",
  });
  await page.goto("/p/job-count/jobs");
  await expect(newest(page)).toContainText("completed");
  await newest(page).getByRole("link").click();
  const rows = page.getByRole("table", { name: "Rows of each file read for numbers" });
  await expect(rows.getByRole("row", { name: "a.csv 5 2 2 1" })).toBeVisible();
  await expect(rows.getByRole("row", { name: "b.csv 1 1 0 0" })).toBeVisible();
  await expect(rows.getByRole("row", { name: "All 2 files 6 3 2 1" })).toBeVisible();
  await expect(rows.getByRole("link", { name: "2", exact: true })).toHaveAttribute("href", /tab=rejected/);
  await expect(page.getByText("don't add up")).toHaveCount(0);
  await expectAccessible(page);
});

test("an active job can be cancelled", async ({ page, api }) => {
  // Half a minute of CPU time if it weren't cancelled; long rows, since a part of a file is always completed.
  const slow = `${"sha256(".repeat(190)}n::VARCHAR${")".repeat(190)}`;
  const columns = [
    { name: "n", type: "int32" },
    { name: "text", type: "string" },
    { name: "slow", type: "string", expr: slow },
  ];
  await api.post("/api/pipelines", { slug: "job-cancel", template: "blank" });
  const mappings = [{ table: "t", files: ["*.csv"], columns }];
  await api.put("/api/p/job-cancel/config", { version: 1, auto_run: false, mappings });
  const rows = Array.from({ length: 400_000 }, (_, n) => `${n},${"x".repeat(140)}`);
  await api.upload("pipelines/job-cancel/a.csv", `n,text\n${rows.join("\n")}\n`);
  const { job_id } = await api.post<{ job_id: string }>("/api/p/job-cancel/jobs");
  await page.goto(`/p/job-cancel/jobs/${job_id}`);
  await expect(page.locator("a.run-bar")).toBeVisible();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await expect(page.getByText(/^The run was cancelled after/)).toBeVisible({ timeout: 60_000 });
  await expect(page.getByRole("region", { name: "Failure" })).toContainText("The run was cancelled");
  await api.delete("/api/pipelines/job-cancel").catch(() => undefined);
});

test("a clean run shows what it will delete before it starts", async ({ page, api }) => {
  await api.pipeline("job-clean", config("n"), { "a.csv": "n\n1\n" });
  await page.goto("/p/job-clean/jobs");
  const clean = async () => {
    await page.getByRole("button", { name: "More run options" }).click();
    await page.getByRole("menuitem", { name: "Clean run…" }).click();
  };
  await clean();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("Then deletes tables that are no longer in the config");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await clean();
  await dialog.getByRole("button", { name: "Start clean run" }).click();
  await expect(newest(page)).toContainText("clean");
  await expect(newest(page)).toContainText("completed");
});

test("filters stay in the URL", async ({ page, api }) => {
  await api.pipeline("job-filter", config("n"), { "a.csv": "n\n1\n" });
  await page.goto("/p/job-filter/jobs");
  await page.getByLabel("Status").selectOption("failed");
  await expect(page.getByText("No jobs match the filters")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Status")).toHaveValue("failed");
  await page.getByLabel("Status").selectOption("completed");
  await newest(page).getByRole("link").click();
  await expect(page).toHaveURL(/\/jobs\/.+\?status=completed$/);
  await page.keyboard.press("Escape");
  await expect(page).toHaveURL(/\/jobs\?status=completed$/);
});

test("on a narrow screen a job's details cover the list", async ({ page, api }) => {
  await api.pipeline("job-narrow", config("n"), { "a.csv": "n\n1\n" });
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto("/p/job-narrow/jobs");
  await newest(page).getByRole("link").click();
  const dialog = page.getByRole("dialog", { name: "Job" });
  await expect(dialog).toContainText("The run completed: 1 row loaded in");
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
  await expectAccessible(page);
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
});

const NAMES = [
  "<script>window.hit=1<",
  "<img src=x onerror=window.hit=1>",
  "<svg onload=window.hit=1>",
  '"><b onmouseover=window.hit=1>',
  "<iframe srcdoc='<script>parent.hit=1'>",
  "javascript:window.hit=1",
  "'-window.hit-'",
  "<style>*{display:none}",
  "{{window.hit=1}}",
  "<details open ontoggle=window.hit=1>",
];

test("hostile file names and error messages are shown as text", async ({ page, api }) => {
  const files = Object.fromEntries(NAMES.map((name) => [`${name}.csv`, "n\n1\nx\n"]));
  const named = (limit: number) => config("n", { rejects: { max_rows: limit } });
  await api.pipeline("job-xss", named(100), files);
  await page.goto("/p/job-xss/jobs");
  await expect(newest(page)).toContainText("completed");
  await newest(page).getByRole("link").click();
  for (const name of NAMES) await expect(page.getByRole("link", { name: `${name}.csv`, exact: true })).toBeVisible();
  await api.put("/api/p/job-xss/config", config(NAMES[1] ?? ""));
  await api.run("job-xss");
  await expect(newest(page)).toContainText("failed");
  await newest(page).getByRole("link").click();
  await expect(page.getByRole("region", { name: "Failure" })).toContainText(NAMES[1] ?? "");
  expect(await page.evaluate(() => "hit" in window)).toBe(false);
});

test("jobs of all pipelines are listed, filtered by status, and lead to their pipeline", async ({ page, api }) => {
  const mapping = { table: "nums", files: ["*.csv"], columns: [{ name: "n", type: "int64" }] };
  const strict = { ...mapping, rejects: { max_rows: 0, max_ratio: 0 } };
  await api.pipeline("all-good", { version: 1, auto_run: false, mappings: [mapping] }, { "a.csv": "n\n1\n" });
  await api.pipeline("all-bad", { version: 1, auto_run: false, mappings: [strict] }, { "a.csv": "n\nnone\n" });

  await page.goto("/");
  await page.getByRole("link", { name: "All jobs", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Jobs of all pipelines" })).toBeVisible();
  const row = (slug: string) => page.locator("tr[data-job]").filter({ hasText: slug });
  await expect(row("all-good")).toContainText("completed");
  await expect(row("all-bad")).toContainText("failed");
  await expectAccessible(page);
  await page.getByLabel("Status").selectOption("failed");
  await expect(page).toHaveURL(/\/jobs\?status=failed$/);
  await expect(row("all-bad")).toBeVisible();
  await expect(row("all-good")).toHaveCount(0);
  await row("all-bad").getByRole("link").click();
  await expect(page).toHaveURL(/\/p\/all-bad\/jobs\/./);
  await expect(page.getByRole("region", { name: "Failure" })).toBeVisible();
});
