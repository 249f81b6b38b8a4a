//! A sorted map in shards: immutable objects of up to a few thousand entries, named by their content.
//!
//! Invariant: the keys of a shard are at least its `first` and less than the next shard's. A change rewrites the shards
//! that it touches and no others.
//!
//! Must not: hold more shards in memory than were requested.

use std::io::Read;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::domain::digest::sha256_hex;

/// A shard is split when it has more entries than this, or more bytes of JSON than [`SHARD_BYTES_MAX`] and more than one
/// entry.
pub const SHARD_ENTRIES_MAX: usize = 4_096;
pub const SHARD_BYTES_MAX: usize = 4 << 20;
/// Shards with fewer entries are joined with their neighbour when both are rewritten.
const SHARD_ENTRIES_MIN: usize = SHARD_ENTRIES_MAX / 4;
/// Maximum bytes of JSON read from one shard. Its largest entry is a segment's sources: 4,096 on average, and with a
/// probability of less than 1 in 10^9 more than 100,000, with keys of at most 1 KiB.
const JSON_BYTES_MAX: u64 = 128 << 20;

/// Hex digits of a shard's name.
const SHARD_NAME_LEN: usize = 32;

/// A key of a sharded map.
pub trait ShardKey: Ord + Clone + Serialize + DeserializeOwned {}

impl<K: Ord + Clone + Serialize + DeserializeOwned> ShardKey for K {}

/// A shard, as a manifest's root lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRef<K> {
    /// The first 32 hex digits of the SHA-256 of its bytes.
    pub name: String,
    /// Bytes as stored.
    pub size: u64,
    pub entries: u64,
    pub first: K,
}

/// Why the bytes aren't the shard that a root lists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found no readable shard `{name}`: {reason}")]
pub struct ShardError {
    pub name: String,
    pub reason: String,
}

const ZSTD_LEVEL: i32 = 3;

/// Decodes a shard.
///
/// # Errors
/// If the bytes aren't those that the reference names, or are too many, or hold other entries.
pub fn decode<K: ShardKey, V: DeserializeOwned>(shard: &ShardRef<K>, bytes: &[u8]) -> Result<Vec<(K, V)>, ShardError> {
    let unreadable = |reason: String| ShardError { name: shard.name.clone(), reason };
    if shard.name.len() != SHARD_NAME_LEN || !sha256_hex(bytes).starts_with(&shard.name) {
        return Err(unreadable("its SHA-256 is not the one in its name".to_owned()));
    }
    let json = inflate(bytes).map_err(|error| unreadable(error.to_string()))?;
    let entries: Vec<(K, V)> = serde_json::from_slice(&json).map_err(|error| unreadable(error.to_string()))?;
    let is_sorted = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if entries.len() as u64 != shard.entries || entries.first().map(|(key, _)| key) != Some(&shard.first) || !is_sorted
    {
        return Err(unreadable("its entries are not those that the manifest names".to_owned()));
    }
    Ok(entries)
}

fn inflate(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut json = Vec::new();
    let read = zstd::stream::read::Decoder::with_buffer(bytes)?.take(JSON_BYTES_MAX + 1).read_to_end(&mut json)?;
    match read as u64 > JSON_BYTES_MAX {
        true => Err(std::io::Error::other(format!("expected at most {JSON_BYTES_MAX} bytes when inflated"))),
        false => Ok(json),
    }
}

/// Reads shards of a map.
pub trait ReadShards<K, V> {
    type Error;

    /// # Errors
    /// If the shard can't be read.
    fn read(&mut self, shard: &ShardRef<K>) -> Result<Vec<(K, V)>, Self::Error>;
}

impl<K, V, E, F: FnMut(&ShardRef<K>) -> Result<Vec<(K, V)>, E>> ReadShards<K, V> for F {
    type Error = E;

    fn read(&mut self, shard: &ShardRef<K>) -> Result<Vec<(K, V)>, E> {
        self(shard)
    }
}

#[derive(Debug, Clone)]
struct Slot<K, V> {
    /// The stored shard, if it is stored.
    stored: Option<ShardRef<K>>,
    /// Its entries, if it was read or changed.
    entries: Option<Vec<(K, V)>>,
    changed: bool,
}

