//! Builds the next manifest of a table from the current one and a run's changes.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use super::delta_log::milliseconds;
use super::{FoundRoot, Maps, TableError, TableResult, TableStore};
use crate::domain::pipeline::types::DataType;
use crate::domain::table_log::entries::{GroupEntry, Members, RangeKey, SegmentEntry, SourceEntry, StoredFile};
use crate::domain::table_log::root::{
    DeltaLog, IcebergTable, MANIFEST_VERSION, Objects, OwnedFile, Owner, Root, Totals, count_extra_columns,
};
use crate::domain::table_log::shards::{ShardKey, ShardRef, ShardedMap};
use crate::domain::table_schema::{PartitionSource, StoredSchema};

/// A group that a run made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenGroup {
    pub files: Vec<StoredFile>,
    /// In order, with the sources of those that are new.
    pub segments: Vec<(SegmentEntry, Option<Members>)>,
}

/// The fields of a root other than its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootHead {
    pub fence: u64,
    pub job_id: String,
    /// RFC 3339.
    pub committed_at: String,
    pub fingerprint: String,
    pub layout: String,
    pub schema: StoredSchema,
    /// Whether the table has a Delta log.
    pub delta: bool,
    /// If the table has Iceberg metadata.
    pub iceberg: Option<IcebergHead>,
}

/// The fields of a table's Iceberg metadata other than its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IcebergHead {
    /// Where the table is, as other engines address it, without a slash at its end.
    pub location: String,
    /// The levels of its partitions.
    pub partitions: Vec<PartitionSource>,
    /// The REST catalog that its commits go to.
    pub catalog: Option<String>,
}

/// The next manifest.
#[derive(Debug)]
pub struct Edited {
    /// Retains nothing yet: see `Commit`.
    pub root: Root,
    /// New objects. Files that exist already are not among them.
    pub made: Objects,
    /// Objects that only the current root names.
    pub retired: Objects,
    /// Keys of files that were made again with the same bytes.
    pub unchanged: BTreeSet<String>,
    /// The new shards with their bytes.
    pub shards: Vec<(String, Vec<u8>)>,
    /// The partitions whose files differ from the current ones, in order.
    pub partitions: Vec<PartitionRowCounts>,
}

/// The rows of a partition before and after a commit; 0: it has no files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionRowCounts {
    pub partition: String,
    pub before: u64,
    pub after: u64,
}

/// Edits the manifest of a table.
pub struct Edit<'a> {
    table: TableStore<'a>,
    sequence: u64,
    job_id: String,
    pub maps: Maps,
    totals: Totals,
    extra_columns: BTreeMap<String, u64>,
    /// Whether a source that is new or has changed has rows.
    adds_rows: bool,
    made: BTreeMap<String, Owner>,
    retired: BTreeMap<String, Owner>,
    /// Keys of files that are replaced and marked as lost.
    lost: BTreeSet<String>,
    /// Rows before and after, of the partitions touched.
    rows: BTreeMap<String, (u64, u64)>,
    /// Whether nothing of the current manifest stays.
    rebuild: bool,
    /// Shards of complete entries.
    shards: Vec<(String, Vec<u8>)>,
}

impl<'a> Edit<'a> {
    /// Edits the current manifest, or with `rebuild` replaces it by one whose sources and groups are then added in
    /// order.
    ///
    /// # Errors
    /// If the store fails, or a shard of the current manifest can't be read.
    pub fn new(table: TableStore<'a>, found: &FoundRoot, rebuild: bool, job_id: &str) -> TableResult<Self> {
        let root = found.readable();
        let mut edit = Self {
            table,
            sequence: root.map_or(0, |root| root.sequence) + 1,
            job_id: job_id.to_owned(),
            maps: Maps::of(root.filter(|_| !rebuild)),
            totals: root.filter(|_| !rebuild).map(|root| root.totals).unwrap_or_default(),
            extra_columns: root.filter(|_| !rebuild).map(|root| root.extra_columns.clone()).unwrap_or_default(),
            adds_rows: false,
            made: BTreeMap::new(),
            retired: BTreeMap::new(),
            lost: BTreeSet::new(),
            rows: BTreeMap::new(),
            rebuild,
            shards: Vec::new(),
        };
        if rebuild && let Some(root) = root {
            match edit.retire_all(root) {
                // Objects that the broken manifest doesn't name are found by listing.
                Err(error) if error.is_broken() => {
                    tracing::warn!(table = table.table, %error, "manifest of the replaced table is partly unreadable");
                }
                retired => retired?,
            }
        }
        Ok(edit)
    }

