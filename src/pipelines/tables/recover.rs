//! Removes leftovers of dead runs.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Maps, TableError, TableResult, TableStore};
use super::{delta_log, iceberg_log};
use crate::domain::layout::{
    manifest_intent_key, manifest_log_key, manifest_retired_key, manifest_root_key, manifest_shard_key,
    relative_iceberg_key,
};
use crate::domain::table_log::root::{Intent, LogStep, Objects, OwnedFile, Owner, Root};
use crate::ports::store::{Bucket, Lease, WriteOptions};

/// Maximum number of commits that a catalog can be behind before files of its snapshot are deleted.
const COMMITS_BEHIND_MAX: usize = 50;

/// Deletes the objects that runs of the table left behind, and their intents. If a run committed, these are the objects
/// that it retired, otherwise those that it created. Completes the Delta log, the Iceberg metadata and its catalog if a run committed
/// but didn't write to them. The caller holds the pipeline's lock; `root` is the current root.
///
/// While the catalog can't be reached, objects that the last [`COMMITS_BEHIND_MAX`] commits retired stay in the store, with
/// the intents of these commits.
///
/// # Errors
/// If the store or the lease fails. Then the next call does the rest.
pub fn recover(table: &TableStore<'_>, root: Option<&Root>, lease: &dyn Lease) -> TableResult<()> {
    let mut found = Vec::new();
    for key in table.intents()? {
        match table.intent(&key) {
            Ok(intent) => found.push((key, intent)),
            Err(error @ TableError::Manifest { .. }) => {
                tracing::warn!(table = table.table, %error, "intent of a run unreadable; its files may be left behind");
                found.push((key, None));
            }
            Err(error) => return Err(error),
        }
    }
    let of_root = root.and_then(|root| {
        let own = found.iter().find_map(|(_, intent)| intent.as_ref().filter(|intent| intent.describes(root)));
        Some((own?, root))
    });
    let is_behind = of_root.map_or(Ok(false), |(intent, root)| finish(table, intent, root, lease))?;
    let is_waiting = |intent: &Intent| is_behind && intent.iceberg.is_some() && intent.is_committed(root);
    let waiting = found.iter().filter(|(_, intent)| intent.as_ref().is_some_and(is_waiting)).count();
    let mut given_up = waiting.saturating_sub(COMMITS_BEHIND_MAX);
    // By fence, so that the oldest come first.
    for (key, intent) in found {
        if intent.as_ref().is_some_and(is_waiting) {
            if given_up == 0 {
                continue;
            }
            given_up -= 1;
        }
        if let Some(intent) = intent {
            let left = if intent.is_committed(root) { intent.retired } else { intent.made };
            delete_objects(table, root, &left, lease)?;
        }
        match fence_of(&key) {
            Some(fence) => delete_intent(table, fence, lease)?,
            None => table.store.delete(Bucket::Pipelines, &[key], &WriteOptions::leased(lease))?,
        }
    }
    Ok(())
}

/// Completes the Delta log and the Iceberg metadata of `root`, whose intent it is. Whether the Iceberg catalog is behind.
fn finish(table: &TableStore<'_>, intent: &Intent, root: &Root, lease: &dyn Lease) -> TableResult<bool> {
    // Unless the log will be recreated.
    if let Some(step) = intent.log.filter(|step| (*step == LogStep::End) == root.delta.is_none()) {
        delta_log::finish(table, intent.fence, step, lease)?;
    }
    let is_stale = root.iceberg.as_ref().is_some_and(|iceberg| iceberg.is_stale);
    let Some(step) = intent.iceberg.filter(|_| !is_stale) else { return Ok(false) };
    match iceberg_log::finish(table, root, step, lease) {
        Err(error @ TableError::Catalog { .. }) => {
            tracing::warn!(table = table.table, %error, "Iceberg catalog is behind; the next run tries again");
            Ok(true)
        }
        // The next commit recreates the metadata.
        Err(error) if error.is_broken() => {
            tracing::warn!(table = table.table, %error, "Iceberg metadata not completed");
            Ok(false)
        }
        finished => finished.map(|()| false),
    }
}

