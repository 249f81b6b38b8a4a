//! Objects go, and the folders that held nothing else.

use std::collections::BTreeMap;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, fsync, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::ports::store::{Bucket, StoreResult, WriteOptions};

use super::FsStore;
use super::error::Place;
use super::folder::{DIRECTORY, is_absent};

impl FsStore {
    /// Unlinks each key under its locks, then removes the emptied folders and syncs those that stay: a folder's
    /// removal on disk takes the names in it along.
    pub(super) fn remove(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        let mut changed: BTreeMap<&str, Place<'_>> = BTreeMap::new();
        let unlinked = keys.iter().try_for_each(|key| {
            let place = self.folders.place_to_write(bucket, key)?;
            place.folder.open_root()?;
            let held = self.lock(&place, options)?;
            let gone = unlink(&place)?;
            drop(held);
            if gone {
                changed.insert(parent_of(place.key), place);
            }
            Ok(())
        });
        self.snapshots.object_changed();
        let settled = self.settle(changed);
        unlinked.and(settled)
    }

    /// `changed`: a deleted object of each folder that had some, by the folder's key.
    fn settle<'a>(&self, mut changed: BTreeMap<&'a str, Place<'a>>) -> StoreResult<()> {
        while let Some((key, place)) = changed.pop_last() {
            let path = key.get(place.folder.prefix.len()..).unwrap_or("");
            let above = parent_of(path);
            let failed = |errno: Errno| place.error("syncing the folder of", errno.into());
            if !path.is_empty() {
                let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
                let Some(fd) = open_folder(&place, above).map_err(failed)? else { continue };
                if matches!(unlinkat(&fd, name, AtFlags::REMOVEDIR), Ok(()) | Err(Errno::NOENT)) {
                    self.durable.remove(&place.folder.dir, path);
                    let above_key = &key[..place.folder.prefix.len() + above.len()];
                    changed.insert(above_key, place);
                    continue;
                }
            }
            if let Some(fd) = open_folder(&place, path).map_err(failed)? {
                fsync(&fd).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// The part before the last `/`.
pub(super) fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn unlink(place: &Place<'_>) -> StoreResult<bool> {
    let failed = |errno: Errno| place.error("deleting", errno.into());
    let Some(parent) = open_folder(place, parent_of(place.path)).map_err(failed)? else { return Ok(false) };
    let name = place.path.rsplit_once('/').map_or(place.path, |(_, name)| name);
    match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {}
        Ok(_) => return Ok(false),
        Err(errno) if is_absent(errno) => return Ok(false),
        Err(errno) => return Err(failed(errno)),
    }
    match unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(failed(errno)),
    }
}

/// `None` if there is no such folder.
fn open_folder(place: &Place<'_>, path: &str) -> Result<Option<OwnedFd>, Errno> {
    let mut fd = match openat(rustix::fs::CWD, &place.folder.dir, DIRECTORY, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    for segment in path.split('/').filter(|s| !s.is_empty()) {
        fd = match openat(&fd, segment, place.folder.flags(DIRECTORY), Mode::empty()) {
            Ok(fd) => fd,
            Err(errno) if is_absent(errno) => return Ok(None),
            Err(errno) => return Err(errno),
        };
    }
    Ok(Some(fd))
}
