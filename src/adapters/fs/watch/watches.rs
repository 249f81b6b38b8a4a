//! Kernel watches on every folder of the lake.
//!
//! Invariant: a folder is watched before it is read, so that no new file is missed. Links are not followed: files behind
//! them are noticed when the lake is compared.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::ReadFlags;
use rustix::io::Errno;

use crate::domain::limits::KEY_BYTES_MAX;
use crate::ports::store::Bucket;

use super::super::folder::{Folder, Folders, check_key};
use super::events::is_hidden;
use super::kernel::KernelWatches;

/// Why some folders are not watched.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchFault {
    #[error("the kernel allows this user no more watches: raise `fs.inotify.max_user_watches` (sysctl)")]
    WatchLimit,
    #[error("found more than {max} folders: use larger files or fewer folders")]
    TooManyFolders { max: usize },
    #[error("folder `{}` can't be watched: {source}", .dir.display())]
    Folder { dir: PathBuf, source: io::Error },
    #[error("watching failed: {source}; raise `fs.inotify.max_user_instances` (sysctl) or the limit of open files")]
    NoWatcher { source: io::Error },
}

/// The watches, removed on drop.
pub(super) struct Watches {
    kernel: KernelWatches,
    watched: BTreeSet<PathBuf>,
    folders_max: usize,
    fault: Option<WatchFault>,
}

impl Watches {
    /// Watches all existing folders.
    ///
    /// # Errors
    /// If nothing can be watched. [`Watches::fault`] reports folders that can't be.
    pub(super) fn new(
        folders: &Folders,
        folders_max: usize,
        handle: impl FnMut(ReadFlags, PathBuf) + Send + 'static,
    ) -> Result<Self, WatchFault> {
        let kernel = KernelWatches::new(handle).map_err(|source| WatchFault::NoWatcher { source })?;
        let mut armed = Self { kernel, watched: BTreeSet::new(), folders_max, fault: None };
        for folder in folders.of(Bucket::Lake).filter(|folder| identity(&folder.dir).is_some()) {
            armed.watch_tree(folder, &folder.dir, &mut |_| {});
        }
        Ok(armed)
    }

    /// Watches the folder `dir` of `folder`, and those in it; passes the keys of the files there to `found`.
    pub(super) fn watch_tree(&mut self, folder: &Folder, dir: &Path, found: &mut dyn FnMut(String)) {
        let mut left = vec![dir.to_owned()];
        while let Some(dir) = left.pop() {
            if !self.watch(&dir) {
                return;
            }
            if let Err(source) = read_folder(folder, &dir, &mut left, found)
                && !is_gone(&source)
            {
                self.fault = Some(WatchFault::Folder { dir, source });
            }
        }
    }

    /// False if no more folders can be watched.
    fn watch(&mut self, dir: &Path) -> bool {
        if self.watched.len() >= self.folders_max && !self.watched.contains(dir) {
            self.fault = Some(WatchFault::TooManyFolders { max: self.folders_max });
            return false;
        }
        match self.kernel.add(dir) {
            Ok(()) => {
                self.watched.insert(dir.to_owned());
            }
            Err(Errno::NOSPC) => {
                self.fault = Some(WatchFault::WatchLimit);
                return false;
            }
            Err(errno) => {
                let source = io::Error::from(errno);
                if !is_gone(&source) {
                    self.fault = Some(WatchFault::Folder { dir: dir.to_owned(), source });
                }
            }
        }
        true
    }

    /// Whether the folder was watched since the watches were set.
    pub(super) fn watched(&self, dir: &Path) -> bool {
        self.watched.contains(dir)
    }

    /// Why some folders are not watched.
    pub(super) fn fault(&mut self) -> Option<WatchFault> {
        self.fault.take()
    }
}

fn read_folder(folder: &Folder, dir: &Path, left: &mut Vec<PathBuf>, found: &mut dyn FnMut(String)) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let Some(key) = key_in(folder, &path) else { continue };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            left.push(path);
        } else if kind.is_file() {
            found(key);
        }
    }
    Ok(())
}

/// The key of a path, unless it is ignored.
pub(super) fn key_of(folders: &Folders, path: &Path) -> Option<String> {
    folders.of(Bucket::Lake).find_map(|folder| key_in(folder, path))
}

fn key_in(folder: &Folder, path: &Path) -> Option<String> {
    let relative = path.strip_prefix(&folder.dir).ok()?;
    let name = relative.to_str().filter(|name| name.len() <= KEY_BYTES_MAX && !folder.hides(name))?;
    let key = format!("{}{name}", folder.prefix);
    (!is_hidden(relative, &[]) && check_key(&key).is_ok()).then_some(key)
}

/// Device and inode of a folder; `None` if it doesn't exist.
pub(super) fn identity(dir: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir)?;
    Some((metadata.dev(), metadata.ino()))
}

/// Whether the name no longer exists, or is no longer a folder.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
