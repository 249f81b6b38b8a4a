import { PAYLOADS } from "./support/payloads";
import { expect, test, type Api, type Page } from "./support/test";

const SLUG = "attacked";
const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
const yaml = (text: string): string => JSON.stringify(text);
const all = PAYLOADS.join(" ");

const mapping = {
  table: "cells",
  files: ["in/*.csv"],
  columns: [
    { name: "n", type: "int64" },
    { name: "text", type: "string" },
  ],
  rejects: { max_rows: 1_000 },
};
const config = { version: 1, title: all.slice(0, 200), mappings: [mapping] };

/** The hostile texts in every place that users can write. */
async function furnish(api: Api): Promise<{ job: string }> {
  const good = PAYLOADS.map((text, n) => `${n},${quoted(text)}`);
  const bad = PAYLOADS.map((text) => `${quoted(text)},x`);
  await api.pipeline(SLUG, config, {
    "in/cells.csv": `n,text\n${[...good, ...bad].join("\n")}\n`,
    "other/headers.csv": `${PAYLOADS.map(quoted).join(",")}\n${PAYLOADS.map(quoted).join(",")}\n`,
  });
  for (const [n, text] of PAYLOADS.entries()) {
    // Some names are not valid keys and are rejected.
    await api.upload(`pipelines/${SLUG}/names/${n} ${text}.csv`, "a\n1\n").catch(() => undefined);
    await api
      .post(`/api/p/${SLUG}/queries`, { name: `${n} ${text}`.slice(0, 60), sql: `-- ${text}\nSELECT 1` })
      .catch(() => undefined);
  }
  await api.put("/api/settings", {
    display_name: PAYLOADS[12] ?? "",
    workspace_name: PAYLOADS[0] ?? "",
    starred: [SLUG],
  });
  await api.post(`/api/p/${SLUG}/dashboards`, { name: "texts" });
  const panels = PAYLOADS.flatMap((text, n) => [
    `  - { id: m${n}, type: markdown, width: 6, title: ${yaml(text)}, text: ${yaml(`${text}\n\n**${text}**`)} }`,
  ]);
  const charts = ["bar", "line", "pie", "scatter"].map(
    (type) =>
      `  - { id: ${type}, type: ${type}, title: ${yaml(all.slice(0, 200))}, query: cells, x: text, y: ${type === "pie" || type === "scatter" ? "n" : "[n]"}, width: 12 }`,
  );
  const text = [
    "version: 2",
    `title: ${yaml(all.slice(0, 200))}`,
    `description: ${yaml(all)}`,
    "queries:",
    '  cells: { sql: "SELECT text, n FROM cells" }',
    "panels:",
    ...panels,
    ...charts,
    "  - { id: table, type: table, query: cells, width: 12 }",
  ].join("\n");
  await api.put(`/api/p/${SLUG}/dashboards/texts?draft=1`, text, "application/yaml");
  await api.post(`/api/p/${SLUG}/dashboards/texts/publish`);
  // A run whose error quotes it.
  await api.put(`/api/p/${SLUG}/config`, {
    ...config,
    mappings: [{ ...mapping, columns: [{ name: "n", type: all.slice(0, 400) }] }],
  });
  const { job_id } = await api.post<{ job_id: string }>(`/api/p/${SLUG}/jobs`);
  await api.ended(SLUG, job_id);
  return { job: job_id };
}

/** Opens every view and element, like a user. */
async function look(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await expect(page.locator("main")).toBeVisible();
  await expect(page.locator(".skeleton")).toHaveCount(0);
  await page.evaluate(async () => {
    for (const node of document.querySelectorAll<HTMLElement>("main, main *")) {
      if (node.scrollHeight <= node.clientHeight + 1 || getComputedStyle(node).overflowY === "visible") continue;
      for (let top = 0; top < Math.min(node.scrollHeight, 20_000); top += node.clientHeight) {
        node.scrollTop = top;
        await new Promise((done) => requestAnimationFrame(done));
      }
    }
  });
}

// Other tests find the workspace by its name.
test.afterEach(({ api }) => api.put("/api/settings", { workspace_name: "Lakemill", display_name: "", starred: [] }));

test("no text from users is executed, wherever it is shown", async ({ page, api, watch }) => {
  // It takes more than two minutes on two idle cores.
  test.setTimeout(600_000);
  const hits: string[] = [];
  page.on("dialog", (dialog) => {
    // An open proposal asks before it is left: that dialog is the UI's own.
    if (dialog.type() === "beforeunload") return void dialog.accept();
    hits.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.exposeFunction("hit", (n: number) => hits.push(PAYLOADS[n] ?? String(n)));
  // Queries that can't be bound and an invalid config get these statuses.
  watch.expected.push(/status of 4\d\d/);
  const { job } = await furnish(api);
  const key = (name: string) => encodeURIComponent(`pipelines/${SLUG}/${name}`);
  const sql = (text: string) => encodeURIComponent(text);
  const p = `/p/${SLUG}`;
  for (const path of [
    "/",
    p,
    `${p}/data/cells`,
    `${p}/data/cells?chart=1`,
    `${p}/data/cells?tab=schema`,
    `${p}/data/cells?tab=rejected`,
    `${p}/data/cells?tab=sources`,
    `${p}/data/_rejected_rows`,
    `${p}/dashboards`,
    `${p}/dashboards/texts`,
    `${p}/dashboards/texts/edit`,
    `${p}/jobs`,
    `${p}/jobs/${job}`,
    `${p}/config`,
    `/lake?prefix=${key("names/")}`,
    `/lake?prefix=${key("other/")}&file=${key("other/headers.csv")}`,
    `/lake?prefix=${key("in/")}&file=${key("in/cells.csv")}&line=60`,
    `/new?key=${key("other/headers.csv")}`,
    `/new?key=${key("in/cells.csv")}`,
    `/settings`,
    `${p}/${sql(all)}`,
    `/p/${sql(PAYLOADS[0] ?? "")}`,
    `/lake?prefix=${sql(all)}`,
  ]) {
    await look(page, path);
    expect(hits, path).toEqual([]);
  }
  // Columns with these names, and an error that quotes its input.
  const columns = PAYLOADS.map((text) => `'${text.replaceAll("'", "''")}' AS ${quoted(text)}`).join(", ");
  for (const statement of [`SELECT ${columns}`, `SELECT ${quoted(all)}`, all]) {
    await look(page, `${p}/query?sql=${sql(statement)}`);
    await page
      .getByRole("button", { name: /^run( query| selection)?( |$)/i })
      .last()
      .click();
    await expect(page.getByRole("button", { name: /cancel/i })).toBeHidden();
    expect(hits, statement.slice(0, 60)).toEqual([]);
  }
  await page.keyboard.press("Control+k");
  await page.keyboard.type("script");
  await expect(page.getByRole("dialog")).toBeVisible();
  expect(hits).toEqual([]);
});
