//! Files and folders that are put on disk together: where there are many, one sync of their file system takes a fraction
//! of what a sync of each takes.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, syncfs};
use rustix::io::Errno;

use crate::ports::store::{Bucket, StoreError, StoreResult};

use super::FsStore;
use super::folder::DIRECTORY;

/// From this many writes on, all that the file system has to write is written. (It may be another's, too.)
const TOGETHER_MIN: usize = 32;

/// A folder: where its mount is, and its path there.
type FolderName = (PathBuf, String);

#[derive(Default)]
pub(super) struct Later {
    pending: Mutex<Pending>,
    /// Held for a whole sync: whoever comes second waits for the first, who has taken what was the second's.
    turn: Mutex<()>,
}

#[derive(Default)]
struct Pending {
    /// Of the mounts in which something waited. They stay open, so that each sync tells of every error since the one
    /// before.
    roots: HashMap<PathBuf, Arc<OwnedFd>>,
    folders: BTreeSet<FolderName>,
    /// Syncs of everything that were begun, and the last of them that was successful.
    begun: u64,
    done: u64,
}

/// Says of a file when it was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made(u64);

impl Later {
    /// A file that is written waits for a sync.
    pub(super) fn begin(&self, dir: &Path) -> Result<Made, Errno> {
        let mut pending = self.lock();
        pending.open(dir)?;
        Ok(Made(pending.begun))
    }

    /// Whether everything was synced since.
    pub(super) fn has(&self, made: Made) -> bool {
        self.lock().done > made.0
    }

    /// Before an object is named in a folder which waits for a sync.
    pub(super) fn name_in(&self, dir: &Path, path: &str) -> Result<(), Errno> {
        let mut pending = self.lock();
        pending.open(dir)?;
        pending.folders.insert((dir.to_owned(), path.to_owned()));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock()
    }
}

impl Pending {
    fn open(&mut self, dir: &Path) -> Result<(), Errno> {
        if !self.roots.contains_key(dir) {
            let root = rustix::fs::open(dir, DIRECTORY, Mode::empty())?;
            self.roots.insert(dir.to_owned(), Arc::new(root));
        }
        Ok(())
    }
}

impl FsStore {
    /// Puts on disk what waits for it, of which there are about so many files or folders.
    pub(super) fn sync_pending(&self, writes: usize) -> StoreResult<()> {
        let _turn = self.later.turn.lock();
        let (roots, folders, own) = {
            let mut pending = self.later.lock();
            pending.begun += 1;
            (pending.roots.clone(), std::mem::take(&mut pending.folders), pending.begun)
        };
        if roots.is_empty() {
            return Ok(());
        }
        let together = writes >= TOGETHER_MIN;
        let synced = if together { sync_all_of(&roots) } else { self.sync_each(&folders) };
        let mut pending = self.later.lock();
        match &synced {
            Ok(()) if together => pending.done = own,
            Ok(()) => {}
            Err(_) => pending.folders.extend(folders),
        }
        synced
    }

    fn sync_each(&self, folders: &BTreeSet<FolderName>) -> StoreResult<()> {
        folders.iter().try_for_each(|(dir, path)| self.sync_folder(dir, path).map_err(|errno| failed(dir, path, errno)))
    }
}

fn sync_all_of(roots: &HashMap<PathBuf, Arc<OwnedFd>>) -> StoreResult<()> {
    roots.iter().try_for_each(|(dir, root)| syncfs(root).map_err(|errno| failed(dir, "", errno)))
}

fn failed(dir: &Path, path: &str, errno: Errno) -> StoreError {
    let key = dir.join(path).display().to_string();
    StoreError::Transient { bucket: Bucket::Warehouse, key, operation: "syncing", source: errno.into() }
}
