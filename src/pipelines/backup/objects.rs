//! Writes one map of an index: lists a bucket, copies what is new or changed, and keeps the entries of the rest.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{BackupError, BackupResult};
use super::former::FormerEntries;
use super::place::BackupPlace;
use super::transfer::{BackupTransfers, TRANSFERS_MAX};
use crate::domain::backup::{BackupObject, BackupTable};
use crate::domain::table_log::shards::{ShardRef, ShardWriter};
use crate::ports::store::ObjectMeta;
use crate::sync::parallel_map;

/// Copies a listed object, which the former backup has as given, and returns its entry; `None` if it isn't in the backup.
pub(super) type CopyObject<'a, V> = dyn Fn(&ObjectMeta, Option<&V>) -> BackupResult<Option<V>> + Sync + 'a;

/// An entry of the index in the making.
pub(super) enum PendingEntry<V> {
    /// Of an object that isn't looked at.
    Kept(String, V),
    /// A listed object, with its entry in the former backup.
    Listed(Box<ObjectMeta>, Option<V>),
}

/// A value of an index, with the number of its objects and their bytes in total.
pub(super) trait Counted {
    fn counted(&self) -> (u64, u64);
}

impl Counted for BackupObject {
    fn counted(&self) -> (u64, u64) {
        (1, self.size)
    }
}

impl Counted for BackupTable {
    fn counted(&self) -> (u64, u64) {
        (self.count, self.bytes)
    }
}

/// A map of an index as it is stored, with its totals.
#[derive(Default)]
pub(super) struct WrittenMap {
    pub(super) shards: Vec<ShardRef<String>>,
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

impl WrittenMap {
    fn push<V: Counted + Serialize>(
        &mut self,
        place: &BackupPlace<'_>,
        writer: &mut ShardWriter<String>,
        entry: &(String, V),
    ) -> BackupResult<()> {
        let (objects, bytes) = entry.1.counted();
        (self.objects, self.bytes) = (self.objects + objects, self.bytes + bytes);
        writer.push(entry, &mut self.shards, &mut |shard: &ShardRef<String>, bytes: Vec<u8>| {
            place.put_shard(&shard.name, &bytes)
        })
    }
}

/// One map of the index in the making, beside that of the former backup.
pub(super) struct IndexMap<'m, V> {
    former: FormerEntries<'m, V>,
    /// Whether the objects of a key are looked at; other entries stay.
    is_in_scope: &'m dyn Fn(&str) -> bool,
    writer: ShardWriter<String>,
    written: WrittenMap,
    pending: Vec<PendingEntry<V>>,
}

impl<'m, V: Clone + Counted + Serialize + DeserializeOwned + Send + Sync> IndexMap<'m, V> {
    pub(super) fn new(former: FormerEntries<'m, V>, is_in_scope: &'m dyn Fn(&str) -> bool) -> Self {
        Self { former, is_in_scope, writer: ShardWriter::new(), written: WrittenMap::default(), pending: Vec::new() }
    }

    /// Adds the next object of the listing.
    pub(super) fn list(&mut self, object: ObjectMeta) -> BackupResult<()> {
        let (pending, is_in_scope) = (&mut self.pending, self.is_in_scope);
        let mut kept = |key: String, value: V| {
            if !is_in_scope(&key) {
                pending.push(PendingEntry::Kept(key, value));
            }
        };
        let former = self.former.take(&object.key, &mut kept)?;
        self.pending.push(PendingEntry::Listed(Box::new(object), former));
        Ok(())
    }

    /// Copies the objects added since the last call. `copy` returns the entry of a listed object; `None` if it is gone.
    pub(super) fn flush(&mut self, transfers: &BackupTransfers<'_>, copy: &CopyObject<'_, V>) -> BackupResult<()> {
        let slots = std::mem::take(&mut self.pending);
        let made = parallel_map(&slots, TRANSFERS_MAX, |slot| match slot {
            PendingEntry::Kept(key, value) => Ok(Some((key.clone(), value.clone()))),
            PendingEntry::Listed(object, former) => {
                transfers.watch.check()?;
                let made = copy(object, former.as_ref())?;
                transfers.watch.seen();
                Ok::<_, BackupError>(made.map(|value| (object.key.clone(), value)))
            }
        })?;
        transfers.place.sync(slots.len())?;
        let mut entries = made.into_iter().flatten();
        entries.try_for_each(|entry| self.written.push(&transfers.place, &mut self.writer, &entry))
    }

    /// Keeps the former entries after the last object.
    pub(super) fn finish(mut self, transfers: &BackupTransfers<'_>) -> BackupResult<WrittenMap> {
        while let Some((key, value)) = self.former.next()? {
            if !(self.is_in_scope)(&key) {
                self.written.push(&transfers.place, &mut self.writer, &(key, value))?;
            }
        }
        let mut sink = |shard: &ShardRef<String>, bytes: Vec<u8>| transfers.place.put_shard(&shard.name, &bytes);
        self.writer.end(&mut self.written.shards, &mut sink)?;
        Ok(self.written)
    }
}
