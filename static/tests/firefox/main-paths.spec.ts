import { writeFile } from "node:fs/promises";
import { CSV, config } from "../support/sales";
import { expect, test } from "./firefox";

test("a login, a CSV in the wizard, and its rows", async ({ ui }, info) => {
  await ui.sees("Turn CSVs into tables");
  const csv = info.outputPath("sales.csv");
  await writeFile(csv, CSV);
  const [chooser] = await Promise.all([ui.page.waitForFileChooser({ timeout: 30_000 }), ui.press("Choose CSVs")]);
  await chooser.accept([csv]);
  await ui.isAt(/\/new$/);
  await ui.sees("5 columns");
  await ui.press("Create pipeline");
  await ui.isAt(/\/p\/sales\/data\/sales/);
  await ui.sees("60 rows", ".data-facts");
  await ui.sees("North", ".grid-rows");
  await ui.drawn(".data-chart");
});

test("rows are sorted and filtered", async ({ ui, api }) => {
  await api.pipeline("rows", config, { "sales.csv": CSV });
  const amounts = () => ui.texts('.grid-rows [role=gridcell][aria-colindex="5"]');
  await ui.open("/p/rows/data/sales");
  await ui.sees("60 rows", ".data-facts");
  const title = ui.page.locator('[role=columnheader][data-column="3"] .grid-title');
  await title.click();
  await ui.isAt(/sort=amount/);
  await title.click();
  await ui.isAt(/sort=-amount/);
  await expect.poll(async () => (await amounts())[0]).toBe("60.50");
  await ui.fill("Filter shop", "West");
  await ui.sees("20 of 60 rows");
  await ui.choose("Operator for pieces", "between");
  await ui.fill("Filter pieces", "5 .. 6");
  await ui.page.keyboard.press("Enter");
  await ui.sees(/\b5 of 60 rows/);
  await expect.poll(async () => (await amounts()).length).toBe(5);
});

test("a query runs, and its chart goes into a dashboard that is published", async ({ ui, api }) => {
  await api.pipeline("boards", config, { "sales.csv": CSV });
  await ui.open("/p/boards/query");
  const editor = await ui.page.waitForSelector(">>> .cm-content", { visible: true, timeout: 30_000 });
  await editor?.click();
  await ui.page.keyboard.type("SELECT shop, sum(amount) AS revenue FROM sales GROUP BY 1 ORDER BY 1");
  await ui.press("Run query");
  await ui.sees("3 rows", ".query-summary");
  await ui.sees("North", ".query-result .grid-rows");
  await ui.press("Chart");
  await ui.drawn(".query-result");
  await ui.press("Add chart to dashboard");
  await ui.fill("Title of the dashboard", "Shops");
  await ui.press("Add panel");
  await ui.isAt(/\/p\/boards\/dashboards\/shops\/edit$/);
  await ui.sees("No problems. Ready to publish.");
  await ui.drawn("[data-panel]");
  await ui.press("Publish");
  await ui.page.locator("dialog .button.primary").setTimeout(30_000).click();
  await ui.isAt(/\/p\/boards\/dashboards\/shops$/);
  await ui.drawn("[data-panel]");
});

test("a job shows its progress while it runs, and can be cancelled", async ({ ui, api }) => {
  // Two minutes of CPU time if it weren't cancelled: Firefox is slow beside the processes that evaluate it.
  const slow = `${"sha256(".repeat(190)}n::VARCHAR${")".repeat(190)}`;
  const columns = [
    { name: "n", type: "int32" },
    { name: "text", type: "string" },
    { name: "slow", type: "string", expr: slow },
  ];
  await api.post("/api/pipelines", { slug: "slow", template: "blank" });
  const mappings = [{ table: "t", files: ["*.csv"], columns }];
  await api.put("/api/p/slow/config", { version: 1, auto_run: false, mappings });
  const rows = Array.from({ length: 1_600_000 }, (_, n) => `${n},${"x".repeat(32)}`);
  await api.upload("pipelines/slow/a.csv", `n,text\n${rows.join("\n")}\n`);
  const { job_id } = await api.post<{ job_id: string }>("/api/p/slow/jobs");
  await ui.open(`/p/slow/jobs/${job_id}`);
  const progress = () => ui.text("a.run-bar");
  await expect.poll(progress, { timeout: 30_000 }).toMatch(/\d[\d,.]* rows/);
  const first = await progress();
  await expect.poll(progress, { timeout: 30_000 }).not.toBe(first);
  await ui.press("Cancel");
  await ui.sees(/The run was cancelled after/);
  await api.delete("/api/pipelines/slow").catch(() => undefined);
});
