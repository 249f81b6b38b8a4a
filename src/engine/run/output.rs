//! Objects in a table's folders that its manifest doesn't name.

use std::collections::BTreeSet;

use crate::domain::layout::{
    ManifestObject, delta_log_prefix, iceberg_prefix, manifest_objects_prefix, pipeline_prefix, rejects_prefix,
    table_prefix,
};
use crate::domain::table_log::entries::RangeKey;
use crate::domain::table_log::root::{Objects, OwnedFile, Owner, Root};
use crate::pipelines::tables::{Edited, TableResult, TableStore};
use crate::ports::store::{Bucket, ObjectMeta, list_all};
use crate::sync::parallel_map;

/// Retires all objects in the table's folders and beside its manifest that neither the new manifest nor a retained
/// commit names: from earlier versions, runs whose manifest is lost, a half-dropped table, or other programs. New
/// shards aren't stored yet, so their names are taken from memory.
pub(super) fn retire_unknown(table: &TableStore<'_>, present: Option<&Root>, edited: &mut Edited) -> TableResult<()> {
    let pipeline = pipeline_prefix(table.slug);
    let folders = [
        (Bucket::Warehouse, table_prefix(table.slug, table.table)),
        (Bucket::Warehouse, rejects_prefix(table.slug, table.table)),
        (Bucket::Pipelines, manifest_objects_prefix(table.slug, table.table)),
    ];
    let at_a_time = if table.store.is_remote() { folders.len() } else { 1 };
    let mut listed = parallel_map(&folders, at_a_time, |(bucket, prefix)| list_all(table.store, *bucket, prefix))?;
    let manifest = listed.pop().unwrap_or_default();
    let retained = present.map(|root| table.retained(root)).transpose()?.unwrap_or_default();
    let known =
        retained.files.iter().chain(&edited.made.files).chain(&edited.retired.files).map(|file| file.key.as_str());
    let known: BTreeSet<&str> = known.chain(edited.unchanged.iter().map(String::as_str)).collect();
    let log = edited.root.delta.as_ref().map(|_| delta_log_prefix(table.slug, table.table));
    let metadata = edited.root.iceberg.as_ref().map(|_| iceberg_prefix(table.slug, table.table));
    let is_log = |key: &str| log.iter().chain(&metadata).any(|log| key.starts_with(log));
    let mut unknown = Vec::new();
    for object in listed.into_iter().flatten().filter(|object| !is_log(&object.key)) {
        // Folder markers of other tools are not files of a table.
        let key = object.key.strip_prefix(&pipeline).filter(|key| !key.ends_with('/'));
        if let Some(key) = key.filter(|key| !known.contains(key)) {
            unknown.push(OwnedFile { key: key.to_owned(), owner: Owner::Group(RangeKey::new("", "")) });
        }
    }
    edited.retired.files.extend(unknown);
    retire_unknown_manifest(table, &manifest, &retained, edited);
    Ok(())
}

/// [`retire_unknown`] for objects next to the manifest. Objects of runs in progress are named by their intents.
fn retire_unknown_manifest(table: &TableStore<'_>, listed: &[ObjectMeta], retained: &Objects, edited: &mut Edited) {
    let prefix = manifest_objects_prefix(table.slug, table.table);
    let own = edited.root.sequence;
    let Objects { shards, commits, .. } = &mut edited.retired;
    for name in listed.iter().filter_map(|object| object.key.strip_prefix(&prefix)) {
        match ManifestObject::of(name) {
            Some(ManifestObject::Shard(name)) if !retained.shards.iter().any(|shard| shard == name) => {
                shards.push(name.to_owned());
            }
            Some(ManifestObject::Commit(sequence)) if sequence != own && !retained.commits.contains(&sequence) => {
                commits.push(sequence);
            }
            Some(ManifestObject::Shard(_) | ManifestObject::Commit(_)) | None => {}
        }
    }
    shards.sort();
    shards.dedup();
    commits.sort_unstable();
    commits.dedup();
}
