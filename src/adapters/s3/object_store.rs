//! The storage port.

use std::ops::Range;
use std::path::Path;

use chrono::TimeDelta;

use crate::ports::ObjectStore;
use crate::ports::store::{
    Bucket, Capabilities, ETag, Lease, ListPage, LocalStore, ObjectMeta, ObjectReader, RequestCounts, StagedFile,
    StoreResult, WriteOptions,
};

use super::key;
use super::list::ListQuery;
use super::request::UploadBody;
use super::store::S3Store;

impl ObjectStore for S3Store {
    fn list(
        &self,
        bucket: Bucket,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<ListPage> {
        self.list_page(&ListQuery { bucket, prefix, delimiter, limit }, after)
    }

    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        key::check(bucket, key)?;
        Ok(self.head_object(bucket, key)?.map(|head| head.meta))
    }

    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        self.get_object(bucket, key, if_match)
    }

    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        self.get_object_range(bucket, key, range, if_match)
    }

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.write(bucket, key, UploadBody::Bytes(body), options)
    }

    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.write_file(bucket, key, file, options)
    }

    fn stage_file<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        _sha256: &str,
        lease: &'s dyn Lease,
        keep_going: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        self.stage(bucket, key, file, lease, keep_going)
    }

    /// Every write is durable when it returns.
    fn sync(&self, _writes: usize) -> StoreResult<()> {
        Ok(())
    }

    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.copy_object(from, to, options)
    }

    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        self.delete_objects(bucket, keys, options)
    }

    fn capabilities(&self) -> StoreResult<Capabilities> {
        let known = self.conditions(Bucket::Pipelines)?;
        // A run writes to the warehouse next: failures show before its first write.
        self.conditions(Bucket::Warehouse)?;
        let conditional_writes = (known.put && known.complete) || self.client.options.locks.is_some();
        Ok(Capabilities { conditional_writes, listed_etags: known.listed_etags })
    }

    fn local(&self) -> Option<&dyn LocalStore> {
        None
    }

    fn address(&self, bucket: Bucket, key: &str) -> StoreResult<String> {
        key::check(bucket, key)?;
        let options = &self.client.options;
        Ok(format!("s3://{}/{}", options.name_of(bucket), options.mounts.stored_key(bucket, key)))
    }

    fn clock_skew(&self) -> Option<TimeDelta> {
        self.client.clock_skew()
    }

    fn request_counts(&self) -> RequestCounts {
        RequestCounts::default()
    }
}
