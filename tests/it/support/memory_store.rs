//! An in-memory object store, fast enough for thousands of runs per second.
//!
//! It passes the same contract as the real ones. Its time is deterministic: the nth write happens at Unix time
//! 1,600,000,000 + n, so that a sequence of operations gives the same store every time.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};

use lakemill::domain::file_tag;
use lakemill::domain::layout::{KeyError, check_stored_key};
use lakemill::domain::limits::LIST_PAGE_KEYS_MAX;
use lakemill::domain::name::Slug;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{
    Bucket, Capabilities, ETag, Lease, LeaseLost, ListPage, LocalStore, ObjectMeta, ObjectReader, Precondition,
    RequestCounts, StagedFile, StoreError, StoreResult, WriteOptions,
};
use lakemill::runtime::Clock;

/// How tags are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tags {
    /// From the content: putting the same bytes again gives the same tag.
    Content,
    /// From a counter: every write gives a new tag, as in some stores.
    Counter,
    /// From the second of the write and the size, like files on file systems that keep times in whole seconds.
    MtimeSecond,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub bytes: Arc<[u8]>,
    pub etag: ETag,
    pub modified: DateTime<Utc>,
}

pub type Objects = BTreeMap<(Bucket, String), Object>;

#[derive(Default, Clone)]
struct State {
    buckets: [BTreeMap<String, Object>; 3],
    fences: BTreeMap<Slug, u64>,
    writes: u64,
}

