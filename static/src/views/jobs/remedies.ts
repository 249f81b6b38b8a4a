/** Remedies for failed runs, by error code. The message has the particulars. */
import type { RunError } from "../../api/types";

export type Step = "adapt" | "config" | "place" | "retry" | "clean" | "rejects" | "propose" | "new-run";

interface Remedy {
  /** What happened, in a few words; unset: the message says it. */
  title?: string;
  text: string;
  /** Buttons for it, the most likely first. */
  steps: Step[];
}

type Code = RunError["code"];

export const RUN_REMEDIES: Record<Code, Remedy> = {
  invalid_config: {
    text: "Fix the config at the location shown, then run again.",
    steps: ["config", "retry"],
  },
  pipeline_config_not_found: {
    text: "Write a config, or generate one from a CSV.",
    steps: ["config", "propose"],
  },
  no_input: {
    title: "No files to load",
    text: "Upload CSVs that a table reads, or correct `files` in the config. To empty the tables instead, start a clean run.",
    steps: ["place", "config", "clean"],
  },
  too_many_rejects: {
    title: "More rows than allowed don't fit the table",
    text: "Check the rejected rows and their reasons. Then change how the columns are read, correct the CSV, or allow rejected rows.",
    steps: ["adapt", "rejects", "config", "retry"],
  },
  row_failed: {
    title: "A row doesn't fit the table",
    text: "Correct the row in the CSV, or have such rows left out of the table: by `on_error`, `ragged_rows` or `on_fail` in the config.",
    steps: ["adapt", "place", "config", "retry"],
  },
  expression_failed: {
    title: "A formula of the table couldn't be computed",
    text: "Check `expr`, `where` and `checks` of the table in the config. A simpler expression needs less memory.",
    steps: ["config", "retry"],
  },
  header_mismatch: {
    title: "The columns of a file don't fit the table",
    text: "Correct the CSV's header, add the header name to the column's `from`, or set how missing and extra columns are handled in the config.",
    steps: ["adapt", "place", "config", "retry"],
  },
  unreadable_source: {
    title: "A file can't be read",
    text: "Upload the file again, or correct its compression and encoding in the config.",
    steps: ["adapt", "place", "config", "retry"],
  },
  source_changed: {
    text: "The file kept changing while it was read. Run again when nothing writes to it.",
    steps: ["retry", "place"],
  },
  archived_sources_missing: {
    text: "No tables were changed. Put the archived CSVs back into the lake, or set when_removed to remove_rows in the config to drop their rows.",
    steps: ["config", "place"],
  },
  accounting_broken: {
    text: "No tables were changed. This is a bug in Lakemill: please report it with the job ID and the file.",
    steps: ["retry"],
  },
  verification_failed: {
    text: "Another program wrote to the table's folder, or the store lost a write. Run again. If this continues, start a clean run to rebuild the table.",
    steps: ["retry", "clean"],
  },
  bucket_not_found: {
    text: "Create the bucket, or correct the S3_BUCKET_ settings of the worker and the web service, then run again.",
    steps: ["retry"],
  },
  access_denied: {
    text: "Check the service's object-store credentials and their permissions for this bucket, then run again.",
    steps: ["retry"],
  },
  disk_full: {
    text: "Free space on the worker's disk (SVC_SCRATCH_DIR) or in the store, then run again.",
    steps: ["retry"],
  },
  cancelled: {
    text: "Run again to build the tables.",
    steps: ["retry"],
  },
  internal: {
    text: "The pipeline isn't the cause. Run again. If this continues, check the worker log.",
    steps: ["retry"],
  },
  s3_error: {
    text: "The object store failed to handle a request. Run again. If this continues, check the store.",
    steps: ["retry", "place"],
  },
  lease_lost: {
    text: "The worker lost its lock on the pipeline and stopped without changing tables. Run again.",
    steps: ["retry"],
  },
  source_being_written: {
    text: "The file was still being written. Run again when it is complete.",
    steps: ["retry", "place"],
  },
  invalid_job: {
    text: "The queue message is invalid. Correct the program that enqueues it, or start a run here.",
    steps: ["new-run"],
  },
  worker_lost: {
    text: "Workers crashed on this job. Check their memory limit (SVC_RUN_MEMORY_BYTES) and log, then run again.",
    steps: ["retry"],
  },
  worker_stopping: {
    text: "The worker was stopped during the run. Run again.",
    steps: ["retry"],
  },
  panicked: {
    text: "This is a bug in Lakemill: please report it with the job ID and the worker log. A retry may succeed.",
    steps: ["retry"],
  },
};

const UNKNOWN: Remedy = { text: "Run again. If this continues, check the worker log.", steps: ["retry"] };

/** A newer service may have unknown codes. */
export const remedyOfRun = (error: RunError): Remedy =>
  (RUN_REMEDIES as Record<string, Remedy | undefined>)[error.code] ?? UNKNOWN;

/** Location of an error: in the config (JSON Pointer), or a file or folder of the lake. */
export type ErrorLocation =
  | { kind: "config"; pointer: string }
  | { kind: "lake"; prefix: string; file?: string; line?: number }
  | { kind: "text"; text: string };

const SOURCE_CODES: ReadonlySet<string> = new Set<Code>([
  "no_input",
  "row_failed",
  "header_mismatch",
  "unreadable_source",
  "source_changed",
  "source_being_written",
]);

export function locationOf(slug: string, error: RunError): ErrorLocation | undefined {
  const { path, code } = error;
  if (code === "invalid_config" && (!path || path.startsWith("/"))) return { kind: "config", pointer: path ?? "" };
  // The file of rejected rows is offered separately.
  if (!path || code === "too_many_rejects") return undefined;
  if (!SOURCE_CODES.has(code)) return { kind: "text", text: path };
  const own = `pipelines/${slug}/`;
  const key = path.startsWith("pipelines/") ? path : own + path;
  const cut = key.lastIndexOf("/") + 1;
  if (cut === key.length) return { kind: "lake", prefix: key };
  const line = / line (\d+)\b/.exec(error.message)?.[1];
  return { kind: "lake", prefix: key.slice(0, cut), file: key, ...(line ? { line: Number(line) } : {}) };
}
