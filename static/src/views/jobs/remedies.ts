/** What to do about a failed run, for every code that one can have. The message itself says what happened. */
import type { RunError } from "../../api/types";

export type Step = "config" | "place" | "retry" | "clean" | "rejects" | "propose" | "new-run";

interface Remedy {
  text: string;
  /** Buttons that do it, the likeliest first. */
  steps: Step[];
}

type Code = RunError["code"];

export const RUN_REMEDIES: Record<Code, Remedy> = {
  invalid_config: { text: "Fix the config at the place named, then run again.", steps: ["config", "retry"] },
  pipeline_config_not_found: {
    text: "Write a config, or drop a CSV to have one proposed.",
    steps: ["config", "propose"],
  },
  no_input: {
    text: "Put CSVs where `files` of the config looks, or correct `files`. A clean run empties the tables instead.",
    steps: ["place", "config", "clean"],
  },
  too_many_rejects: {
    text: "Look at what was rejected and why. Then correct the CSV, the column's type in the config, or allow more in `rejects`.",
    steps: ["rejects", "config", "retry"],
  },
  row_failed: {
    text: "Correct the row in the CSV, or set `on_error` (or `ragged_rows`, `on_fail`) so that such a row is rejected and the run goes on.",
    steps: ["place", "config", "retry"],
  },
  expression_failed: {
    text: "Look at `expr`, `where` and `checks` of the table in the config; a simpler expression needs less memory.",
    steps: ["config", "retry"],
  },
  header_mismatch: {
    text: "Correct the CSV's header, add its name to the column's `from`, or say in the config what missing or extra columns mean.",
    steps: ["place", "config", "retry"],
  },
  unreadable_source: {
    text: "Upload the file again, or correct its compression and encoding in the config.",
    steps: ["place", "config", "retry"],
  },
  source_changed: {
    text: "The file kept changing while it was read. Run again once nothing writes to it.",
    steps: ["retry", "place"],
  },
  clean_run_required: {
    text: "Do a clean run, which makes the table anew and drops the partitions named, or put their CSVs back.",
    steps: ["clean", "config"],
  },
  accounting_broken: {
    text: "Nothing was published, and the tables are as they were. This is a defect of Lakemill: keep the job's id and the file, and report it.",
    steps: ["retry"],
  },
  verification_failed: {
    text: "Something else wrote into the table's folder, or the store lost a write. Run again; if it goes on, a clean run makes the table anew.",
    steps: ["retry", "clean"],
  },
  bucket_not_found: {
    text: "Make the bucket, or correct the S3_BUCKET_ settings of worker and web service, then run again.",
    steps: ["retry"],
  },
  access_denied: {
    text: "Check the service's credentials for the object store and what they may do on this bucket, then run again.",
    steps: ["retry"],
  },
  disk_full: {
    text: "Make room on the worker's disk (SVC_SCRATCH_DIR) or in the store, then run again.",
    steps: ["retry"],
  },
  cancelled: { text: "It was cancelled. No tables were changed.", steps: ["retry"] },
  internal: {
    text: "This is not the pipeline's fault. Run again; if it goes on, look at the worker's log.",
    steps: ["retry"],
  },
  s3_error: {
    text: "The object store didn't do what it was asked. Run again; if it goes on, look at the store.",
    steps: ["retry", "place"],
  },
  lease_lost: {
    text: "The worker lost its hold on the pipeline and stopped before it could do harm. Run again.",
    steps: ["retry"],
  },
  source_being_written: {
    text: "Somebody was still writing the file. Run again once it is whole.",
    steps: ["retry", "place"],
  },
  invalid_job: {
    text: "The message in the queue couldn't be understood. Correct what enqueues it, or start a run here.",
    steps: ["new-run"],
  },
  worker_lost: {
    text: "Workers died with this job. Look at their memory (SVC_RUN_MEMORY_BYTES) and log, then run again.",
    steps: ["retry"],
  },
  worker_stopping: { text: "The worker was stopped before the run ended. Run again.", steps: ["retry"] },
  panicked: {
    text: "This is a defect of Lakemill: keep the job's id and the worker's log, and report it. Another try may work.",
    steps: ["retry"],
  },
};

const UNKNOWN: Remedy = { text: "Run again; if it goes on, look at the worker's log.", steps: ["retry"] };

/** A service that is newer than this page may have codes that aren't listed. */
export const remedyOfRun = (error: RunError): Remedy =>
  (RUN_REMEDIES as Record<string, Remedy | undefined>)[error.code] ?? UNKNOWN;

/** Where an error is: in the config (a JSON Pointer), or at a file or folder of the lake. */
export type Place =
  | { kind: "config"; pointer: string }
  | { kind: "lake"; prefix: string; file?: string; line?: number }
  | { kind: "text"; text: string };

const OF_SOURCES: ReadonlySet<string> = new Set<Code>([
  "no_input",
  "row_failed",
  "header_mismatch",
  "unreadable_source",
  "source_changed",
  "source_being_written",
]);

export function placeOf(slug: string, error: RunError): Place | undefined {
  const { path, code } = error;
  if (code === "invalid_config" && (!path || path.startsWith("/"))) return { kind: "config", pointer: path ?? "" };
  // The file of the rejected rows is offered by itself.
  if (!path || code === "too_many_rejects") return undefined;
  if (!OF_SOURCES.has(code)) return { kind: "text", text: path };
  const own = `pipelines/${slug}/`;
  const key = path.startsWith("pipelines/") ? path : own + path;
  const cut = key.lastIndexOf("/") + 1;
  if (cut === key.length) return { kind: "lake", prefix: key };
  const line = / line (\d+)\b/.exec(error.message)?.[1];
  return { kind: "lake", prefix: key.slice(0, cut), file: key, ...(line ? { line: Number(line) } : {}) };
}
