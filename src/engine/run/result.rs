//! The outcome of a run for one table.

use std::collections::BTreeMap;

use crate::domain::job::{PartitionChange, PartitionChanges, SourceResult, TableChanges, TableResult};
use crate::domain::table_log::entries::SourceEntry;
use crate::domain::table_log::root::Totals;
use crate::engine::convert::SourceOutcome;
use crate::pipelines::tables::PartitionRowCounts;

/// Partitions whose change a job's record lists: of one table, and of all tables together, but at least
/// [`SHOWN_PER_TABLE_MIN`] of each.
const CHANGES_SHOWN_MAX: usize = 200;
const CHANGES_OF_RUN_MAX: usize = 2_000;
const SHOWN_PER_TABLE_MIN: usize = 10;
/// Sources listed with each of them.
const CHANGE_SOURCES_MAX: usize = 5;
/// Sources that a job's record lists of a table.
const SOURCES_MAX: usize = 10_000;

/// The outcome of a run for one table, in memory independent of the number of sources.
#[derive(Debug, Default)]
pub(super) struct TableReport {
    read: u64,
    warnings: BTreeMap<String, u64>,
    /// Sources with rejected rows or a note.
    notable: Vec<SourceResult>,
    others: Vec<SourceResult>,
    /// The first sources with rows in each partition that were read or removed.
    sources: BTreeMap<String, Vec<String>>,
}

/// The rest of the result.
#[derive(Debug, Default)]
pub(super) struct TableReportEnd {
    pub totals: Totals,
    pub before: Option<Totals>,
    /// Sources in the lake.
    pub listed: u64,
    /// The partitions whose files differ.
    pub partitions: Vec<PartitionRowCounts>,
    /// Tables of the run.
    pub tables: usize,
}

impl TableReport {
    pub fn read(&mut self, outcome: &SourceOutcome) {
        self.read += 1;
        for (check, rows) in &outcome.warnings {
            *self.warnings.entry(check.clone()).or_default() += rows;
        }
        let is_notable = outcome.rows.rows_rejected > 0 || outcome.rows.note.is_some();
        let list = if is_notable { &mut self.notable } else { &mut self.others };
        if list.len() < SOURCES_MAX {
            list.push(outcome.rows.clone());
        }
        self.touched(&outcome.rows.source, outcome.partitions.keys());
    }

    /// A source that was changed or removed. `before`: its entry in the current manifest.
    pub fn changed(&mut self, source: &str, before: &SourceEntry) {
        self.touched(source, before.partitions.keys());
    }

