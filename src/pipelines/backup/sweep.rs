//! Compares the data of a place with the indexes that stay: what a backup lacks, and what nothing names.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{BackupError, BackupResult};
use super::known::{DataName, KnownData, data_name};
use super::place::{BUCKET, BackupPlace};
use crate::domain::backup::{BackupObject, BackupRoot, BackupTable, BackupTableObject};
use crate::domain::digest::hex;
use crate::domain::layout::{backup_part_key, backup_shards_prefix};
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::domain::table_log::shards::{ShardKey, ShardRef, ShardedMap};
use crate::ports::store::list_all;

/// What indexes name: 24 bytes of memory for each object.
#[derive(Debug, Default)]
pub(super) struct NamedData {
    shards: BTreeSet<String>,
    /// Data names, with the sizes of the objects.
    data: Vec<(DataName, u64)>,
}

impl NamedData {
    /// Adds what a backup names.
    pub(super) fn add(&mut self, place: &BackupPlace<'_>, root: &BackupRoot) -> BackupResult<()> {
        let mut named = Vec::new();
        let name = |object: &BackupObject| Some((data_name(&object.data)?, object.size));
        self.shards(place, &root.plain, |object: BackupObject| named.extend(name(&object)))?;
        self.shards(place, &root.lake, |object: BackupObject| named.extend(name(&object)))?;
        for shard in &root.tables {
            let mut tables = Vec::new();
            self.shards(place, std::slice::from_ref(shard), |table: BackupTable| tables.push(table))?;
            for table in tables {
                named.extend(name(&table.root));
                self.shards(place, &table.objects, |entry: BackupTableObject| named.extend(name(&entry.object)))?;
            }
        }
        self.data.append(&mut named);
        self.data.sort_unstable();
        self.data.dedup();
        Ok(())
    }

    /// Passes the values of shards that were not read before.
    fn shards<K: ShardKey, V: Clone + Serialize + DeserializeOwned>(
        &mut self,
        place: &BackupPlace<'_>,
        shards: &[ShardRef<K>],
        mut each: impl FnMut(V),
    ) -> BackupResult<()> {
        let new: Vec<ShardRef<K>> =
            shards.iter().filter(|shard| self.shards.insert(shard.name.clone())).cloned().collect();
        for entry in ShardedMap::<K, V>::new(&new).entries(&mut place.reader()) {
            each(entry?.1);
        }
        Ok(())
    }

    /// The number of objects that are neither in `known` nor in `added`.
    pub(super) fn missing(&self, known: &KnownData, added: &[(DataName, u64)]) -> usize {
        let is_there = |(name, size): &&(DataName, u64)| {
            known.has_named(name, *size) || added.binary_search(&(*name, *size)).is_ok()
        };
        self.data.len() - self.data.iter().filter(is_there).count()
    }

    fn names(&self, name: &DataName) -> bool {
        let at = self.data.partition_point(|(found, _)| found < name);
        self.data.get(at).is_some_and(|(found, _)| found == name)
    }

    /// Deletes the data that was there at the start, and the shards, that nothing names. Returns the number of objects.
    pub(super) fn delete_others(&self, place: &BackupPlace<'_>, known: &KnownData) -> BackupResult<u64> {
        let (mut deleted, mut keys) = (0, Vec::new());
        for data in known.all().filter(|data| !self.names(&data.name)) {
            deleted += 1;
            keys.extend((0..u64::from(data.parts)).map(|part| backup_part_key(place.slug, &hex(&data.name), part)));
            if keys.len() >= LIST_PAGE_KEYS_MAX {
                delete(place, &std::mem::take(&mut keys))?;
            }
        }
        let prefix = backup_shards_prefix(place.slug);
        let listed = list_all(place.store, BUCKET, &prefix).map_err(BackupError::of_place)?;
        let is_unnamed = |key: &String| {
            let name = key.strip_prefix(&prefix).and_then(|name| name.strip_suffix(".json.zst"));
            name.is_some_and(|name| !self.shards.contains(name))
        };
        keys.extend(listed.into_iter().map(|object| object.key).filter(is_unnamed));
        delete(place, &keys)?;
        Ok(deleted)
    }
}

pub(super) fn delete(place: &BackupPlace<'_>, keys: &[String]) -> BackupResult<()> {
    for keys in keys.chunks(LIST_PAGE_KEYS_MAX) {
        place.store.delete(BUCKET, keys, &place.options()).map_err(BackupError::of_place)?;
    }
    Ok(())
}
