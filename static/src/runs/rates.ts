/**
 * Estimates speed and remaining time of a run from successive samples of its counters.
 *
 * Invariant: an estimate is shown only while the rate is steady.
 */
import type { Job, Progress, Stage } from "../api/types";

export interface Sample {
  /** Milliseconds since the epoch. */
  at: number;
  progress: Progress;
}

interface Rates {
  rowsPerS: number | undefined;
  bytesPerS: number | undefined;
  /** Milliseconds until the slowest counter is done. */
  leftMs: number | undefined;
}

/** Older samples are dropped. */
const WINDOW_MS = 12_000;
const SAMPLE_GAP_MS = 400;
/** Minimum span for a rate. */
const RATE_SPAN_MS_MIN = 1_500;
const ESTIMATE_SPAN_MS_MIN = 4_000;
/** Maximum ratio between the halves of the window for an estimate. */
const STEADY_FACTOR = 2;
const JOBS_KEPT_MAX = 50;

/** Adds a sample; a restarted run starts over. */
export function addSample(samples: Sample[], progress: Progress, at: number): Sample[] {
  const last = samples.at(-1);
  if (!last) return [{ at, progress }];
  if (
    progress.rows_read < last.progress.rows_read ||
    STAGES.indexOf(progress.stage) < STAGES.indexOf(last.progress.stage)
  )
    return [{ at, progress }];
  if (at - last.at < SAMPLE_GAP_MS) return samples;
  return [...samples.filter((one) => at - one.at <= WINDOW_MS), { at, progress }];
}

export const STAGES: readonly Stage[] = ["planning", "converting", "publishing", "finishing"];

function perS(samples: Sample[], of: (progress: Progress) => number): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last || last.at - first.at < RATE_SPAN_MS_MIN) return undefined;
  return Math.max(0, of(last.progress) - of(first.progress)) / ((last.at - first.at) / 1_000);
}

const isSteady = (a: number, b: number): boolean => a > 0 && b > 0 && Math.max(a, b) / Math.min(a, b) <= STEADY_FACTOR;

function leftMs(samples: Sample[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last || last.at - first.at < ESTIMATE_SPAN_MS_MIN) return undefined;
  const measure = measures[last.progress.stage];
  if (!measure) return undefined;
  const inStage = samples.filter(({ progress }) => progress.stage === last.progress.stage);
  const middle = inStage[Math.floor(inStage.length / 2)];
  if (!middle || inStage.length < 4) return undefined;
  const [before, after] = [
    perS(inStage.slice(0, inStage.indexOf(middle) + 1), measure.done),
    perS(inStage.slice(inStage.indexOf(middle)), measure.done),
  ];
  const rate = perS(inStage, measure.done);
  if (!before || !after || !rate || !isSteady(before, after)) return undefined;
  return ((measure.total(last.progress) - measure.done(last.progress)) / rate) * 1_000;
}

interface Measure {
  done: (progress: Progress) => number;
  total: (progress: Progress) => number;
}

const measures: Partial<Record<Stage, Measure>> = {
  converting: { done: (p) => p.bytes_done, total: (p) => p.bytes_total },
  publishing: { done: (p) => p.partitions_written, total: (p) => p.partitions_total },
};

export const ratesOf = (samples: Sample[]): Rates => {
  const converting = samples.at(-1)?.progress.stage === "converting";
  return {
    rowsPerS: converting ? perS(samples, (p) => p.rows_read) : undefined,
    bytesPerS: converting ? perS(samples, (p) => p.bytes_done) : undefined,
    leftMs: leftMs(samples),
  };
};

/** Overall progress, 0 to 1; reading has most of the range, and the bar never moves backwards. */
export function overallProgress(progress: Progress): number {
  const { stage } = progress;
  const part = (done: number, total: number) => (total > 0 ? Math.min(1, done / total) : 0);
  switch (stage) {
    case "planning":
      return 0;
    case "converting":
      return (
        CONVERTING_PART *
        (progress.bytes_total > 0
          ? part(progress.bytes_done, progress.bytes_total)
          : part(progress.files_done, progress.files_total))
      );
    case "publishing":
      return CONVERTING_PART + (1 - CONVERTING_PART) * part(progress.partitions_written, progress.partitions_total);
    case "finishing":
      return 1;
  }
}

const CONVERTING_PART = 0.85;

/** Samples of a run while the page is open. */
interface Observation {
  samples: Sample[];
  /** Start of each stage that was observed. */
  stages: Partial<Record<Stage, number>>;
}

const seen = new Map<string, Observation>();
const nameOf = (job: Job): string => `${job.job_id} ${job.attempt}`;

/** Adds a sample of a job and returns its rate; views of one job share the samples. */
export function observe(job: Job, at: number): Rates {
  if (!job.progress || job.status !== "running")
    return { rowsPerS: undefined, bytesPerS: undefined, leftMs: undefined };
  const before = seen.get(nameOf(job));
  const { stage } = job.progress;
  const stages = { ...before?.stages };
  // The first sample may be in the middle of a stage.
  if (before ? stages[stage] === undefined && before.samples.at(-1)?.progress.stage !== stage : stage === "planning")
    stages[stage] = at;
  const next = { samples: addSample(before?.samples ?? [], job.progress, at), stages };
  seen.set(nameOf(job), next);
  const oldest = seen.size > JOBS_KEPT_MAX ? seen.keys().next().value : undefined;
  if (oldest !== undefined) seen.delete(oldest);
  return ratesOf(next.samples);
}

/** Durations of the observed stages, in milliseconds. `end`: end of the run, if it has ended. */
export function stageTimes(job: Job, end: number): Partial<Record<Stage, number>> {
  const began = seen.get(nameOf(job))?.stages ?? {};
  const took: Partial<Record<Stage, number>> = {};
  STAGES.forEach((stage, at) => {
    const from = began[stage];
    if (from === undefined) return;
    const after = STAGES.slice(at + 1).flatMap((later) => began[later] ?? []);
    const until = after[0] ?? end;
    if (until >= from) took[stage] = until - from;
  });
  return took;
}
