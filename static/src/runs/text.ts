/** Describes jobs in text. */
import type { Job, Progress, Stage } from "../api/types";
import { count, counted, rowsChangeText } from "../format/number";
import { duration } from "../format/time";
import { rowsChange, type TableOutcome } from "./outcome";

export const STAGE_WORDS: Record<Stage, string> = {
  planning: "Planning",
  converting: "Converting",
  publishing: "Publishing",
  finishing: "Finishing",
};

/** `converting 7/12 files`. */
export function stageText(progress: Progress): string {
  const { stage } = progress;
  switch (stage) {
    case "planning":
      return "planning";
    case "converting":
      return `converting ${count(progress.files_done)}/${count(progress.files_total)} files`;
    case "publishing":
      return `publishing ${count(progress.partitions_written)}/${count(progress.partitions_total)} partitions`;
    case "finishing":
      return "finishing";
  }
}

/** Warning for a running job without heartbeats; undefined otherwise. */
export function silenceText(job: Job): string | undefined {
  if (typeof job.silent_ms !== "number") return undefined;
  return `no heartbeat from the worker for ${duration(job.silent_ms)}; another worker takes over the job`;
}

/** Why a queued job hasn't started. */
export function waitingText(job: Job): string {
  switch (job.reason) {
    case "pipeline_busy":
      return "Waiting for another run of the pipeline to end";
    case "retry":
      return job.error
        ? `Retrying after a temporary failure: ${job.error.message}`
        : "Retrying after a temporary failure";
    case "source_being_written":
      return "Waiting for a file that is still being written";
    case "paused":
      return "Waiting: runs are paused";
    case null:
    case undefined:
    default:
      return "Waiting for a free worker";
  }
}

/** When a waiting job starts; undefined if nobody knows. */
export const startsAt = (job: Job): string | undefined =>
  job.reason === "paused" ? undefined : (job.not_before ?? undefined);

const TRIGGERS: Record<string, string> = {
  manual: "Started manually",
  auto: "New or changed files",
  dry_run: "Checks a config against all files, and writes nothing",
};

/** What started a job, in lists; programs have names of their own for it. */
export const triggerWords = (trigger: string): string =>
  trigger === "auto" ? "automatic" : trigger === "dry_run" ? "dry run" : trigger;

export const isDryRun = (job: Job): boolean => job.trigger === "dry_run";

export const triggerTitle = (trigger: string): string | undefined => TRIGGERS[trigger];

/** Rows read by a run; unchanged files aren't read again. */
export const rowsRead = (job: Job): number | undefined => job.progress?.rows_read;

/** Whether a run changed the table. */
export const isChanged = (table: TableOutcome): boolean => table.partitions_written > 0 || table.partitions_deleted > 0;

/** Whether a completed run changed a table. */
export function changedAnything(job: Job): boolean {
  if (job.result?.dropped?.length) return true;
  return Object.values(job.result?.tables ?? {}).some(isChanged);
}

/** `completed: 336,774 rows loaded, 2 rejected in 3.2 s`. */
export function outcomeText(job: Job): string {
  const took = typeof job.duration_ms === "number" ? ` in ${duration(job.duration_ms)}` : "";
  if (job.status === "failed") {
    if (job.error?.code === "cancelled") return "cancelled";
    return `failed: ${job.error?.message ?? "unknown cause"}`;
  }
  if (!changedAnything(job)) return `completed: no changes${took}`;
  const { rows_read: read = 0, rows_written: loaded = 0, rows_rejected: rejected = 0 } = job.progress ?? {};
  if (read === 0) return `completed: rows removed${took}`;
  const some = rejected > 0 ? `, ${count(rejected)} rejected` : "";
  return `completed: ${counted(loaded, "row")} loaded${some}${took}`;
}

/** Whether a failed job may have published some of its tables. */
export function mayHavePublished({ progress, error }: Job): boolean {
  const stage = progress?.stage;
  return stage === "publishing" || stage === "finishing" || (error?.detail ?? "").includes("partially published");
}

/** How a job ended; the cause of a failure is shown separately. */
export function endText(job: Job): string {
  if (isDryRun(job)) return `The dry run ${job.status === "failed" ? endWord(job) : "completed"}. Nothing was written.`;
  if (job.status !== "failed") return `The run ${outcomeText(job)}.`;
  const took = typeof job.duration_ms === "number" ? ` after ${duration(job.duration_ms)}` : "";
  const tables = mayHavePublished(job)
    ? "Some tables may already show its rows; the next run completes the others."
    : "No tables were changed.";
  return `The run ${endWord(job)}${took}. ${tables}`;
}

const endWord = (job: Job): string => (job.error?.code === "cancelled" ? "was cancelled" : "failed");

/** What a run did to the rows of tables, in total. */
function rowsText(tables: readonly TableOutcome[]): string {
  const some = tables.length > 1 ? ` in ${counted(tables.length, "table")}` : "";
  const changes = tables.map((table) => rowsChange(table));
  // A new table has no count before, and older records don't have it.
  if (changes.includes(undefined))
    return (
      counted(
        tables.reduce((sum, table) => sum + table.rows_written, 0),
        "row",
      ) + some
    );
  const change = changes.reduce((sum: number, one = 0) => sum + one, 0);
  return rowsChangeText(change) + some;
}

/** Short outcome for job lists, without status and time. */
export function shortOutcome(job: Job): string {
  if (job.status === "failed") return job.error?.message ?? "failed";
  const changed = Object.values(job.result?.tables ?? {}).filter(isChanged);
  const dropped = job.result?.dropped?.length ?? 0;
  const parts = [changed.length > 0 && rowsText(changed), dropped > 0 && `${counted(dropped, "table")} deleted`].filter(
    (part) => part !== false,
  );
  return parts.length > 0 ? parts.join(", ") : "no changes";
}
