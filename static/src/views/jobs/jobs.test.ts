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

describe("row accounting", () => {
  it("balances if every row is counted", () => expect(balanceOf(source(10, 6, 3, 1)).missing).toBe(0));
  it("reports missing rows", () => expect(balanceOf(source(10, 6, 3)).missing).toBe(1));
  it("doesn't offset surplus rows against missing ones", () =>
    expect(sumOf([source(10, 9), source(10, 11)]).missing).toBe(2));
});

const job = (id: string, more: Partial<Job> = {}): Job =>
  ({ job_id: id, status: "completed", trigger: "manual", enqueued_at: `2026-01-0${id}`, attempt: 1, ...more }) as Job;

describe("job history", () => {
  it("has each job once, with its latest state, newest first", () => {
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
  it("treats queued and running jobs as active", () =>
    expect(matches(job("1", { status: "queued" }), { status: "active", trigger: "" })).toBe(true));
  it("reports each end once, also of runs never seen running", () => {
    const jobs = [job("3", { status: "running" }), job("2"), job("1")];
    expect(endedSince(new Set(["1"]), jobs).map(({ job_id }) => job_id)).toEqual(["2"]);
  });
});

const error = (code: RunError["code"], path?: string, message = "m"): RunError => ({
  code,
  message,
  path: path ?? null,
});

describe("error location", () => {
  it("is a pointer into the config", () =>
    expect(locationOf("a", error("invalid_config", "/mappings/0"))).toEqual({
      kind: "config",
      pointer: "/mappings/0",
    }));
  it("is the whole config if nothing is named", () =>
    expect(locationOf("a", error("invalid_config"))).toEqual({ kind: "config", pointer: "" }));
  it("is a lake file with the line in the message", () =>
    expect(locationOf("a", error("row_failed", "x/y.csv", "`x/y.csv` line 12: column `n`: no number"))).toEqual({
      kind: "lake",
      prefix: "pipelines/a/x/",
      file: "pipelines/a/x/y.csv",
      line: 12,
    }));
  it("is a folder if no file was found", () =>
    expect(locationOf("a", error("no_input", "pipelines/a/"))).toEqual({ kind: "lake", prefix: "pipelines/a/" }));
  it("is plain text otherwise", () =>
    expect(locationOf("a", error("archived_sources_missing", "orders"))).toEqual({ kind: "text", text: "orders" }));
});

describe("remedies", () => {
  it("are complete sentences with a next step for every code", () => {
    for (const { title, text, steps } of Object.values(RUN_REMEDIES)) {
      if (title !== undefined) expect(title).toMatch(/^[A-Z][^`_]*[^.]$/);
      expect(text).toMatch(/^[A-Z].*\.$/s);
      expect(steps.length).toBeGreaterThan(0);
    }
  });
  it("exist for unknown codes of newer versions", () =>
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
