//! The storage port.

use std::ops::Range;
use std::path::Path;

use chrono::TimeDelta;

use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::store::{
    BodyChanged, Bucket, Capabilities, ETag, Lease, ListPage, LocalStore, ObjectMeta, ObjectReader, RequestCounts,
    StagedFile, StoreError, StoreResult, WriteOptions,
};

use super::being_written;
use super::list::{self, WalkQuery};
use super::read;
use super::stage;
use super::store::FsStore;

impl ObjectStore for FsStore {
    fn list(
        &self,
        bucket: Bucket,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<ListPage> {
        list::page(&self.folders, &self.snapshots, &WalkQuery { bucket, prefix, delimiter, limit }, after)
    }

    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        let Some(path) = self.folders.path_to_read(bucket, key)? else { return Ok(None) };
        Ok(read::open(&path, "reading the metadata of")?.map(|object| object.meta(key)))
    }

    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        let (_, object) = read::open_existing(&self.folders, bucket, key, if_match)?;
        Ok(object.into_reader(key))
    }

    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        let (path, object) = read::open_existing(&self.folders, bucket, key, if_match)?;
        object.read_range(range).map_err(|error| match if_match {
            Some(_) if BodyChanged::is_in(&error) => path.precondition_failed(),
            _ => path.error("reading", error),
        })
    }

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.write(bucket, key, options, |path| stage::from_reader(path.folder, &mut &body[..]))
    }

    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.write_file(bucket, key, file, options)
    }

    fn stage_file<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        sha256: &str,
        _lease: &'s dyn Lease,
        _keep_going: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        self.prepare_file(bucket, key, file, sha256)
    }

    fn sync(&self, writes: usize) -> StoreResult<()> {
        self.deferred.sync(&self.directories, writes)
    }

    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let (_, object) = read::open_existing(&self.folders, from.0, from.1, None)?;
        let mut body = object.into_reader(from.1).body;
        self.write(to.0, to.1, options, |path| stage::from_reader(path.folder, &mut body))
    }

    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        self.remove(bucket, keys, options)
    }

    fn capabilities(&self) -> StoreResult<Capabilities> {
        Ok(Capabilities { conditional_writes: true, listed_etags: true })
    }

    fn local(&self) -> Option<&dyn LocalStore> {
        Some(self)
    }

    fn address(&self, bucket: Bucket, key: &str) -> StoreResult<String> {
        let path = self.folders.path_or_not_found(bucket, key)?;
        Ok(format!("file://{}", path.folder.dir.join(path.relative).display()))
    }

    fn clock_skew(&self) -> Option<TimeDelta> {
        None
    }

    fn request_counts(&self) -> RequestCounts {
        RequestCounts::default()
    }
}

impl LocalStore for FsStore {
    fn is_being_written(&self, bucket: Bucket, key: &str) -> StoreResult<bool> {
        let Some(path) = self.folders.path_to_read(bucket, key)? else { return Ok(false) };
        let Some(object) = read::open(&path, "reading the metadata of")? else { return Ok(false) };
        Ok(being_written::is_being_written(&object, (bucket, key), &self.first_seen, &*self.clock))
    }

    fn link(&self, bucket: Bucket, key: &str, etag: Option<&ETag>, into: &Path) -> StoreResult<bool> {
        let (path, object) = read::open_existing(&self.folders, bucket, key, etag)?;
        object.link(&path, into)
    }

    fn highest_fence(&self, pipeline: &Slug) -> StoreResult<u64> {
        self.locks.highest_fence(pipeline).map_err(|source| StoreError::Transient {
            bucket: Bucket::Warehouse,
            key: pipeline_prefix(pipeline),
            operation: "reading the fence of",
            source,
        })
    }
}
