//! What a run did with a table.

use std::collections::BTreeMap;

use crate::domain::job::{PartitionChange, PartitionChanges, TableChanges, TableResult};
use crate::domain::table_log::root::Totals;
use crate::engine::convert::SourceOutcome;
use crate::pipelines::tables::PartitionRows;

/// Partitions whose change a job's record lists: of one table, and of all tables together, but at least
/// [`SHOWN_MIN`] of each.
const CHANGES_SHOWN_MAX: usize = 200;
const CHANGES_OF_RUN_MAX: usize = 2_000;
const SHOWN_MIN: usize = 10;
/// Sources listed with each of them.
const CHANGE_SOURCES_MAX: usize = 5;

/// What a run found and made.
#[derive(Debug, Default)]
pub(super) struct ResultOf<'a> {
    pub totals: Totals,
    pub before: Option<Totals>,
    /// Sources in the lake.
    pub listed: u64,
    pub outcomes: Vec<&'a SourceOutcome>,
    /// Sources that were removed, with their partitions.
    pub removed: Vec<(&'a str, &'a BTreeMap<String, u64>)>,
    pub partitions: Vec<PartitionRows>,
    /// Tables of the run.
    pub tables: usize,
}

impl ResultOf<'_> {
    pub fn table_result(&self) -> TableResult {
        let mut warnings: BTreeMap<String, u64> = BTreeMap::new();
        for (check, rows) in self.outcomes.iter().flat_map(|outcome| &outcome.warnings) {
            *warnings.entry(check.clone()).or_default() += rows;
        }
        let of = |is_wanted: &dyn Fn(&PartitionRows) -> bool| -> Vec<String> {
            self.partitions.iter().filter(|rows| is_wanted(rows)).map(|rows| rows.partition.clone()).collect()
        };
        let planned = PartitionChanges { write: of(&|rows| rows.after > 0), delete: of(&|rows| rows.after == 0) };
        let written = planned.write.len() as u64;
        TableResult {
            rows_written: self.totals.rows,
            rows_rejected: self.totals.rows_rejected,
            rows_filtered: self.totals.rows_filtered,
            partitions_written: written,
            partitions_unchanged: self.totals.partitions - written,
            partitions_deleted: planned.delete.len() as u64,
            files: self.totals.files,
            bytes: self.totals.bytes,
            sources_read: self.outcomes.len() as u64,
            sources_skipped: self.listed.saturating_sub(self.outcomes.len() as u64),
            sources: self.outcomes.iter().map(|outcome| outcome.rows.clone()).collect(),
            warnings,
            rows_before: self.before.map(|before| before.rows),
            changes: self.changes(),
            planned,
        }
    }

    fn changes(&self) -> TableChanges {
        let some = |rows: u64| Some(rows).filter(|rows| *rows > 0);
        let mut shown: Vec<&PartitionRows> = self.partitions.iter().collect();
        shown.sort_by(|a, b| {
            b.before.abs_diff(b.after).cmp(&a.before.abs_diff(a.after)).then_with(|| a.partition.cmp(&b.partition))
        });
        shown.truncate((CHANGES_OF_RUN_MAX / self.tables.max(1)).clamp(SHOWN_MIN, CHANGES_SHOWN_MAX));
        let change = |rows: &PartitionRows| PartitionChange {
            partition: rows.partition.clone(),
            rows_before: some(rows.before),
            rows_after: some(rows.after),
            sources: self.sources_of(&rows.partition),
        };
        TableChanges {
            partitions: shown.into_iter().map(change).collect(),
            partitions_total: self.partitions.len() as u64,
        }
    }

    /// The first sources with rows in the partition that were read or removed.
    fn sources_of(&self, partition: &str) -> Vec<String> {
        let read = self.outcomes.iter().map(|outcome| (outcome.rows.source.as_str(), &outcome.partitions));
        let all = read.chain(self.removed.iter().copied());
        let mut sources: Vec<&str> =
            all.filter(|(_, partitions)| partitions.contains_key(partition)).map(|(source, _)| source).collect();
        sources.sort_unstable();
        sources.into_iter().take(CHANGE_SOURCES_MAX).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(partition: &str, before: u64, after: u64) -> PartitionRows {
        PartitionRows { partition: partition.to_owned(), before, after }
    }

    #[test]
    fn changed_partitions_are_sorted_by_difference_with_their_sources() {
        let outcome = |source: &str, partition: &str| {
            let mut outcome =
                SourceOutcome { partitions: [(partition.to_owned(), 1)].into(), ..SourceOutcome::default() };
            outcome.rows.source = source.to_owned();
            outcome
        };
        let (b, d) = (outcome("b", "p=2"), outcome("d", "p=4"));
        let removed = BTreeMap::from([("p=3".to_owned(), 1)]);
        let totals = Totals { partitions: 5, ..Totals::default() };
        let partitions = vec![rows("p=2", 7, 9), rows("p=3", 1, 0), rows("p=4", 0, 4)];
        let result = ResultOf {
            totals,
            partitions,
            outcomes: vec![&b, &d],
            removed: vec![("c", &removed)],
            tables: 1,
            ..ResultOf::default()
        };
        let result = result.table_result();
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
                ("p=3", Some(1), None, "c".to_owned()),
            ]
        );
        assert_eq!((result.partitions_written, result.partitions_deleted, result.partitions_unchanged), (2, 1, 3));
    }

    #[test]
    fn few_changes_of_many_tables_are_listed() {
        let partitions: Vec<PartitionRows> = (0..20_000).map(|n| rows(&format!("p={n:05}"), 0, 1)).collect();
        for (tables, shown) in [(1, CHANGES_SHOWN_MAX), (20, 100), (1_000, SHOWN_MIN), (0, CHANGES_SHOWN_MAX)] {
            let totals = Totals { partitions: 20_000, ..Totals::default() };
            let result = ResultOf { totals, partitions: partitions.clone(), tables, ..ResultOf::default() };
            let changes = result.table_result().changes;
            assert_eq!((changes.partitions.len(), changes.partitions_total), (shown, 20_000));
        }
    }
}