/// A sharded map that reads shards on demand.
#[derive(Debug, Clone)]
pub struct ShardedMap<K, V> {
    slots: Vec<Slot<K, V>>,
}

impl<K: ShardKey, V: Clone + Serialize> ShardedMap<K, V> {
    pub fn new(shards: &[ShardRef<K>]) -> Self {
        let slot = |shard: &ShardRef<K>| Slot { stored: Some(shard.clone()), entries: None, changed: false };
        Self { slots: shards.iter().map(slot).collect() }
    }

    /// The only slot that can contain `key`; `None` for an empty map.
    fn slot_of(&self, key: &K) -> Option<usize> {
        let after = self.slots.partition_point(|slot| slot.first().is_some_and(|first| first <= key));
        if self.slots.is_empty() { None } else { Some(after.saturating_sub(1)) }
    }

    fn load<R: ReadShards<K, V>>(&mut self, at: usize, read: &mut R) -> Result<&mut Vec<(K, V)>, R::Error> {
        let slot = &mut self.slots[at];
        if slot.entries.is_none() {
            let entries = match &slot.stored {
                Some(stored) => read.read(stored)?,
                None => Vec::new(),
            };
            slot.entries = Some(entries);
        }
        Ok(slot.entries.get_or_insert_default())
    }

    /// # Errors
    /// If a shard can't be read.
    pub fn get<R: ReadShards<K, V>>(&mut self, key: &K, read: &mut R) -> Result<Option<&V>, R::Error> {
        let Some(at) = self.slot_of(key) else { return Ok(None) };
        let entries = self.load(at, read)?;
        Ok(entries.binary_search_by(|(k, _)| k.cmp(key)).ok().map(|at| &entries[at].1))
    }

    /// The last entry whose key is at most `key`.
    ///
    /// # Errors
    /// If a shard can't be read.
    pub fn floor<R: ReadShards<K, V>>(&mut self, key: &K, read: &mut R) -> Result<Option<(&K, &V)>, R::Error> {
        let Some(at) = self.slot_of(key) else { return Ok(None) };
        let entries = self.load(at, read)?;
        // Only the first shard can have no such entry.
        let after = entries.partition_point(|(k, _)| k <= key);
        Ok(after.checked_sub(1).map(|at| (&entries[at].0, &entries[at].1)))
    }

    /// The last entry whose key is less than `key`.
    ///
    /// # Errors
    /// If a shard can't be read.
    pub fn before<R: ReadShards<K, V>>(&mut self, key: &K, read: &mut R) -> Result<Option<(&K, &V)>, R::Error> {
        let mut slot = self.slots.partition_point(|slot| slot.first().is_some_and(|first| first < key));
        while slot > 0 {
            slot -= 1;
            let after = self.load(slot, read)?.partition_point(|(k, _)| k < key);
            if let Some(at) = after.checked_sub(1) {
                return Ok(self.slots[slot].entry(at));
            }
        }
        Ok(None)
    }

    /// The first entry whose key is greater than `key`.
    ///
    /// # Errors
    /// If a shard can't be read.
    pub fn after<R: ReadShards<K, V>>(&mut self, key: &K, read: &mut R) -> Result<Option<(&K, &V)>, R::Error> {
        let Some(start) = self.slot_of(key) else { return Ok(None) };
        for slot in start..self.slots.len() {
            let entries = self.load(slot, read)?;
            let at = entries.partition_point(|(k, _)| k <= key);
            if at < entries.len() {
                return Ok(self.slots[slot].entry(at));
            }
        }
        Ok(None)
    }

    /// Sets the value of `key`, or removes it.
    ///
    /// # Errors
    /// If a shard can't be read.
    pub fn set<R: ReadShards<K, V>>(&mut self, key: K, value: Option<V>, read: &mut R) -> Result<(), R::Error> {
        let at = match self.slot_of(&key) {
            Some(at) => at,
            None if value.is_none() => return Ok(()),
            None => {
                self.slots.push(Slot { stored: None, entries: Some(Vec::new()), changed: true });
                0
            }
        };
        let entries = self.load(at, read)?;
        match (entries.binary_search_by(|(k, _)| k.cmp(&key)), value) {
            (Ok(found), Some(value)) => entries[found].1 = value,
            (Ok(found), None) => drop(entries.remove(found)),
            (Err(place), Some(value)) => entries.insert(place, (key, value)),
            (Err(_), None) => return Ok(()),
        }
        let slot = &mut self.slots[at];
        slot.changed = true;
        if slot.entries.as_ref().is_some_and(Vec::is_empty) {
            self.slots.remove(at);
        }
        Ok(())
    }

