import type { TableResult } from "../api/types";

export interface PartitionChange {
  partition: string;
  /** Null if it is new. */
  rows_before: number | null;
  /** Null if it was deleted. */
  rows_after: number | null;
}

/** Result of a run for a table, with changes if the service reports them. */
export type TableOutcome = TableResult & {
  rows_before?: number | null;
  changes?: { partitions: PartitionChange[]; partitions_total: number } | null;
};

/** Change of a table's row count by a run, if known. */
export function rowsChange(now: TableOutcome, before?: TableResult): number | undefined {
  const rows = now.rows_before ?? before?.rows_written;
  return rows === undefined ? undefined : now.rows_written - rows;
}
