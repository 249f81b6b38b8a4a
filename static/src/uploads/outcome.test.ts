import { describe, expect, it } from "vitest";
import type { Job, PipelineStatus, TableStatus } from "../api/types";
import { conflictText, nextRunText, outcomeOf } from "./outcome";

const files = (...first: string[]) => ({ count: first.length, first });
const orders = (more: Partial<TableStatus> = {}): TableStatus => ({
  name: "orders",
  state: "applied",
  globs: ["orders/*.csv"],
  rows: 100,
  rows_rejected: 0,
  sources: 2,
  archived: 0,
  pending: files(),
  untried: files(),
  removed: { ...files(), rows: 0 },
  ...more,
});
const status = (table: TableStatus, more: Partial<PipelineStatus> = {}): PipelineStatus => ({
  config: { state: "applied" },
  tables: [table],
  not_read: files(),
  complete: true,
  active: false,
  last_job: null,
  ...more,
});
const failed = { job_id: "f", status: "failed", finished_at: null, error_code: "x", error_message: "no room" } as const;
const KEY = "orders/may.csv";

/** A run that read the file, with these rows. */
const run = (rows: { rows_written?: number; rows_rejected?: number; note?: string }, source = KEY): Job => {
  const counts = { source, rows_read: 0, rows_written: 0, rows_rejected: 0, rows_filtered: 0, blank_lines: 0, ...rows };
  return { status: "completed", result: { tables: { orders: { sources: [counts] } } } } as unknown as Job;
};
const of = (found: PipelineStatus, loaded?: Job | Job[], autoRun = true, keys = [KEY]) =>
  outcomeOf({ status: found, keys, autoRun, runs: loaded ? [loaded].flat() : [] });

describe("an uploaded file", () => {
  it("isn't said to have failed in a run that started before it came", () => {
    const corrected = orders({ pending: files(KEY), untried: files(KEY) });
    expect(of(status(corrected, { last_job: failed }))).toEqual({ tone: "run", text: "Loading into orders…" });
    const tried = orders({ pending: files(KEY) });
    expect(of(status(tried, { last_job: failed }))).toEqual({
      tone: "bad",
      text: "Not loaded into orders: no room.",
      job: "f",
    });
  });
  it("isn't said to be loaded once it was deleted", () => {
    const facts = { status: status(orders()), autoRun: true, runs: [run({ rows_written: 4 })] };
    expect(outcomeOf({ ...facts, keys: [], uploaded: 1 })).toEqual({
      tone: "ok",
      text: "Deleted from the lake since.",
    });
    expect(outcomeOf({ ...facts, keys: [KEY], uploaded: 2 }).text).toBe(
      "4 rows loaded into orders. 1 file was deleted since.",
    );
  });
  it("waits while runs are paused", () => {
    const waiting = status(orders({ pending: files(KEY), untried: files(KEY) }), { active: true });
    expect(outcomeOf({ status: waiting, keys: [KEY], autoRun: true, paused: true })).toEqual({
      tone: "warn",
      text: "Runs are paused: orders will be loaded after you resume them.",
    });
    expect(outcomeOf({ status: status(orders()), keys: [KEY], autoRun: true, paused: true }).text).toBe("Loaded.");
  });
  it("is announced with what starts the next run", () => {
    const next = (paused: boolean, autoRun: boolean) => nextRunText({ paused, autoRun });
    expect(next(false, true)).toBe("A run starts 5 seconds after the last upload.");
    expect(next(true, true)).toBe("Runs are paused: the files are loaded after you resume them.");
    expect(next(false, false)).toBe("Then run the pipeline; automatic runs are off.");
  });
  it("is loaded with the rows that its run wrote and rejected", () => {
    expect(of(status(orders()), run({ rows_written: 1200 }))).toEqual({
      tone: "ok",
      text: "1,200 rows loaded into orders.",
    });
    expect(of(status(orders()), run({ rows_written: 7, rows_rejected: 1 }))).toEqual({
      tone: "warn",
      text: "7 rows loaded into orders; 1 row rejected.",
      rejected: { table: "orders", source: KEY },
    });
  });
  it("isn't called loaded without warning if none of its rows was written", () => {
    expect(of(status(orders()), run({ rows_rejected: 3 }))).toMatchObject({
      tone: "warn",
      text: "0 rows loaded into orders; 3 rows rejected.",
    });
    expect(of(status(orders()), run({ note: "the file is empty" }))).toMatchObject({
      tone: "warn",
      text: "0 rows loaded into orders (the file is empty).",
    });
  });
  it("adds up what several runs loaded of one upload, each file once", () => {
    const [june, july] = ["orders/june.csv", "orders/july.csv"];
    const runs = [run({ rows_written: 5 }), run({ rows_written: 100 }, june), run({ rows_written: 7 })];
    expect(of(status(orders()), runs, true, [KEY, june]).text).toBe("107 rows loaded into orders.");
    expect(of(status(orders()), runs, true, [KEY, june, july]).text).toBe(
      "107 rows loaded into orders (2 of 3 files).",
    );
  });
  it("takes no counts from a run that read other files", () =>
    expect(of(status(orders()), run({ rows_rejected: 3 }, "orders/june.csv")).text).toBe("Loaded."));
  it("may be beyond the names that are listed", () => {
    const many = orders({ pending: { count: 11, first: Array.from({ length: 10 }, (_, at) => `orders/${at}.csv`) } });
    expect(of(status(many, { active: true })).text).toBe("Loading into orders…");
    expect(of(status(many, { active: true }), run({ rows_written: 1 })).text).toBe("1 row loaded into orders.");
  });
  it("waits for a person where runs are manual", () =>
    expect(of(status(orders({ pending: files(KEY), untried: files(KEY) })), undefined, false).text).toBe(
      "Run the pipeline to load orders; automatic runs are off.",
    ));
  it("is uploaded, not loaded, if no table reads it", () => {
    expect(of(status(orders()), undefined, true, ["readme.md"]).text).toBe("Uploaded.");
    expect(of(status(orders(), { not_read: files("x.csv") }), undefined, true, ["x.csv"]).text).toBe(
      "1 CSV not read by any table.",
    );
  });
});

it("files that exist already are named", () => {
  const keyed = (...keys: string[]) => keys.map((key) => ({ key }));
  expect(conflictText(keyed("pipelines/shop/a.csv"))).toBe("a.csv already exists.");
  expect(conflictText(keyed("x/a.csv", "x/b.csv", "x/c.csv"))).toBe("a.csv, b.csv and 1 more already exist.");
});