    /// Passes full shards of a map that only grows at its end to `sink`, with their bytes, and forgets their entries;
    /// after that, keys before the last shard's may not be looked up.
    ///
    /// # Errors
    /// Errors of `sink`.
    pub fn spill<E>(&mut self, sink: &mut ShardSink<'_, K, E>) -> Result<(), E> {
        let Some(entries) = self.slots.last_mut().and_then(|slot| slot.entries.as_mut()) else { return Ok(()) };
        if entries.len() < 2 * SHARD_ENTRIES_MAX {
            return Ok(());
        }
        let rest = entries.split_off(SHARD_ENTRIES_MAX);
        let full = std::mem::replace(entries, rest);
        let mut shards = Vec::new();
        write_shards(full, true, &mut shards, sink)?;
        let last = self.slots.len() - 1;
        let stored = |shard| Slot { stored: Some(shard), entries: None, changed: false };
        self.slots.splice(last..last, shards.into_iter().map(stored));
        Ok(())
    }

    /// Every entry in order. Holds one shard that wasn't read before at a time. Ends after an error.
    pub fn entries<'m, R: ReadShards<K, V>>(
        &'m self,
        read: &'m mut R,
    ) -> impl Iterator<Item = Result<(K, V), R::Error>> + 'm {
        let mut slots = self.slots.iter();
        let mut shard = Vec::new().into_iter();
        std::iter::from_fn(move || {
            loop {
                if let Some(entry) = shard.next() {
                    return Some(Ok(entry));
                }
                let slot = slots.next()?;
                let entries = match (&slot.entries, &slot.stored) {
                    (Some(entries), _) => Ok(entries.clone()),
                    (None, Some(stored)) => read.read(stored),
                    (None, None) => Ok(Vec::new()),
                };
                match entries {
                    Ok(entries) => shard = entries.into_iter(),
                    Err(error) => {
                        slots = [].iter();
                        return Some(Err(error));
                    }
                }
            }
        })
    }

    /// At most `count` entries from the `start`th on. Reads the shards that have them.
    ///
    /// # Errors
    /// If a shard can't be read.
    pub fn page<R: ReadShards<K, V>>(&self, start: u64, count: usize, read: &mut R) -> Result<Vec<(K, V)>, R::Error> {
        let (mut page, mut before) = (Vec::new(), 0);
        for slot in &self.slots {
            let len = match (&slot.entries, &slot.stored) {
                (Some(entries), _) => entries.len() as u64,
                (None, stored) => stored.as_ref().map_or(0, |stored| stored.entries),
            };
            if page.len() < count && start < before + len {
                let entries = match (&slot.entries, &slot.stored) {
                    (Some(entries), _) => entries.clone(),
                    (None, Some(stored)) => read.read(stored)?,
                    (None, None) => Vec::new(),
                };
                let skip = usize::try_from(start.saturating_sub(before)).unwrap_or(usize::MAX);
                page.extend(entries.into_iter().skip(skip).take(count - page.len()));
            }
            before += len;
        }
        Ok(page)
    }

    /// Passes every entry to `visit` in order, as [`Self::entries`] does.
    ///
    /// # Errors
    /// If a shard can't be read, or what `visit` returns.
    pub fn visit<R: ReadShards<K, V>>(
        &self,
        read: &mut R,
        mut visit: impl FnMut(&K, &V) -> Result<(), R::Error>,
    ) -> Result<(), R::Error> {
        self.entries(read).try_for_each(|entry| entry.and_then(|(key, value)| visit(&key, &value)))
    }

    /// Passes every new shard to `sink`, with its bytes; returns all shards of the changed map, in order.
    ///
    /// # Errors
    /// Errors of `sink`.
    pub fn rewrite<E>(self, sink: &mut ShardSink<'_, K, E>) -> Result<Vec<ShardRef<K>>, E> {
        let mut shards = Vec::with_capacity(self.slots.len());
        let mut joined: Vec<(K, V)> = Vec::new();
        let last = self.slots.len().saturating_sub(1);
        for (at, slot) in self.slots.into_iter().enumerate() {
            // A small shard is merged with the next one if that is rewritten anyway.
            if !joined.is_empty() && (!slot.changed || joined.len() >= SHARD_ENTRIES_MIN) {
                write_shards(std::mem::take(&mut joined), false, &mut shards, sink)?;
            }
            if slot.changed {
                joined.extend(slot.entries.into_iter().flatten());
            } else {
                shards.extend(slot.stored);
            }
            if at == last {
                write_shards(std::mem::take(&mut joined), true, &mut shards, sink)?;
            }
        }
        Ok(shards)
    }
}

