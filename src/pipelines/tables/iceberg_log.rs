//! The Iceberg metadata of a table, beside its data files: one snapshot per commit of the table.
//!
//! Manifests and manifest lists have the hash of their bytes in their names, and are written before the root, as data files
//! are. Its metadata file is made from the root and a shard of its manifest alone, and put after it: a run that dies between
//! the two loses nothing. Then it is committed to the catalog, if there is one.
//!
//! Must not: read the metadata to make the next one.

use std::collections::BTreeSet;
use std::io::Read;

use super::delta_log::milliseconds;
use super::iceberg_catalog::{self, remove_from_catalog};
use super::new_shards::NewShards;
use super::{TableError, TableResult, TableStore};
use crate::domain::iceberg::{
    Evolution, IcebergState, ManifestContext, ManifestEntry, PartitionError, Snapshot, SnapshotTotals, manifest_list,
};
use crate::domain::layout::{
    ICEBERG_HINT_NAME, iceberg_metadata_name, iceberg_prefix, is_iceberg_object, manifest_shard_key,
    relative_iceberg_key,
};
use crate::domain::pipeline::TableFormat;
use crate::domain::table_log::entries::{GroupEntry, RangeKey};
use crate::domain::table_log::root::{IcebergTable, LogStep, OwnedFile, Owner, Root};
use crate::domain::table_log::shards::{ReadShards, ShardRef, ShardWriter};
use crate::ports::store::{Bucket, Lease, Precondition, StoreError, WriteOptions, list_all};

/// The key of the one entry of the state's shard.
const STATE_KEY: &str = "iceberg";
/// Bytes of a metadata file.
const METADATA_BYTES_MAX: u64 = 1 << 30;

/// Objects by name or key.
type NamedBytes = Vec<(String, Vec<u8>)>;

/// The change that a commit makes to a table's Iceberg metadata.
pub(super) struct IcebergCommit {
    pub step: LogStep,
    /// New manifests and the manifest list: keys in the warehouse, and bytes. Written before the root.
    pub objects: NamedBytes,
    /// The same, as the intent names them.
    pub made: Vec<OwnedFile>,
    /// Objects that only the previous snapshot needs.
    pub retired: Vec<OwnedFile>,
}

/// Plans the next snapshot and sets the Iceberg state of `next`, whose `retained` must be set already. Adds the shard of
/// that state to `shards`. `None` if the table neither has nor had Iceberg metadata.
///
/// # Errors
/// If a shard can't be read, or the path of a partition is invalid.
pub(super) fn plan(
    table: &TableStore<'_>,
    before: Option<&Root>,
    next: &mut Root,
    shards: &mut Vec<(String, Vec<u8>)>,
) -> TableResult<Option<IcebergCommit>> {
    let earlier = before.and_then(|root| Some((root, root.iceberg.as_ref()?)));
    let Some(mut iceberg) = next.iceberg.take() else {
        let step = LogStep::End;
        return Ok(earlier.map(|_| IcebergCommit { step, objects: vec![], made: vec![], retired: vec![] }));
    };
    let mut earlier = earlier.filter(|(_, earlier)| earlier.id == iceberg.id && !earlier.is_stale);
    let before = match earlier.map(|(_, earlier)| state(table, earlier)) {
        Some(Err(error)) if error.is_broken() => {
            tracing::warn!(table = table.table, %error, "state of the Iceberg metadata not usable; metadata will be recreated");
            earlier = None;
            IcebergState::default()
        }
        Some(before) => before?,
        None => IcebergState::default(),
    };
    if earlier.is_none() {
        iceberg.began = next.sequence;
    }
    let (state, new) = next_state(table, &before, &iceberg, next, shards)?;
    let mut sink = |shard: &ShardRef<String>, bytes| {
        shards.push((shard.name.clone(), bytes));
        Ok::<_, TableError>(())
    };
    let (mut writer, mut refs) = (ShardWriter::new(), Vec::new());
    writer.push(&(STATE_KEY.to_owned(), &state), &mut refs, &mut sink)?;
    writer.end(&mut refs, &mut sink)?;
    iceberg.state = refs.pop();
    next.iceberg = Some(iceberg);
    let own = |name: &str| OwnedFile { key: relative_iceberg_key(table.table, name), owner: Owner::Iceberg };
    let (names, mut retired) = (state.names(), Vec::new());
    if let Some((root, _)) = earlier {
        let gone = before.names().into_iter().filter(|name| !names.contains(name));
        retired.extend(gone.map(own));
        retired.push(own(&iceberg_metadata_name(root.sequence)));
    }
    let made = new.iter().map(|(name, _)| own(name)).collect();
    let prefix = iceberg_prefix(table.slug, table.table);
    let objects = new.into_iter().map(|(name, bytes)| (format!("{prefix}{name}"), bytes)).collect();
    let step = if earlier.is_some() { LogStep::Append(next.sequence) } else { LogStep::Begin };
    Ok(Some(IcebergCommit { step, objects, made, retired }))
}

