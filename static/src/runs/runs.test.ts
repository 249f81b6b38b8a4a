import { describe, expect, it } from "vitest";
import { duration } from "../format/time";
import type { Job, RunError, TableResult } from "../api/types";
import { countersOf } from "./progress";
import { barsOf, barsText, type RunMark } from "./bars";
import { rowsChange, type TableOutcome } from "./outcome";
import { endText, outcomeText, shortOutcome, silenceText, stageText, waitingText } from "./text";

const mark = (durationMs: number | null, status = "completed", rejected = 0): RunMark => ({
  jobId: String(durationMs),
  status,
  durationMs,
  finishedAt: null,
  rejected,
});

describe("run history bars", () => {
  it("are aligned to the right while there are few", () => {
    const [bar, ...others] = barsOf([mark(5)], 300, 28, 30);
    expect([bar?.x, bar?.height, bar?.y, others.length]).toEqual([290, 28, 0, 0]);
  });
  it("fit their box, and the shortest is visible", () => {
    const bars = barsOf([mark(1), mark(100_000), mark(null)], 300, 28, 30);
    for (const bar of bars) expect(bar.y + bar.height).toBe(28);
    expect(bars.map(({ height }) => height)).toEqual([3, 28, 3]);
    expect(Math.max(...bars.map(({ x, width }) => x + width))).toBeLessThanOrEqual(300);
  });
  it("leave out the oldest runs if there is no space", () =>
    expect(
      barsOf(
        Array.from({ length: 40 }, (_, n) => mark(n)),
        300,
        28,
        30,
      ).map((bar) => bar.mark.durationMs)[0],
    ).toBe(10));
  it("are coloured by outcome", () =>
    expect(
      barsOf([mark(1), mark(1, "failed"), mark(1, "completed", 2), mark(1, "running")], 300, 28, 30).map(
        ({ tone }) => tone,
      ),
    ).toEqual(["ok", "bad", "warn", "run"]));
  it("have a text alternative", () => {
    expect(barsText([], duration)).toBe("No runs yet");
    expect(barsText([mark(1_000), mark(4_000)], duration)).toBe("The last 2 runs: none failed, 1.0 s to 4.0 s");
    expect(barsText([mark(1_000, "failed"), mark(1_000)], duration)).toBe("The last 2 runs: 1 failed, 1.0 s to 1.0 s");
    expect(barsText([mark(null, "failed")], duration)).toBe("The last run: failed");
  });
});

const error = (code: RunError["code"], path?: string, message = "m"): RunError => ({
  code,
  message,
  path: path ?? null,
});

const job = (id: string, more: Partial<Job> = {}): Job =>
  ({ job_id: id, status: "completed", trigger: "manual", enqueued_at: `2026-01-0${id}`, attempt: 1, ...more }) as Job;

const table = (more: Partial<TableOutcome>): TableResult =>
  ({ rows_written: 10, partitions_written: 0, partitions_deleted: 0, ...more }) as TableResult;