/// The fence in the key of an intent.
fn fence_of(key: &str) -> Option<u64> {
    key.strip_suffix(".json")?.rsplit_once("/intent-")?.1.parse().ok()
}

/// Deletes the objects that the run with this fence staged for the Delta log, then its intent.
pub(super) fn delete_intent(table: &TableStore<'_>, fence: u64, lease: &dyn Lease) -> TableResult<()> {
    let staged = manifest_log_key(table.slug, table.table, fence);
    let keys = [staged, manifest_intent_key(table.slug, table.table, fence)];
    Ok(table.store.delete(Bucket::Pipelines, &keys, &WriteOptions::leased(lease))?)
}

/// Deletes objects of the table that neither `root` nor a commit that it retains names.
pub(super) fn delete_objects(
    table: &TableStore<'_>,
    root: Option<&Root>,
    objects: &Objects,
    lease: &dyn Lease,
) -> TableResult<()> {
    let objects = match root {
        Some(root) => table.without_retained(root, objects)?,
        None => Cow::Borrowed(objects),
    };
    let (mut maps, iceberg) = (Maps::of(root), iceberg_names(table, root, &objects)?);
    let mut files = Vec::with_capacity(objects.files.len());
    for file in &objects.files {
        match is_referenced(table, &mut maps, &iceberg, file) {
            Ok(true) => {}
            Ok(false) => files.push(table.full_key(&file.key)),
            // The run rebuilds the table, and deletes objects that it finds.
            Err(error) if error.is_broken() => {}
            Err(error) => return Err(error),
        }
    }
    let named: BTreeSet<&str> = root.iter().flat_map(|root| root.shards()).collect();
    let shards = objects.shards.iter().filter(|shard| !named.contains(shard.as_str()));
    let mut manifest: Vec<String> = shards.map(|name| manifest_shard_key(table.slug, table.table, name)).collect();
    for &sequence in &objects.commits {
        // Retired objects were needed only by readers of the commit before.
        manifest.push(manifest_retired_key(table.slug, table.table, sequence));
        manifest.push(manifest_root_key(table.slug, table.table, sequence.saturating_sub(1)));
    }
    let options = WriteOptions::leased(lease);
    for (bucket, keys) in [(Bucket::Warehouse, files), (Bucket::Pipelines, manifest)] {
        if !keys.is_empty() {
            table.store.delete(bucket, &keys, &options)?;
        }
    }
    Ok(())
}

/// Whether the entry that owns the file names it.
fn is_referenced(
    table: &TableStore<'_>,
    maps: &mut Maps,
    iceberg: &Option<BTreeSet<String>>,
    file: &OwnedFile,
) -> TableResult<bool> {
    let mut reader = table.reader();
    Ok(match &file.owner {
        Owner::Group(key) => maps
            .groups
            .get(key, &mut reader)?
            .is_some_and(|group| group.files.iter().any(|named| named.key == file.key)),
        Owner::Rejects(source) => maps.rejects.get(source, &mut reader)?.is_some_and(|named| named.key == file.key),
        Owner::Iceberg => iceberg.as_ref().is_none_or(|names| names.contains(&file.key)),
    })
}

/// The objects of Iceberg metadata that `root` needs, if any is among `objects`; `None` if that is unknown.
fn iceberg_names(
    table: &TableStore<'_>,
    root: Option<&Root>,
    objects: &Objects,
) -> TableResult<Option<BTreeSet<String>>> {
    let iceberg = root.and_then(|root| root.iceberg.as_ref());
    let is_any = objects.files.iter().any(|file| file.owner == Owner::Iceberg);
    let Some(iceberg) = iceberg.filter(|_| is_any) else { return Ok(Some(BTreeSet::new())) };
    match iceberg_log::state(table, iceberg) {
        Ok(state) => Ok(Some(state.names().into_iter().map(|name| relative_iceberg_key(table.table, name)).collect())),
        Err(error) if error.is_broken() => Ok(None),
        Err(error) => Err(error),
    }
}