impl<K: Clone, V> Slot<K, V> {
    fn first(&self) -> Option<&K> {
        let loaded = self.entries.as_ref().and_then(|entries| entries.first()).map(|(key, _)| key);
        loaded.or(self.stored.as_ref().map(|stored| &stored.first))
    }

    fn entry(&self, at: usize) -> Option<(&K, &V)> {
        self.entries.as_ref().and_then(|entries| entries.get(at)).map(|(key, value)| (key, value))
    }
}

/// Receives each new shard with its bytes.
pub type ShardSink<'a, K, E> = dyn FnMut(&ShardRef<K>, Vec<u8>) -> Result<(), E> + 'a;

/// Writes entries as one or more shards: of equal size, so that none is full, or, at the end of the map, where entries
/// are mostly added, with full ones first.
fn write_shards<K: ShardKey, V: Serialize, E>(
    entries: Vec<(K, V)>,
    at_end: bool,
    shards: &mut Vec<ShardRef<K>>,
    sink: &mut ShardSink<'_, K, E>,
) -> Result<(), E> {
    let count = entries.len();
    let texts: Vec<(K, Vec<u8>)> = entries.into_iter().map(|entry| (entry.0.clone(), json(&entry))).collect();
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    let pieces = count.div_ceil(SHARD_ENTRIES_MAX).max(bytes.div_ceil(SHARD_BYTES_MAX));
    let (entries_max, bytes_max) = match at_end || pieces < 2 {
        true => (SHARD_ENTRIES_MAX, SHARD_BYTES_MAX),
        // With room for uneven entries, so that no tiny shard is left over.
        false => (count.div_ceil(pieces), (bytes / pieces / 4 * 5).min(SHARD_BYTES_MAX)),
    };
    let mut writer = ShardWriter { entries_max, bytes_max, ..ShardWriter::new() };
    for (key, text) in texts {
        writer.push_json(key, &text, shards, sink)?;
    }
    writer.end(shards, sink)
}

fn json(entry: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(entry).unwrap_or_default()
}

/// Writes the shards of a new map from its entries in order. Holds one shard in memory.
#[derive(Debug)]
pub struct ShardWriter<K> {
    first: Option<K>,
    entries: usize,
    /// The JSON of the shard's entries, without the last bracket.
    json: Vec<u8>,
    entries_max: usize,
    bytes_max: usize,
}

impl<K: ShardKey> Default for ShardWriter<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: ShardKey> ShardWriter<K> {
    pub fn new() -> Self {
        Self { first: None, entries: 0, json: Vec::new(), entries_max: SHARD_ENTRIES_MAX, bytes_max: SHARD_BYTES_MAX }
    }

    /// Adds an entry, whose key is greater than all before. Finished shards go to `shards` and `sink`.
    ///
    /// # Errors
    /// Errors of `sink`.
    pub fn push<V: Serialize, E>(
        &mut self,
        entry: &(K, V),
        shards: &mut Vec<ShardRef<K>>,
        sink: &mut ShardSink<'_, K, E>,
    ) -> Result<(), E> {
        self.push_json(entry.0.clone(), &json(entry), shards, sink)
    }