    fn touched<'p>(&mut self, source: &str, partitions: impl Iterator<Item = &'p String>) {
        for partition in partitions {
            let first = self.sources.entry(partition.clone()).or_default();
            let at = first.partition_point(|known| known.as_str() < source);
            if at < CHANGE_SOURCES_MAX && first.get(at).is_none_or(|known| known != source) {
                first.insert(at, source.to_owned());
                first.truncate(CHANGE_SOURCES_MAX);
            }
        }
    }

    pub fn finish(self, end: &TableReportEnd) -> TableResult {
        let of = |is_wanted: &dyn Fn(&PartitionRowCounts) -> bool| -> Vec<String> {
            end.partitions.iter().filter(|rows| is_wanted(rows)).map(|rows| rows.partition.clone()).collect()
        };
        let planned = PartitionChanges { write: of(&|rows| rows.after > 0), delete: of(&|rows| rows.after == 0) };
        let written = planned.write.len() as u64;
        let changes = self.changes(end);
        let mut sources = self.notable;
        sources.extend(self.others);
        sources.truncate(SOURCES_MAX);
        sources.sort_by(|a, b| a.source.cmp(&b.source));
        TableResult {
            rows_written: end.totals.rows,
            rows_rejected: end.totals.rows_rejected,
            rows_filtered: end.totals.rows_filtered,
            partitions_written: written,
            partitions_unchanged: end.totals.partitions - written,
            partitions_deleted: planned.delete.len() as u64,
            files: end.totals.files,
            bytes: end.totals.bytes,
            sources_read: self.read,
            sources_skipped: end.listed.saturating_sub(self.read),
            sources_archived: end.totals.archived,
            sources,
            warnings: self.warnings,
            rows_before: end.before.map(|before| before.rows),
            changes,
            planned,
        }
    }

    fn changes(&self, end: &TableReportEnd) -> TableChanges {
        let some = |rows: u64| Some(rows).filter(|rows| *rows > 0);
        let mut shown: Vec<&PartitionRowCounts> = end.partitions.iter().collect();
        shown.sort_by(|a, b| {
            b.before.abs_diff(b.after).cmp(&a.before.abs_diff(a.after)).then_with(|| a.partition.cmp(&b.partition))
        });
        shown.truncate((CHANGES_OF_RUN_MAX / end.tables.max(1)).clamp(SHOWN_PER_TABLE_MIN, CHANGES_SHOWN_MAX));
        let change = |rows: &PartitionRowCounts| PartitionChange {
            partition: rows.partition.clone(),
            rows_before: some(rows.before),
            rows_after: some(rows.after),
            sources: self.sources.get(&rows.partition).cloned().unwrap_or_default(),
        };
        TableChanges {
            partitions: shown.into_iter().map(change).collect(),
            partitions_total: end.partitions.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(partition: &str, before: u64, after: u64) -> PartitionRowCounts {
        PartitionRowCounts { partition: partition.to_owned(), before, after }
    }

    #[test]
    fn changed_partitions_are_sorted_by_difference_with_their_sources() {
        let outcome = |source: &str, partition: &str| {
            let mut outcome =
                SourceOutcome { partitions: [(partition.to_owned(), 1)].into(), ..SourceOutcome::default() };
            outcome.rows.source = source.to_owned();
            outcome
        };
        let mut report = TableReport::default();
        [("b", "p=2"), ("d", "p=4")].iter().for_each(|(source, partition)| report.read(&outcome(source, partition)));
        for source in ["d", "c", "d"] {
            report.touched(source, ["p=3".to_owned()].iter());
        }
        let totals = Totals { partitions: 5, ..Totals::default() };
        let partitions = vec![rows("p=2", 7, 9), rows("p=3", 1, 0), rows("p=4", 0, 4)];
        let result = report.finish(&TableReportEnd { totals, partitions, tables: 1, ..TableReportEnd::default() });
        let changes: Vec<_> = result
            .changes
            .partitions
            .iter()
            .map(|change| (change.partition.as_str(), change.rows_before, change.rows_after, change.sources.join(" ")))
            .collect();
        assert_eq!(
            changes,
            [
                ("p=4", None, Some(4), "d".to_owned()),
                ("p=2", Some(7), Some(9), "b".to_owned()),
                ("p=3", Some(1), None, "c d".to_owned()),
            ]
        );
        assert_eq!((result.partitions_written, result.partitions_deleted, result.partitions_unchanged), (2, 1, 3));
    }

    #[test]
    fn few_changes_of_many_tables_are_listed() {
        let partitions: Vec<PartitionRowCounts> = (0..20_000).map(|n| rows(&format!("p={n:05}"), 0, 1)).collect();
        for (tables, shown) in [(1, CHANGES_SHOWN_MAX), (20, 100), (1_000, SHOWN_PER_TABLE_MIN), (0, CHANGES_SHOWN_MAX)]
        {
            let totals = Totals { partitions: 20_000, ..Totals::default() };
            let end = TableReportEnd { totals, partitions: partitions.clone(), tables, ..TableReportEnd::default() };
            let changes = TableReport::default().finish(&end).changes;
            assert_eq!((changes.partitions.len(), changes.partitions_total), (shown, 20_000));
        }
    }

    #[test]
    fn few_of_many_sources_are_listed_and_first_those_with_rejected_rows() {
        let mut report = TableReport::default();
        for at in 0..SOURCES_MAX + 10 {
            let mut outcome = SourceOutcome::default();
            outcome.rows.source = format!("{at:06}");
            outcome.rows.rows_rejected = u64::from(at >= SOURCES_MAX);
            outcome.partitions.insert(String::new(), 1);
            report.read(&outcome);
        }
        let partitions = vec![rows("", 0, 1)];
        let end = TableReportEnd {
            totals: Totals { partitions: 1, ..Totals::default() },
            partitions,
            ..TableReportEnd::default()
        };
        let result = report.finish(&end);
        assert_eq!((result.sources.len(), result.sources_read), (SOURCES_MAX, SOURCES_MAX as u64 + 10));
        assert_eq!(result.sources.iter().filter(|source| source.rows_rejected > 0).count(), 10);
        assert_eq!(result.changes.partitions[0].sources, ["000000", "000001", "000002", "000003", "000004"]);
    }
}
