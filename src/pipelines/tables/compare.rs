//! The differences between two commits of a table. Reads only the shards that one of them has and the other doesn't.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{TableResult, TableStore};
use crate::domain::table_log::entries::{GroupEntry, SourceEntry, StoredFile};
use crate::domain::table_log::root::{Objects, OwnedFile, Owner, Root};
use crate::domain::table_log::shards::{ShardKey, ShardRef, ShardedMap};

/// How a source differs between two commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceChange {
    Added,
    Changed,
    Removed,
    /// Its CSV left the lake, and its rows stay.
    Archived,
    /// Its CSV came back.
    Returned,
}

/// A source that differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSource {
    pub key: String,
    pub change: SourceChange,
    /// Rows in the table; 0 where it has no entry.
    pub before: u64,
    pub after: u64,
}

/// Rows of a partition's files that differ between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPartition {
    pub partition: String,
    /// Rows of files that only the first commit has.
    pub before: u64,
    /// Rows of files that only the second commit has.
    pub after: u64,
}

/// Data files with their rows and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileCounts {
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
}

impl FileCounts {
    fn add(&mut self, file: &StoredFile) {
        self.files += 1;
        self.rows += file.rows;
        self.bytes += file.size;
    }
}

/// The differences between two commits. Lists are in order, and have at most the requested number of items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    pub sources: Vec<ChangedSource>,
    pub sources_changed: u64,
    pub partitions: Vec<ChangedPartition>,
    pub partitions_changed: u64,
    /// Files of the second commit that the first doesn't have.
    pub added: FileCounts,
    /// Files of the first commit that the second doesn't have.
    pub removed: FileCounts,
}

/// Compares two commits of a table.
///
/// # Errors
/// If the store fails, or a shard can't be read.
pub fn compare(table: &TableStore<'_>, before: &Root, after: &Root, items_max: usize) -> TableResult<Comparison> {
    let mut found = Comparison::default();
    let sources = (before.sources.as_slice(), after.sources.as_slice());
    differing(table, sources, |key: &String, before: Option<&SourceEntry>, after: Option<&SourceEntry>| {
        let Some(change) = source_change(before, after) else { return };
        found.sources_changed += 1;
        if found.sources.len() < items_max {
            let rows = |entry: Option<&SourceEntry>| entry.map_or(0, |entry| entry.rows_written);
            let (before, after) = (rows(before), rows(after));
            found.sources.push(ChangedSource { key: key.clone(), change, before, after });
        }
    })?;
    let mut last: Option<ChangedPartition> = None;
    let groups = (before.groups.as_slice(), after.groups.as_slice());
    differing(table, groups, |key, before: Option<&GroupEntry>, after: Option<&GroupEntry>| {
        let (gone, new) = (files_without(before, after), files_without(after, before));
        if gone.is_empty() && new.is_empty() {
            return;
        }
        gone.iter().for_each(|file| found.removed.add(file));
        new.iter().for_each(|file| found.added.add(file));
        let rows = |files: &[&StoredFile]| files.iter().map(|file| file.rows).sum::<u64>();
        match &mut last {
            Some(counts) if counts.partition == key.partition => {
                counts.before += rows(&gone);
                counts.after += rows(&new);
            }
            _ => {
                found.partitions_changed += 1;
                let counts =
                    ChangedPartition { partition: key.partition.clone(), before: rows(&gone), after: rows(&new) };
                if let Some(ended) = last.replace(counts)
                    && found.partitions.len() < items_max
                {
                    found.partitions.push(ended);
                }
            }
        }
    })?;
    found.partitions.extend(last.filter(|_| found.partitions.len() < items_max));
    Ok(found)
}

