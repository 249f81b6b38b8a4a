import type { TableResult } from "../api/types";

export interface PartitionChange {
  partition: string;
  /** Null: it is new. */
  rows_before: number | null;
  /** Null: it was deleted. */
  rows_after: number | null;
}

/** What a run did to a table, with what it changed where the service tells that. */
export type TableOutcome = TableResult & {
  rows_before?: number | null;
  changes?: { partitions: PartitionChange[]; partitions_total: number } | null;
};

/** Rows that a table has more (or fewer) than before the run, if that is known. */
export function rowsChange(now: TableOutcome, before?: TableResult): number | undefined {
  const rows = now.rows_before ?? before?.rows_written;
  return rows === undefined ? undefined : now.rows_written - rows;
}
