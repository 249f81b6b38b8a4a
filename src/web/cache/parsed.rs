//! Caches parsed configs and manifests by tag.
//!
//! Invariant: a result was the object's content when the call began, or later; a HEAD request revalidates it. One thread
//! reads an object at a time, so that concurrent requests don't hold it in memory many times.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use crate::http::ApiError;
use crate::ports::store::{Bucket, ETag};
use crate::web::failure::from_store;
use crate::web::stores::{BoundedRead, Objects};

/// Size of the cache, in bytes of memory.
const BYTES_MAX: u64 = 128 << 20;
/// Memory of a parsed object per byte of its JSON: strings are separate allocations.
const MEMORY_PER_BYTE: u64 = 2;
/// Maximum number of objects in the cache.
const OBJECTS_MAX: usize = 2_000;

struct Entry<T> {
    etag: ETag,
    value: Arc<T>,
    size: u64,
    used: u64,
}

struct State<T> {
    entries: HashMap<String, Entry<T>>,
    bytes: u64,
    tick: u64,
}

/// Objects of one kind in the pipelines bucket, by key.
pub struct Parsed<T> {
    parse: fn(&[u8]) -> Result<T, ApiError>,
    /// Makes the value for an object that exceeds the limit.
    larger: fn(u64) -> Result<T, ApiError>,
    bytes_max: u64,
    state: Mutex<State<T>>,
    /// Locks by key, held while an object is read.
    reading: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

/// The lock of an object, removed with its last user.
struct ReadLock<'a> {
    reading: &'a Mutex<HashMap<String, Arc<Mutex<()>>>>,
    key: &'a str,
    lock: Arc<Mutex<()>>,
}

impl Drop for ReadLock<'_> {
    fn drop(&mut self) {
        let mut reading = self.reading.lock();
        // The remaining references are this one and the map's.
        if Arc::strong_count(&self.lock) <= 2 {
            reading.remove(self.key);
        }
    }
}

/// A parsed object.
pub struct Cached<T> {
    pub etag: ETag,
    pub value: Arc<T>,
}

impl<T> Parsed<T> {
    /// `bytes_max`: the size limit of an object; `larger` makes the value for an object beyond it.
    pub fn new(
        bytes_max: u64,
        parse: fn(&[u8]) -> Result<T, ApiError>,
        larger: fn(u64) -> Result<T, ApiError>,
    ) -> Self {
        let state = State { entries: HashMap::new(), bytes: 0, tick: 0 };
        Self { parse, larger, bytes_max, state: Mutex::new(state), reading: Mutex::default() }
    }

    /// The object; `None` if there is none.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`, and those of the parser.
    pub fn get(&self, store: &Objects, key: &str) -> Result<Option<Cached<T>>, ApiError> {
        let Some(meta) = store.head(Bucket::Pipelines, key).map_err(from_store)? else {
            self.forget(key);
            return Ok(None);
        };
        if let Some(found) = meta.etag.as_ref().and_then(|etag| self.lookup(key, etag)) {
            return Ok(Some(found));
        }
        let lock = self.read_lock(key);
        let _reading = lock.lock.lock();
        if let Some(found) = meta.etag.as_ref().and_then(|etag| self.lookup(key, etag)) {
            return Ok(Some(found));
        }
        let (meta, value, size) = match store.read_bounded(Bucket::Pipelines, key, self.bytes_max)? {
            BoundedRead::Whole(meta, bytes) => (meta, (self.parse)(&bytes)?, bytes.len() as u64),
            BoundedRead::Larger => (meta, (self.larger)(self.bytes_max)?, 0),
            BoundedRead::Missing => return Ok(None),
        };
        let value = Arc::new(value);
        let etag = meta.etag.ok_or_else(|| ApiError::internal(format!("`{key}` has no tag")))?;
        self.insert(key, &etag, &value, size.saturating_mul(MEMORY_PER_BYTE));
        Ok(Some(Cached { etag, value }))
    }

    fn read_lock<'a>(&'a self, key: &'a str) -> ReadLock<'a> {
        let mut reading = self.reading.lock();
        let lock = Arc::clone(reading.entry(key.to_owned()).or_default());
        ReadLock { reading: &self.reading, key, lock }
    }

    fn lookup(&self, key: &str, etag: &ETag) -> Option<Cached<T>> {
        let mut state = self.state.lock();
        state.tick += 1;
        let tick = state.tick;
        let entry = state.entries.get_mut(key).filter(|entry| entry.etag == *etag)?;
        entry.used = tick;
        Some(Cached { etag: etag.clone(), value: Arc::clone(&entry.value) })
    }

    fn forget(&self, key: &str) {
        let mut state = self.state.lock();
        state.remove(key);
    }

    fn insert(&self, key: &str, etag: &ETag, value: &Arc<T>, size: u64) {
        let mut state = self.state.lock();
        state.remove(key);
        if size > BYTES_MAX {
            return;
        }
        while state.entries.len() >= OBJECTS_MAX || state.bytes + size > BYTES_MAX {
            let oldest = state.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            state.remove(&oldest);
        }
        state.tick += 1;
        let entry = Entry { etag: etag.clone(), value: Arc::clone(value), size, used: state.tick };
        state.bytes += size;
        state.entries.insert(key.to_owned(), entry);
    }
}

impl<T> State<T> {
    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.size;
        }
    }
}
