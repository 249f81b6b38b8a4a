//! Summarizes a table's changes in a run, from two manifests alone.

use std::collections::BTreeSet;

use crate::domain::job::{PartitionChange, TableChanges};
use crate::domain::manifest::{Manifest, PartitionEntry};

/// Partitions whose change a job's record tells of: of one table, and of all of them together (but at least some of each).
const CHANGES_SHOWN_MAX: usize = 200;
const CHANGES_OF_RUN_MAX: usize = 2_000;
/// Sources that stand with one of them.
const CHANGE_SOURCES_MAX: usize = 5;

/// Partitions shown per table, even with very many tables.
const SHOWN_MIN: usize = 10;

/// Rows of all partitions.
pub(super) fn rows(manifest: &Manifest) -> u64 {
    manifest.partitions.values().map(rows_of).sum()
}

fn rows_of(entry: &PartitionEntry) -> u64 {
    entry.files.iter().map(|file| file.rows).sum()
}

/// The partitions of `next` that are new or differ from `old`, and those removed. `tables`: the number of tables that
/// share the limit.
pub(super) fn between(old: Option<&Manifest>, next: &Manifest, tables: usize) -> TableChanges {
    let before = |partition: &str| old.and_then(|old| old.partitions.get(partition));
    let differing = next.partitions.iter().filter(|(partition, entry)| {
        // A file rewritten with the same bytes is unchanged.
        let bytes = |entry: &PartitionEntry| -> Vec<String> { entry.files.iter().map(|f| f.sha256.clone()).collect() };
        before(partition).is_none_or(|before| bytes(before) != bytes(entry))
    });
    let gone = old.iter().flat_map(|old| old.partitions.keys()).filter(|name| !next.partitions.contains_key(*name));
    let change = |partition: &String| PartitionChange {
        partition: partition.clone(),
        rows_before: before(partition).map(rows_of),
        rows_after: next.partitions.get(partition).map(rows_of),
        sources: Vec::new(),
    };
    let mut changes: Vec<PartitionChange> =
        differing.map(|(partition, _)| change(partition)).chain(gone.map(change)).collect();
    let partitions_total = changes.len() as u64;
    let difference = |c: &PartitionChange| c.rows_after.unwrap_or_default().abs_diff(c.rows_before.unwrap_or_default());
    changes.sort_by(|a, b| difference(b).cmp(&difference(a)).then_with(|| a.partition.cmp(&b.partition)));
    changes.truncate((CHANGES_OF_RUN_MAX / tables.max(1)).clamp(SHOWN_MIN, CHANGES_SHOWN_MAX));
    for change in &mut changes {
        change.sources = sources(old, next, &change.partition);
    }
    TableChanges { partitions: changes, partitions_total }
}

/// The first changed sources of a partition; if none changed, the first of all.
fn sources(old: Option<&Manifest>, next: &Manifest, partition: &str) -> Vec<String> {
    let of = |manifest| Manifest::contributors(manifest, partition);
    let all: BTreeSet<&str> = old.map(of).unwrap_or_default().into_iter().chain(of(next)).collect();
    let sha256 = |manifest: &'_ Manifest, key: &str| manifest.sources.get(key).map(|entry| entry.sha256.clone());
    let differs = |key: &&&str| old.and_then(|old| sha256(old, key)) != sha256(next, key);
    let first = |keys: Vec<&str>| keys.into_iter().take(CHANGE_SOURCES_MAX).map(str::to_owned).collect();
    let differing: Vec<&str> = all.iter().filter(differs).copied().collect();
    if differing.is_empty() { first(all.into_iter().collect()) } else { first(differing) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::manifest::{FileEntry, SourceEntry};

    /// Partitions with their rows and source; a source's hash is its rows.
    fn manifest(partitions: &[(&str, u64, &str)]) -> Manifest {
        let mut manifest = Manifest::new("t", "f", "l");
        for (partition, rows, source) in partitions {
            let file = FileEntry {
                key: format!("t/{partition}/part-00000.parquet"),
                rows: *rows,
                size: 1,
                etag: None,
                sha256: format!("{rows} of {source}"),
                sources: vec![(*source).to_owned()],
            };
            let entry = PartitionEntry { files: vec![file], retained: false, job_id: "j".into(), fence: 1 };
            manifest.partitions.insert((*partition).to_owned(), entry);
            let entry = SourceEntry {
                etag: None,
                size: 1,
                sha256: format!("{rows}"),
                read_at: String::new(),
                rows_read: *rows,
                rows_written: *rows,
                rows_rejected: 0,
                rows_filtered: 0,
                partitions: [((*partition).to_owned(), *rows)].into(),
            };
            manifest.sources.insert((*source).to_owned(), entry);
        }
        manifest
    }

    /// Partition, rows before and after, sources.
    type Told = (String, Option<u64>, Option<u64>, Vec<String>);

    fn told(old: Option<&Manifest>, next: &Manifest) -> Vec<Told> {
        let changes = between(old, next, 1);
        assert_eq!(changes.partitions_total, changes.partitions.len() as u64);
        changes.partitions.into_iter().map(|c| (c.partition, c.rows_before, c.rows_after, c.sources)).collect()
    }

    fn change(name: &str, before: Option<u64>, after: Option<u64>, source: &str) -> Told {
        (name.to_owned(), before, after, vec![source.to_owned()])
    }

    #[test]
    fn changed_partitions_are_sorted_by_difference() {
        let old = manifest(&[("p=1", 5, "a"), ("p=2", 7, "b"), ("p=3", 1, "c"), ("p=5", 9, "e")]);
        let next = manifest(&[("p=1", 5, "a"), ("p=2", 9, "b"), ("p=4", 4, "d"), ("p=5", 9, "f")]);
        assert_eq!((rows(&old), rows(&next)), (22, 27));
        let expected = [
            change("p=4", None, Some(4), "d"),
            change("p=2", Some(7), Some(9), "b"),
            change("p=3", Some(1), None, "c"),
            ("p=5".to_owned(), Some(9), Some(9), vec!["e".to_owned(), "f".to_owned()]),
        ];
        assert_eq!(told(Some(&old), &next), expected);
        assert_eq!(told(None, &manifest(&[("", 5, "a")])), [change("", None, Some(5), "a")]);
        assert_eq!(told(Some(&next), &next), []);
    }

    #[test]
    fn changes_are_limited_to_the_first_partitions_and_sources() {
        let names: Vec<(String, String)> =
            (0..20_000).map(|n| (format!("p={n:05}"), format!("in/{n:05}.csv"))).collect();
        let all: Vec<(&str, u64, &str)> = names.iter().map(|(p, s)| (p.as_str(), 1, s.as_str())).collect();
        let next = manifest(&all);
        for (tables, shown) in [(1, CHANGES_SHOWN_MAX), (20, 100), (1_000, SHOWN_MIN), (0, CHANGES_SHOWN_MAX)] {
            let changes = between(None, &next, tables);
            assert_eq!((changes.partitions.len(), changes.partitions_total), (shown, 20_000));
        }
        let mut one = manifest(&[("", 1, "in/00000.csv")]);
        let files = &mut one.partitions.get_mut("").unwrap().files[0];
        files.sources = names.into_iter().map(|(_, source)| source).collect();
        let changes = between(None, &one, 1);
        assert_eq!(changes.partitions[0].sources, ["in/00000.csv"], "the one that the manifest knows to be new");
        one.sources.clear();
        assert_eq!(between(None, &one, 1).partitions[0].sources.len(), CHANGE_SOURCES_MAX);
    }
}
