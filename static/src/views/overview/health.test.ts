import { describe, expect, it } from "vitest";
import type { Job, TableResult } from "../../api/types";
import { changesOf, lastChange, lastNewFiles, restoredSince } from "./changes";
import { healthOf, type Facts } from "./health";

const table = (more: Partial<TableResult> = {}): TableResult =>
  ({
    rows_written: 100,
    rows_rejected: 0,
    rows_filtered: 0,
    partitions_written: 1,
    partitions_unchanged: 0,
    partitions_deleted: 0,
    files: 1,
    bytes: 10,
    sources_read: 1,
    sources_skipped: 1,
    sources: [],
    ...more,
  }) as TableResult;

const job = (more: Partial<Job>): Job =>
  ({ job_id: "j", status: "completed", trigger: "manual", enqueued_at: "2026-01-01", ...more }) as Job;

const completed = (tables: Record<string, TableResult>, more: Partial<Job> = {}): Job =>
  job({ result: { tables }, ...more });

const facts = (jobs: Job[], detail: Partial<Facts["detail"]> = {}): Facts => ({
  jobs,
  detail: { config: "valid", problems: 0, tables: 1, next_due: null, ...detail },
});

const progress = (more: object): Job["progress"] =>
  ({ stage: "converting", files_done: 7, files_total: 12, ...more }) as never;
const kinds = (found: ReturnType<typeof healthOf>) => found.steps.map(({ kind }) => kind);

