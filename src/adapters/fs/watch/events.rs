//! Filters kernel events for new, changed and removed files.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::ReadFlags;

/// An event that may mean a new, changed or removed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FolderEvent {
    /// A file was closed after writing.
    Written(PathBuf),
    /// A file was created: empty, or as another link to a complete file.
    FileMade(PathBuf),
    /// A folder was created. It may contain files already.
    FolderMade(PathBuf),
    /// A file or folder was renamed to this.
    MovedIn(PathBuf),
    /// A file was removed.
    Removed(PathBuf),
    /// A file or folder was renamed to another name, perhaps outside of the lake.
    MovedOut(PathBuf),
    /// The folder of a bucket was removed or renamed.
    RootGone,
    /// Events were missed.
    Lost,
}

/// `path`: a watched folder or a name in one. `roots`: the bucket's folders.
pub(super) fn folder_event(event: ReadFlags, path: PathBuf, roots: &[PathBuf]) -> Option<FolderEvent> {
    if event.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(FolderEvent::Lost);
    }
    let left = ReadFlags::DELETE | ReadFlags::DELETE_SELF | ReadFlags::MOVED_FROM | ReadFlags::MOVE_SELF;
    if event.intersects(left | ReadFlags::UNMOUNT) && roots.contains(&path) {
        return Some(FolderEvent::RootGone);
    }
    let make = |make: fn(PathBuf) -> FolderEvent| (!is_hidden(&path, roots)).then(|| make(path.clone()));
    let is_folder = event.contains(ReadFlags::ISDIR);
    if event.contains(ReadFlags::CLOSE_WRITE) {
        make(FolderEvent::Written)
    } else if event.contains(ReadFlags::CREATE) {
        make(if is_folder { FolderEvent::FolderMade } else { FolderEvent::FileMade })
    } else if event.contains(ReadFlags::MOVED_TO) {
        make(FolderEvent::MovedIn)
    } else if event.intersects(ReadFlags::MOVED_FROM | ReadFlags::MOVE_SELF) {
        // A rename within the lake also has a `MOVED_TO`.
        make(FolderEvent::MovedOut)
    } else if event.contains(ReadFlags::DELETE) && !is_folder {
        make(FolderEvent::Removed)
    } else {
        // A removed folder was empty.
        None
    }
}

/// Whether a name in the path, below the bucket's folder, starts with a dot: temporary files, and the store's own folder.
pub(super) fn is_hidden(path: &Path, roots: &[PathBuf]) -> bool {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    below.iter().any(|name| name.as_bytes().starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(event: ReadFlags, path: &str) -> Option<FolderEvent> {
        folder_event(event, path.into(), &["/d/.data/lake".into()])
    }

    const FOLDER_MADE: ReadFlags = ReadFlags::CREATE.union(ReadFlags::ISDIR);
    const FOLDER_REMOVED: ReadFlags = ReadFlags::DELETE.union(ReadFlags::ISDIR);

    #[test]
    fn closed_moved_and_removed_files_count() {
        let path = "/d/.data/lake/pipelines/x/a.csv";
        assert_eq!(make(ReadFlags::CLOSE_WRITE, path), Some(FolderEvent::Written(path.into())));
        assert_eq!(make(ReadFlags::MOVED_TO, path), Some(FolderEvent::MovedIn(path.into())));
        assert_eq!(make(ReadFlags::MOVED_FROM, path), Some(FolderEvent::MovedOut(path.into())));
        assert_eq!(make(ReadFlags::DELETE, path), Some(FolderEvent::Removed(path.into())));
        assert_eq!(make(ReadFlags::CREATE, path), Some(FolderEvent::FileMade(path.into())));
        assert_eq!(make(FOLDER_MADE, path), Some(FolderEvent::FolderMade(path.into())));
        for event in [FOLDER_REMOVED, ReadFlags::DELETE_SELF, ReadFlags::IGNORED] {
            assert_eq!(make(event, path), None);
        }
    }

    #[test]
    fn dot_names_are_ignored_below_the_root_only() {
        for hidden in ["pipelines/x/.a.csv", "pipelines/.x/a.csv", ".lakemill/tmp/a"] {
            for event in [ReadFlags::CLOSE_WRITE, ReadFlags::MOVED_TO, ReadFlags::MOVED_FROM, FOLDER_MADE] {
                assert_eq!(make(event, &format!("/d/.data/lake/{hidden}")), None);
            }
        }
        assert!(make(ReadFlags::CLOSE_WRITE, "/d/.data/lake/a..csv").is_some());
    }

    #[test]
    fn lost_events_and_roots_are_reported() {
        for event in [FOLDER_REMOVED, ReadFlags::DELETE_SELF, ReadFlags::MOVE_SELF, ReadFlags::MOVED_FROM] {
            assert_eq!(make(event, "/d/.data/lake"), Some(FolderEvent::RootGone));
        }
        assert_eq!(folder_event(ReadFlags::QUEUE_OVERFLOW, PathBuf::new(), &[]), Some(FolderEvent::Lost));
    }
}
