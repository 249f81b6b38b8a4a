//! Of all that the kernel tells about a folder, what can mean a new or changed file.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode};
use notify::{Event, EventKind};

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sight {
    /// A file was closed after it was open for writing.
    Written(PathBuf),
    /// A file was made: to be written and closed, or as a further name of one that is whole.
    FileMade(PathBuf),
    /// A folder was made. There may be files in it already.
    FolderMade(PathBuf),
    /// A file, a folder or anything else was renamed to this.
    MovedIn(PathBuf),
    /// The folder of a bucket was removed or renamed.
    RootGone,
    /// Something was missed.
    Lost,
}

/// `roots`: the folders of the bucket.
pub(super) fn sight(event: notify::Result<Event>, roots: &[PathBuf]) -> Option<Sight> {
    let Ok(event) = event else { return Some(Sight::Lost) };
    if event.need_rescan() {
        return Some(Sight::Lost);
    }
    let path = event.paths.into_iter().next()?;
    let seen = |make: fn(PathBuf) -> Sight, path: PathBuf| (!is_hidden(&path, roots)).then(|| make(path));
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => seen(Sight::Written, path),
        EventKind::Create(CreateKind::File) => seen(Sight::FileMade, path),
        EventKind::Create(CreateKind::Folder) => seen(Sight::FolderMade, path),
        EventKind::Modify(ModifyKind::Name(RenameMode::To)) => seen(Sight::MovedIn, path),
        // Of a pair of names there is a `To` as well.
        EventKind::Modify(ModifyKind::Name(RenameMode::From)) | EventKind::Remove(_) => {
            roots.contains(&path).then_some(Sight::RootGone)
        }
        EventKind::Any | EventKind::Access(_) | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Other => None,
    }
}

/// Whether a path, below the folder of a bucket, is or lies in something whose name starts with a dot: temporary files,
/// and this store's own folder.
pub(super) fn is_hidden(path: &Path, roots: &[PathBuf]) -> bool {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    below.iter().any(|name| name.as_bytes().starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use notify::event::{DataChange, Flag, RemoveKind};

    use super::*;

    fn seen(kind: EventKind, path: &str) -> Option<Sight> {
        sight(Ok(Event::new(kind).add_path(path.into())), &["/d/.data/lake".into()])
    }

    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const MOVED_IN: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));
    const MOVED_OUT: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::From));
    const REMOVED: EventKind = EventKind::Remove(RemoveKind::Folder);

    #[test]
    fn what_is_closed_after_writing_or_moved_in_counts_and_what_goes_does_not() {
        let path = "/d/.data/lake/pipelines/x/a.csv";
        assert_eq!(seen(CLOSED, path), Some(Sight::Written(path.into())));
        assert_eq!(seen(MOVED_IN, path), Some(Sight::MovedIn(path.into())));
        for kind in [
            MOVED_OUT,
            REMOVED,
            EventKind::Modify(ModifyKind::Data(DataChange::Any)),
            EventKind::Access(AccessKind::Open(AccessMode::Any)),
            EventKind::Access(AccessKind::Close(AccessMode::Read)),
        ] {
            assert_eq!(seen(kind, path), None);
        }
    }

    #[test]
    fn names_with_a_dot_in_front_are_ignored_below_the_root_and_in_no_other_place() {
        for hidden in ["pipelines/x/.a.csv", "pipelines/.x/a.csv", ".lakemill/tmp/a"] {
            for kind in [CLOSED, MOVED_IN, EventKind::Create(CreateKind::Folder)] {
                assert_eq!(seen(kind, &format!("/d/.data/lake/{hidden}")), None);
            }
        }
        assert!(seen(CLOSED, "/d/.data/lake/a..csv").is_some());
    }

    #[test]
    fn a_lost_event_or_root_is_told() {
        assert_eq!(seen(REMOVED, "/d/.data/lake"), Some(Sight::RootGone));
        assert_eq!(seen(MOVED_OUT, "/d/.data/lake"), Some(Sight::RootGone));
        assert_eq!(sight(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)), &[]), Some(Sight::Lost));
        assert_eq!(sight(Err(notify::Error::generic("e")), &[]), Some(Sight::Lost));
    }
}