describe("pipeline health", () => {
  const daily = { name: "daily", title: "Daily sales" };
  it("is up to date with all its files", () => {
    const tables = { a: table(), b: table(), c: table() };
    const found = healthOf(facts([completed(tables)], { tables: 3 }));
    expect([found.tone, found.sentence, found.more]).toEqual([
      "ok",
      "All 3 tables are up to date with 6 files",
      "300 rows in total.",
    ]);
  });
  it("offers the published dashboard, unless something must be fixed first", () => {
    const good = facts([completed({ a: table() })]);
    expect(healthOf({ ...good, dashboard: daily }).steps).toEqual([
      { kind: "dashboard", name: "daily", words: "Open dashboard Daily sales" },
    ]);
    expect(kinds(healthOf(good))).toEqual(["jobs"]);
    const rejected = facts([completed({ a: table({ rows_rejected: 1 }) })]);
    expect(kinds(healthOf({ ...rejected, dashboard: daily }))).toEqual(["rejected"]);
  });
  it("isn't good while a published dashboard is broken", () => {
    const good = facts([completed({ a: table() })]);
    const found = healthOf({ ...good, broken: [{ name: "sales", title: "Sales 2026" }] });
    expect(found.tone).toBe("bad");
    expect(found.sentence).toBe("Dashboard Sales 2026 is broken. The table is up to date with 2 files");
    expect(found.steps[0]).toEqual({ kind: "fix-dashboard", name: "sales", words: "Fix Sales 2026" });
    expect(healthOf({ ...good, broken: [daily, daily] }).sentence).toMatch(/^2 dashboards are broken\. /);
  });
  it("uses singular and plural for tables", () => {
    expect(healthOf(facts([completed({ a: table() })])).sentence).toMatch(/^The table is up to date with 2 files/);
    expect(healthOf(facts([completed({ a: table(), b: table() })], { tables: 2 })).sentence).toMatch(
      /^Both tables are/,
    );
  });
  it("mentions archived sources", () =>
    expect(healthOf(facts([completed({ a: table({ sources_archived: 3 }) })])).sentence).toBe(
      "The table is up to date with 2 files and 3 archived sources",
    ));
  it("says that the last run found nothing new", () =>
    expect(healthOf(facts([completed({ a: table({ partitions_written: 0 }) })])).more).toMatch(/found no changes/));
  it("mentions rejected rows of the last run, and links to the table with the most", () => {
    const tables = { a: table({ rows_rejected: 1 }), b: table({ rows_rejected: 2 }) };
    const found = healthOf(
      facts([completed(tables, { progress: progress({ rows_rejected: 3 }) ?? null })], { tables: 2 }),
    );
    expect(found.sentence).toMatch(/3 rows were rejected in the last run$/);
    expect(found.tone).toBe("warn");
    expect(found.steps).toEqual([{ kind: "rejected", table: "b", words: "Show rejected rows" }]);
  });
  it("mentions rejected rows of an earlier run", () =>
    expect(healthOf(facts([completed({ a: table({ rows_rejected: 1 }) })])).sentence).toMatch(/; 1 row is rejected$/));
  it("offers a run if the config's tables differ from the last run", () => {
    const found = healthOf(facts([completed({ a: table() })], { tables: 2 }));
    expect(found.more).toMatch(/now defines 2 tables/);
    expect(kinds(found)).toEqual(["run"]);
  });
  it("shows a run in progress with its numbers", () => {
    const running = job({ status: "running", progress: progress({ rows_read: 1_200 }) ?? null });
    const found = healthOf(facts([running, completed({ a: table() })]));
    expect([found.tone, found.sentence]).toEqual(["run", "Run in progress: converting 7/12 files, 1,200 rows read"]);
    expect(kinds(found)).toEqual(["job"]);
  });
  it("is waiting for a worker", () =>
    expect(healthOf(facts([job({ status: "queued" })])).sentence).toMatch(/queued, waiting for a free worker/));
  it("is waiting for a retry, with its time", () => {
    const found = healthOf(facts([job({ status: "queued", reason: "retry", not_before: "2026-01-02" })]));
    expect([found.tone, found.due]).toEqual(["warn", "2026-01-02"]);
  });
  it("names no time while runs are paused", () => {
    const found = healthOf(facts([job({ status: "queued", reason: "paused", not_before: "2026-01-02" })]));
    expect([found.sentence, found.due]).toEqual(["Waiting: runs are paused", undefined]);
  });
  it("is waiting for another run of the pipeline", () =>
    expect(healthOf(facts([job({ status: "queued", reason: "pipeline_busy" })])).sentence).toMatch(/another run/));
  it("reports a missing config", () => {
    const found = healthOf(facts([], { config: "missing" }));
    expect(found.sentence).toMatch(/No config yet/);
    expect(kinds(found)).toEqual(["from-csv", "config"]);
  });
  it("reports a config with problems", () => {
    const found = healthOf(facts([completed({ a: table() })], { config: "invalid", problems: 3 }));
    expect(found.sentence).toMatch(/3 problems/);
    expect(found.more).toMatch(/^Tables show the last successful run.*: 100 rows\.$/);
    const syntax = { kind: "syntax" as const, message: "line 4 column 40: expected `,` or `}`", path: "" };
    const unread = facts([completed({ a: table() })], { config: "invalid", problems: 1 });
    const status = {
      ...unread.status,
      tables: [],
      config: { state: "invalid", problems: [syntax] },
    } as typeof unread.status;
    expect(healthOf({ ...unread, status }).sentence).toMatch(/^The config can't be read: line 4 column 40/);
    const failed = [job({ status: "failed" })];
    expect(healthOf(facts(failed, { config: "invalid", problems: 1 })).more).toBe("No tables have been built yet.");
    expect(kinds(found)).toEqual(["config"]);
  });
  it("reports a config without tables", () =>
    expect(healthOf(facts([], { tables: 0 })).sentence).toBe("The config defines no tables yet"));
  it("reports that there were no runs", () => {
    const found = healthOf(facts([], { tables: 5 }));
    expect(found.sentence).toBe("No runs yet: 5 tables are waiting for data");
    expect(kinds(found)).toEqual(["upload", "run"]);
  });
  it("announces the first run", () => {
    const found = healthOf(facts([], { next_due: "2026-01-02" }));
    expect([found.due, found.steps]).toEqual(["2026-01-02", []]);
  });
  it("isn't up to date while a run is due, and offers none", () => {
    const due = { next_due: "2026-01-02" };
    const found = healthOf({ ...facts([completed({ a: table() })], due), dashboard: daily });
    expect([found.tone, found.sentence, found.more, found.due, found.steps]).toEqual([
      "run",
      "Files were added, changed or deleted",
      "100 rows in total.",
      "2026-01-02",
      [],
    ]);
    const cancelled = job({ status: "failed", error: { code: "cancelled", message: "cancelled" } });
    expect(healthOf(facts([cancelled], due))).toMatchObject({ due: "2026-01-02", steps: [] });
  });
  it("reports a failed run, and that tables are unchanged", () => {
    const failed = job({ job_id: "f", status: "failed", error: { code: "no_input", message: "no file" } });
    const found = healthOf(facts([failed, completed({ a: table() })]));
    expect([found.tone, found.sentence]).toEqual(["bad", "The last run failed: no file"]);
    expect(found.more).toMatch(/^Tables show the last successful run.*: 100 rows\.$/);
    expect(found.steps).toEqual([{ kind: "job", id: "f", words: "How to fix this" }]);
  });
  it("offers the fix of a failed run first, then what else the tables need", () => {
    const files = { count: 0, first: [] };
    const failed = job({ job_id: "f", status: "failed", error: { code: "row_failed", message: "bad row" } });
    const state = { name: "a", state: "changed", globs: ["*.csv"], rows: 9, rows_rejected: 0, sources: 1, archived: 0 };
    const status = {
      config: { state: "changed" },
      tables: [{ ...state, pending: files, untried: files, removed: { ...files, rows: 0 } }],
      not_read: files,
      complete: true,
      active: false,
      last_job: {
        job_id: "f",
        status: "failed",
        finished_at: null,
        error_code: "row_failed",
        error_message: "bad row",
      },
    } as NonNullable<Facts["status"]>;
    const found = healthOf({ ...facts([failed, completed({ a: table() })]), status });
    expect(found.sentence).toBe("The last run failed: bad row");
    expect(found.more).toMatch(/^Config changed, not applied yet\. Tables show the last successful run.*: 100 rows\.$/);
    expect(found.steps.map(({ words }) => words)).toEqual(["Fix…", "How to fix this", "Run now"]);
  });
  it("reports a failed first run", () =>
    expect(healthOf(facts([job({ status: "failed" })])).more).toBe("No tables have been built yet."));
  it("reports a cancelled run", () => {
    const found = healthOf(facts([job({ status: "failed", error: { code: "cancelled", message: "cancelled" } })]));
    expect([found.tone, found.sentence, found.more]).toEqual([
      "warn",
      "The last run was cancelled",
      "No tables have been built yet.",
    ]);
  });
});

describe("latest changes", () => {
  const idle = completed({ a: table({ partitions_written: 0 }) }, { job_id: "3" });
  const changes = { partitions: [], partitions_total: 1 };
  const made = table({ rows_before: null, changes });
  const second = completed({ a: table({ rows_written: 150 }), b: made }, { job_id: "2" });
  const first = completed({ a: table() }, { job_id: "1", progress: progress({}) ?? null });
  it("are those of the newest run with changes", () => {
    const found = lastChange([idle, job({ status: "failed" }), second, first]);
    expect([found?.job.job_id, found?.before?.job_id]).toEqual(["2", "1"]);
    expect(lastChange([idle])).toBeUndefined();
  });
  it("don't call tables new if the record predates that information", () => {
    const old = completed({ b: table({ rows_before: null, changes: { partitions: [], partitions_total: 0 } }) });
    expect(changesOf(old, first)).toMatchObject([{ table: "b", isNew: false }]);
  });
  it("are listed by table, relative to the previous run", () =>
    expect(changesOf(second, first)).toEqual([
      { table: "b", rows: 100, change: undefined, partitions: 1, isNew: true },
      { table: "a", rows: 150, change: 50, partitions: 1, isNew: false },
    ]));
});

it("a restored version is a change until the next run", () => {
  const commit = (sequence: number, rows: number, restored: number | null) =>
    ({ sequence, rows, restored, committed_at: "2026-01-02T10:00:00Z" }) as never;
  const tables = [
    { table: "a", commits: [commit(3, 2, 1), commit(2, 3, null)] },
    { table: "b", commits: [commit(2, 3, null), commit(1, 2, null)] },
  ];
  const found = [{ table: "a", version: 1, at: "2026-01-02T10:00:00Z", rows: 2, change: -1 }];
  expect(restoredSince({ finished_at: "2026-01-02T09:00:00Z" }, tables)).toEqual(found);
  expect(restoredSince({ finished_at: "2026-01-02T11:00:00Z" }, tables)).toEqual([]);
});

describe("the last new files", () => {
  const read = (id: string, sources: [read: number, skipped: number], more: Partial<Job> = {}, before?: number) =>
    completed(
      { a: table({ sources_read: sources[0], sources_skipped: sources[1], rows_before: before ?? null }) },
      { job_id: id, trigger: "auto", ...more },
    );
  const found = (...jobs: Job[]) => {
    const last = lastNewFiles(jobs);
    return last && [last.job.job_id, last.files];
  };
  const first = read("1", [4, 0]);
  const incremental = read("2", [1, 4], {}, 100);

  it("are those of the last run that found some", () => {
    expect(found(first)).toEqual(["1", 4]);
    expect(found(read("3", [0, 5], {}, 100), incremental, first)).toEqual(["2", 1]);
  });
  it("aren't those that a rebuild reads again", () => {
    expect(found(read("3", [5, 0], { clean_run: true, trigger: "manual" }, 100), incremental, first)).toEqual(["2", 1]);
    expect(found(read("3", [5, 0], { trigger: "manual" }, 100), incremental, first)).toEqual(["2", 1]);
    expect(found(read("3", [7, 0], { clean_run: true }, 100), incremental, first)).toEqual(["3", 2]);
  });
  it("are unknown if only a rebuild is known", () =>
    expect(found(read("3", [5, 0], { clean_run: true }, 100))).toBeUndefined());
});