    /// Whether nothing of the current manifest stays.
    pub const fn is_rebuild(&self) -> bool {
        self.rebuild
    }

    fn retire_all(&mut self, root: &Root) -> TableResult<()> {
        let (maps, mut reader) = (Maps::of(Some(root)), self.table.reader());
        maps.groups.visit(&mut reader, |key, group| {
            let owner = Owner::Group(key.clone());
            self.retired.extend(group.files.iter().map(|file| (file.key.clone(), owner.clone())));
            self.rows.entry(key.partition.clone()).or_default().0 += group.rows();
            Ok::<_, TableError>(())
        })?;
        maps.rejects.visit(&mut reader, |source, file| {
            self.retired.insert(file.key.clone(), Owner::Rejects(source.clone()));
            Ok(())
        })
    }

    /// Sets the entry of a source, or removes it; returns the one before.
    ///
    /// # Errors
    /// If a shard can't be read.
    pub fn set_source(&mut self, key: &str, entry: Option<SourceEntry>) -> TableResult<Option<SourceEntry>> {
        let (key, mut reader) = (key.to_owned(), self.table.reader());
        let before = self.maps.sources.get(&key, &mut reader)?.cloned();
        let totals = &mut self.totals;
        if let Some(before) = &before {
            count_extra_columns(&mut self.extra_columns, before, false);
            totals.sources -= 1;
            totals.archived -= u64::from(before.archived);
            totals.rows_read -= before.rows_read;
            totals.rows_rejected -= before.rows_rejected;
            totals.rows_filtered -= before.rows_filtered;
        }
        if let Some(entry) = &entry {
            count_extra_columns(&mut self.extra_columns, entry, true);
            let is_new = before.as_ref().is_none_or(|before| before.sha256 != entry.sha256);
            self.adds_rows |= is_new && entry.rows_written > 0;
            totals.sources += 1;
            totals.archived += u64::from(entry.archived);
            totals.rows_read += entry.rows_read;
            totals.rows_rejected += entry.rows_rejected;
            totals.rows_filtered += entry.rows_filtered;
        }
        self.maps.sources.set(key, entry, &mut reader)?;
        self.spill();
        Ok(before)
    }

    /// Sets the file of a source's rejected rows, or removes it.
    ///
    /// # Errors
    /// If a shard can't be read.
    pub fn set_rejects(&mut self, source: &str, file: Option<StoredFile>) -> TableResult<()> {
        let (key, mut reader) = (source.to_owned(), self.table.reader());
        if let Some(before) = self.maps.rejects.get(&key, &mut reader)? {
            self.totals.rejects_files -= 1;
            self.totals.rejects_bytes -= before.size;
            if before.is_marked_lost() {
                self.lost.insert(before.key.clone());
            }
            self.retired.insert(before.key.clone(), Owner::Rejects(key.clone()));
        }
        if let Some(file) = &file {
            self.totals.rejects_files += 1;
            self.totals.rejects_bytes += file.size;
            self.made.insert(file.key.clone(), Owner::Rejects(key.clone()));
        }
        self.maps.rejects.set(key, file, &mut reader)
    }

