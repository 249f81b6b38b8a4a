//! Counts the requests to any object store by outcome.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::TimeDelta;

use crate::ports::ObjectStore;
use crate::ports::store::{
    Bucket, Capabilities, ETag, Lease, ListPage, LocalStore, ObjectMeta, ObjectReader, RequestCounts, StagedFile,
    StoreError, StoreResult, WriteOptions,
};

/// A store whose requests are counted.
pub struct CountedStore {
    inner: Arc<dyn ObjectStore>,
    counts: Counters,
}

#[derive(Default)]
struct Counters {
    ok: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

impl Counters {
    fn count<T>(&self, result: StoreResult<T>) -> StoreResult<T> {
        let counter = match &result {
            Ok(_) => &self.ok,
            Err(error) => match error {
                // Regular responses, or failures before a request.
                StoreError::NotFound { .. }
                | StoreError::PreconditionFailed { .. }
                | StoreError::InvalidKey { .. }
                | StoreError::LeaseLost(_) => &self.ok,
                StoreError::AccessDenied { .. } | StoreError::BucketNotFound { .. } | StoreError::DiskFull { .. } => {
                    &self.refused
                }
                StoreError::Transient { .. } => &self.failed,
            },
        };
        counter.fetch_add(1, Ordering::Relaxed);
        result
    }
}

impl CountedStore {
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, counts: Counters::default() }
    }
}

/// A staged file whose put is counted.
struct CountedFile<'s> {
    inner: Box<dyn StagedFile + 's>,
    counts: &'s Counters,
}

impl StagedFile for CountedFile<'_> {
    fn put(self: Box<Self>, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.counts.count(self.inner.put(options))
    }
}

impl ObjectStore for CountedStore {
    fn list(
        &self,
        bucket: Bucket,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<ListPage> {
        self.counts.count(self.inner.list(bucket, prefix, delimiter, after, limit))
    }

    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        self.counts.count(self.inner.head(bucket, key))
    }

    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        self.counts.count(self.inner.get(bucket, key, if_match))
    }

    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        self.counts.count(self.inner.get_range(bucket, key, range, if_match))
    }

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.counts.count(self.inner.put(bucket, key, body, options))
    }

    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.counts.count(self.inner.put_file(bucket, key, file, options))
    }

    fn stage_file<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        sha256: &str,
        lease: &'s dyn Lease,
        keep_going: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        let staged = self.counts.count(self.inner.stage_file(bucket, key, file, sha256, lease, keep_going))?;
        let counts = &self.counts;
        Ok(staged.map(|inner| Box::new(CountedFile { inner, counts }) as Box<dyn StagedFile + 's>))
    }

    fn sync(&self, writes: usize) -> StoreResult<()> {
        self.counts.count(self.inner.sync(writes))
    }

    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.counts.count(self.inner.copy(from, to, options))
    }

    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        self.counts.count(self.inner.delete(bucket, keys, options))
    }

    fn local(&self) -> Option<&dyn LocalStore> {
        self.inner.local()
    }

    fn capabilities(&self) -> StoreResult<Capabilities> {
        self.inner.capabilities()
    }

    fn address(&self, bucket: Bucket, key: &str) -> StoreResult<String> {
        self.inner.address(bucket, key)
    }

    fn clock_skew(&self) -> Option<TimeDelta> {
        self.inner.clock_skew()
    }

    fn request_counts(&self) -> RequestCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { ok, refused, failed } = &self.counts;
        RequestCounts { ok: read(ok), refused: read(refused), failed: read(failed) }
    }
}
