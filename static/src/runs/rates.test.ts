import { describe, expect, it } from "vitest";
import type { Job, Progress } from "../api/types";
import { observe, addSample, ratesOf, stageTimes, overallProgress, type Sample } from "./rates";

const none: Progress = {
  stage: "converting",
  files_total: 10,
  files_done: 0,
  mappings_total: 1,
  mappings_done: 0,
  bytes_total: 1_000,
  bytes_done: 0,
  rows_read: 0,
  rows_written: 0,
  rows_rejected: 0,
  partitions_written: 0,
  partitions_total: 0,
};

/** A sample a second, with these bytes done and ten rows a byte. */
const seen = (...bytes: number[]): Sample[] =>
  bytes.reduce<Sample[]>(
    (samples, done, second) => addSample(samples, { ...none, bytes_done: done, rows_read: done * 10 }, second * 1_000),
    [],
  );

describe("run rate", () => {
  it("is unknown after one sample", () => expect(ratesOf(seen(5)).rowsPerS).toBeUndefined());
  it("covers the last seconds", () => expect(ratesOf(seen(0, 10, 20)).rowsPerS).toBe(100));
  it("ignores old samples", () => {
    const samples = addSample([{ at: 0, progress: none }, ...seen(0, 0)], { ...none, rows_read: 50 }, 60_000);
    expect(ratesOf(samples).rowsPerS).toBeUndefined();
  });
  it("restarts when a run restarts", () => expect(seen(500, 600, 3)).toHaveLength(1));
  it("falls to zero without progress", () => expect(ratesOf(seen(10, 10, 10, 10)).rowsPerS).toBe(0));
  it("is unknown while partitions are published", () => {
    const samples = [0, 2_000].map((at) => ({ at, progress: { ...none, stage: "publishing" as const } }));
    expect(ratesOf(samples)).toEqual({ rowsPerS: undefined, bytesPerS: undefined, leftMs: undefined });
  });
});

describe("remaining time", () => {
  it("is shown once the rate is steady", () =>
    expect(ratesOf(seen(0, 100, 200, 300, 400, 500)).leftMs).toBeCloseTo(5_000));
  it("is hidden while the rate changes", () => expect(ratesOf(seen(0, 1, 2, 100, 300, 500)).leftMs).toBeUndefined());
  it("is hidden without progress", () => expect(ratesOf(seen(5, 5, 5, 5, 5, 5)).leftMs).toBeUndefined());
  it("is hidden at the start", () => expect(ratesOf(seen(0, 100, 200)).leftMs).toBeUndefined());
});

describe("progress bar", () => {
  it("never moves backwards between stages", () => {
    const steps: Progress[] = [
      { ...none, stage: "planning" },
      { ...none, bytes_done: 500 },
      { ...none, bytes_done: 1_000 },
      { ...none, stage: "publishing", partitions_total: 4 },
      { ...none, stage: "publishing", partitions_total: 4, partitions_written: 4 },
      { ...none, stage: "finishing" },
    ];
    const parts = steps.map(overallProgress);
    expect(parts).toEqual([...parts].sort((a, b) => a - b));
    expect([parts[0], parts.at(-1)]).toEqual([0, 1]);
  });
  it("counts files if there are no bytes", () =>
    expect(overallProgress({ ...none, bytes_total: 0, files_done: 5 })).toBeGreaterThan(0.4));
});

describe("job stages", () => {
  const job = (progress: Progress, id = "a"): Job =>
    ({ job_id: id, attempt: 1, status: "running", progress }) as unknown as Job;
  it("have the observed durations", () => {
    observe(job({ ...none, stage: "planning" }), 1_000);
    observe(job(none), 1_500);
    observe(job({ ...none, stage: "publishing" }), 4_500);
    expect(stageTimes(job(none), 5_000)).toEqual({ planning: 500, converting: 3_000, publishing: 500 });
  });
  it("have no duration if they started before the page was opened", () => {
    observe(job(none, "b"), 1_000);
    observe(job({ ...none, stage: "publishing" }, "b"), 2_000);
    expect(stageTimes(job(none, "b"), 3_000)).toEqual({ publishing: 1_000 });
  });
});
