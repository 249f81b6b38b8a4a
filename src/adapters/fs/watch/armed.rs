//! Watches on every folder of the lake.
//!
//! Invariant: a folder is watched before it is read, so that a file that comes is told by the one or the other.
//! Links are not followed: what lies behind them is noticed when the lake is compared.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use notify::{Config, ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};

use crate::domain::limits::KEY_BYTES_MAX;
use crate::ports::store::Bucket;

use super::super::folder::{Folder, Folders, check_key};
use super::events::is_hidden;

/// Longest wait for the end of a watcher's thread. It ends as soon as it is told, but after what it is doing.
const END_WAIT: Duration = Duration::from_secs(5);

/// Why not every folder is watched, and what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("the kernel lets this user watch no more folders: raise `fs.inotify.max_user_watches` (sysctl)")]
    WatchLimit,
    #[error("found more than {max} folders: put fewer, larger files, or the same files in fewer folders")]
    TooManyFolders { max: usize },
    #[error("folder `{}` can't be watched: {source}", .dir.display())]
    Folder { dir: PathBuf, source: io::Error },
    #[error(
        "no watch can be set up: {source}; raise `fs.inotify.max_user_instances` (sysctl) or the limit of open files"
    )]
    NoWatcher { source: io::Error },
}

/// The watches. They end when this is dropped.
pub(super) struct Armed {
    watcher: Option<RecommendedWatcher>,
    /// Disconnected once the watcher's thread is gone, and what it held of the kernel's limits with it.
    ended: Receiver<()>,
    watched: usize,
    folders_max: usize,
    fault: Option<Fault>,
}

impl Armed {
    /// Watches all folders that there are; those that are missing are not.
    ///
    /// # Errors
    /// If nothing can be watched. Where some folders can't be, [`Armed::fault`] tells.
    pub(super) fn arm(
        folders: &Folders,
        folders_max: usize,
        mut handle: impl FnMut(notify::Result<Event>) + Send + 'static,
    ) -> Result<Self, Fault> {
        let (alive, ended) = bounded::<()>(0);
        let handler = move |event| {
            let _ = &alive;
            handle(event);
        };
        let watcher = RecommendedWatcher::new(handler, Config::default().with_follow_symlinks(false))
            .map_err(|error| Fault::NoWatcher { source: io_error(error) })?;
        let mut armed = Self { watcher: Some(watcher), ended, watched: 0, folders_max, fault: None };
        for folder in folders.of(Bucket::Lake).filter(|folder| identity(&folder.dir).is_some()) {
            armed.watch_tree(folder, &folder.dir, &mut |_| {});
        }
        Ok(armed)
    }

    /// Watches the folder `dir` of `folder`, and those in it; `found` is given the keys of the files there.
    pub(super) fn watch_tree(&mut self, folder: &Folder, dir: &Path, found: &mut dyn FnMut(String)) {
        let mut left = vec![dir.to_owned()];
        while let Some(dir) = left.pop() {
            if !self.watch(&dir) {
                return;
            }
            if let Err(source) = read_folder(folder, &dir, &mut left, found)
                && !is_gone(&source)
            {
                self.fault = Some(Fault::Folder { dir, source });
            }
        }
    }

    /// False if no more can be watched.
    fn watch(&mut self, dir: &Path) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        if self.watched == self.folders_max {
            self.fault = Some(Fault::TooManyFolders { max: self.folders_max });
            return false;
        }
        match watcher.watch(dir, RecursiveMode::NonRecursive) {
            Ok(()) => self.watched += 1,
            Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => {
                self.fault = Some(Fault::WatchLimit);
                return false;
            }
            Err(error) => {
                let source = io_error(error);
                if !is_gone(&source) {
                    self.fault = Some(Fault::Folder { dir: dir.to_owned(), source });
                }
            }
        }
        true
    }

    /// Why some folders are not watched.
    pub(super) fn fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        drop(self.watcher.take());
        let _ = self.ended.recv_timeout(END_WAIT);
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

/// The key of a path, if it is one that is watched.
pub(super) fn key_of(folders: &Folders, path: &Path) -> Option<String> {
    folders.of(Bucket::Lake).find_map(|folder| key_in(folder, path))
}

fn key_in(folder: &Folder, path: &Path) -> Option<String> {
    let relative = path.strip_prefix(&folder.dir).ok()?;
    let name = relative.to_str().filter(|name| name.len() <= KEY_BYTES_MAX && !folder.hides(name))?;
    let key = format!("{}{name}", folder.prefix);
    (!is_hidden(relative, &[]) && check_key(&key).is_ok()).then_some(key)
}

/// What tells a folder from another that took its place; `None` if there is none.
pub(super) fn identity(dir: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir)?;
    Some((metadata.dev(), metadata.ino()))
}

/// Whether it only says that a name is no longer there, or no longer that of a folder.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn io_error(error: notify::Error) -> io::Error {
    match error.kind {
        ErrorKind::Io(source) => source,
        ErrorKind::PathNotFound => io::ErrorKind::NotFound.into(),
        ErrorKind::Generic(_) | ErrorKind::WatchNotFound | ErrorKind::InvalidConfig(_) | ErrorKind::MaxFilesWatch => {
            io::Error::other(error)
        }
    }
}
