/** Row accounting: every row read is written, rejected or filtered. */
import type { SourceResult } from "../../api/types";

interface Balance {
  read: number;
  written: number;
  rejected: number;
  filtered: number;
  /** Rows missing from the sum (negative: too many); zero if it adds up. */
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
    // Surplus and deficit don't cancel each other out.
    sum.missing += Math.abs(one.missing);
  }
  return sum;
}
