//! The handle of a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::runtime::{Clock, SystemClock};

use super::being_written::FirstSeen;
use super::folder::{BucketNames, Folders, Mount, MountError, OWN_FOLDER};
use super::lock::StoreLocks;
use super::snapshot::FolderSnapshots;
use super::stage;
use super::sync::{DeferredSync, DirectorySync};

/// An [`ObjectStore`](crate::ports::ObjectStore) over folders. Any number of processes may use the same ones.
pub struct FsStore {
    pub(super) folders: Arc<Folders>,
    pub(super) locks: StoreLocks,
    pub(super) directories: DirectorySync,
    pub(super) deferred: DeferredSync,
    pub(super) snapshots: FolderSnapshots,
    pub(super) first_seen: FirstSeen,
    pub(super) clock: Arc<dyn Clock>,
}

impl FsStore {
    /// Opens the buckets `pipelines`, `lake` and `warehouse`: folders of these names in `root`, which must exist when
    /// they are used (else `BucketNotFound`). Removes temporary files of dead processes.
    ///
    /// # Errors
    /// [`MountError`] if two buckets are the same folder or nested.
    pub fn open(root: &Path) -> Result<Self, MountError> {
        Self::open_named(root, &BucketNames::default())
    }

    /// Like [`FsStore::open`], with other names for the bucket folders.
    ///
    /// # Errors
    /// See [`FsStore::open`]; also if a name is not a folder name.
    pub fn open_named(root: &Path, names: &BucketNames) -> Result<Self, MountError> {
        let folders = Folders::from_root(root, names)?;
        Ok(Self::new(folders, Some(root.join(OWN_FOLDER))))
    }

    /// Creates `root` and its bucket folders if missing, then opens them.
    ///
    /// # Errors
    /// See [`FsStore::open`]; also if a folder can't be created.
    pub fn create(root: &Path) -> Result<Self, MountError> {
        for name in BucketNames::default().all() {
            let dir = root.join(name);
            std::fs::create_dir_all(&dir).map_err(|source| MountError::Io { dir, source })?;
        }
        Self::open(root)
    }

    /// Maps key prefixes to arbitrary folders. A folder hides the mounts nested in it. Writable folders are created by the
    /// first write; a read-only folder must exist when it is used.
    ///
    /// # Errors
    /// [`MountError`] if two mounts are the same folder, or their prefixes overlap.
    pub fn mounted(mounts: Vec<Mount>) -> Result<Self, MountError> {
        let state = mounts.iter().filter(|m| m.writable).min_by_key(|m| m.bucket).map(|m| m.dir.join(OWN_FOLDER));
        let folders = Folders::from_mounts(mounts)?;
        Ok(Self::new(folders, state))
    }

    fn new(folders: Folders, state: Option<PathBuf>) -> Self {
        for folder in folders.all().iter().filter(|f| f.writable) {
            stage::sweep(folder);
        }
        Self {
            folders: Arc::new(folders),
            locks: StoreLocks::new(state),
            directories: DirectorySync::default(),
            deferred: DeferredSync::default(),
            snapshots: FolderSnapshots::default(),
            first_seen: FirstSeen::default(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Judges the age of files by `clock` instead of the system's.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }
}