    fn push_json<E>(
        &mut self,
        key: K,
        json: &[u8],
        shards: &mut Vec<ShardRef<K>>,
        sink: &mut ShardSink<'_, K, E>,
    ) -> Result<(), E> {
        if self.entries >= self.entries_max || (self.entries > 0 && self.json.len() + json.len() > self.bytes_max) {
            self.end(shards, sink)?;
        }
        self.json.push(if self.entries == 0 { b'[' } else { b',' });
        self.json.extend_from_slice(json);
        self.entries += 1;
        self.first.get_or_insert(key);
        Ok(())
    }

    /// Ends the last shard.
    ///
    /// # Errors
    /// Errors of `sink`.
    pub fn end<E>(&mut self, shards: &mut Vec<ShardRef<K>>, sink: &mut ShardSink<'_, K, E>) -> Result<(), E> {
        let Some(first) = self.first.take() else { return Ok(()) };
        self.json.push(b']');
        let bytes = zstd::bulk::compress(&self.json, ZSTD_LEVEL).unwrap_or_default();
        let name = sha256_hex(&bytes)[..SHARD_NAME_LEN].to_owned();
        let shard = ShardRef { name, size: bytes.len() as u64, entries: self.entries as u64, first };
        self.json.clear();
        self.entries = 0;
        sink(&shard, bytes)?;
        shards.push(shard);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, HashMap};

    use proptest::prelude::*;

    use super::*;

    type Objects = HashMap<String, Vec<u8>>;

    fn write(map: &BTreeMap<String, u64>, objects: &mut Objects) -> Vec<ShardRef<String>> {
        let (mut writer, mut shards) = (ShardWriter::new(), Vec::new());
        let mut sink = |shard: &ShardRef<String>, bytes| {
            objects.insert(shard.name.clone(), bytes);
            Ok::<_, ShardError>(())
        };
        for (key, value) in map {
            writer.push(&(key.clone(), *value), &mut shards, &mut sink).unwrap();
        }
        writer.end(&mut shards, &mut sink).unwrap();
        shards
    }

    fn key(number: u32) -> String {
        format!("in/{number:07}.csv")
    }

