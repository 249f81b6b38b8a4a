//! The place of backups: reading and writing its objects.
//!
//! It is the pipelines bucket of a store of its own, under one slug.

use std::io::Read;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{BackupError, BackupResult};
use crate::domain::backup::{BackupIndexError, BackupObject, BackupRoot, PART_BYTES, is_backup_id, is_hex, part_count};
use crate::domain::layout::{backup_part_key, backup_root_key, backup_shard_key, backups_prefix};
use crate::domain::limits::ROOT_BYTES_MAX;
use crate::domain::name::Slug;
use crate::domain::table_log::shards::{ReadShards, ShardError, ShardKey, ShardRef, ShardedMap, decode};
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, Lease, Precondition, StoreError, WriteOptions, list_all};

pub(super) const BUCKET: Bucket = Bucket::Pipelines;
/// Bytes of a shard as stored.
const SHARD_BYTES_MAX: u64 = 128 << 20;
/// Hex digits of a shard's name.
const SHARD_NAME_LEN: usize = 32;

/// Where backups are.
#[derive(Clone, Copy)]
pub struct BackupPlace<'a> {
    pub store: &'a dyn ObjectStore,
    /// The slug that the place has in its store.
    pub slug: &'a Slug,
    /// Of the lock on the place, if that can be lost.
    pub lease: Option<&'a dyn Lease>,
}

impl<'a> BackupPlace<'a> {
    pub(super) fn options(&self) -> WriteOptions<'a> {
        WriteOptions { lease: self.lease, ..WriteOptions::default() }
    }

    /// The ids of all backups, oldest first.
    ///
    /// # Errors
    /// If the place can't be listed.
    pub fn backups(&self) -> BackupResult<Vec<String>> {
        let prefix = backups_prefix(self.slug);
        let listed = list_all(self.store, BUCKET, &prefix).map_err(BackupError::of_place)?;
        let id = |key: &str| Some(key.strip_prefix(&prefix)?.strip_suffix(".json")?.to_owned());
        Ok(listed.iter().filter_map(|object| id(&object.key)).filter(|id| is_backup_id(id)).collect())
    }

    /// The root of a backup; of the newest one without an id.
    ///
    /// # Errors
    /// If there is no such backup, or its root can't be read.
    pub fn backup(&self, id: Option<&str>) -> BackupResult<BackupRoot> {
        let all = self.backups()?;
        let found = match id {
            None => all.last().ok_or_else(|| "there is no backup here".to_owned()),
            Some(id) => all.iter().find(|found| *found == id).ok_or_else(|| {
                let newest = all.last().map_or_else(String::new, |last| format!("; the newest is `{last}`"));
                format!("there is no backup `{id}` here{newest}")
            }),
        };
        self.root(found.map_err(BackupError::Refused)?)
    }

    pub(super) fn root(&self, id: &str) -> BackupResult<BackupRoot> {
        let key = backup_root_key(self.slug, id);
        let unusable = |error| BackupError::Root { id: id.to_owned(), error };
        let json = self.read(&key, ROOT_BYTES_MAX)?;
        let json = json.ok_or_else(|| unusable(BackupIndexError::Unreadable { reason: "it is too large".into() }))?;
        BackupRoot::parse(&json, id).map_err(unusable)
    }

    /// Writes the root, which completes the backup.
    pub(super) fn put_root(&self, root: &BackupRoot) -> BackupResult<()> {
        let json = serde_json::to_vec_pretty(root).unwrap_or_default();
        let options = self.options().with(Precondition::IfNoneMatch);
        let written = self.store.put(BUCKET, &backup_root_key(self.slug, &root.id), &json, &options);
        written.map(drop).map_err(BackupError::of_place)
    }

    pub(super) fn put_shard(&self, name: &str, bytes: &[u8]) -> BackupResult<()> {
        let options = WriteOptions { defer_sync: true, ..WriteOptions::default() };
        let written = self.store.put(BUCKET, &backup_shard_key(self.slug, name), bytes, &options);
        written.map(drop).map_err(BackupError::of_place)
    }

    /// `None` if it is larger.
    fn read(&self, key: &str, bytes_max: u64) -> BackupResult<Option<Vec<u8>>> {
        let object = self.store.get(BUCKET, key, None).map_err(BackupError::of_place)?;
        if object.meta.size > bytes_max {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(object.meta.size).unwrap_or(0));
        let read = object.body.take(bytes_max).read_to_end(&mut bytes);
        let failed =
            |source| StoreError::Transient { bucket: BUCKET, key: key.to_owned(), operation: "reading", source };
        read.map_err(|source| BackupError::Place(failed(source)))?;
        Ok(Some(bytes))
    }

    /// Stores a part. Repeating it changes nothing, so it needs no lock.
    pub(super) fn put_part(&self, data: &str, part: u64, bytes: &[u8], sha256: Option<&str>) -> BackupResult<()> {
        let options = WriteOptions { defer_sync: true, sha256, ..WriteOptions::default() };
        let written = self.store.put(BUCKET, &backup_part_key(self.slug, data, part), bytes, &options);
        written.map(drop).map_err(BackupError::of_place)
    }

    /// Passes the parts of an object in order. The caller compares the hash.
    pub(super) fn read_parts(
        &self,
        key: &str,
        object: &BackupObject,
        take: &mut dyn FnMut(&[u8]) -> BackupResult<()>,
    ) -> BackupResult<()> {
        let damaged = |found: String| BackupError::Damaged { key: key.to_owned(), found };
        object.check().map_err(|why| damaged(why.to_owned()))?;
        for part in 0..part_count(object.size) {
            let expected = (object.size - part * PART_BYTES).min(PART_BYTES);
            let name = backup_part_key(self.slug, &object.data, part);
            let bytes = match self.read(&name, expected) {
                Ok(bytes) => bytes.filter(|bytes| bytes.len() as u64 == expected),
                Err(BackupError::Place(StoreError::NotFound { .. })) => {
                    return Err(damaged(format!("part {part} of its data `{}` is missing", object.data)));
                }
                Err(error) => return Err(error),
            };
            let found = || damaged(format!("part {part} of its data `{}` has another size", object.data));
            take(&bytes.ok_or_else(found)?)?;
        }
        Ok(())
    }

    pub(super) fn sync(&self, writes: usize) -> BackupResult<()> {
        self.store.sync(writes).map_err(BackupError::of_place)
    }

    pub(super) fn reader(&self) -> IndexReader<'a> {
        IndexReader(*self)
    }
}

