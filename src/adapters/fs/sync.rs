//! Fsyncs directories, at once or deferred.
//!
//! A name is durable once its directory is synced. [`DirectorySync`] syncs a directory and those above it that may not be
//! durable yet, coalescing concurrent requests. [`DeferredSync`] collects many writes: one `syncfs` takes a fraction of the
//! time of an fsync each.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, fsync, syncfs};
use rustix::io::Errno;

use crate::ports::store::{Bucket, StoreError, StoreResult};
use crate::sync::SingleFlight;

use super::folder::{DIRECTORY, parent_of};

/// Directories remembered as durable.
const DURABLE_MAX: usize = 1 << 14;
/// From this many writes on, the whole file system is synced, including writes of other programs.
const SYNCFS_WRITES_MIN: usize = 32;

/// A directory: its mount's path, and its path there.
type Directory = (PathBuf, String);

#[derive(Default)]
pub(super) struct DirectorySync {
    /// Directories whose own names are durable, so that a write syncs only one directory.
    durable: Mutex<HashSet<Directory>>,
    syncs: SingleFlight<Directory, ()>,
}

impl DirectorySync {
    /// Called when the directory was removed.
    pub(super) fn forget(&self, dir: &Path, path: &str) {
        self.durable.lock().remove(&(dir.to_owned(), path.to_owned()));
    }

    fn is_durable(&self, dir: &Path, path: &str) -> bool {
        self.durable.lock().contains(&(dir.to_owned(), path.to_owned()))
    }

    fn add(&self, dir: &Path, path: &str) {
        let mut durable = self.durable.lock();
        if durable.len() >= DURABLE_MAX {
            durable.clear();
        }
        durable.insert((dir.to_owned(), path.to_owned()));
    }

    /// Fsyncs an open directory, or shares a concurrent call that began after this one; then the directories above it
    /// that may not be durable.
    pub(super) fn sync_open(&self, dir: &Path, path: &str, fd: impl AsFd) -> Result<(), Errno> {
        self.syncs.run(&(dir.to_owned(), path.to_owned()), || fsync(fd))?;
        let mut child = path;
        while !child.is_empty() && !self.is_durable(dir, child) {
            let above = parent_of(child);
            let Some(fd) = open(dir, above)? else { return Ok(()) };
            self.syncs.run(&(dir.to_owned(), above.to_owned()), || fsync(&fd))?;
            self.add(dir, child);
            child = above;
        }
        Ok(())
    }

    /// Like [`DirectorySync::sync_open`]; does nothing if the directory is gone.
    fn sync(&self, dir: &Path, path: &str) -> Result<(), Errno> {
        match open(dir, path)? {
            Some(fd) => self.sync_open(dir, path, fd),
            None => Ok(()),
        }
    }
}

/// `None` if the directory is gone: another process deleted its last object.
fn open(dir: &Path, path: &str) -> Result<Option<OwnedFd>, Errno> {
    match rustix::fs::open(dir.join(path), DIRECTORY, Mode::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Files and directories to be synced together.
#[derive(Default)]
pub(super) struct DeferredSync {
    pending: Mutex<Pending>,
    /// Held during a sync: a second caller waits for the first, which covers the second's writes.
    syncing: Mutex<()>,
}

#[derive(Default)]
struct Pending {
    /// Roots of mounts with deferred writes. They stay open, so that each sync reports every error since the previous one.
    roots: HashMap<PathBuf, Arc<OwnedFd>>,
    directories: BTreeSet<Directory>,
    /// The number of the last `syncfs` that was started, and of the last that succeeded.
    started: u64,
    done: u64,
}

/// The point in time at which a file was written, in numbers of syncs.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenAt(u64);

impl DeferredSync {
    /// Registers a file that was written without a sync.
    pub(super) fn add_file(&self, dir: &Path) -> Result<WrittenAt, Errno> {
        let mut pending = self.pending.lock();
        pending.open_root(dir)?;
        Ok(WrittenAt(pending.started))
    }

    /// Whether a `syncfs` has covered the file.
    pub(super) fn covers(&self, file: WrittenAt) -> bool {
        self.pending.lock().done > file.0
    }

    /// Registers a directory that is about to get a new name.
    pub(super) fn add_directory(&self, dir: &Path, path: &str) -> Result<(), Errno> {
        let mut pending = self.pending.lock();
        pending.open_root(dir)?;
        pending.directories.insert((dir.to_owned(), path.to_owned()));
        Ok(())
    }

    /// Makes everything registered durable; there are about `writes` files or directories.
    pub(super) fn sync(&self, directory_sync: &DirectorySync, writes: usize) -> StoreResult<()> {
        let _syncing = self.syncing.lock();
        let (roots, directories, own) = {
            let mut pending = self.pending.lock();
            pending.started += 1;
            (pending.roots.clone(), std::mem::take(&mut pending.directories), pending.started)
        };
        if roots.is_empty() {
            return Ok(());
        }
        let whole = writes >= SYNCFS_WRITES_MIN;
        let synced = if whole {
            roots.iter().try_for_each(|(dir, root)| syncfs(root).map_err(|errno| failed(dir, "", errno)))
        } else {
            directories
                .iter()
                .try_for_each(|(dir, path)| directory_sync.sync(dir, path).map_err(|errno| failed(dir, path, errno)))
        };
        let mut pending = self.pending.lock();
        match &synced {
            Ok(()) if whole => pending.done = own,
            Ok(()) => {}
            Err(_) => pending.directories.extend(directories),
        }
        synced
    }
}

impl Pending {
    fn open_root(&mut self, dir: &Path) -> Result<(), Errno> {
        if !self.roots.contains_key(dir) {
            let root = rustix::fs::open(dir, DIRECTORY, Mode::empty())?;
            self.roots.insert(dir.to_owned(), Arc::new(root));
        }
        Ok(())
    }
}

fn failed(dir: &Path, path: &str, errno: Errno) -> StoreError {
    let key = dir.join(path).display().to_string();
    StoreError::Transient { bucket: Bucket::Warehouse, key, operation: "syncing", source: errno.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_durable_until_it_is_removed() {
        let (directories, dir) = (DirectorySync::default(), Path::new("/lake"));
        directories.add(dir, "a/b");
        assert!(directories.is_durable(dir, "a/b") && !directories.is_durable(dir, "a"));
        directories.forget(dir, "a/b");
        assert!(!directories.is_durable(dir, "a/b"));
    }
}
