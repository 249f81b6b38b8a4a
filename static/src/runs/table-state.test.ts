import { describe, expect, it } from "vitest";
import type { PipelineStatus, TableStatus } from "../api/types";
import { toMinute } from "../format/time";
import {
  extraColumns,
  failedFiles,
  waitingFiles,
  isAbout,
  pendingFiles,
  pipelineState,
  staleness,
  succeededAt,
  tableState,
  tableStates,
} from "./table-state";

const none = { count: 0, first: [] };
const table = (more: Partial<TableStatus> = {}): TableStatus => ({
  name: "orders",
  state: "applied",
  globs: ["orders/*.csv"],
  rows: 100,
  rows_rejected: 0,
  sources: 2,
  archived: 0,
  pending: none,
  untried: none,
  removed: { ...none, rows: 0 },
  ...more,
});
const status = (tables: TableStatus[], more: Partial<PipelineStatus> = {}): PipelineStatus => ({
  config: { state: "applied" },
  tables,
  not_read: none,
  complete: true,
  active: false,
  last_job: { job_id: "1", status: "completed", finished_at: null, error_code: null, error_message: null },
  ...more,
});
const failed = { job_id: "f", status: "failed", finished_at: null, error_code: "x", error_message: "no room" } as const;
const one = (more: Partial<TableStatus>, context: Partial<PipelineStatus> = {}) =>
  tableState(table(more), status([], context));

it("a config that isn't JSON is said to be unreadable, with the position, and nothing about its tables", () => {
  const problems = [{ kind: "syntax" as const, message: "line 4 column 40: expected `,` or `}`", path: "" }];
  const found = tableStates(table({ state: "unknown" }), status([], { config: { state: "invalid", problems } }));
  expect(found.map(({ sentence }) => sentence)).toEqual([
    "The config can't be read: line 4 column 40: expected `,` or `}`, so runs fail. The table shows the last successful run.",
  ]);
});

