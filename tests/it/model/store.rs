//! A store in memory. Its tags can be content hashes or counters, its listings can lack them, and it can go down after
//! a number of writes.

use std::collections::BTreeMap;
use std::io::{Cursor, Error};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use chrono::{DateTime, TimeDelta, Utc};
use lakemill::ports::Clock;
use lakemill::ports::store::*;

/// A clock that only tests move.
#[derive(Debug, Default)]
pub struct TestClock(AtomicI64);

impl TestClock {
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::milliseconds(1_700_000_000_000 + self.0.load(Ordering::Relaxed))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Equal bytes get equal tags; otherwise every write gets a new one.
    pub content_tags: bool,
    pub listed_tags: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub bytes: Arc<[u8]>,
    pub etag: String,
    pub modified: DateTime<Utc>,
}

pub type Objects = BTreeMap<(Bucket, String), Object>;

/// From the write after the first `writes` on, every call fails; that write itself may still be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    pub writes: u64,
    pub last_applied: bool,
}

/// What happens to a source while a run reads: at the nth GET from the lake, before it is answered.
#[derive(Debug, Clone)]
pub struct Interference {
    pub get: u64,
    pub key: String,
    /// `None`: it is removed.
    pub bytes: Option<Vec<u8>>,
    /// How many GETs in a row suffer it, each with one more byte.
    pub times: u64,
}

#[derive(Debug, Clone, Default)]
struct State {
    objects: Objects,
    tags: u64,
    outage: Option<Outage>,
    down: bool,
    interference: Option<Interference>,
    log: Vec<String>,
    lake_gets: u64,
}

#[derive(Debug)]
pub struct MemoryStore {
    pub style: Style,
    pub clock: Arc<TestClock>,
    state: Mutex<State>,
}

