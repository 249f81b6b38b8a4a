//! Configs and manifests as they were read last, so that an unchanged one isn't read and parsed again.
//!
//! Invariant: what is given was the object's content when the call began or later; a HEAD tells. An object is read by one
//! at a time, so that many who want it at once don't hold it many times over.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use crate::http::ApiError;
use crate::ports::store::{Bucket, ETag};
use crate::web::Web;
use crate::web::access::Bounded;
use crate::web::failure::from_store;

/// What is kept, in bytes of memory.
const BYTES_MAX: u64 = 128 << 20;
/// What a parsed object takes in memory, in multiples of its JSON: texts have allocations of their own.
const MEMORY_PER_BYTE: u64 = 2;
/// Objects that are kept.
const OBJECTS_MAX: usize = 2_000;

struct Kept<T> {
    etag: ETag,
    value: Arc<T>,
    size: u64,
    used: u64,
}

struct State<T> {
    kept: HashMap<String, Kept<T>>,
    bytes: u64,
    tick: u64,
}

/// Objects of one kind in the pipelines' bucket, by key.
pub struct Parsed<T> {
    parse: fn(&[u8]) -> Result<T, ApiError>,
    /// What a larger one is.
    larger: fn(u64) -> Result<T, ApiError>,
    bytes_max: u64,
    state: Mutex<State<T>>,
    /// By key: held by who reads the object.
    reading: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

/// A wish to read an object; the last of a key to go takes its lock along.
struct Turn<'a> {
    reading: &'a Mutex<HashMap<String, Arc<Mutex<()>>>>,
    key: &'a str,
    lock: Arc<Mutex<()>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut reading = self.reading.lock();
        // Ours, and the one in the map.
        if Arc::strong_count(&self.lock) <= 2 {
            reading.remove(self.key);
        }
    }
}

/// An object as it was read.
pub struct Found<T> {
    pub etag: ETag,
    pub value: Arc<T>,
}

impl<T> Parsed<T> {
    /// `bytes_max`: of one object; `larger` tells what one that has more is.
    pub fn new(
        bytes_max: u64,
        parse: fn(&[u8]) -> Result<T, ApiError>,
        larger: fn(u64) -> Result<T, ApiError>,
    ) -> Self {
        let state = State { kept: HashMap::new(), bytes: 0, tick: 0 };
        Self { parse, larger, bytes_max, state: Mutex::new(state), reading: Mutex::default() }
    }

    /// The object; `None` if there is none.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`, and what the parser says.
    pub fn get(&self, web: &Web, key: &str) -> Result<Option<Found<T>>, ApiError> {
        let Some(meta) = web.store.head(Bucket::Pipelines, key).map_err(from_store)? else {
            self.forget(key);
            return Ok(None);
        };
        if let Some(found) = meta.etag.as_ref().and_then(|etag| self.known(key, etag)) {
            return Ok(Some(found));
        }
        let turn = self.turn(key);
        let _reading = turn.lock.lock();
        if let Some(found) = meta.etag.as_ref().and_then(|etag| self.known(key, etag)) {
            return Ok(Some(found));
        }
        let (meta, value, size) = match web.read_within(Bucket::Pipelines, key, self.bytes_max)? {
            Bounded::Whole(meta, bytes) => (meta, (self.parse)(&bytes)?, bytes.len() as u64),
            Bounded::Larger => (meta, (self.larger)(self.bytes_max)?, 0),
            Bounded::Missing => return Ok(None),
        };
        let value = Arc::new(value);
        let etag = meta.etag.ok_or_else(|| ApiError::internal(format!("`{key}` came without a tag")))?;
        self.keep(key, &etag, &value, size.saturating_mul(MEMORY_PER_BYTE));
        Ok(Some(Found { etag, value }))
    }

    fn turn<'a>(&'a self, key: &'a str) -> Turn<'a> {
        let mut reading = self.reading.lock();
        let lock = Arc::clone(reading.entry(key.to_owned()).or_default());
        Turn { reading: &self.reading, key, lock }
    }

    fn known(&self, key: &str, etag: &ETag) -> Option<Found<T>> {
        let mut state = self.state.lock();
        state.tick += 1;
        let tick = state.tick;
        let kept = state.kept.get_mut(key).filter(|kept| kept.etag == *etag)?;
        kept.used = tick;
        Some(Found { etag: etag.clone(), value: Arc::clone(&kept.value) })
    }

    fn forget(&self, key: &str) {
        let mut state = self.state.lock();
        state.remove(key);
    }

    fn keep(&self, key: &str, etag: &ETag, value: &Arc<T>, size: u64) {
        let mut state = self.state.lock();
        state.remove(key);
        if size > BYTES_MAX {
            return;
        }
        while state.kept.len() >= OBJECTS_MAX || state.bytes + size > BYTES_MAX {
            let oldest = state.kept.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            state.remove(&oldest);
        }
        state.tick += 1;
        let kept = Kept { etag: etag.clone(), value: Arc::clone(value), size, used: state.tick };
        state.bytes += size;
        state.kept.insert(key.to_owned(), kept);
    }
}

impl<T> State<T> {
    fn remove(&mut self, key: &str) {
        if let Some(kept) = self.kept.remove(key) {
            self.bytes -= kept.size;
        }
    }
}