describe("table status", () => {
  it("is up to date with its files, and counts archived ones separately", () => {
    expect(one({})).toEqual({ tone: "ok", label: "up to date", sentence: "Up to date with 2 files." });
    expect(one({ archived: 1 }).sentence).toBe("Up to date with 1 file and 1 archived source.");
  });
  it("says that a changed config isn't applied yet, and offers a run", () => {
    const state = one({ state: "changed" });
    expect(state.sentence).toBe("Config changed, not applied yet. The table shows the last successful run.");
    expect(state.action).toEqual({ kind: "run", words: "Run now" });
  });
  it("says what the table shows after failed and cancelled runs, during a run, and before the first one", () => {
    const succeeded = "2026-01-02T03:04:05Z";
    const shows = `The table shows the last successful run (${toMinute(new Date(succeeded))}).`;
    const cancelled = { ...failed, error_code: "cancelled" };
    for (const context of [{}, { last_job: failed }, { last_job: cancelled }])
      expect(tableStates(table({ state: "changed" }), { ...status([], context), succeeded }).at(-1)?.sentence).toBe(
        `Config changed, not applied yet. ${shows}`,
      );
    expect(tableState(table({ state: "changed" }), { ...status([], { active: true }), succeeded })).toEqual({
      tone: "run",
      label: "run in progress",
      sentence: `Config changed. A run is in progress. ${shows}`,
    });
    const invalid = { config: { state: "invalid" as const } };
    expect(tableState(table(), { ...status([], invalid), succeeded }).sentence).toBe(
      `The config has problems, so runs fail. ${shows}`,
    );
    expect(one({ rows: 0, sources: 0, state: "unknown" }, { ...invalid, last_job: null }).sentence).toBe(
      "The config has problems, so runs fail. The table has no data yet.",
    );
  });
  it("takes the end of the last successful run from the status, or from the jobs after a failure", () => {
    const ended = {
      job_id: "1",
      status: "completed",
      finished_at: "c",
      error_code: null,
      error_message: null,
    } as const;
    const jobs = [
      { status: "running", finished_at: null },
      { status: "failed", finished_at: "b" },
      { status: "completed", finished_at: "a" },
    ] as const;
    expect(succeededAt({ last_job: ended }, jobs)).toBe("c");
    expect(succeededAt({ last_job: failed }, jobs)).toBe("a");
    expect(succeededAt({ last_job: failed }, undefined)).toBeUndefined();
    expect(succeededAt({ last_job: null }, [])).toBeUndefined();
  });
  it("names the files that the last run failed to load before those that wait", () => {
    const [bad, late] = ["orders/bad.csv", "orders/late.csv"];
    const waiting = { pending: { count: 2, first: [late, bad] }, untried: { count: 1, first: [late] } };
    const files = (context: Partial<PipelineStatus>) =>
      pendingFiles(table(waiting), status([], context)).map(({ key, state }) => `${key} ${state}`);
    expect(files({ last_job: failed })).toEqual([`${bad} failed`, `${late} waiting`]);
    expect(files({ last_job: failed, active: true })).toEqual([`${late} loading`, `${bad} loading`]);
    expect(files({})).toEqual([`${late} waiting`, `${bad} waiting`]);
    expect(failedFiles(status([table(waiting)], { last_job: failed }))).toBe(1);
    expect(failedFiles(status([table(waiting)], { last_job: failed, active: true }))).toBe(0);
    expect(failedFiles(status([table(waiting)]))).toBe(0);
  });
  it("doesn't blame a table's files for a run that failed for another table", () => {
    const last_job = { ...failed, error_message: "table `sales`: 1 of 400 rows was rejected" };
    const some = (key: string) => ({ pending: { count: 1, first: [key] } });
    const tables = [table({ name: "returns", ...some("r.csv") }), table({ name: "sales", ...some("s.csv") })];
    const now = status(tables, { last_job });
    const [returns, sales] = tables.map((own) => tableState(own, now));
    expect([returns?.tone, returns?.label, returns?.action]).toEqual(["warn", "1 file to load", undefined]);
    expect(returns?.sentence).toBe(
      "1 file (r.csv) is not in the table yet, because the last run failed for another table: a run changes all tables or none.",
    );
    expect([sales?.tone, sales?.label]).toEqual(["bad", "1 file failed"]);
    expect([failedFiles(now), waitingFiles(now)]).toEqual([1, 1]);
    expect(pipelineState(now)?.actions.map(({ words }) => words)).not.toContain("Fix returns…");
  });
  it("counts the files that wait in all tables", () => {
    const tables = ["a", "b"].map((name) => table({ name, pending: { count: 2, first: [`${name}.csv`] } }));
    expect(pipelineState(status(tables))?.label).toBe("4 files to load");
  });
  it("counts the rows of deleted CSVs", () => {
    const state = one({ removed: { count: 1, rows: 1_800, first: ["orders/may.csv"] } });
    expect([state.tone, state.sentence]).toEqual([
      "warn",
      "1,800 rows are from a deleted CSV (may.csv). A run removes them.",
    ]);
  });
  it("distinguishes pending, loading and failed files", () => {
    const pending = { count: 3, first: ["a.csv", "b.csv", "c.csv"] };
    expect(one({ pending }).sentence).toBe(
      "3 files (a.csv, b.csv and 1 more) are new or changed and not in the table yet.",
    );
    expect(one({ pending }, { active: true }).tone).toBe("run");
    const state = one({ pending }, { last_job: failed });
    expect(state.sentence).toContain("because the last run failed: no room");
    expect(state.action).toMatchObject({ kind: "job", id: "f" });
    expect(one({ pending }, { last_job: { ...failed, error_code: "cancelled" } }).tone).toBe("warn");
  });
  it("blames a failed run only for files that it tried", () => {
    const pending = { count: 3, first: ["a.csv", "b.csv", "c.csv"] };
    const untried = { count: 1, first: ["b.csv"] };
    const states = tableStates(table({ pending, untried }), status([], { last_job: failed }));
    expect(states.map(({ tone, sentence }) => [tone, sentence])).toEqual([
      ["bad", "2 files (a.csv, c.csv) are not in the table, because the last run failed: no room."],
      ["warn", "1 file (b.csv) is new or changed and not in the table yet."],
    ]);
    const corrected = { count: 1, first: ["a.csv"] };
    const state = one({ pending: corrected, untried: corrected, state: "new", sources: 0 }, { last_job: failed });
    expect([state.tone, state.label, state.action?.kind]).toEqual(["warn", "1 file to load", "run"]);
  });
  it("names the failure of the last run before the config that it couldn't apply, with both next steps", () => {
    const last_job = {
      ...failed,
      error_code: "too_many_rejects",
      error_message: "table `orders`: 1 of 4 rows rejected",
    };
    const found = status([table({ state: "changed" })], { last_job });
    expect(tableStates(found.tables[0] ?? table(), found).map(({ label }) => label)).toEqual([
      "last run failed",
      "config not applied",
    ]);
    expect(pipelineState(found)).toMatchObject({
      tone: "bad",
      sentence: "The last run failed: table `orders`: 1 of 4 rows rejected.",
      more: ["Config changed, not applied yet. The table shows the last successful run."],
      actions: [
        { kind: "adapt", table: "orders", files: [], job: "f", words: "Fix…" },
        { kind: "run", words: "Run now" },
      ],
    });
    const other = { ...last_job, error_message: "table `items`: 1 of 4 rows rejected" };
    expect(one({ state: "changed" }, { last_job: other }).label).toBe("config not applied");
    const pending = { count: 1, first: ["b.csv"] };
    const both = tableStates(table({ state: "changed", pending }), status([], { last_job }));
    expect(both.map(({ label }) => label)).toEqual(["1 file failed", "config not applied"]);
  });
  it("is about a failed run only if its message names no other table", () => {
    const about = (message: string | null) => ["orders", "items"].filter((name) => isAbout(message, { name }));
    expect(about("table `items`: 1 of 4 rows rejected")).toEqual(["items"]);
    expect(about("the disk is full")).toEqual(["orders", "items"]);
    expect(about(null)).toEqual(["orders", "items"]);
  });
  it("has all reasons, the most important first", () => {
    const states = tableStates(
      table({
        state: "changed",
        removed: { count: 1, rows: 2, first: ["a.csv"] },
        pending: { count: 1, first: ["b.csv"] },
      }),
      status([]),
    );
    expect(states.map(({ label }) => label)).toEqual(["config not applied", "rows of removed CSVs", "1 file to load"]);
  });
  it("offers no run while one is due or active", () => {
    const removed = { count: 1, rows: 54, first: ["a.csv"] };
    const waits = table({ removed, pending: { count: 1, first: ["b.csv"] } });
    const actions = (context: object) =>
      tableStates(waits, { ...status([]), ...context }).map(({ action }) => action?.kind);
    expect(actions({})).toEqual(["run", "run"]);
    expect(actions({ due: true })).toEqual([undefined, undefined]);
    expect(actions({ active: true })).toEqual([undefined, undefined]);
  });
  it("is waiting for data", () => expect(one({ state: "new", sources: 0 }).label).toBe("no data"));
});

