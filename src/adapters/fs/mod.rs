//! Objects in folders of the file system.
//!
//! Invariant: a key's file is either the whole old object or the whole new one, whatever dies when; no key reaches a
//! file outside of its folder.
//!
//! What this store keeps for itself lies in a folder `.lakemill`, which no listing shows and no key may enter:
//! `tmp/` in every folder that is written, `locks/` and `fence/` once a store. Two locks guard the moment at which an
//! object changes (never the writing of its body, nor an fsync): one of 64 for the key, so that preconditions hold
//! between threads and processes, and within it, for the writes of a run, that of the pipeline's fence.
//!
//! Symbolic links are followed in folders that are only read (but loops, and links into folders that this store
//! writes), and are no objects in folders that are written.

mod durable;
mod error;
mod etag;
mod folder;
mod later;
mod link;
mod list;
mod lock;
mod output_lock;
mod read;
mod remove;
mod settled;
mod snapshot;
mod stage;
#[cfg(test)]
mod tests;
mod walk;
mod watch;
mod write;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use chrono::TimeDelta;

use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::store::{
    Bucket, Capabilities, ETag, Lease, ListPage, ObjectMeta, ObjectReader, RequestCounts, StagedFile, StoreError,
    StoreResult, WriteOptions,
};
use crate::runtime::Clock;
use crate::runtime::SystemClock;

use durable::DurableFolders;
use folder::Folders;
pub use folder::{BucketNames, DOT_FILES, Mount, MountError};
use later::Later;
use list::Snapshots;
use lock::Locks;
pub use output_lock::{OutputLock, OutputLockError};
use settled::Looks;
pub use watch::{LakeWatch, WatchError};

/// The folder, in each that is written, which is this store's own.
pub const OWN_FOLDER: &str = ".lakemill";

/// An [`ObjectStore`] over folders. Any number of processes may use the same ones.
pub struct FsStore {
    folders: Arc<Folders>,
    locks: Locks,
    durable: DurableFolders,
    later: Later,
    snapshots: Snapshots,
    looks: Looks,
    clock: Arc<dyn Clock>,
}

impl FsStore {
    /// Opens the buckets `pipelines`, `lake` and `warehouse`: folders of these names in `root`, which must exist when
    /// they are used (else `BucketNotFound`). Sweeps what dead processes left.
    ///
    /// # Errors
    /// [`MountError`] if two buckets are the same folder or one lies in the other.
    pub fn open(root: &Path) -> Result<Self, MountError> {
        Self::open_named(root, &BucketNames::default())
    }

    /// As [`FsStore::open`], with the names of the bucket folders.
    ///
    /// # Errors
    /// As [`FsStore::open`]; also if a name is not that of one folder.
    pub fn open_named(root: &Path, names: &BucketNames) -> Result<Self, MountError> {
        let folders = Folders::of_root(root, names)?;
        Ok(Self::new(folders, Some(root.join(OWN_FOLDER))))
    }

    /// Makes `root` and its bucket folders where they are missing, then opens them.
    ///
    /// # Errors
    /// As [`FsStore::open`]; also if a folder can't be made.
    pub fn create(root: &Path) -> Result<Self, MountError> {
        for name in BucketNames::default().all() {
            let dir = root.join(name);
            std::fs::create_dir_all(&dir).map_err(|source| MountError::Io { dir, source })?;
        }
        Self::open(root)
    }

    /// Maps key prefixes to folders of any place. Where one folder lies in another, the outer one hides it, so that
    /// neither shows or touches what is the other's. Folders that are written are made at the first write; a folder
    /// that is only read must exist when it is used.
    ///
    /// # Errors
    /// [`MountError`] if two mounts are the same folder, or their prefixes overlap.
    pub fn mounted(mounts: Vec<Mount>) -> Result<Self, MountError> {
        let state = mounts.iter().filter(|m| m.writable).min_by_key(|m| m.bucket).map(|m| m.dir.join(OWN_FOLDER));
        let folders = Folders::of_mounts(mounts)?;
        Ok(Self::new(folders, state))
    }

    fn new(folders: Folders, state: Option<std::path::PathBuf>) -> Self {
        for folder in folders.all().iter().filter(|f| f.writable) {
            stage::sweep(folder);
        }
        Self {
            folders: Arc::new(folders),
            locks: Locks::new(state),
            durable: DurableFolders::default(),
            later: Later::default(),
            snapshots: Snapshots::default(),
            looks: Looks::default(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Takes the time from `clock`, by which the age of files is judged, instead of the system's.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }
}

impl ObjectStore for FsStore {
    fn list(
        &self,
        bucket: Bucket,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<ListPage> {
        list::page(self, &list::Query { bucket, prefix, delimiter, limit }, after)
    }

    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        let Some(place) = self.folders.place_to_read(bucket, key)? else { return Ok(None) };
        Ok(read::open(&place, "looking at")?.map(|object| object.meta(key)))
    }

    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        let (_, object) = self.object(bucket, key, if_match)?;
        Ok(object.into_reader(key))
    }

    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        let (place, object) = self.object(bucket, key, if_match)?;
        object.read_range(range).map_err(|error| match if_match {
            Some(_) if crate::ports::store::BodyChanged::is_in(&error) => place.precondition_failed(),
            _ => place.error("reading", error),
        })
    }

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.write(bucket, key, options, |place| stage::from_bytes(place.folder, body))
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
        _go_on: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        self.seal_file(bucket, key, file, sha256)
    }

    fn sync(&self, writes: usize) -> StoreResult<()> {
        self.sync_pending(writes)
    }

    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let (_, object) = self.object(from.0, from.1, None)?;
        let mut body = object.into_reader(from.1).body;
        self.write(to.0, to.1, options, |place| stage::from_reader(place.folder, &mut body))
    }

    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        self.remove(bucket, keys, options)
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn capabilities(&self) -> StoreResult<Capabilities> {
        Ok(Capabilities { conditional_writes: true, listed_etags: true })
    }

    fn unsettled(&self, bucket: Bucket, key: &str) -> StoreResult<bool> {
        self.is_unsettled(bucket, key)
    }

    fn link(&self, bucket: Bucket, key: &str, etag: &ETag, into: &Path) -> StoreResult<bool> {
        let (place, object) = self.object(bucket, key, Some(etag))?;
        link::link(&place, &object, into)
    }

    fn highest_fence(&self, pipeline: &Slug) -> StoreResult<u64> {
        self.locks.highest_fence(pipeline).map_err(|source| StoreError::Transient {
            bucket: Bucket::Warehouse,
            key: crate::domain::layout::pipeline_prefix(pipeline),
            operation: "reading the fence of",
            source,
        })
    }

    fn skew(&self) -> Option<TimeDelta> {
        None
    }

    fn requests(&self) -> RequestCounts {
        RequestCounts::default()
    }
}
