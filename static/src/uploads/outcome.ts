/** Outcome of uploaded files, by the status of their pipeline and the run that loaded them. */
import type { Job, PipelineStatus, SourceResult } from "../api/types";
import { count, counted } from "../format/number";
import { matcher } from "./globs";
import { namesOf } from "./keys";

export type Tone = "ok" | "run" | "warn" | "bad";

interface Outcome {
  tone: Tone;
  text: string;
  /** The job that failed. */
  job?: string;
  /** A table with rejected rows of the files, and the file if it is one. */
  rejected?: { table: string; source: string | undefined };
}

interface Facts {
  status: PipelineStatus;
  /** Uploaded files that are still in the lake, relative to the pipeline's folder. */
  keys: readonly string[];
  /** Number of uploaded files, also of those that were deleted since; unset: none was. */
  uploaded?: number;
  /** Whether new files start a run. */
  autoRun: boolean;
  /** Whether runs are paused, and none is in progress. */
  paused?: boolean;
  /** The known runs that read some of the files, oldest first, with their sources. */
  runs?: readonly Job[];
}

/** Results of runs for files, by table; those of a later run replace earlier ones of the same file. */
function resultsOf(runs: readonly Job[], keys: ReadonlySet<string>): [string, SourceResult[]][] {
  const tables = new Map<string, Map<string, SourceResult>>();
  for (const run of runs)
    for (const [table, { sources }] of Object.entries(run.result?.tables ?? {}))
      for (const source of sources) {
        if (!keys.has(source.source)) continue;
        const found = tables.get(table) ?? new Map<string, SourceResult>();
        tables.set(table, found.set(source.source, source));
      }
  return [...tables].map(([table, sources]) => [table, [...sources.values()]]);
}

/** Whether a completed run read one of the files. */
export const hasRead = (run: Job, keys: readonly string[]): boolean =>
  run.status === "completed" && resultsOf([run], new Set(keys)).length > 0;

/** Rows that runs loaded from files, and rejected. */
function loaded(runs: readonly Job[], keys: readonly string[]): Outcome | undefined {
  const results = resultsOf(runs, new Set(keys));
  if (results.length === 0) return undefined;
  const all = results.flatMap(([, sources]) => sources);
  const files = new Set(all.map(({ source }) => source)).size;
  const sum = (sources: SourceResult[], of: "rows_written" | "rows_rejected") =>
    sources.reduce((rows, source) => rows + source[of], 0);
  const rejected = sum(all, "rows_rejected");
  const written = results.map(
    ([table, sources]) => `${counted(sum(sources, "rows_written"), "row")} loaded into ${table}`,
  );
  const lost = rejected > 0 ? `; ${counted(rejected, "row")} rejected` : "";
  const note = all.length === 1 && all[0]?.note ? ` (${all[0].note})` : "";
  const some = files < keys.length ? ` (${count(files)} of ${counted(keys.length, "file")})` : "";
  const text = `${written.join(", ")}${some}${lost}${note}.`;
  const isEmpty = results.some(([, sources]) => sum(sources, "rows_written") === 0);
  const table = results.find(([, sources]) => sum(sources, "rows_rejected") > 0)?.[0];
  if (table === undefined) return { tone: isEmpty ? "warn" : "ok", text };
  const source = all.length === 1 ? all[0]?.source : undefined;
  return { tone: "warn", text, rejected: { table, source } };
}

/** When uploaded files are loaded. */
export function nextRunText({ paused, autoRun }: { paused: boolean; autoRun: boolean }): string {
  if (paused) return "Runs are paused: the files are loaded after you resume them.";
  if (!autoRun) return "Then run the pipeline; automatic runs are off.";
  return "A run starts 5 seconds after the last upload.";
}

export function outcomeOf(facts: Facts): Outcome {
  const { keys, uploaded = keys.length } = facts;
  const gone = uploaded - keys.length;
  if (gone === 0) return outcomeOfStored(facts);
  if (keys.length === 0) return { tone: "ok", text: "Deleted from the lake since." };
  const outcome = outcomeOfStored(facts);
  return { ...outcome, text: `${outcome.text} ${counted(gone, "file was", "files were")} deleted since.` };
}

function outcomeOfStored({ status, keys, autoRun, paused = false, runs = [] }: Facts): Outcome {
  const own = (files: { first: string[] }) => files.first.filter((key) => keys.includes(key));
  const unread = own(status.not_read).length;
  if (unread > 0) return { tone: "warn", text: `${counted(unread, "CSV")} not read by any table.` };
  const isRead = matcher(status.tables.flatMap(({ globs }) => globs));
  if (!keys.some(isRead)) return { tone: "ok", text: "Uploaded." };
  const { last_job: last, active } = status;
  const result = loaded(runs, keys);
  // Lists have the first names only: files beyond them may wait, too, unless a run has read the files.
  const waits = status.tables.filter(
    ({ pending }) => own(pending).length > 0 || (!result && pending.count > pending.first.length),
  );
  const names = waits.map(({ name }) => name).join(", ");
  if (waits.length === 0) {
    if (result) return result;
    return active ? { tone: "run", text: "Loading…" } : { tone: "ok", text: "Loaded." };
  }
  const isTried = waits.some(
    ({ pending, untried }) =>
      own(pending).length > own(untried).length ||
      (pending.count > pending.first.length && pending.count > untried.count),
  );
  if (!active && isTried && last?.status === "failed" && last.error_code !== "cancelled")
    return {
      tone: "bad",
      text: `Not loaded into ${names}: ${last.error_message ?? "the run failed"}.`,
      job: last.job_id,
    };
  if (paused) return { tone: "warn", text: `Runs are paused: ${names} will be loaded after you resume them.` };
  if (!active && !autoRun) return { tone: "run", text: `Run the pipeline to load ${names}; automatic runs are off.` };
  return { tone: "run", text: `Loading into ${names}…` };
}

/** Names the files that exist already: `a.csv, b.csv and 3 more already exist.` */
export function conflictText(files: readonly { key: string }[]): string {
  return `${namesOf(files.map(({ key }) => key))} already ${files.length === 1 ? "exists" : "exist"}.`;
}
