//! Lists all objects that the root of a table's manifest names, for copies of a table.
//!
//! Must not: write anything, or hold all objects of a table in memory.

use serde::Deserialize;

use super::iceberg_log::{read, state};
use super::{Maps, ShardReader, TableError, TableResult, TableStore};
use crate::domain::layout::{
    ICEBERG_HINT_NAME, delta_last_checkpoint_key, delta_log_prefix, iceberg_metadata_name, iceberg_prefix,
    manifest_retired_key, manifest_root_key, manifest_shard_key,
};
use crate::domain::table_log::entries::{GroupEntry, StoredFile};
use crate::domain::table_log::root::{Objects, Owner, Root};
use crate::ports::store::{Bucket, list_all};

/// An object that a root names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencedObject {
    pub bucket: Bucket,
    pub key: String,
    /// Its size and SHA-256, if the manifest has them.
    pub content: Option<(u64, String)>,
    /// Whether the table is whole without it: an object of an earlier commit, or a file that the next run rebuilds.
    pub is_optional: bool,
}

/// The objects of a table's Delta log and Iceberg metadata that belong to a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedObjects {
    /// Keys in the warehouse, of objects that never change.
    pub keys: Vec<String>,
    /// Objects that the next commit replaces, as they are for this root: their keys and bytes.
    pub pointers: Vec<(String, Vec<u8>)>,
    /// Whether each of both, if the root has it, is complete. It isn't while a run publishes the table, or if that run died.
    pub is_delta_whole: bool,
    pub is_iceberg_whole: bool,
}

