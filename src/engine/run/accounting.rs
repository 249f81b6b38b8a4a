//! Checks the accounting of a conversion before anything is published.

use std::collections::BTreeMap;

use super::prepared::PreparedTable;
use super::update::UpdatedPartition;
use crate::domain::job::{RunError, RunErrorCode};
use crate::engine::convert::SourceOutcome;

/// Checks that every byte and every row read is accounted for, source by source.
///
/// Each byte of a source's text belongs to its header, to a line or record skipped by the config, to a comment, to a
/// blank line, or to a record counted as a row. Each row is written, rejected or filtered.
pub(super) fn check(table: &str, sources: &BTreeMap<String, SourceOutcome>) -> Result<(), RunError> {
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
    Ok(())
}

/// Checks that the groups of a table have exactly the rows of its sources. `is_whole`: no source but `sources` has rows in
/// them.
pub(super) fn check_groups(
    table: &str,
    sources: &BTreeMap<String, SourceOutcome>,
    partitions: &[UpdatedPartition],
    is_whole: bool,
) -> Result<(), RunError> {
    let mut placed: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for UpdatedPartition { partition, made, .. } in partitions {
        for group in made {
            let written: u64 = group.files.iter().map(|file| file.rows).sum();
            let expected: u64 = group.segments.iter().map(|(segment, _)| segment.rows).sum();
            let members = group.segments.iter().filter_map(|(segment, members)| Some((segment, members.as_ref()?)));
            for (segment, members) in members {
                let rows: u64 = members.iter().map(|member| member.rows).sum();
                if rows != segment.rows {
                    let found =
                        format!("partition `{partition}`: expected {rows} rows in a segment, found {}", segment.rows);
                    return Err(broken(table, partition, &found));
                }
                for member in members {
                    *placed.entry((&member.source, partition)).or_default() += member.rows;
                }
            }
            if written != expected {
                let found = format!("partition `{partition}`: expected {expected} rows, found {written} in its files");
                return Err(broken(table, partition, &found));
            }
        }
    }
    let mut known = 0;
    for (key, outcome) in sources {
        for (partition, rows) in &outcome.partitions {
            let found = placed.get(&(key.as_str(), partition.as_str())).copied().unwrap_or_default();
            known += 1;
            if found != *rows {
                let found = format!("partition `{partition}`: expected {rows} rows, found {found} in its segments");
                return Err(broken(table, key, &found));
            }
        }
    }
    match is_whole && placed.len() != known {
        true => Err(broken(table, table, "its segments have rows of sources that have none")),
        false => Ok(()),
    }
}

fn broken(table: &str, path: &str, found: &str) -> RunError {
    RunError::new(RunErrorCode::AccountingBroken, format!("table `{table}`: {found}"))
        .path(path)
        .detail("rows would be lost or duplicated; nothing was published. This is a bug in Lakemill")
}

/// Checks the reject limits of every table over all its current sources, read now or earlier.
pub(super) fn judge_rejects(tables: &[PreparedTable]) -> Result<(), RunError> {
    let mut exceeded = Vec::new();
    for table in tables.iter().filter(|table| table.edited.is_some()) {
        let (rejected, read) = (table.totals.rows_rejected, table.totals.rows_read);
        let limits = table.limits;
        if !limits.allow(rejected, read) {
            exceeded.push(format!(
                "table `{}`: {rejected} of {read} rows rejected, expected at most {} rows or a ratio of {}",
                table.name, limits.max_rows, limits.max_ratio
            ));
        }
    }
    if exceeded.is_empty() { Ok(()) } else { Err(RunError::new(RunErrorCode::TooManyRejects, exceeded.join("; "))) }
}
