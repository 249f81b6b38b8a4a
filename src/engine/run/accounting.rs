//! Checks the accounting of a conversion before anything is published.

use std::collections::BTreeMap;

use super::prepared::PreparedTable;
use crate::domain::job::{RunError, RunErrorCode};
use crate::engine::convert::{Converted, SourceOutcome};

/// Checks that every byte and every row read is accounted for, source by source and partition by partition.
///
/// Each byte of a source's text belongs to its header, to a line or record skipped by the config, to a comment, to a
/// blank line, or to a record counted as a row. Each row is written, rejected or filtered.
///
/// `sources`: all sources read. Built partitions hold exactly the rows that these contributed.
pub(super) fn check(
    table: &str,
    sources: &BTreeMap<String, SourceOutcome>,
    converted: &Converted,
) -> Result<(), RunError> {
    for (key, outcome) in sources {
        let rows = &outcome.rows;
        if outcome.text_bytes != outcome.counted_bytes {
            let (read, counted) = (outcome.text_bytes, outcome.counted_bytes);
            let found = format!("read {read} bytes of text, but {counted} belong to rows or to what is skipped");
            return Err(broken(table, key, &found));
        }
        let sum = rows.rows_written + rows.rows_rejected + rows.rows_filtered;
        if rows.rows_read != sum {
            let found = format!(
                "read {}, but wrote {}, rejected {} and filtered {}",
                rows.rows_read, rows.rows_written, rows.rows_rejected, rows.rows_filtered
            );
            return Err(broken(table, key, &found));
        }
        let placed: u64 = outcome.partitions.values().sum();
        if placed != rows.rows_written {
            let found = format!("wrote {} rows, but {placed} have a partition", rows.rows_written);
            return Err(broken(table, key, &found));
        }
        let kept = outcome.rejects.as_ref().map_or(0, |f| f.rows);
        if kept != rows.rows_rejected {
            let found = format!("rejected {} rows, but stored {kept} of them", rows.rows_rejected);
            return Err(broken(table, key, &found));
        }
    }
    for (partition, groups) in &converted.partitions {
        let written: u64 = Converted::files(groups).map(|f| f.rows).sum();
        let given: u64 = sources.values().filter_map(|s| s.partitions.get(partition)).sum();
        if written != given {
            let found = format!("partition `{partition}`: expected {given} rows, found {written} in its files");
            return Err(broken(table, partition, &found));
        }
    }
    Ok(())
}

fn broken(table: &str, path: &str, found: &str) -> RunError {
    RunError::new(RunErrorCode::AccountingBroken, format!("table `{table}`: {found}"))
        .path(path)
        .detail("rows would be lost or duplicated; nothing was published. This is a bug in Lakemill")
}

/// Checks the reject limits of every table over all its current sources, read now or earlier.
pub(super) fn judge_rejects(tables: &[PreparedTable]) -> Result<(), RunError> {
    let mut exceeded = Vec::new();
    for table in tables.iter().filter(|t| !t.is_unchanged) {
        let sources = table.next.sources.values();
        let (rejected, read) = sources.fold((0, 0), |(r, n), s| (r + s.rows_rejected, n + s.rows_read));
        let limits = table.limits;
        if !limits.allow(rejected, read) {
            exceeded.push(format!(
                "table `{}`: {rejected} of {read} rows rejected, expected at most {} rows or a ratio of {}",
                table.name(),
                limits.max_rows,
                limits.max_ratio
            ));
        }
    }
    if exceeded.is_empty() { Ok(()) } else { Err(RunError::new(RunErrorCode::TooManyRejects, exceeded.join("; "))) }
}