impl MemoryStore {
    pub fn new(style: Style, clock: Arc<TestClock>) -> Self {
        Self { style, clock, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn fork(&self) -> Self {
        let copy = Self::new(self.style, self.clock.clone());
        *copy.state() = State { outage: None, down: false, interference: None, ..self.state().clone() };
        copy
    }

    pub fn objects(&self) -> Objects {
        self.state().objects.clone()
    }

    /// Writes as a person would: no outage, no log.
    pub fn seed(&self, bucket: Bucket, key: &str, bytes: &[u8]) -> String {
        let mut state = self.state();
        state.write(self, bucket, key, bytes)
    }

    pub fn unseed(&self, bucket: Bucket, key: &str) {
        self.state().objects.remove(&(bucket, key.to_owned()));
    }

    pub fn set_outage(&self, outage: Option<Outage>) {
        let mut state = self.state();
        state.outage = outage;
        state.down = false;
    }

    pub fn interfere(&self, interference: Option<Interference>) {
        self.state().interference = interference;
    }

    /// The writes tried (`put key`, `delete key`) and the number of GETs from the lake since the last call.
    pub fn take_log(&self) -> (Vec<String>, u64) {
        let mut state = self.state();
        (std::mem::take(&mut state.log), std::mem::take(&mut state.lake_gets))
    }

    fn up(&self, bucket: Bucket, key: &str) -> StoreResult<MutexGuard<'_, State>> {
        let state = self.state();
        if state.down { Err(down(bucket, key)) } else { Ok(state) }
    }

    fn guarded(&self, bucket: Bucket, key: &str, options: &WriteOptions<'_>) -> StoreResult<MutexGuard<'_, State>> {
        let state = self.up(bucket, key)?;
        if let Some(lease) = options.lease {
            lease.remaining()?;
        }
        let etag = state.objects.get(&(bucket, key.to_owned())).map(|o| o.etag.clone());
        let holds = match &options.precondition {
            Precondition::None => true,
            Precondition::IfAbsent => etag.is_none(),
            Precondition::IfMatch(expected) => etag.as_ref() == Some(&expected.0),
        };
        if holds { Ok(state) } else { Err(StoreError::PreconditionFailed { bucket, key: key.to_owned() }) }
    }

    /// Counts a write; `Ok(false)`: go on, `Ok(true)`: apply it and fail.
    fn count_write(state: &mut State, bucket: Bucket, key: &str, what: &str) -> StoreResult<bool> {
        state.log.push(format!("{what} {key}"));
        let Some(outage) = &mut state.outage else { return Ok(false) };
        if outage.writes > 0 {
            outage.writes -= 1;
            return Ok(false);
        }
        state.down = true;
        if state.outage.is_some_and(|o| o.last_applied) { Ok(true) } else { Err(down(bucket, key)) }
    }

    fn meta(key: &str, object: &Object) -> ObjectMeta {
        ObjectMeta {
            key: key.to_owned(),
            size: object.bytes.len() as u64,
            etag: Some(ETag(object.etag.clone())),
            modified: object.modified,
        }
    }
}

impl State {
    fn write(&mut self, store: &MemoryStore, bucket: Bucket, key: &str, bytes: &[u8]) -> String {
        self.tags += 1;
        let etag = match store.style.content_tags {
            true => lakemill::domain::digest::sha256_hex(bytes)[..16].to_owned(),
            false => format!("w{}", self.tags),
        };
        // As coarse as HTTP dates are.
        let modified = DateTime::from_timestamp(store.clock.now().timestamp(), 0).unwrap();
        let object = Object { bytes: bytes.into(), etag: etag.clone(), modified };
        self.objects.insert((bucket, key.to_owned()), object);
        etag
    }
}

fn down(bucket: Bucket, key: &str) -> StoreError {
    StoreError::Transient { bucket, key: key.to_owned(), operation: "reaching", source: Error::other("down") }
}

impl ObjectStore for MemoryStore {
    fn list(
        &self,
        bucket: Bucket,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<ListPage> {
        let state = self.up(bucket, prefix)?;
        let mut page = ListPage::default();
        for ((found, key), object) in state.objects.range((bucket, prefix.to_owned())..) {
            let Some(rest) = key.strip_prefix(prefix).filter(|_| *found == bucket) else { break };
            let folder = delimiter.and_then(|d| rest.split_once(d)).map(|(name, _)| format!("{prefix}{name}/"));
            let name = folder.as_ref().unwrap_or(key);
            if after.is_some_and(|after| name.as_str() <= after) || page.prefixes.last() == Some(name) {
                continue;
            }
            if page.objects.len() + page.prefixes.len() == limit {
                let last_object = page.objects.last().map(|o| o.key.clone());
                page.next = last_object.max(page.prefixes.last().cloned());
                break;
            }
            match folder {
                Some(folder) => page.prefixes.push(folder),
                None => {
                    let etag = Some(ETag(object.etag.clone())).filter(|_| self.style.listed_tags);
                    page.objects.push(ObjectMeta { etag, ..Self::meta(key, object) });
                }
            }
        }
        Ok(page)
    }

    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        let state = self.up(bucket, key)?;
        Ok(state.objects.get(&(bucket, key.to_owned())).map(|o| Self::meta(key, o)))
    }

    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        let mut state = self.up(bucket, key)?;
        if bucket == Bucket::Lake {
            state.lake_gets += 1;
            let gets = state.lake_gets;
            if let Some(i) = state.interference.clone().filter(|i| (i.get..i.get + i.times).contains(&gets)) {
                match i.bytes {
                    None => {
                        state.objects.remove(&(Bucket::Lake, i.key));
                    }
                    Some(mut bytes) => {
                        bytes.extend(std::iter::repeat_n(b'\n', (gets - i.get) as usize));
                        state.write(self, Bucket::Lake, &i.key, &bytes);
                    }
                }
            }
        }
        let Some(object) = state.objects.get(&(bucket, key.to_owned())) else {
            return Err(StoreError::NotFound { bucket, key: key.to_owned() });
        };
        if if_match.is_some_and(|tag| tag.0 != object.etag) {
            return Err(StoreError::PreconditionFailed { bucket, key: key.to_owned() });
        }
        Ok(ObjectReader { meta: Self::meta(key, object), body: Box::new(Cursor::new(object.bytes.clone())) })
    }

    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        let mut reader = self.get(bucket, key, if_match)?;
        let mut bytes = Vec::new();
        let read = std::io::Read::read_to_end(&mut reader.body, &mut bytes);
        read.map_err(|source| StoreError::Transient { bucket, key: key.to_owned(), operation: "reading", source })?;
        let end = range.end.min(bytes.len() as u64);
        Ok(bytes.get(range.start.min(end) as usize..end as usize).unwrap_or_default().to_vec())
    }

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let mut state = self.guarded(bucket, key, options)?;
        let fails = Self::count_write(&mut state, bucket, key, "put")?;
        state.write(self, bucket, key, body);
        let meta = state.objects.get(&(bucket, key.to_owned())).map(|o| Self::meta(key, o));
        match meta {
            Some(meta) if !fails => Ok(meta),
            _ => Err(down(bucket, key)),
        }
    }

    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let bytes = std::fs::read(file).map_err(|source| StoreError::Transient {
            bucket,
            key: key.to_owned(),
            operation: "reading the file for",
            source,
        })?;
        self.put(bucket, key, &bytes, options)
    }

    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let bytes = self.get_range(from.0, from.1, 0..u64::MAX, None)?;
        self.put(to.0, to.1, &bytes, options)
    }

    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        let options = WriteOptions { precondition: Precondition::None, ..options.clone() };
        for key in keys {
            let mut state = self.guarded(bucket, key, &options)?;
            let fails = Self::count_write(&mut state, bucket, key, "delete")?;
            state.objects.remove(&(bucket, key.clone()));
            if fails {
                return Err(down(bucket, key));
            }
        }
        Ok(())
    }

    fn capabilities(&self) -> StoreResult<Capabilities> {
        Ok(Capabilities { conditional_writes: true, listed_etags: self.style.listed_tags })
    }
}