describe("run outcome", () => {
  const progress = { rows_read: 336_776, rows_written: 336_776, rows_rejected: 0 } as Job["progress"];
  it.each<[string, Partial<Job>]>([
    [
      "completed: 336,776 rows loaded in 3.2 s",
      { duration_ms: 3_200, progress: progress ?? null, result: { tables: { a: table({ partitions_written: 1 }) } } },
    ],
    [
      "completed: 6 rows loaded, 2 rejected",
      {
        progress: { rows_read: 8, rows_written: 6, rows_rejected: 2 } as NonNullable<Job["progress"]>,
        result: { tables: { a: table({ partitions_written: 1 }) } },
      },
    ],
    [
      "completed: rows removed in 3.2 s",
      { duration_ms: 3_200, result: { tables: { a: table({ partitions_written: 1 }) } } },
    ],
    ["completed: no changes in 3.2 s", { duration_ms: 3_200, result: { tables: { a: table({}) } } }],
    ["failed: no such file", { status: "failed", error: error("no_input", "", "no such file") }],
    ["cancelled", { status: "failed", error: error("cancelled") }],
  ])("is %j", (expected, more) => expect(outcomeText(job("1", more))).toBe(expected));
  it("counts the rows that tables have more or fewer", () => {
    const run = (...tables: Partial<TableOutcome>[]) =>
      job("1", { result: { tables: Object.fromEntries(tables.map((more, at) => [String(at), table(more)])) } });
    const written = { partitions_written: 1, rows_written: 10 };
    expect(shortOutcome(run({ ...written, rows_before: 4 }))).toBe("+6 rows");
    expect(shortOutcome(run({ ...written, rows_before: 11 }))).toBe("−1 row");
    expect(shortOutcome(run({ ...written, rows_before: 10 }))).toBe("rows replaced");
    expect(shortOutcome(run({ ...written, rows_before: 4 }, { ...written, rows_before: 9 }))).toBe(
      "+7 rows in 2 tables",
    );
    expect(shortOutcome(run({ ...written, rows_before: null }))).toBe("10 rows");
    expect(shortOutcome(run({ rows_before: 3 }))).toBe("no changes");
  });
  it("names deleted tables", () =>
    expect(shortOutcome(job("1", { result: { tables: {}, dropped: ["b"] } }))).toBe("1 table deleted"));
  it("takes the previous row count from the run itself, or else from the run before it", () => {
    expect(rowsChange(table({ rows_before: 4 }), table({ rows_written: 1 }))).toBe(6);
    expect(rowsChange(table({}), table({ rows_written: 1 }))).toBe(9);
    expect(rowsChange(table({}))).toBeUndefined();
  });
});

describe("a failed run", () => {
  const failed = (stage: "converting" | "publishing", detail: string | null = null) =>
    job("1", {
      status: "failed",
      error: { ...error("too_many_rejects"), detail },
      progress: { stage, rows_written: 9, mappings_done: 1, mappings_total: 1 } as NonNullable<Job["progress"]>,
    });
  const counters = (one: Job) => countersOf(one).map(([name]) => name);
  it("that changed no table has no counters of what it wrote", () => {
    expect(endText(failed("converting"))).toBe("The run failed. No tables were changed.");
    expect(counters(failed("converting"))).toEqual(["Files", "Read", "Rows in this run", "Rejected"]);
  });
  it("isn't said to have changed no table if it may have published one", () => {
    for (const one of [failed("publishing"), failed("converting", "partially published; the next run repairs it")]) {
      expect(endText(one)).toContain("Some tables may already show its rows");
      expect(counters(one)).toContain("Tables");
    }
  });
});

describe("job status", () => {
  it("mentions a missing heartbeat only if there is one", () => {
    expect(silenceText(job("1", { status: "running" }))).toBeUndefined();
    expect(silenceText(job("1", { status: "running", silent_ms: 95_400 }))).toBe(
      "no heartbeat from the worker for 1 min 35 s; another worker takes over the job",
    );
  });
  const at = (stage: "planning" | "converting" | "publishing" | "finishing") =>
    ({ stage, files_done: 7, files_total: 12, partitions_written: 3, partitions_total: 9 }) as NonNullable<
      Job["progress"]
    >;
  it("shows its numbers", () => {
    expect(stageText(at("converting"))).toBe("converting 7/12 files");
    expect(stageText(at("publishing"))).toBe("publishing 3/9 partitions");
  });
  it("shows the reason for waiting", () => {
    const waiting = (reason: Job["reason"]) => waitingText(job("1", { status: "queued", reason: reason ?? null }));
    expect(waiting("pipeline_busy")).toMatch(/another run/);
    expect(waiting("source_being_written")).toMatch(/being written/);
    expect(waiting("retry")).toMatch(/Retrying/);
    expect(waiting(null)).toMatch(/free worker/);
  });
});
