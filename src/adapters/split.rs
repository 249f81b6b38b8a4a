//! A store whose lake is in one store and whose other buckets are in another: a folder and an S3 server.
//!
//! It counts as remote, since one of both is: calls are made in parallel, and files are read instead of linked.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use chrono::TimeDelta;

use crate::ports::ObjectStore;
use crate::ports::store::{
    Bucket, Capabilities, ETag, Lease, ListPage, LocalStore, ObjectMeta, ObjectReader, RequestCounts, StagedFile,
    StoreError, StoreResult, WriteOptions,
};

/// The lake's store, and that of the other buckets.
pub struct SplitStore {
    lake: Arc<dyn ObjectStore>,
    others: Arc<dyn ObjectStore>,
}

impl SplitStore {
    pub fn new(lake: Arc<dyn ObjectStore>, others: Arc<dyn ObjectStore>) -> Self {
        Self { lake, others }
    }

    fn of(&self, bucket: Bucket) -> &dyn ObjectStore {
        match bucket {
            Bucket::Lake => &*self.lake,
            Bucket::Pipelines | Bucket::Warehouse => &*self.others,
        }
    }
}

impl ObjectStore for SplitStore {
    fn list(
        &self,
        bucket: Bucket,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<ListPage> {
        self.of(bucket).list(bucket, prefix, delimiter, after, limit)
    }

    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        self.of(bucket).head(bucket, key)
    }

    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        self.of(bucket).get(bucket, key, if_match)
    }

    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        self.of(bucket).get_range(bucket, key, range, if_match)
    }

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.of(bucket).put(bucket, key, body, options)
    }

    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.of(bucket).put_file(bucket, key, file, options)
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
        self.of(bucket).stage_file(bucket, key, file, sha256, lease, keep_going)
    }

    fn sync(&self, writes: usize) -> StoreResult<()> {
        self.lake.sync(0)?;
        self.others.sync(writes)
    }

    /// Between both stores through a temporary file.
    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        if (from.0 == Bucket::Lake) == (to.0 == Bucket::Lake) {
            return self.of(to.0).copy(from, to, options);
        }
        let (bucket, key) = from;
        let mut body = self.of(bucket).get(bucket, key, None)?.body;
        let failed = |source| StoreError::Transient { bucket, key: key.to_owned(), operation: "copying", source };
        let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
        std::io::copy(&mut body, &mut file).map_err(failed)?;
        self.of(to.0).put_file(to.0, to.1, file.path(), options)
    }

    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        self.of(bucket).delete(bucket, keys, options)
    }

    /// The capabilities of the store that is written to. Listings have tags only if those of both stores have them.
    fn capabilities(&self) -> StoreResult<Capabilities> {
        self.others.capabilities()
    }

    fn local(&self) -> Option<&dyn LocalStore> {
        None
    }

    fn address(&self, bucket: Bucket, key: &str) -> StoreResult<String> {
        self.of(bucket).address(bucket, key)
    }

    /// The skew of the lake's store, whose times show whether a source changed.
    fn clock_skew(&self) -> Option<TimeDelta> {
        self.lake.clock_skew()
    }

    fn request_counts(&self) -> RequestCounts {
        RequestCounts::default()
    }
}
