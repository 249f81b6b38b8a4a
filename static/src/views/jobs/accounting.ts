/** Row accounting: every row that was read is written, rejected or filtered. */
import type { SourceResult } from "../../api/types";

interface Balance {
  read: number;
  written: number;
  rejected: number;
  filtered: number;
  /** Rows that the sum lacks (or, below zero, has too many of); zero where it adds up. */
  missing: number;
}

export function balanceOf(source: SourceResult): Balance {
  const { rows_read: read, rows_written: written, rows_rejected: rejected, rows_filtered: filtered } = source;
  return { read, written, rejected, filtered, missing: read - written - rejected - filtered };
}

export function sumOf(sources: SourceResult[]): Balance {
  const sum: Balance = { read: 0, written: 0, rejected: 0, filtered: 0, missing: 0 };
  for (const one of sources.map(balanceOf)) {
    sum.read += one.read;
    sum.written += one.written;
    sum.rejected += one.rejected;
    sum.filtered += one.filtered;
    // A row too many here and one too few there are two faults, not none.
    sum.missing += Math.abs(one.missing);
  }
  return sum;
}
