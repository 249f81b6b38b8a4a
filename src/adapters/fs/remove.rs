//! Deletes objects, and the folders that are empty then.

use std::collections::BTreeMap;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, fsync, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::ports::store::{Bucket, StoreResult, WriteOptions};
use crate::runtime::failpoint;

use super::folder::{DIRECTORY, Folder, ObjectPath, is_absent, name_of, parent_of};
use super::store::FsStore;

impl FsStore {
    /// Unlinks each key under its locks, then removes empty folders and syncs the remaining ones: the durable removal of a
    /// folder includes the names in it.
    pub(super) fn remove(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        let mut changed: BTreeMap<&str, ObjectPath<'_>> = BTreeMap::new();
        let unlinked = keys.iter().try_for_each(|key| {
            let path = self.folders.path_to_write(bucket, key)?;
            path.folder.open_root()?;
            let locks = self.lock(&path, options)?;
            failpoint::reach("fs::before_write");
            let gone = unlink(&path)?;
            drop(locks);
            if gone {
                failpoint::reach("fs::after_write");
                changed.insert(parent_of(path.key), path);
            }
            Ok(())
        });
        self.snapshots.object_changed();
        let cleaned = self.clean_up(changed);
        unlinked.and(cleaned)
    }

    /// `changed`: for each folder with deleted objects, its key and one of them.
    fn clean_up<'a>(&self, mut changed: BTreeMap<&'a str, ObjectPath<'a>>) -> StoreResult<()> {
        while let Some((key, object)) = changed.pop_last() {
            let folder = object.folder;
            let relative = key.get(folder.prefix.len()..).unwrap_or("");
            let failed = |errno: Errno| object.error("syncing the folder of", errno.into());
            if !relative.is_empty() {
                let above = parent_of(relative);
                let Some(fd) = open_folder(folder, above).map_err(failed)? else { continue };
                if matches!(unlinkat(&fd, name_of(relative), AtFlags::REMOVEDIR), Ok(()) | Err(Errno::NOENT)) {
                    self.directories.forget(&folder.dir, relative);
                    changed.insert(&key[..folder.prefix.len() + above.len()], object);
                    continue;
                }
            }
            if let Some(fd) = open_folder(folder, relative).map_err(failed)? {
                fsync(&fd).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn unlink(path: &ObjectPath<'_>) -> StoreResult<bool> {
    let failed = |errno: Errno| path.error("deleting", errno.into());
    let Some(parent) = open_folder(path.folder, parent_of(path.relative)).map_err(failed)? else { return Ok(false) };
    let name = name_of(path.relative);
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

/// `None` if the folder doesn't exist.
fn open_folder(folder: &Folder, path: &str) -> Result<Option<OwnedFd>, Errno> {
    let mut fd = match openat(rustix::fs::CWD, &folder.dir, DIRECTORY, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    for segment in path.split('/').filter(|s| !s.is_empty()) {
        fd = match openat(&fd, segment, folder.flags(DIRECTORY), Mode::empty()) {
            Ok(fd) => fd,
            Err(errno) if is_absent(errno) => return Ok(None),
            Err(errno) => return Err(errno),
        };
    }
    Ok(Some(fd))
}
