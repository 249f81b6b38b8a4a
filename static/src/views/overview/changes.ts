/** Changes of the last run that changed a table. */
import type { Commit, Job } from "../../api/types";
import { rowsChange, type TableOutcome } from "../../runs/outcome";
import { changedAnything, isChanged } from "../../runs/text";

export interface TableChange {
  table: string;
  rows: number;
  /** Undefined: the previous count is unknown. */
  change: number | undefined;
  partitions: number;
  /** Created by the run. */
  isNew: boolean;
}

/** The newest completed run with changes, and the completed one before it. */
export function lastChange(jobs: Job[]): { job: Job; before: Job | undefined } | undefined {
  const completed = jobs.filter(({ status }) => status === "completed");
  const at = completed.findIndex(changedAnything);
  const job = completed[at];
  return job && { job, before: completed[at + 1] };
}

/** A table whose current version is an earlier one that was restored. */
export interface RestoredTable {
  table: string;
  /** The version that was restored. */
  version: number;
  at: string;
  rows: number;
  /** Undefined: the version before is no longer known. */
  change: number | undefined;
}

/** The tables that were restored after the run; `commits`: their newest versions first. */
export function restoredSince(
  run: Pick<Job, "finished_at"> | undefined,
  tables: readonly { table: string; commits: readonly Commit[] }[],
): RestoredTable[] {
  const ended = run?.finished_at ? Date.parse(run.finished_at) : Number.NEGATIVE_INFINITY;
  return tables
    .flatMap(({ table, commits: [now, before] }) => {
      if (!now || now.restored === null || Date.parse(now.committed_at) < ended) return [];
      const change = before && now.rows - before.rows;
      return [{ table, version: now.restored, at: now.committed_at, rows: now.rows, change }];
    })
    .sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** Changed tables, largest change first. */
export function changesOf(job: Job, before: Job | undefined): TableChange[] {
  const tables = Object.entries(job.result?.tables ?? {}) as [string, TableOutcome][];
  return tables
    .filter(([, table]) => isChanged(table))
    .map(([name, table]) => {
      const earlier = before?.result?.tables[name];
      return {
        table: name,
        rows: table.rows_written,
        change: rowsChange(table, earlier),
        partitions: table.partitions_written + table.partitions_deleted,
        // Older records have null too, but no partitions.
        isNew: !earlier && table.rows_before === null && (table.changes?.partitions_total ?? 0) > 0,
      };
    })
    .sort((a, b) => Math.abs(b.change ?? b.rows) - Math.abs(a.change ?? a.rows) || a.table.localeCompare(b.table));
}

/**
 * New and changed files of a run. One that rebuilds a table reads all its files again, which are new only as far as the
 * run before had fewer.
 */
function newFiles(job: Job, before: Job | undefined): number {
  let files = 0;
  for (const [name, table] of Object.entries(job.result?.tables ?? {})) {
    const earlier = before?.result?.tables[name];
    const isFirst = !earlier && typeof table.rows_before !== "number";
    const isRebuild = !isFirst && (job.clean_run || (table.sources_skipped === 0 && job.trigger !== "auto"));
    const had = earlier ? earlier.sources_read + earlier.sources_skipped : table.sources_read;
    files += isRebuild ? Math.max(0, table.sources_read - had) : table.sources_read;
  }
  return files;
}

/** The last run that had new or changed files, with their number. */
export function lastNewFiles(jobs: Job[]): { job: Job; files: number } | undefined {
  const completed = jobs.filter(({ status }) => status === "completed");
  return completed.map((job, at) => ({ job, files: newFiles(job, completed[at + 1]) })).find(({ files }) => files > 0);
}