it("names columns that the config doesn't have", () => {
  expect(extraColumns({ name: "sales" })).toBeUndefined();
  const extra = ["channel", "promo"].map((name) => ({ name, files: 1 }));
  expect(extraColumns({ name: "sales", extra_columns: extra })).toBe(
    "sales: the files have 2 new columns: channel, promo.",
  );
  expect(extraColumns({ name: "sales", extra_columns: extra.slice(1) })).toBe(
    "sales: the files have a new column, promo.",
  );
});

describe("the data of a dashboard", () => {
  const succeeded = "2026-11-29T08:40:00Z";
  const at = toMinute(new Date(succeeded));
  const pending = { count: 2, first: ["b.csv", "c.csv"] };
  const known = (tables: TableStatus[], more: Partial<PipelineStatus> = {}) => ({ ...status(tables, more), succeeded });
  it("is the latest if its tables are up to date, whatever the others are", () => {
    const tables = [table(), table({ name: "items", pending })];
    expect(staleness(known(tables), "SELECT * FROM orders")).toBeUndefined();
    expect(staleness(known(tables), "SELECT * FROM line_items")).toBeUndefined();
  });
  it("has its time and what is missing, if files of its tables wait or a run failed", () => {
    const waits = known([table(), table({ name: "items", pending })]);
    expect(staleness(waits, 'SELECT * FROM orders JOIN "Items"')).toEqual({
      tone: "warn",
      sentence: `Data of ${at} · items: 2 files to load`,
      table: "items",
      job: undefined,
    });
    const fails = known([table({ pending })], { last_job: failed });
    expect(staleness(fails, "SELECT 1 FROM orders")).toEqual({
      tone: "bad",
      sentence: `Data of ${at} · the last run failed`,
      table: "orders",
      job: "f",
    });
    const none = known([table({ state: "new", rows: 0, sources: 0, pending })]);
    expect(staleness(none, "FROM orders")?.sentence).toBe("No data yet · orders: 2 files to load");
  });
});

describe("pipeline status", () => {
  it("is empty while all tables are up to date or wait for data", () =>
    expect(pipelineState(status([table(), table({ name: "b", state: "new", sources: 0 })]))).toBeUndefined());
  it("names the table if there are several, and counts further reasons", () => {
    const found = pipelineState(
      status([table(), table({ name: "b", state: "changed" })], { not_read: { count: 1, first: ["x.csv"] } }),
    );
    expect(found?.sentence).toBe("b: Config changed, not applied yet. The table shows the last successful run.");
    expect(found?.more).toEqual(["1 CSV isn't read by any table: x.csv."]);
  });
  it("puts a failure of any table first, and names the tables to fix", () => {
    const last_job = { ...failed, error_code: "row_failed", error_message: "bad row" };
    const pending = { count: 1, first: ["b.csv"] };
    const tables = [table({ name: "a", removed: { ...none, count: 1, rows: 2 } }), table({ name: "b", pending })];
    const found = pipelineState(status(tables, { last_job }));
    expect(found?.sentence).toMatch(/^b: 1 file \(b.csv\) is not in the table, because the last run failed: bad row/);
    expect(found?.actions.map(({ words }) => words)).toEqual(["Fix b…", "Run now"]);
  });
  it("mentions an invalid config once", () => {
    const found = pipelineState(
      status([table({ state: "unknown" }), table({ name: "b" })], { config: { state: "invalid" } }),
    );
    expect([found?.sentence, found?.more]).toEqual([
      "The config has problems, so runs fail. The table shows the last successful run.",
      [],
    ]);
  });
});
