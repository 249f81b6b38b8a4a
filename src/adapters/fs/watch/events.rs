//! Filters kernel events for new, changed and removed files.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RemoveKind, RenameMode};
use notify::{Event, EventKind};

/// An event that may mean a new, changed or removed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FolderEvent {
    /// A file was closed after writing.
    Written(PathBuf),
    /// A file was created: to be written and closed, or as another name of a complete file.
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

/// `roots`: the bucket's folders.
pub(super) fn folder_event(event: notify::Result<Event>, roots: &[PathBuf]) -> Option<FolderEvent> {
    let Ok(event) = event else { return Some(FolderEvent::Lost) };
    if event.need_rescan() {
        return Some(FolderEvent::Lost);
    }
    let path = event.paths.into_iter().next()?;
    let make = |make: fn(PathBuf) -> FolderEvent, path: PathBuf| (!is_hidden(&path, roots)).then(|| make(path));
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => make(FolderEvent::Written, path),
        EventKind::Create(CreateKind::File) => make(FolderEvent::FileMade, path),
        EventKind::Create(CreateKind::Folder) => make(FolderEvent::FolderMade, path),
        EventKind::Modify(ModifyKind::Name(RenameMode::To)) => make(FolderEvent::MovedIn, path),
        EventKind::Modify(ModifyKind::Name(RenameMode::From)) | EventKind::Remove(_) if roots.contains(&path) => {
            Some(FolderEvent::RootGone)
        }
        // A rename within the lake also has a `To` event.
        EventKind::Modify(ModifyKind::Name(RenameMode::From)) => make(FolderEvent::MovedOut, path),
        // A removed folder was empty.
        EventKind::Remove(RemoveKind::Folder) => None,
        EventKind::Remove(_) => make(FolderEvent::Removed, path),
        EventKind::Any | EventKind::Access(_) | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Other => None,
    }
}

/// Whether a name in the path, below the bucket's folder, starts with a dot: temporary files, and the store's own folder.
pub(super) fn is_hidden(path: &Path, roots: &[PathBuf]) -> bool {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    below.iter().any(|name| name.as_bytes().starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use notify::event::{DataChange, Flag};

    use super::*;

    fn make(kind: EventKind, path: &str) -> Option<FolderEvent> {
        folder_event(Ok(Event::new(kind).add_path(path.into())), &["/d/.data/lake".into()])
    }

    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const MOVED_IN: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));
    const MOVED_OUT: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::From));
    const REMOVED: EventKind = EventKind::Remove(RemoveKind::Folder);

    #[test]
    fn closed_moved_and_removed_files_count() {
        let path = "/d/.data/lake/pipelines/x/a.csv";
        assert_eq!(make(CLOSED, path), Some(FolderEvent::Written(path.into())));
        assert_eq!(make(MOVED_IN, path), Some(FolderEvent::MovedIn(path.into())));
        assert_eq!(make(MOVED_OUT, path), Some(FolderEvent::MovedOut(path.into())));
        assert_eq!(make(EventKind::Remove(RemoveKind::File), path), Some(FolderEvent::Removed(path.into())));
        for kind in [
            REMOVED,
            EventKind::Modify(ModifyKind::Data(DataChange::Any)),
            EventKind::Access(AccessKind::Open(AccessMode::Any)),
            EventKind::Access(AccessKind::Close(AccessMode::Read)),
        ] {
            assert_eq!(make(kind, path), None);
        }
    }

    #[test]
    fn dot_names_are_ignored_below_the_root_only() {
        for hidden in ["pipelines/x/.a.csv", "pipelines/.x/a.csv", ".lakemill/tmp/a"] {
            for kind in [CLOSED, MOVED_IN, MOVED_OUT, EventKind::Create(CreateKind::Folder)] {
                assert_eq!(make(kind, &format!("/d/.data/lake/{hidden}")), None);
            }
        }
        assert!(make(CLOSED, "/d/.data/lake/a..csv").is_some());
    }

    #[test]
    fn lost_events_and_roots_are_reported() {
        assert_eq!(make(REMOVED, "/d/.data/lake"), Some(FolderEvent::RootGone));
        assert_eq!(make(MOVED_OUT, "/d/.data/lake"), Some(FolderEvent::RootGone));
        assert_eq!(folder_event(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)), &[]), Some(FolderEvent::Lost));
        assert_eq!(folder_event(Err(notify::Error::generic("e")), &[]), Some(FolderEvent::Lost));
    }
}
