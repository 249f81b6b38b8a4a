import { describe, expect, it } from "vitest";
import { duration } from "../../format/time";
import type { Job, RunError, SourceResult, TableResult } from "../../api/types";
import { balanceOf, sumOf } from "./accounting";
import { barsOf, inWords, type RunMark } from "./bars";
import { endedSince } from "./ends";
import { matches, merged } from "./history";
import { rowsChange, type TableOutcome } from "./outcome";
import { placeOf, remedyOfRun, RUN_REMEDIES } from "./remedies";
import { markOf } from "./stages";
import { outcomeText, shortOutcome, stageText, waitingText } from "./words";

const source = (read: number, written: number, rejected = 0, filtered = 0): SourceResult => ({
  source: "a.csv",
  rows_read: read,
  rows_written: written,
  rows_rejected: rejected,
  rows_filtered: filtered,
});

describe("the accounting of rows", () => {
  it("adds up where every row is somewhere", () => expect(balanceOf(source(10, 6, 3, 1)).missing).toBe(0));
  it("tells the rows that are nowhere", () => expect(balanceOf(source(10, 6, 3)).missing).toBe(1));
  it("doesn't set off a row too many against one too few", () =>
    expect(sumOf([source(10, 9), source(10, 11)]).missing).toBe(2));
});

const job = (id: string, more: Partial<Job> = {}): Job =>
  ({ job_id: id, status: "completed", trigger: "manual", enqueued_at: `2026-01-0${id}`, attempt: 1, ...more }) as Job;

describe("the history", () => {
  it("has each job once, as it was seen last, the newest first", () => {
    const all = merged([job("1"), job("2", { status: "running" })], [job("2"), job("3")]);
    expect(all.map(({ job_id, status }) => [job_id, status])).toEqual([
      ["3", "completed"],
      ["2", "completed"],
      ["1", "completed"],
    ]);
  });
  it.each([
    ["", "", true],
    ["completed", "", true],
    ["failed", "", false],
    ["active", "", false],
    ["", "auto", false],
    ["completed", "manual", true],
  ])("is filtered by status %j and trigger %j", (status, trigger, fits) =>
    expect(matches(job("1"), { status, trigger })).toBe(fits),
  );
  it("takes queued and running jobs for active", () =>
    expect(matches(job("1", { status: "queued" }), { status: "active", trigger: "" })).toBe(true));
  it("notices ends once, also of runs that were never seen running", () => {
    const jobs = [job("3", { status: "running" }), job("2"), job("1")];
    expect(endedSince(new Set(["1"]), jobs).map(({ job_id }) => job_id)).toEqual(["2"]);
  });
});

const mark = (durationMs: number | null, status = "completed", rejected = 0): RunMark => ({
  jobId: String(durationMs),
  status,
  durationMs,
  finishedAt: null,
  rejected,
});

describe("the bars of the last runs", () => {
  it("stand at the right while there are few", () => {
    const [bar, ...others] = barsOf([mark(5)], 300, 28, 30);
    expect([bar?.x, bar?.height, bar?.y, others.length]).toEqual([290, 28, 0, 0]);
  });
  it("stay within their box, and the shortest is seen", () => {
    const bars = barsOf([mark(1), mark(100_000), mark(null)], 300, 28, 30);
    for (const bar of bars) expect(bar.y + bar.height).toBe(28);
    expect(bars.map(({ height }) => height)).toEqual([3, 28, 3]);
    expect(Math.max(...bars.map(({ x, width }) => x + width))).toBeLessThanOrEqual(300);
  });
  it("leave out what is older than there is room for", () =>
    expect(
      barsOf(
        Array.from({ length: 40 }, (_, n) => mark(n)),
        300,
        28,
        30,
      ).map((bar) => bar.mark.durationMs)[0],
    ).toBe(10));
  it("have the colour of the outcome", () =>
    expect(
      barsOf([mark(1), mark(1, "failed"), mark(1, "completed", 2), mark(1, "running")], 300, 28, 30).map(
        ({ tone }) => tone,
      ),
    ).toEqual(["ok", "bad", "warn", "run"]));
  it("are told in words", () => {
    expect(inWords([], duration)).toBe("No run yet");
    expect(inWords([mark(1_000), mark(4_000)], duration)).toBe("The last 2 runs: none failed, 1.0 s to 4.0 s");
    expect(inWords([mark(1_000, "failed"), mark(1_000)], duration)).toBe("The last 2 runs: 1 failed, 1.0 s to 1.0 s");
    expect(inWords([mark(null, "failed")], duration)).toBe("The last run: failed");
  });
});