/// The next state, and the new objects by name.
fn next_state(
    table: &TableStore<'_>,
    before: &IcebergState,
    iceberg: &IcebergTable,
    next: &Root,
    shards: &[(String, Vec<u8>)],
) -> TableResult<(IcebergState, NamedBytes)> {
    let mut state = IcebergState { schemas: before.schemas.clone(), ..IcebergState::default() };
    let evolution = state.schemas.evolve(&next.schema.columns, &iceberg.partitions);
    if evolution != Evolution::Ambiguous {
        let kept: BTreeSet<u64> = next.earlier().collect();
        state.snapshots.extend(before.snapshots.iter().filter(|snapshot| kept.contains(&snapshot.sequence)).cloned());
    }
    let kept: BTreeSet<i32> = state.snapshots.iter().map(|snapshot| snapshot.schema).collect();
    state.schemas.retain(|schema| kept.contains(&schema));
    let schema_id = state.schemas.current_schema;
    let (mut new, mut listed) = (Vec::new(), Vec::with_capacity(next.groups.len()));
    if let (Some(schema), Some(spec)) = (state.schemas.schema(), state.schemas.spec()) {
        let context = ManifestContext {
            location: &iceberg.location,
            table: table.table,
            columns: &next.schema.columns,
            schema,
            spec,
            snapshot: next.sequence,
            first_snapshot: iceberg.began,
        };
        let mut reader = NewShards::new(*table, shards);
        for shard in &next.groups {
            let known = before.manifests.get(&shard.name).filter(|_| evolution == Evolution::Same);
            let entry = match known {
                Some(known) => known.clone(),
                None => {
                    let groups: Vec<(RangeKey, GroupEntry)> = reader.read(shard)?;
                    let (entry, bytes) = context.manifest(&groups).map_err(|error| broken_partition(table, &error))?;
                    new.push((entry.name.clone(), bytes));
                    entry
                }
            };
            listed.push((shard.name.clone(), entry));
        }
    }
    let last = before.snapshots.last();
    let parent = last.map(|snapshot| snapshot.sequence);
    let manifests: Vec<&ManifestEntry> = listed.iter().map(|(_, entry)| entry).collect();
    let (name, bytes) = manifest_list(&iceberg.location, next.sequence, parent, &manifests);
    state.snapshots.push(Snapshot {
        sequence: next.sequence,
        parent,
        at_ms: milliseconds(&next.committed_at).max(last.map_or(i64::MIN, |snapshot| snapshot.at_ms)),
        schema: schema_id,
        manifest_list: name.clone(),
        job_id: next.job_id.clone(),
        totals: totals(next, last, &manifests),
    });
    new.push((name, bytes));
    state.manifests = listed.into_iter().collect();
    Ok((state, new))
}

fn totals(next: &Root, before: Option<&Snapshot>, manifests: &[&ManifestEntry]) -> SnapshotTotals {
    let before = before.map(|snapshot| snapshot.totals).unwrap_or_default();
    let added = manifests.iter().filter(|manifest| manifest.snapshot == next.sequence).map(|manifest| manifest.added);
    let (files, rows, bytes) = added
        .fold((0, 0, 0), |(files, rows, bytes), count| (files + count.files, rows + count.rows, bytes + count.bytes));
    let now = next.totals;
    SnapshotTotals {
        files: now.files,
        rows: now.rows,
        bytes: now.bytes,
        added_files: files,
        added_rows: rows,
        added_bytes: bytes,
        removed_files: (before.files + files).saturating_sub(now.files),
        removed_rows: (before.rows + rows).saturating_sub(now.rows),
        removed_bytes: (before.bytes + bytes).saturating_sub(now.bytes),
    }
}