/// The store; clones share its objects.
pub struct MemoryStore {
    state: Mutex<State>,
    tags: Tags,
    listed_etags: bool,
    clock: Option<Arc<dyn Clock>>,
    skew: Option<TimeDelta>,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::with(Tags::Content, true)
    }

    pub fn with(tags: Tags, listed_etags: bool) -> Self {
        Self { state: Mutex::default(), tags, listed_etags, clock: None, skew: None }
    }

    /// Uses this clock for the times of objects, in whole seconds as in HTTP.
    pub fn timed_by(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Makes callers' clocks run ahead of the store's by `ahead`.
    pub fn skewed(mut self, ahead: TimeDelta) -> Self {
        self.skew = Some(ahead);
        self
    }

    /// Forgets the writers' fences, which a remote store never knows.
    pub fn forget_fences(&self) {
        self.lock().fences.clear();
    }

    /// An independent copy with the same objects and fences.
    pub fn fork(&self) -> Self {
        let Self { tags, listed_etags, skew, .. } = *self;
        Self { state: Mutex::new(self.lock().clone()), tags, listed_etags, clock: self.clock.clone(), skew }
    }

    /// All objects in all buckets.
    pub fn objects(&self) -> Objects {
        let state = self.lock();
        let of =
            |bucket: Bucket| state.buckets[bucket as usize].iter().map(move |(k, o)| ((bucket, k.clone()), o.clone()));
        Bucket::ALL.into_iter().flat_map(of).collect()
    }

    /// All objects in a bucket.
    pub fn contents(&self, bucket: Bucket) -> BTreeMap<String, Arc<[u8]>> {
        let state = self.lock();
        state.buckets[bucket as usize].iter().map(|(k, o)| (k.clone(), Arc::clone(&o.bytes))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn find(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<Object> {
        check(bucket, key)?;
        let found = self.lock().buckets[bucket as usize].get(key).cloned();
        let object = found.ok_or_else(|| StoreError::NotFound { bucket, key: key.to_owned() })?;
        if if_match.is_some_and(|tag| *tag != object.etag) {
            return Err(StoreError::PreconditionFailed { bucket, key: key.to_owned() });
        }
        Ok(object)
    }

    fn store(
        &self,
        bucket: Bucket,
        key: &str,
        bytes: Arc<[u8]>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        check(bucket, key)?;
        let hash = (self.tags == Tags::Content).then(|| Sha256::digest(&bytes));
        let mut state = self.lock();
        state.pass_fence(options)?;
        in_time(bucket, key, options)?;
        let current = state.buckets[bucket as usize].get(key);
        let holds = match &options.precondition {
            Precondition::None => true,
            Precondition::IfNoneMatch => current.is_none(),
            Precondition::IfMatch(tag) => current.is_some_and(|object| object.etag == *tag),
        };
        if !holds {
            return Err(StoreError::PreconditionFailed { bucket, key: key.to_owned() });
        }
        state.writes += 1;
        let seconds = self.clock.as_ref().map_or(1_600_000_000 + state.writes as i64, |c| c.now().timestamp());
        let modified = DateTime::from_timestamp(seconds, 0).unwrap();
        let etag = ETag(match (self.tags, hash) {
            (Tags::MtimeSecond, _) => file_tag::for_second(seconds, &bytes.len().to_string()),
            (_, Some(hash)) => hash[..16].iter().map(|b| format!("{b:02x}")).collect(),
            (_, None) => format!("write-{}", state.writes),
        });
        let object = Object { bytes, etag, modified };
        let meta = meta(key, &object);
        state.buckets[bucket as usize].insert(key.to_owned(), object);
        Ok(meta)
    }
}

fn in_time(bucket: Bucket, key: &str, options: &WriteOptions<'_>) -> StoreResult<()> {
    if options.deadline.is_none_or(|until| std::time::Instant::now() <= until) {
        return Ok(());
    }
    let source = std::io::ErrorKind::TimedOut.into();
    Err(StoreError::Transient { bucket, key: key.to_owned(), operation: "writing", source })
}

impl State {
    fn pass_fence(&mut self, options: &WriteOptions<'_>) -> Result<(), LeaseLost> {
        let Some(lease) = options.lease else { return Ok(()) };
        lease.remaining()?;
        let highest = self.fences.entry(lease.slug().clone()).or_default();
        if lease.fence() < *highest {
            return Err(LeaseLost);
        }
        *highest = lease.fence();
        Ok(())
    }
}

fn check(bucket: Bucket, key: &str) -> StoreResult<()> {
    let invalid =
        |error: KeyError| StoreError::InvalidKey { bucket, key: key.to_owned(), reason: error.why.to_owned() };
    check_stored_key(key).map_err(invalid)
}

fn meta(key: &str, object: &Object) -> ObjectMeta {
    ObjectMeta {
        key: key.to_owned(),
        size: object.bytes.len() as u64,
        etag: Some(object.etag.clone()),
        modified: object.modified,
    }
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
        let limit = limit.clamp(1, LIST_PAGE_KEYS_MAX);
        let (last, mut past) = match after {
            None => (None, None),
            Some(token) => match token.split_at(1) {
                ("k", key) => (Some(key), None),
                (_, group) => (Some(group), Some(group.to_owned())),
            },
        };
        let from = match last {
            Some(last) if last > prefix => Bound::Excluded(last),
            _ => Bound::Included(prefix),
        };
        let state = self.lock();
        let mut page = ListPage::default();
        let mut token = String::new();
        for (key, object) in state.buckets[bucket as usize].range::<str, _>((from, Bound::Unbounded)) {
            let Some(rest) = key.strip_prefix(prefix) else { break };
            if past.as_deref().is_some_and(|group| key.starts_with(group)) || last == Some(key) {
                continue;
            }
            if page.objects.len() + page.prefixes.len() == limit {
                page.next = Some(token);
                return Ok(page);
            }
            match delimiter.and_then(|d| Some(rest.find(d)? + d.len_utf8())) {
                Some(end) => {
                    let group = key[..prefix.len() + end].to_owned();
                    token = format!("p{group}");
                    page.prefixes.push(group.clone());
                    past = Some(group);
                }
                None => {
                    let mut meta = meta(key, object);
                    meta.etag = meta.etag.filter(|_| self.listed_etags);
                    token = format!("k{key}");
                    page.objects.push(meta);
                }
            }
        }
        Ok(page)
    }

    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        check(bucket, key)?;
        Ok(self.lock().buckets[bucket as usize].get(key).map(|object| meta(key, object)))
    }

    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        let object = self.find(bucket, key, if_match)?;
        Ok(ObjectReader { meta: meta(key, &object), body: Box::new(Cursor::new(object.bytes)) })
    }

    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        let bytes = self.find(bucket, key, if_match)?.bytes;
        let end = range.end.min(bytes.len() as u64) as usize;
        let start = range.start.min(end as u64) as usize;
        Ok(bytes[start..end].to_vec())
    }

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.store(bucket, key, body.into(), options)
    }

    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let bytes = std::fs::read(file).map_err(|source| StoreError::Transient {
            bucket,
            key: key.to_owned(),
            operation: "reading the file for",
            source,
        })?;
        self.store(bucket, key, bytes.into(), options)
    }

    fn stage_file<'s>(
        &'s self,
        _: Bucket,
        _: &str,
        _: &Path,
        _: &str,
        _: &'s dyn Lease,
        _: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        Ok(None)
    }

    fn sync(&self, _: usize) -> StoreResult<()> {
        Ok(())
    }

    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let bytes = self.find(from.0, from.1, None)?.bytes;
        self.store(to.0, to.1, bytes, options)
    }

    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        let mut state = self.lock();
        for key in keys {
            check(bucket, key)?;
            state.pass_fence(options)?;
            in_time(bucket, key, options)?;
            state.buckets[bucket as usize].remove(key);
        }
        Ok(())
    }

    fn capabilities(&self) -> StoreResult<Capabilities> {
        Ok(Capabilities { conditional_writes: true, listed_etags: self.listed_etags })
    }

    fn local(&self) -> Option<&dyn LocalStore> {
        Some(self)
    }

    fn address(&self, bucket: Bucket, key: &str) -> StoreResult<String> {
        Ok(format!("s3://{bucket}/{key}"))
    }

    fn clock_skew(&self) -> Option<TimeDelta> {
        self.skew
    }

    fn request_counts(&self) -> RequestCounts {
        RequestCounts::default()
    }
}

impl LocalStore for MemoryStore {}
