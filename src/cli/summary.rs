//! The summary that `lakemill run` prints at its end.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount};

use crate::domain::job::{RunResult, TableResult};

/// Maximum number of checks, partitions and sources listed per table.
const LISTED_MAX: usize = 10;

/// A table of the tables, then notes.
pub fn of(result: &RunResult, dry_run: bool, prefix: &str, elapsed: Duration) -> String {
    let mut out = String::new();
    let header = ["table", "rows", "rejected", "filtered", "files", "size", "written", "unchanged", "read", "skipped"];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(result.tables.iter().map(|(name, table)| cells(name, table)));
    align(&rows, &mut out);
    for (name, table) in &result.tables {
        for (check, rows) in table.warnings.iter().take(LISTED_MAX) {
            let _ = writeln!(out, "warning: table `{name}`: check `{check}` failed on {}", counted(*rows, "row"));
        }
        if table.rows_rejected > 0 {
            let (count, verb) =
                (counted(table.rows_rejected, "row"), if table.rows_rejected == 1 { "is" } else { "are" });
            let why = if dry_run { "would be" } else { verb };
            let _ = writeln!(out, "table `{name}`: {count} {why} in _rejected_rows/table={name}, with the reason");
        }
        if table.rows_written == 0 && table.sources_read > 0 {
            let _ = writeln!(out, "table `{name}`: no row was written: {}", no_rows_reason(table));
        }
        if table.partitions_deleted > 0 && !dry_run {
            let count = counted(table.partitions_deleted, "partition");
            let _ = writeln!(out, "table `{name}`: {count} deleted, since they have no more rows");
        }
    }
    for table in &result.dropped {
        let what = if dry_run { "would be" } else { "was" };
        let _ = writeln!(out, "table `{table}` is no longer in the config: its output {what} deleted");
    }
    if dry_run {
        for (name, table) in &result.tables {
            list(&mut out, name, "write", &table.planned.write);
            list(&mut out, name, "delete", &table.planned.delete);
        }
    }
    let read: u64 = result.tables.values().map(|t| t.sources_read).sum();
    let skipped: u64 = result.tables.values().map(|t| t.sources_skipped).sum();
    let changed: u64 = result.tables.values().map(|t| t.partitions_written).sum();
    let deleted: u64 = result.tables.values().map(|t| t.partitions_deleted).sum();
    let seconds = elapsed.as_secs_f64();
    let _ = match (dry_run, read + changed + deleted) {
        (true, _) => writeln!(out, "dry run: nothing was written ({seconds:.1} s)"),
        (false, 0) if !prefix.is_empty() => {
            writeln!(out, "nothing to do: no new or changed file whose path starts with `{prefix}` ({seconds:.1} s)")
        }
        (false, 0) if skipped == 1 => writeln!(out, "nothing changed: 1 file is unchanged ({seconds:.1} s)"),
        (false, 0) => {
            writeln!(out, "nothing changed: {} are unchanged ({seconds:.1} s)", counted(skipped, "file"))
        }
        (false, _) => {
            let (read, changed) = (counted(read, "file"), counted(changed, "partition"));
            writeln!(out, "{read} read, {changed} written in {seconds:.1} s")
        }
    };
    out
}

/// Why a table has no rows.
fn no_rows_reason(table: &TableResult) -> String {
    match (table.rows_filtered, table.rows_rejected) {
        (0, 0) => "the files read have no rows".to_owned(),
        (filtered, 0) => format!("`where` is false or null for {}", of_all_rows(filtered)),
        (0, 1) => "the only row was rejected".to_owned(),
        (0, rejected) => format!("all {} were rejected", counted(rejected, "row")),
        (filtered, rejected) => {
            format!("`where` is false or null for {}, and {} rejected", counted(filtered, "row"), HumanCount(rejected))
        }
    }
}

/// `the only row`, `all 2 rows`.
fn of_all_rows(count: u64) -> String {
    if count == 1 { "the only row".to_owned() } else { format!("all {}", counted(count, "row")) }
}

fn cells(name: &str, table: &TableResult) -> [String; 10] {
    let count = |n: u64| HumanCount(n).to_string();
    [
        name.to_owned(),
        count(table.rows_written),
        count(table.rows_rejected),
        count(table.rows_filtered),
        count(table.files),
        HumanBytes(table.bytes).to_string(),
        count(table.partitions_written),
        count(table.partitions_unchanged),
        count(table.sources_read),
        count(table.sources_skipped),
    ]
}

fn align<const N: usize>(rows: &[[String; N]], out: &mut String) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn list(out: &mut String, table: &str, verb: &str, partitions: &[String]) {
    if partitions.is_empty() {
        return;
    }
    let _ = writeln!(out, "table `{table}`: would {verb} {}", counted(partitions.len() as u64, "partition"));
    for partition in partitions.iter().take(LISTED_MAX) {
        let _ = writeln!(out, "  {}", if partition.is_empty() { "(the whole table)" } else { partition });
    }
    if partitions.len() > LISTED_MAX {
        let _ = writeln!(out, "  and {} more", partitions.len() - LISTED_MAX);
    }
}

/// `1 file`, `2 files`.
fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", HumanCount(count), if count == 1 { "" } else { "s" })
}