/// The state of a table's Iceberg metadata.
///
/// # Errors
/// If the shard can't be read.
pub(super) fn state(table: &TableStore<'_>, iceberg: &IcebergTable) -> TableResult<IcebergState> {
    let Some(shard) = &iceberg.state else { return Ok(IcebergState::default()) };
    let entries: Vec<(String, IcebergState)> = table.shard(shard)?;
    Ok(entries.into_iter().next().map(|(_, state)| state).unwrap_or_default())
}

impl IcebergCommit {
    /// Puts the metadata file of `root`, whose commit this is, or deletes the metadata. Does nothing if that was done before.
    ///
    /// # Errors
    /// If the store, the lease or the catalog fails, or another program wrote this version.
    pub(super) fn put(&self, table: &TableStore<'_>, root: &Root, lease: &dyn Lease) -> TableResult<()> {
        finish(table, root, self.step, lease)
    }
}

/// Like [`IcebergCommit::put`], for the next run if this one dies.
///
/// # Errors
/// Same as for [`IcebergCommit::put`].
pub(super) fn finish(table: &TableStore<'_>, root: &Root, step: LogStep, lease: &dyn Lease) -> TableResult<()> {
    let Some(iceberg) = root.iceberg.as_ref().filter(|_| step != LogStep::End) else {
        remove_from_catalog(table)?;
        return delete_others(table, &BTreeSet::new(), lease);
    };
    let state = state(table, iceberg)?;
    let (text, name) = (state.metadata(iceberg), iceberg_metadata_name(root.sequence));
    let (prefix, options) = (iceberg_prefix(table.slug, table.table), WriteOptions::leased(lease));
    let key = format!("{prefix}{name}");
    if step == LogStep::Begin {
        let mut kept = state.names();
        if read(table, &key)?.is_some_and(|found| found == text.as_bytes()) {
            kept.insert(&name);
        }
        delete_others(table, &kept, lease)?;
    }
    let absent = options.clone().with(Precondition::IfNoneMatch);
    match table.store.put(Bucket::Warehouse, &key, text.as_bytes(), &absent) {
        Ok(_) => {}
        Err(StoreError::PreconditionFailed { .. }) => match read(table, &key)? {
            Some(found) if found == text.as_bytes() => {}
            _ => return Err(broken(&key, "another program wrote it")),
        },
        Err(error) => return Err(error.into()),
    }
    let hint = format!("{prefix}{ICEBERG_HINT_NAME}");
    table.store.put(Bucket::Warehouse, &hint, root.sequence.to_string().as_bytes(), &options)?;
    iceberg_catalog::publish(table, root, iceberg, &state)
}

/// Reads an object of the metadata; `None` if there is none.
pub(super) fn read(table: &TableStore<'_>, key: &str) -> TableResult<Option<Vec<u8>>> {
    let object = match table.store.get(Bucket::Warehouse, key, None) {
        Ok(object) => object,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    let read = object.body.take(METADATA_BYTES_MAX).read_to_end(&mut bytes);
    let (bucket, key, operation) = (Bucket::Warehouse, key.to_owned(), "reading");
    read.map_err(|source| StoreError::Transient { bucket, key, operation, source })?;
    Ok(Some(bytes))
}

/// Deletes all of our metadata but these names. Metadata files are deleted first, so that none names a deleted object.
/// Objects of other programs, such as a catalog, stay.
fn delete_others(table: &TableStore<'_>, kept: &BTreeSet<&str>, lease: &dyn Lease) -> TableResult<()> {
    let prefix = iceberg_prefix(table.slug, table.table);
    let listed = list_all(table.store, Bucket::Warehouse, &prefix)?;
    let is_other = |key: &String| {
        let name = &key[prefix.len()..];
        is_iceberg_object(name) && !kept.contains(name)
    };
    let others = listed.into_iter().map(|object| object.key).filter(is_other);
    let (objects, metadata): (Vec<_>, Vec<_>) = others.partition(|key| key.ends_with(".avro"));
    for keys in [metadata, objects].iter().filter(|keys| !keys.is_empty()) {
        table.store.delete(Bucket::Warehouse, keys, &WriteOptions::leased(lease))?;
    }
    Ok(())
}

fn broken(key: &str, found: &str) -> TableError {
    TableError::Log { format: TableFormat::Iceberg, key: key.to_owned(), found: found.to_owned() }
}

fn broken_partition(table: &TableStore<'_>, error: &PartitionError) -> TableError {
    broken(&manifest_shard_key(table.slug, table.table, ""), &error.to_string())
}