impl TableStore<'_> {
    /// Passes all objects of a root to `visit`, but for those of [`Self::published_objects`] and the root itself. Some may
    /// be passed twice.
    ///
    /// # Errors
    /// If the store fails, or a shard is missing or damaged; those of `visit`.
    pub fn visit_referenced<E: From<TableError>>(
        &self,
        root: &Root,
        visit: &mut dyn FnMut(ReferencedObject) -> Result<(), E>,
    ) -> Result<(), E> {
        let (maps, mut reader) = (Maps::of(Some(root)), self.reader());
        for entry in maps.groups.entries(&mut reader) {
            let (_, group) = entry?;
            group.files.iter().try_for_each(|file| visit(self.file(file)))?;
        }
        for entry in maps.rejects.entries(&mut reader) {
            visit(self.file(&entry?.1))?;
        }
        for shard in root.shards() {
            visit(manifest_object(manifest_shard_key(self.slug, self.table, shard), false))?;
        }
        root.retained.iter().try_for_each(|retired| self.visit_retired(retired.sequence, visit))
    }

    /// The objects that the commit `sequence` retired.
    fn visit_retired<E: From<TableError>>(
        &self,
        sequence: u64,
        visit: &mut dyn FnMut(ReferencedObject) -> Result<(), E>,
    ) -> Result<(), E> {
        let key = manifest_retired_key(self.slug, self.table, sequence);
        let Some((json, _)) = self.small(&key)? else { return Ok(()) };
        let objects: Objects = self.json(key.clone(), &json)?;
        let earlier = sequence.saturating_sub(1);
        for key in [key, manifest_root_key(self.slug, self.table, earlier)] {
            visit(manifest_object(key, true))?;
        }
        for shard in &objects.shards {
            visit(manifest_object(manifest_shard_key(self.slug, self.table, shard), true))?;
        }
        let root = self.earlier_root(earlier)?;
        let (mut maps, mut reader) = (Maps::of(root.as_ref()), self.reader());
        for file in objects.files {
            let stored = stored(&mut maps, &mut reader, &file.owner, &file.key)?;
            let object = ReferencedObject {
                bucket: Bucket::Warehouse,
                key: self.full_key(&file.key),
                content: stored.and_then(|file| content(&file)),
                is_optional: true,
            };
            visit(object)?;
        }
        Ok(())
    }

    fn file(&self, file: &StoredFile) -> ReferencedObject {
        ReferencedObject {
            bucket: Bucket::Warehouse,
            key: self.full_key(&file.key),
            content: content(file),
            is_optional: file.is_marked_lost(),
        }
    }

    /// The objects of the table's Delta log and Iceberg metadata, up to the root's version.
    ///
    /// # Errors
    /// If the store fails, or a shard is missing or damaged.
    pub fn published_objects(&self, root: &Root) -> TableResult<PublishedObjects> {
        let mut published =
            PublishedObjects { keys: Vec::new(), pointers: Vec::new(), is_delta_whole: true, is_iceberg_whole: true };
        if let Some(log) = &root.delta {
            published.is_delta_whole = self.delta_objects(log.version, &mut published)?;
        }
        if root.iceberg.as_ref().is_some_and(|iceberg| !iceberg.is_stale) {
            published.is_iceberg_whole = self.iceberg_objects(root, &mut published)?;
        }
        Ok(published)
    }

    /// False if the log lacks the version; then nothing is added.
    fn delta_objects(&self, version: u64, published: &mut PublishedObjects) -> TableResult<bool> {
        let prefix = delta_log_prefix(self.slug, self.table);
        let listed = list_all(self.store, Bucket::Warehouse, &prefix)?;
        let number = |key: &str| key.strip_prefix(&prefix)?.get(..20)?.parse::<u64>().ok();
        let keys = listed.into_iter().map(|object| object.key);
        let mut keys: Vec<String> = keys.filter(|key| number(key).is_some_and(|number| number <= version)).collect();
        let is_whole = keys.iter().any(|key| number(key) == Some(version) && key.ends_with(".json"));
        if !is_whole {
            return Ok(false);
        }
        published.keys.append(&mut keys);
        let last = delta_last_checkpoint_key(self.slug, self.table);
        if let Some((_, bytes)) = self.last_checkpoint(&last)?.filter(|(last, _)| *last <= version) {
            published.pointers.push((last, bytes));
        }
        Ok(true)
    }

    /// The version that it names, and its bytes.
    fn last_checkpoint(&self, key: &str) -> TableResult<Option<(u64, Vec<u8>)>> {
        #[derive(Deserialize)]
        struct LastCheckpoint {
            version: u64,
        }
        let Some(bytes) = read(self, key)? else { return Ok(None) };
        let found: Result<LastCheckpoint, _> = serde_json::from_slice(&bytes);
        Ok(found.ok().map(|found| (found.version, bytes)))
    }

    /// False if the metadata is not that of the root; then nothing is added.
    fn iceberg_objects(&self, root: &Root, published: &mut PublishedObjects) -> TableResult<bool> {
        let Some(iceberg) = &root.iceberg else { return Ok(false) };
        let prefix = iceberg_prefix(self.slug, self.table);
        let hint_key = format!("{prefix}{ICEBERG_HINT_NAME}");
        let hint = read(self, &hint_key)?.filter(|hint| *hint == root.sequence.to_string().as_bytes());
        let metadata = format!("{prefix}{}", iceberg_metadata_name(root.sequence));
        let Some(hint) = hint else { return Ok(false) };
        if self.store.head(Bucket::Warehouse, &metadata)?.is_none() {
            return Ok(false);
        }
        let state = state(self, iceberg)?;
        published.keys.extend(state.names().into_iter().map(|name| format!("{prefix}{name}")));
        published.keys.push(metadata);
        published.pointers.push((hint_key, hint));
        Ok(true)
    }
}

fn manifest_object(key: String, is_optional: bool) -> ReferencedObject {
    ReferencedObject { bucket: Bucket::Pipelines, key, content: None, is_optional }
}

fn content(file: &StoredFile) -> Option<(u64, String)> {
    (!file.is_marked_lost()).then(|| (file.size, file.sha256.clone()))
}

/// The entry of a file in the manifest that has it.
fn stored(maps: &mut Maps, reader: &mut ShardReader<'_>, owner: &Owner, key: &str) -> TableResult<Option<StoredFile>> {
    let of_group = |group: &GroupEntry| group.files.iter().find(|file| file.key == key).cloned();
    let found = match owner {
        Owner::Group(range) => maps.groups.get(range, reader).map(|group| group.and_then(of_group)),
        Owner::Rejects(source) => {
            maps.rejects.get(source, reader).map(|file| file.filter(|file| file.key == key).cloned())
        }
        Owner::Iceberg => Ok(None),
    };
    match found {
        // The object itself is optional, so a lost shard of an earlier commit is no fault of the table.
        Err(error) if error.is_broken() => Ok(None),
        found => found,
    }
}