const error = (code: RunError["code"], path?: string, message = "m"): RunError => ({
  code,
  message,
  path: path ?? null,
});

describe("the place of an error", () => {
  it("is a pointer into the config", () =>
    expect(placeOf("a", error("invalid_config", "/mappings/0"))).toEqual({ kind: "config", pointer: "/mappings/0" }));
  it("is the config as a whole where nothing is named", () =>
    expect(placeOf("a", error("invalid_config"))).toEqual({ kind: "config", pointer: "" }));
  it("is a file of the lake with the line that the message names", () =>
    expect(placeOf("a", error("row_failed", "x/y.csv", "`x/y.csv` line 12: column `n`: no number"))).toEqual({
      kind: "lake",
      prefix: "pipelines/a/x/",
      file: "pipelines/a/x/y.csv",
      line: 12,
    }));
  it("is a folder where no file was found", () =>
    expect(placeOf("a", error("no_input", "pipelines/a/"))).toEqual({ kind: "lake", prefix: "pipelines/a/" }));
  it("is told as it is where it is neither", () =>
    expect(placeOf("a", error("clean_run_required", "orders"))).toEqual({ kind: "text", text: "orders" }));
});

describe("remedies", () => {
  it("end with a full stop and offer a step for every code", () => {
    for (const { text, steps } of Object.values(RUN_REMEDIES)) {
      expect(text).toMatch(/^[A-Z].*\.$/s);
      expect(steps.length).toBeGreaterThan(0);
    }
  });
  it("are there for a code of a newer service too", () =>
    expect(remedyOfRun(error("of_tomorrow" as RunError["code"])).steps).toEqual(["retry"]));
});

const table = (more: Partial<TableOutcome>): TableResult =>
  ({ rows_written: 10, partitions_written: 0, partitions_deleted: 0, ...more }) as TableResult;

describe("the outcome of a run", () => {
  const progress = { rows_read: 336_776 } as Job["progress"];
  it.each<[string, Partial<Job>]>([
    [
      "completed: 336,776 rows in 3.2 s",
      { duration_ms: 3_200, progress: progress ?? null, result: { tables: { a: table({ partitions_written: 1 }) } } },
    ],
    ["completed: nothing had changed in 3.2 s", { duration_ms: 3_200, result: { tables: { a: table({}) } } }],
    ["failed: no such file", { status: "failed", error: error("no_input", "", "no such file") }],
    ["cancelled", { status: "failed", error: error("cancelled") }],
  ])("is %j", (told, more) => expect(outcomeText(job("1", more))).toBe(told));
  it("counts what was written and deleted", () =>
    expect(
      shortOutcome(
        job("1", {
          result: { tables: { a: table({ partitions_written: 2, partitions_deleted: 1 }) }, dropped: ["b"] },
        }),
      ),
    ).toBe("2 partitions written, 1 partition deleted, 1 table deleted"));
  it("knows the rows before from the run itself, else from the run before it", () => {
    expect(rowsChange(table({ rows_before: 4 }), table({ rows_written: 1 }))).toBe(6);
    expect(rowsChange(table({}), table({ rows_written: 1 }))).toBe(9);
    expect(rowsChange(table({}))).toBeUndefined();
  });
});

describe("what a job does", () => {
  const at = (stage: "planning" | "converting" | "publishing" | "finishing") =>
    ({ stage, files_done: 7, files_total: 12, partitions_written: 3, partitions_total: 9 }) as NonNullable<
      Job["progress"]
    >;
  it("is told with its numbers", () => {
    expect(stageText(at("converting"))).toBe("converting 7/12 files");
    expect(stageText(at("publishing"))).toBe("publishing 3/9 partitions");
  });
  it("is waiting, for a reason", () => {
    const waiting = (reason: Job["reason"]) => waitingText(job("1", { status: "queued", reason: reason ?? null }));
    expect(waiting("pipeline_busy")).toMatch(/another run/);
    expect(waiting("source_being_written")).toMatch(/being written/);
    expect(waiting("retry")).toMatch(/Tries again/);
    expect(waiting(null)).toMatch(/free worker/);
  });
  it("marks the stage at which a run failed", () => {
    const failed = job("1", { status: "failed", progress: at("converting") });
    expect((["planning", "converting", "publishing"] as const).map((stage) => markOf(failed, stage))).toEqual([
      "done",
      "failed",
      "todo",
    ]);
  });
});