/// Reads shards of indexes.
#[derive(Clone, Copy)]
pub(super) struct IndexReader<'a>(BackupPlace<'a>);

impl<K: ShardKey, V: DeserializeOwned> ReadShards<K, V> for IndexReader<'_> {
    type Error = BackupError;

    fn read(&mut self, shard: &ShardRef<K>) -> BackupResult<Vec<(K, V)>> {
        let unreadable = |reason: &str| ShardError { name: shard.name.clone(), reason: reason.to_owned() };
        if !is_hex(&shard.name, SHARD_NAME_LEN) {
            return Err(unreadable("its name is not a hash").into());
        }
        let bytes = self.0.read(&backup_shard_key(self.0.slug, &shard.name), SHARD_BYTES_MAX)?;
        Ok(decode(shard, &bytes.ok_or_else(|| unreadable("it is too large"))?)?)
    }
}

/// The shards that may have keys with this prefix.
pub(super) fn shards_with(shards: &[ShardRef<String>], prefix: &str) -> Vec<ShardRef<String>> {
    // A shard ends where the next one begins.
    let begins = shards.partition_point(|shard| shard.first.as_str() <= prefix).saturating_sub(1);
    let rest = shards.get(begins..).unwrap_or_default().iter();
    rest.take_while(|shard| shard.first.as_str() <= prefix || shard.first.starts_with(prefix)).cloned().collect()
}

/// Passes the entries whose keys have this prefix, in order.
pub(super) fn visit_with<V: Clone + Serialize + DeserializeOwned>(
    place: &BackupPlace<'_>,
    shards: &[ShardRef<String>],
    prefix: &str,
    mut visit: impl FnMut(String, V) -> BackupResult<()>,
) -> BackupResult<()> {
    let map = ShardedMap::<String, V>::new(&shards_with(shards, prefix));
    for entry in map.entries(&mut place.reader()) {
        let (key, value) = entry?;
        if key.starts_with(prefix) {
            visit(key, value)?;
        } else if key.as_str() > prefix {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_of_a_prefix_include_the_one_that_it_begins_in() {
        let shard = |first: &str| ShardRef { name: String::new(), size: 0, entries: 1, first: first.to_owned() };
        let shards = ["a/1", "b/1", "b/5", "b/9", "c/1"].map(shard);
        let of = |prefix: &str| -> Vec<String> {
            shards_with(&shards, prefix).into_iter().map(|shard| shard.first).collect()
        };
        assert_eq!(of("b/"), ["a/1", "b/1", "b/5", "b/9"]);
        assert_eq!(of("c/"), ["b/9", "c/1"]);
        assert_eq!(of("a/"), ["a/1"]);
        assert_eq!(of("d/"), ["c/1"]);
        assert!(shards_with(&[], "a/").is_empty());
    }
}
