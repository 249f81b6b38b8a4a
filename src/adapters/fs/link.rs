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
