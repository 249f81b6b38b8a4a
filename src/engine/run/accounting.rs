//! Checks the accounting of a conversion before anything is published.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use indicatif::HumanCount;

use super::prepared::PreparedTable;
use super::update::UpdatedGroup;
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::pipeline::RejectLimits;
use crate::engine::convert::SourceOutcome;

/// Checks that every byte and every row read of a source is accounted for.
///
/// Each byte of its text belongs to its header, to a line or record skipped by the config, to a comment, to a blank line,
/// or to a record counted as a row. Each row is written, rejected or filtered.
pub(super) fn check(table: &str, outcome: &SourceOutcome) -> Result<(), RunError> {
    let (key, rows) = (&outcome.rows.source, &outcome.rows);
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
    Ok(())
}

/// The rows that sources have in a partition: their number, and a sum of hashes of each source with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct PartitionSum {
    rows: u64,
    hashes: u64,
}

impl PartitionSum {
    fn add(&mut self, source: &str, rows: u64) {
        let mut hasher = DefaultHasher::new();
        (source, rows).hash(&mut hasher);
        self.rows += rows;
        self.hashes = self.hashes.wrapping_add(hasher.finish());
    }
}

/// Compares the rows read from sources with those in the new groups. Its memory depends only on the number of partitions.
#[derive(Debug, Default)]
pub(super) struct PartitionAccounting {
    expected: BTreeMap<String, PartitionSum>,
    found: BTreeMap<String, PartitionSum>,
}

impl PartitionAccounting {
    /// Adds a source that was read.
    pub fn expect(&mut self, outcome: &SourceOutcome) {
        for (partition, rows) in &outcome.partitions {
            sum_of(&mut self.expected, partition).add(&outcome.rows.source, *rows);
        }
    }

    /// Adds a new group. `was_read`: whether a source was read in this run.
    ///
    /// # Errors
    /// If the row counts of its files and segments, or of a segment and its sources, differ.
    pub fn add(
        &mut self,
        table: &str,
        partition: &str,
        group: &UpdatedGroup,
        was_read: impl Fn(&str) -> bool,
    ) -> Result<(), RunError> {
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
            let sum = sum_of(&mut self.found, partition);
            members.iter().filter(|member| was_read(&member.source)).for_each(|m| sum.add(&m.source, m.rows));
        }
        if written != expected {
            let found = format!("partition `{partition}`: expected {expected} rows, found {written} in its files");
            return Err(broken(table, partition, &found));
        }
        Ok(())
    }

    /// Checks that the groups have exactly the rows read from the sources.
    pub fn check(&self, table: &str) -> Result<(), RunError> {
        for partition in self.expected.keys().chain(self.found.keys()) {
            let sum = |of: &BTreeMap<String, PartitionSum>| of.get(partition).copied().unwrap_or_default();
            let (expected, found) = (sum(&self.expected), sum(&self.found));
            if expected != found {
                let found = format!(
                    "partition `{partition}`: expected {} rows from the sources read, found {} rows in its segments; if \
                     these are equal, the sources differ",
                    expected.rows, found.rows
                );
                return Err(broken(table, partition, &found));
            }
        }
        Ok(())
    }
}

fn sum_of<'m>(sums: &'m mut BTreeMap<String, PartitionSum>, partition: &str) -> &'m mut PartitionSum {
    sums.entry(partition.to_owned()).or_default()
}

fn broken(table: &str, path: &str, found: &str) -> RunError {
    RunError::new(RunErrorCode::AccountingBroken, format!("table `{table}`: {found}"))
        .path(path)
        .detail("rows would be lost or duplicated; nothing was published. This is a bug in Lakemill")
}

/// Checks the reject limits of every table over all its current sources, read now or earlier.
pub(super) fn check_reject_limits(tables: &[PreparedTable]) -> Result<(), RunError> {
    let mut exceeded = Vec::new();
    for table in tables.iter().filter(|table| table.edited.is_some()) {
        let (rejected, read) = (table.totals.rows_rejected, table.totals.rows_read);
        let limits = table.limits;
        if !limits.allow(rejected, read) {
            exceeded.push(format!(
                "table `{}`: {} of {} rows rejected, but {} may be",
                table.name,
                HumanCount(rejected),
                HumanCount(read),
                most(limits)
            ));
        }
    }
    if exceeded.is_empty() { Ok(()) } else { Err(RunError::new(RunErrorCode::TooManyRejects, exceeded.join("; "))) }
}

/// How many rows may be rejected, before `may be`.
fn most(limits: RejectLimits) -> String {
    let RejectLimits { max_rows, max_ratio } = limits;
    let percent = (max_ratio * 1e6).round() / 1e4;
    match (max_rows, max_ratio > 0.0) {
        (0, false) => "none".to_owned(),
        (_, false) => format!("at most {}", HumanCount(max_rows)),
        (0, true) => format!("at most {percent}%"),
        (_, true) => format!("at most {} or {percent}%", HumanCount(max_rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::SourceResult;

    #[test]
    fn allowed_rejects_are_rows_or_a_share() {
        let most = |max_rows, max_ratio| most(RejectLimits { max_rows, max_ratio });
        assert_eq!(most(0, 0.0), "none");
        assert_eq!(most(5_000, 0.0), "at most 5,000");
        assert_eq!(most(0, 0.25), "at most 25%");
        assert_eq!(most(5, 0.005), "at most 5 or 0.5%");
    }

    /// A source with 12 bytes of text and two rows, of which one is written and one filtered.
    fn outcome() -> SourceOutcome {
        let rows = SourceResult { rows_read: 2, rows_written: 1, rows_filtered: 1, ..SourceResult::default() };
        let partitions = BTreeMap::from([("day=1".to_owned(), 1)]);
        SourceOutcome { rows, partitions, text_bytes: 12, counted_bytes: 12, ..SourceOutcome::default() }
    }

    #[test]
    fn unaccounted_bytes_and_rows_are_errors() {
        assert_eq!(check("t", &outcome()), Ok(()));
        type Change = fn(&mut SourceOutcome);
        let cases: [(Change, &str); 5] = [
            (|o| o.counted_bytes = 11, "read 12 bytes of text, but 11 belong"),
            (|o| o.counted_bytes = 13, "read 12 bytes of text, but 13 belong"),
            (|o| o.rows.rows_read = 3, "read 3, but wrote 1"),
            (|o| o.partitions.clear(), "wrote 1 rows, but 0 have a partition"),
            (|o| (o.rows.rows_read, o.rows.rows_rejected) = (3, 1), "rejected 1 rows, but stored 0"),
        ];
        for (change, part) in cases {
            let mut outcome = outcome();
            change(&mut outcome);
            let error = check("t", &outcome).unwrap_err();
            assert_eq!(error.code, RunErrorCode::AccountingBroken);
            assert!(error.message.contains(part), "{}", error.message);
        }
    }
}