    /// Removes groups of a partition, by their first sources, and adds others.
    ///
    /// # Errors
    /// If a shard can't be read.
    pub fn replace_groups(
        &mut self,
        partition: &str,
        replaced: &BTreeMap<String, GroupEntry>,
        made: Vec<WrittenGroup>,
    ) -> TableResult<()> {
        let mut reader = self.table.reader();
        if !self.rows.contains_key(partition) {
            let rows = self.partition_rows(partition)?;
            self.rows.insert(partition.to_owned(), (rows, rows));
        }
        let removed: u64 = replaced.values().map(GroupEntry::rows).sum();
        let added: u64 = made.iter().flat_map(|group| &group.segments).map(|(segment, _)| segment.rows).sum();
        if let Some((_, after)) = self.rows.get_mut(partition) {
            *after = *after + added - removed;
        }
        let first_of = |segment: &(SegmentEntry, Option<Members>)| segment.0.first.clone();
        let kept: BTreeSet<String> = made
            .iter()
            .flat_map(|group| group.segments.iter().filter(|(_, members)| members.is_none()).map(first_of))
            .collect();
        for (first, group) in replaced {
            let key = RangeKey::new(partition, first);
            for file in &group.files {
                self.totals.remove_file(file);
                if file.is_marked_lost() {
                    self.lost.insert(file.key.clone());
                }
                self.retired.insert(file.key.clone(), Owner::Group(key.clone()));
            }
            for segment in group.segments.iter().filter(|segment| !kept.contains(&segment.first)) {
                self.maps.members.set(RangeKey::new(partition, &segment.first), None, &mut reader)?;
            }
            self.maps.groups.set(key, None, &mut reader)?;
        }
        for WrittenGroup { mut files, segments } in made {
            let stored = || replaced.values().flat_map(|group| &group.files);
            for file in &mut files {
                // The Delta log has it already.
                if let Some(same) = stored().find(|stored| stored.key == file.key) {
                    file.delta.clone_from(&same.delta);
                }
            }
            let Some(first) = segments.first().map(first_of) else { continue };
            let key = RangeKey::new(partition, &first);
            for file in &files {
                self.totals.add_file(file);
                self.made.insert(file.key.clone(), Owner::Group(key.clone()));
            }
            let mut entries = Vec::with_capacity(segments.len());
            for (segment, members) in segments {
                if members.is_some() {
                    self.maps.members.set(RangeKey::new(partition, &segment.first), members, &mut reader)?;
                }
                entries.push(segment);
            }
            let (job_id, sequence) = (self.job_id.clone(), self.sequence);
            let group = GroupEntry { files, segments: entries, job_id, sequence };
            self.maps.groups.set(key, Some(group), &mut reader)?;
            self.spill();
        }
        Ok(())
    }

    /// Turns complete entries into shards. A rebuild adds entries in order, so none of them changes again.
    fn spill(&mut self) {
        if self.rebuild {
            spill(&mut self.maps.sources, &mut self.shards);
            spill(&mut self.maps.groups, &mut self.shards);
            spill(&mut self.maps.members, &mut self.shards);
        }
    }

    fn partition_rows(&mut self, partition: &str) -> TableResult<u64> {
        let (mut at, mut rows) = (RangeKey::new(partition, ""), 0);
        while let Some((key, group)) = self.maps.groups.after(&at, &mut self.table.reader())? {
            if key.partition != partition {
                break;
            }
            rows += group.rows();
            at = key.clone();
        }
        Ok(rows)
    }

    /// The next manifest. `before`: the manifest that was found.
    ///
    /// # Errors
    /// If a shard can't be read.
    pub fn finish(self, before: &FoundRoot, head: RootHead) -> TableResult<Edited> {
        let Self {
            table,
            sequence,
            maps,
            mut totals,
            extra_columns,
            adds_rows,
            mut made,
            mut retired,
            lost,
            rows,
            rebuild: rebuilt,
            mut shards,
            ..
        } = self;
        let is_unchanged = |key: &&String| retired.contains_key(*key) && !lost.contains(*key);
        let unchanged: BTreeSet<String> = made.keys().filter(is_unchanged).cloned().collect();
        unchanged.iter().for_each(|key| drop(retired.remove(key)));
        let partition_of = |owner: &Owner| match owner {
            Owner::Group(key) => Some(key.partition.clone()),
            Owner::Rejects(_) | Owner::Iceberg => None,
        };
        let is_unchanged = |key: &String| unchanged.contains(key);
        let new = made.iter().filter(|(key, _)| !is_unchanged(key)).map(|(_, owner)| owner);
        let changed: BTreeSet<String> = new.chain(retired.values()).filter_map(partition_of).collect();
        // A rebuilt table is written whole, even if other programs changed its objects.
        if !rebuilt {
            made.retain(|key, _| !unchanged.contains(key));
        }
        let is_new = before.readable().is_none() || rebuilt;
        let is_foreign = !is_new && before.readable().is_some_and(|root| root.is_foreign);
        if is_new {
            totals.partitions = 0;
        }
        let mut partitions = Vec::with_capacity(changed.len());
        for (partition, (before, after)) in rows {
            totals.partitions += u64::from(after > 0);
            totals.partitions -= u64::from(before > 0 && !is_new);
            if changed.contains(&partition) {
                partitions.push(PartitionRowCounts { partition, before, after });
            }
        }
        let delta = head.delta.then(|| next_log(table.table, before.readable(), &head));
        let iceberg =
            head.iceberg.as_ref().map(|own| next_iceberg(table.table, before.readable(), &head, own, sequence));
        let earlier = before.readable();
        // All sources of a rebuilt table are new to it.
        let adds_rows =
            adds_rows && !(rebuilt && earlier.is_some_and(|earlier| totals.rows_read <= earlier.totals.rows_read));
        let rows_added_at = match earlier {
            Some(earlier) if !adds_rows => earlier.rows_added_at.clone().or_else(|| Some(earlier.committed_at.clone())),
            Some(_) | None => adds_rows.then(|| head.committed_at.clone()),
        };
        let root = Root {
            version: MANIFEST_VERSION,
            table: table.table.to_owned(),
            sequence,
            fence: head.fence,
            job_id: head.job_id,
            committed_at: head.committed_at,
            rows_added_at,
            fingerprint: head.fingerprint,
            layout: head.layout,
            schema: head.schema,
            totals,
            sources: rewrite(maps.sources, &mut shards),
            groups: rewrite(maps.groups, &mut shards),
            members: rewrite(maps.members, &mut shards),
            rejects: rewrite(maps.rejects, &mut shards),
            extra_columns,
            is_foreign,
            restored: None,
            retained: Vec::new(),
            delta,
            iceberg,
        };
        let named: BTreeSet<&str> = root.shards().collect();
        let old = before.readable();
        let old_shards: BTreeSet<&str> = old.iter().flat_map(|root| root.shards()).collect();
        shards.retain(|(name, _)| rebuilt || !old_shards.contains(name.as_str()));
        let gone = old_shards.iter().filter(|name| !named.contains(*name)).map(|name| (*name).to_owned());
        let files = |of: BTreeMap<String, Owner>| of.into_iter().map(|(key, owner)| OwnedFile { key, owner }).collect();
        let retired = Objects { files: files(retired), shards: gone.collect(), commits: Vec::new() };
        let new = shards.iter().map(|(name, _)| name.clone()).collect();
        let made = Objects { files: files(made), shards: new, commits: Vec::new() };
        Ok(Edited { root, made, retired, unchanged, shards, partitions })
    }
}