    fn all(shards: &[ShardRef<String>], objects: &Objects) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        let mut read = |shard: &ShardRef<String>| decode(shard, &objects[&shard.name]);
        ShardedMap::<String, u64>::new(shards)
            .visit(&mut read, |key, value| {
                found.insert(key.clone(), *value);
                Ok(())
            })
            .unwrap();
        found
    }

    fn names(shards: &[ShardRef<String>]) -> BTreeSet<&str> {
        shards.iter().map(|shard| shard.name.as_str()).collect()
    }

    /// Applies changes; returns the shards, how many were read, and how many are new.
    fn change(
        shards: &[ShardRef<String>],
        changes: &[(u32, Option<u64>)],
        objects: &mut Objects,
    ) -> (Vec<ShardRef<String>>, usize, usize) {
        let (mut reads, mut new) = (0, 0);
        let mut map = ShardedMap::new(shards);
        {
            let mut read = |shard: &ShardRef<String>| {
                reads += 1;
                decode(shard, &objects[&shard.name])
            };
            for (number, value) in changes {
                map.set(key(*number), *value, &mut read).unwrap();
            }
        }
        let rewritten = map.rewrite(&mut |shard: &ShardRef<String>, bytes| {
            new += 1;
            objects.insert(shard.name.clone(), bytes);
            Ok::<_, ShardError>(())
        });
        (rewritten.unwrap(), reads, new)
    }

    #[test]
    fn change_reads_and_rewrites_the_shards_that_it_touches() {
        let mut objects = Objects::new();
        let mut map: BTreeMap<String, u64> = (0..100_000).map(|n| (key(n * 2), u64::from(n))).collect();
        let shards = write(&map, &mut objects);
        assert_eq!(shards.len(), 100_000_usize.div_ceil(SHARD_ENTRIES_MAX));
        let (changed, reads, new) = change(&shards, &[(50_001, Some(7)), (1_000_000, Some(8))], &mut objects);
        assert_eq!((reads, new), (2, 3), "one shard is full and becomes two, the last has room");
        assert_eq!((&names(&shards) - &names(&changed)).len(), 2, "those that were touched are no longer listed");
        map.insert(key(50_001), 7);
        map.insert(key(1_000_000), 8);
        assert_eq!(all(&changed, &objects), map);
        let (unchanged, reads, new) = change(&changed, &[(50_003, None)], &mut objects);
        assert_eq!((reads, new, unchanged.len()), (1, 0, changed.len()), "nothing was there to remove");
    }

    #[test]
    fn entries_inserted_in_the_middle_leave_no_tiny_shards() {
        let mut objects = Objects::new();
        let map: BTreeMap<String, u64> = (0..20_000).map(|n| (key(n * 10), 0)).collect();
        let mut shards = write(&map, &mut objects);
        for n in 0..400 {
            shards = change(&shards, &[(1_001 + n * 3, Some(1))], &mut objects).0;
        }
        let (last, others) = shards.split_last().unwrap();
        assert!(others.iter().all(|shard| shard.entries as usize > SHARD_ENTRIES_MAX / 3), "{shards:?}");
        assert!(last.entries > 0 && shards.len() <= 8);
    }

    #[test]
    fn neighbours_of_a_key_are_found_across_shards() {
        let mut objects = Objects::new();
        let map: BTreeMap<String, u64> = (1..=10_000).map(|n| (key(n * 2), u64::from(n))).collect();
        let shards = write(&map, &mut objects);
        let mut read = |shard: &ShardRef<String>| decode(shard, &objects[&shard.name]);
        let mut sharded = ShardedMap::<String, u64>::new(&shards);
        for n in [0, 1, 2, 3, 8_191, 8_192, 8_193, 8_194, 20_000, 20_001] {
            let own = |found: Option<(&String, &u64)>| found.map(|(key, value)| (key.clone(), *value));
            let at = key(n);
            let expected = map.range(..=at.clone()).next_back().map(|(k, v)| (k.clone(), *v));
            assert_eq!(own(sharded.floor(&at, &mut read).unwrap()), expected, "{n}");
            let expected = map.range(..at.clone()).next_back().map(|(k, v)| (k.clone(), *v));
            assert_eq!(own(sharded.before(&at, &mut read).unwrap()), expected, "{n}");
            let expected = map.range(at.clone()..).find(|(k, _)| **k > at).map(|(k, v)| (k.clone(), *v));
            assert_eq!(own(sharded.after(&at, &mut read).unwrap()), expected, "{n}");
            assert_eq!(sharded.get(&at, &mut read).unwrap(), map.get(&at));
        }
    }

    #[test]
    fn other_bytes_are_an_error() {
        let mut objects = Objects::new();
        let map = BTreeMap::from([(key(1), 1), (key(2), 2)]);
        let shard = write(&map, &mut objects).remove(0);
        let bytes = objects[&shard.name].clone();
        assert!(decode::<String, u64>(&shard, &bytes).is_ok());
        assert!(decode::<String, u64>(&shard, &bytes[..bytes.len() - 1]).is_err());
        let other = ShardRef { entries: 3, ..shard.clone() };
        assert!(decode::<String, u64>(&other, &bytes).is_err());
        let bomb = zstd::bulk::compress(&vec![b' '; JSON_BYTES_MAX as usize + 1], ZSTD_LEVEL).unwrap();
        let name = sha256_hex(&bomb)[..SHARD_NAME_LEN].to_owned();
        assert!(decode::<String, u64>(&ShardRef { name, ..shard }, &bomb).is_err());
    }

    proptest! {
        #[test]
        fn map_holds_what_was_set(steps in prop::collection::vec(
            prop::collection::vec((0..40_u32, prop::option::of(0..9_u64)), 0..12), 1..12)
        ) {
            let mut objects = Objects::new();
            let (mut model, mut shards) = (BTreeMap::new(), Vec::new());
            for step in steps {
                shards = change(&shards, &step, &mut objects).0;
                for (number, value) in step {
                    match value {
                        Some(value) => drop(model.insert(key(number), value)),
                        None => drop(model.remove(&key(number))),
                    }
                }
                prop_assert_eq!(&all(&shards, &objects), &model);
            }
        }
    }
}
