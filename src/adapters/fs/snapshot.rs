//! The sorted names in a folder, with a cache between the pages of a listing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::etag::Signature;
use super::folder::Folder;

/// Smaller folders are not cached, since reading them again is as fast.
const KEPT_NAMES_MIN: usize = 512;
/// Cached folders.
const KEPT_MAX: usize = 4;

/// A name in a folder; a subfolder's ends in `/`, so that it sorts as a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FolderEntry {
    pub(super) name: Box<str>,
    pub(super) is_link: bool,
    /// Whether the name is UTF-8; otherwise `name` is a lossy conversion.
    pub(super) is_text: bool,
}

impl FolderEntry {
    pub(super) fn is_folder(&self) -> bool {
        self.name.ends_with('/')
    }
}

pub(super) type Entries = Arc<Vec<FolderEntry>>;

struct CachedFolder {
    path: PathBuf,
    signature: Signature,
    changes: u64,
    entries: Entries,
}

/// Cache of large folders. An entry is valid while the folder's stat is unchanged and this store wrote nothing. A name that
/// another process adds in the clock tick in which the folder was read may be missing from later pages of that listing,
/// never from its first.
#[derive(Default)]
pub(super) struct FolderSnapshots {
    /// Writes and deletes of this store.
    changes: AtomicU64,
    kept: Mutex<Vec<CachedFolder>>,
}

impl FolderSnapshots {
    pub(super) fn object_changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// The entries of an open folder. `again`: the cache may be used, since this is not the first page.
    pub(super) fn entries(&self, folder: &Folder, fd: &OwnedFd, path: &Path, again: bool) -> io::Result<Entries> {
        let changes = self.changes.load(Ordering::SeqCst);
        let signature = Signature::for_file(fd)?;
        if again {
            let kept = self.kept.lock();
            let found = kept.iter().find(|k| k.path == path && k.signature == signature && k.changes == changes);
            if let Some(found) = found {
                return Ok(Arc::clone(&found.entries));
            }
        }
        let entries = Arc::new(read_entries(folder, fd, path)?);
        if entries.len() >= KEPT_NAMES_MIN {
            let mut kept = self.kept.lock();
            kept.retain(|k| k.path != path && k.changes == changes);
            if kept.len() == KEPT_MAX {
                kept.remove(0);
            }
            kept.push(CachedFolder { path: path.to_owned(), signature, changes, entries: Arc::clone(&entries) });
        }
        Ok(entries)
    }
}

/// Only the entry of this name, if it exists.
pub(super) fn entry(folder: &Folder, fd: &OwnedFd, path: &Path, name: &str) -> Entries {
    let is_there = || statat(fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let entry = if matches!(name, "" | "." | "..") || !is_there() {
        None
    } else {
        classified(folder, fd, path, name, FileType::Unknown)
    };
    Arc::new(entry.into_iter().collect())
}

fn read_entries(folder: &Folder, fd: &OwnedFd, path: &Path) -> io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(fd)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            let name = entry.file_name().to_string_lossy();
            tracing::warn!(folder = %path.display(), %name, "file skipped: its name is not UTF-8");
            entries.push(FolderEntry { name: name.into(), is_link: false, is_text: false });
            continue;
        };
        if matches!(name, "." | "..") {
            continue;
        }
        entries.extend(classified(folder, fd, path, name, entry.file_type()));
    }
    entries.sort_unstable();
    Ok(entries)
}

fn classified(folder: &Folder, fd: impl AsFd, path: &Path, name: &str, listed: FileType) -> Option<FolderEntry> {
    let stat = |flags| statat(&fd, name, flags).map_or(FileType::Unknown, |s| FileType::from_raw_mode(s.st_mode));
    let own = if listed == FileType::Unknown { stat(AtFlags::SYMLINK_NOFOLLOW) } else { listed };
    let is_link = own == FileType::Symlink;
    let kind = if is_link && folder.follows_links() && !points_outside(folder, &path.join(name)) {
        stat(AtFlags::empty())
    } else {
        own
    };
    match kind {
        FileType::RegularFile => Some(FolderEntry { name: name.into(), is_link, is_text: true }),
        FileType::Directory => Some(FolderEntry { name: format!("{name}/").into(), is_link, is_text: true }),
        // Sockets, devices, pipes, broken links and links that are not followed.
        _ => {
            if folder.follows_links() && !folder.hides(name) {
                let reason = if is_link { "broken or forbidden link" } else { "not a regular file" };
                tracing::warn!(file = %path.join(name).display(), "file skipped: {reason}");
            }
            None
        }
    }
}

/// Whether a link leads into another folder of this store.
fn points_outside(folder: &Folder, link: &Path) -> bool {
    std::fs::canonicalize(link).is_ok_and(|target| folder.others.iter().any(|other| target.starts_with(other)))
}