/// The objects that `before` names and `after` doesn't.
///
/// # Errors
/// If the store fails, or a shard can't be read.
pub(super) fn retired(table: &TableStore<'_>, before: &Root, after: &Root) -> TableResult<Objects> {
    let mut objects = Objects::default();
    let groups = (before.groups.as_slice(), after.groups.as_slice());
    differing(table, groups, |key, before: Option<&GroupEntry>, after: Option<&GroupEntry>| {
        let own = |file: &StoredFile| OwnedFile { key: file.key.clone(), owner: Owner::Group(key.clone()) };
        objects.files.extend(files_without(before, after).into_iter().map(own));
    })?;
    let rejects = (before.rejects.as_slice(), after.rejects.as_slice());
    differing(table, rejects, |source: &String, before: Option<&StoredFile>, after: Option<&StoredFile>| {
        let gone = before.filter(|file| after.is_none_or(|after| after.key != file.key));
        let own = |file: &StoredFile| OwnedFile { key: file.key.clone(), owner: Owner::Rejects(source.clone()) };
        objects.files.extend(gone.map(own));
    })?;
    let named: BTreeSet<&str> = after.shards().collect();
    objects.shards = before.shards().filter(|name| !named.contains(name)).map(str::to_owned).collect();
    Ok(objects)
}

fn source_change(before: Option<&SourceEntry>, after: Option<&SourceEntry>) -> Option<SourceChange> {
    match (before, after) {
        (None, None) => None,
        (None, Some(_)) => Some(SourceChange::Added),
        (Some(_), None) => Some(SourceChange::Removed),
        (Some(before), Some(after)) if before.sha256 != after.sha256 => Some(SourceChange::Changed),
        (Some(before), Some(after)) => match (before.archived, after.archived) {
            (false, true) => Some(SourceChange::Archived),
            (true, false) => Some(SourceChange::Returned),
            // Read again under another config.
            _ => (before.rows_written != after.rows_written).then_some(SourceChange::Changed),
        },
    }
}

fn files_without<'a>(these: Option<&'a GroupEntry>, others: Option<&GroupEntry>) -> Vec<&'a StoredFile> {
    let others: BTreeSet<&str> = others.iter().flat_map(|group| &group.files).map(|file| file.key.as_str()).collect();
    these.iter().flat_map(|group| &group.files).filter(|file| !others.contains(file.key.as_str())).collect()
}

/// Visits the keys of a map whose values differ between two commits, in order.
fn differing<K: ShardKey, V: Clone + PartialEq + Serialize + DeserializeOwned>(
    table: &TableStore<'_>,
    (before, after): (&[ShardRef<K>], &[ShardRef<K>]),
    mut visit: impl FnMut(&K, Option<&V>, Option<&V>),
) -> TableResult<()> {
    let only = |these: &[ShardRef<K>], others: &[ShardRef<K>]| -> ShardedMap<K, V> {
        let others: BTreeSet<&str> = others.iter().map(|shard| shard.name.as_str()).collect();
        let own = these.iter().filter(|shard| !others.contains(shard.name.as_str()));
        ShardedMap::new(&own.cloned().collect::<Vec<_>>())
    };
    let maps = (only(before, after), only(after, before));
    let (mut read_before, mut read_after) = (table.reader(), table.reader());
    let mut before = maps.0.entries(&mut read_before);
    let mut after = maps.1.entries(&mut read_after);
    let (mut left, mut right) = (before.next().transpose()?, after.next().transpose()?);
    loop {
        let order = match (&left, &right) {
            (None, None) => return Ok(()),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((left, _)), Some((right, _))) => left.cmp(right),
        };
        let one = if order.is_le() { std::mem::replace(&mut left, before.next().transpose()?) } else { None };
        let other = if order.is_ge() { std::mem::replace(&mut right, after.next().transpose()?) } else { None };
        let (old, new) = (one.as_ref().map(|(_, value)| value), other.as_ref().map(|(_, value)| value));
        if let Some((key, _)) = one.as_ref().or(other.as_ref())
            && old != new
        {
            visit(key, old, new);
        }
    }
}
