import { describe, expect, it } from "vitest";
import type { Job, RunError, SourceResult } from "../../api/types";
import { balanceOf, sumOf } from "./accounting";
import { endedSince } from "./run-outcome";
import { matches, merged } from "./history";
import { locationOf, remedyOfRun, RUN_REMEDIES } from "./remedies";
import { markOf } from "./stages";

const source = (read: number, written: number, rejected = 0, filtered = 0): SourceResult => ({
  source: "a.csv",
  rows_read: read,
  rows_written: written,
  rows_rejected: rejected,
  rows_filtered: filtered,
  blank_lines: 0,
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

const error = (code: RunError["code"], path?: string, message = "m"): RunError => ({
  code,
  message,
  path: path ?? null,
});

describe("the place of an error", () => {
  it("is a pointer into the config", () =>
    expect(locationOf("a", error("invalid_config", "/mappings/0"))).toEqual({
      kind: "config",
      pointer: "/mappings/0",
    }));
  it("is the config as a whole where nothing is named", () =>
    expect(locationOf("a", error("invalid_config"))).toEqual({ kind: "config", pointer: "" }));
  it("is a file of the lake with the line that the message names", () =>
    expect(locationOf("a", error("row_failed", "x/y.csv", "`x/y.csv` line 12: column `n`: no number"))).toEqual({
      kind: "lake",
      prefix: "pipelines/a/x/",
      file: "pipelines/a/x/y.csv",
      line: 12,
    }));
  it("is a folder where no file was found", () =>
    expect(locationOf("a", error("no_input", "pipelines/a/"))).toEqual({ kind: "lake", prefix: "pipelines/a/" }));
  it("is told as it is where it is neither", () =>
    expect(locationOf("a", error("archived_sources_missing", "orders"))).toEqual({ kind: "text", text: "orders" }));
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

describe("the stages of a job", () => {
  it("marks the stage at which a run failed", () => {
    const failed = job("1", { status: "failed", progress: { stage: "converting" } as NonNullable<Job["progress"]> });
    expect((["planning", "converting", "publishing"] as const).map((stage) => markOf(failed, stage))).toEqual([
      "done",
      "failed",
      "todo",
    ]);
  });
});