/// The Delta log of the next root: the next version, or a new log.
fn next_log(table: &str, before: Option<&Root>, head: &RootHead) -> DeltaLog {
    let columns = &head.schema.columns;
    if let Some(log) = before.and_then(|root| root.delta.as_ref()) {
        return log.next(columns);
    }
    let timestamp_ntz = columns.iter().any(|column| column.ty == DataType::Timestamp);
    let id = new_id(&format!("{table}\0{}\0{}", head.job_id, head.committed_at));
    DeltaLog { id, version: 0, began_ms: milliseconds(&head.committed_at), timestamp_ntz }
}

/// The Iceberg metadata of the next root: that of the current one, or a new one where there is none, or for another place.
fn next_iceberg(table: &str, before: Option<&Root>, head: &RootHead, own: &IcebergHead, sequence: u64) -> IcebergTable {
    let IcebergHead { location, partitions, catalog } = own.clone();
    let known = before.and_then(|root| root.iceberg.as_ref());
    if let Some(known) = known.filter(|known| known.continues(&location)) {
        return IcebergTable { partitions, catalog, state: None, ..known.clone() };
    }
    let id = new_id(&format!("{table}\0{}\0{}\0{location}", head.job_id, head.committed_at));
    IcebergTable { id, location, began: sequence, partitions, is_stale: false, catalog, state: None }
}

/// A UUID that is the same for the same text.
fn new_id(text: &str) -> String {
    let digest = Sha256::digest(text);
    uuid::Builder::from_random_bytes(*digest.first_chunk().unwrap_or(&[0; 16])).into_uuid().to_string()
}

fn spill<K: ShardKey, V: Clone + serde::Serialize>(map: &mut ShardedMap<K, V>, shards: &mut Vec<(String, Vec<u8>)>) {
    let mut sink = |shard: &ShardRef<K>, bytes| {
        shards.push((shard.name.clone(), bytes));
        Ok::<_, std::convert::Infallible>(())
    };
    match map.spill(&mut sink) {
        Ok(()) => {}
    }
}

fn rewrite<K: ShardKey, V: Clone + serde::Serialize>(
    map: ShardedMap<K, V>,
    shards: &mut Vec<(String, Vec<u8>)>,
) -> Vec<ShardRef<K>> {
    let mut sink = |shard: &ShardRef<K>, bytes| {
        shards.push((shard.name.clone(), bytes));
        Ok::<_, std::convert::Infallible>(())
    };
    match map.rewrite(&mut sink) {
        Ok(shards) => shards,
    }
}
