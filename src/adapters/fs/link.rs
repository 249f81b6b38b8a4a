//! A second name for an object's file, outside of the store.
//!
//! Invariant: the name leads to the very file that was opened and whose tag was compared, not to what stands under the
//! key a moment later.

use std::path::Path;

use rustix::fd::AsRawFd;
use rustix::fs::{AtFlags, CWD, fstat, linkat};
use rustix::io::Errno;

use super::error::Place;
use super::read::OpenObject;
use crate::ports::store::StoreResult;

/// Links an open object. False where that can't be done: on another file system, one without links, or one whose rules
/// (`fs.protected_hardlinks`) let only a file's owner link it.
///
/// A file that others may write in place isn't linked, since it wouldn't stay as it is. Nor is one without extended
/// attributes: a link changes the time of which its tag is made.
pub(super) fn link(place: &Place<'_>, object: &OpenObject, into: &Path) -> StoreResult<bool> {
    if !object.is_ours() {
        return Ok(false);
    }
    let opened = format!("/proc/self/fd/{}", object.file().as_raw_fd());
    match linkat(CWD, opened, CWD, into, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(true),
        // Its last name is gone, or there is no /proc.
        Err(Errno::NOENT) if fstat(object.file()).is_ok_and(|stat| stat.st_nlink == 0) => {
            Err(place.precondition_failed())
        }
        Err(
            Errno::NOENT | Errno::XDEV | Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK,
        ) => Ok(false),
        Err(errno) => Err(place.error("linking", errno.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::FsStore;
    use crate::ports::ObjectStore as _;
    use crate::ports::store::{Bucket, WriteOptions};

    #[test]
    fn files_of_others_are_not_linked_since_they_may_change_in_place() {
        let root = tempfile::tempdir().unwrap();
        let store = FsStore::create(root.path()).unwrap();
        let tag = |key: &str| store.head(Bucket::Warehouse, key).unwrap().unwrap().etag.unwrap();
        std::fs::write(root.path().join("warehouse/theirs"), "x").unwrap();
        let into = root.path().join("link");
        assert!(!store.link(Bucket::Warehouse, "theirs", &tag("theirs"), &into).unwrap());
        assert!(!into.exists());
        store.put(Bucket::Warehouse, "ours", b"x", &WriteOptions::default()).unwrap();
        assert!(store.link(Bucket::Warehouse, "ours", &tag("ours"), &into).unwrap());
        // A second of the same name is no success.
        assert!(store.link(Bucket::Warehouse, "ours", &tag("ours"), &into).is_err());
    }
}
