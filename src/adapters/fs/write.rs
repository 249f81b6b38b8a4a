//! Publishes an object: one rename, under the locks, after all checks.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Mode, RenameFlags, linkat, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::ports::store::{Bucket, ObjectMeta, Precondition, StagedFile, StoreError, StoreResult, WriteOptions};
use crate::runtime::failpoint;

use super::etag::{Signature, Tag};
use super::folder::{DIRECTORY, ObjectPath, name_of, parent_of};
use super::lock::{FenceError, LockGuard};
use super::read;
use super::stage::{self, Staged};
use super::store::FsStore;
use super::sync::WrittenAt;

/// Retries when the parent folder is removed (its last object was deleted) between its creation and the rename.
const PUBLISH_TRIES_MAX: usize = 64;
const MODE_DIR: Mode = Mode::from_raw_mode(0o777);

/// A file with its tag stored. It is not kept open: there can be as many as partitions.
struct PreparedFile<'a> {
    store: &'a FsStore,
    bucket: Bucket,
    key: String,
    file: PathBuf,
    /// `None` if the file is durable.
    unsynced: Option<WrittenAt>,
}

/// Larger files are synced at once.
const DEFERRED_SYNC_BYTES_MAX: u64 = 1 << 20;

impl StagedFile for PreparedFile<'_> {
    fn put(self: Box<Self>, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let path = self.store.path_to_start(self.bucket, &self.key, options)?;
        let is_durable = self.unsynced.is_none_or(|written| self.store.deferred.covers(written));
        self.store.write_staged(&path, &self.file, stage::prepared(&self.file, is_durable).map(Some), options)
    }
}

impl FsStore {
    /// Publishes the file that `stage` creates.
    pub(super) fn write<'a>(
        &'a self,
        bucket: Bucket,
        key: &'a str,
        options: &WriteOptions<'_>,
        stage: impl FnOnce(&ObjectPath<'a>) -> io::Result<Staged>,
    ) -> StoreResult<ObjectMeta> {
        let path = self.path_to_start(bucket, key, options)?;
        let mut staged = stage(&path).map_err(|error| path.error_or_no_bucket("writing", error))?;
        self.publish(&path, &mut staged, options)
    }

    pub(super) fn write_file(
        &self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let path = self.path_to_start(bucket, key, options)?;
        let staged = stage::from_file(path.folder, file, options.sha256).and_then(|staged| {
            staged.as_ref().map_or(Ok(()), |staged| staged.file.sync_all())?;
            Ok(staged)
        });
        self.write_staged(&path, file, staged, options)
    }

    /// Moves the file, or copies it if it can't be moved.
    fn write_staged<'a>(
        &'a self,
        path: &ObjectPath<'a>,
        file: &Path,
        staged: io::Result<Option<Staged>>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        if let Some(mut staged) = staged.map_err(|error| path.error("reading the file for", error))? {
            match self.publish(path, &mut staged, options) {
                Err(StoreError::Transient { source, .. }) if source.kind() == io::ErrorKind::CrossesDevices => {}
                result => return result,
            }
        }
        let mut body = std::fs::File::open(file).map_err(|error| path.error("reading the file for", error))?;
        self.write(path.bucket, path.key, options, |path| stage::from_reader(path.folder, &mut body))
    }

    /// Prepares a file that can be moved: stores its tag, and syncs it if it is large.
    pub(super) fn prepare_file<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        sha256: &str,
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        let path = self.folders.path_to_write(bucket, key)?;
        let failed = |error: io::Error| path.error("reading the file for", error);
        let Some(staged) = stage::from_file(path.folder, file, Some(sha256)).map_err(failed)? else {
            return Ok(None);
        };
        let unsynced = if staged.file.metadata().map_err(failed)?.len() <= DEFERRED_SYNC_BYTES_MAX {
            Some(self.deferred.add_file(&path.folder.dir).map_err(|errno| failed(errno.into()))?)
        } else {
            staged.file.sync_all().map_err(failed)?;
            None
        };
        let (key, file) = (key.to_owned(), file.to_owned());
        Ok(Some(Box::new(PreparedFile { store: self, bucket, key, file, unsynced })))
    }

    fn path_to_start<'a>(
        &'a self,
        bucket: Bucket,
        key: &'a str,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectPath<'a>> {
        let path = self.folders.path_to_write(bucket, key)?;
        if let Some(lease) = options.lease {
            lease.remaining()?;
        }
        if path.folder.must_exist {
            path.folder.open_root()?;
        }
        Ok(path)
    }

    /// Locks the key, and the fence if the write is a run's. Fails after the write's deadline.
    pub(super) fn lock(
        &self,
        path: &ObjectPath<'_>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<(Option<LockGuard<'_>>, LockGuard<'_>)> {
        let key = self.locks.key(path.bucket, path.key).map_err(|e| path.error("locking", e))?;
        let fence = options.lease.map(|lease| self.locks.fence(lease)).transpose();
        let fence = fence.map_err(|error| match error {
            FenceError::Lost(lost) => StoreError::LeaseLost(lost),
            FenceError::Io(error) => path.error("checking the fence for", error),
        })?;
        if options.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            let late = io::Error::new(io::ErrorKind::TimedOut, "the deadline of the write has passed");
            return Err(path.error("writing", late));
        }
        Ok((fence, key))
    }

    fn publish(
        &self,
        path: &ObjectPath<'_>,
        staged: &mut Staged,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        for _ in 0..PUBLISH_TRIES_MAX {
            let Some(parent) = create_parent(path)? else { continue };
            let locks = self.lock(path, options)?;
            if options.defer_sync {
                let named = self.deferred.add_directory(&path.folder.dir, parent_of(path.relative));
                named.map_err(|errno| path.error("opening the folder of", errno.into()))?;
            }
            failpoint::reach("fs::before_write");
            let done = rename_if(path, staged, &parent, &options.precondition)?;
            drop(locks);
            if done {
                failpoint::reach("fs::after_write");
                self.snapshots.object_changed();
                if !options.defer_sync {
                    let synced = self.directories.sync_open(&path.folder.dir, parent_of(path.relative), &parent);
                    synced.map_err(|errno| path.error("syncing the folder of", errno.into()))?;
                }
                let signature =
                    Signature::for_file(&staged.file).map_err(|e| path.error("reading the metadata of", e))?;
                let tag = Tag::for_file(path.folder, &staged.file, &signature);
                return Ok(read::meta(path.key, &signature, &tag));
            }
        }
        Err(path.error("writing", io::Error::other("its folder is removed as soon as it is created")))
    }
}

/// Opens the folder of an object, created if missing; `None` if it was removed meanwhile.
fn create_parent(path: &ObjectPath<'_>) -> StoreResult<Option<OwnedFd>> {
    let failed = |errno: Errno| path.error("creating the folder of", errno.into());
    path.folder.create().map_err(|error| path.error("creating the folder of", error))?;
    let Some(mut fd) = path.folder.open_root()? else { return Ok(None) };
    let Some((parents, _)) = path.relative.rsplit_once('/') else { return Ok(Some(fd)) };
    let mut end = 0;
    for segment in parents.split('/') {
        end += segment.len() + 1;
        let open = |fd: &OwnedFd| openat(fd, segment, path.folder.flags(DIRECTORY), Mode::empty());
        let opened = match open(&fd) {
            Err(Errno::NOENT) => match mkdirat(&fd, segment, MODE_DIR) {
                Ok(()) | Err(Errno::EXIST) => open(&fd),
                Err(errno) => Err(errno),
            },
            opened => opened,
        };
        fd = match opened {
            Ok(below) => below,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(blocked_by(path, &fd, segment, &path.relative[..end - 1]));
            }
            Err(errno) => return Err(failed(errno)),
        };
    }
    Ok(Some(fd))
}

fn blocked_by(path: &ObjectPath<'_>, parent: &OwnedFd, segment: &str, blocked: &str) -> StoreError {
    let what = match statat(parent, segment, AtFlags::SYMLINK_NOFOLLOW).map(|s| FileType::from_raw_mode(s.st_mode)) {
        Ok(FileType::RegularFile) => "an object, which can't also be a folder on a file system",
        Ok(FileType::Symlink) => "a symbolic link, which is not followed in a writable folder",
        Ok(_) | Err(_) => "not a folder",
    };
    path.invalid(format!("`{}{blocked}` is {what}", path.folder.prefix))
}

/// Renames the staged file to the object's name if the precondition holds. False if the parent was removed. Must hold the
/// locks.
fn rename_if(
    path: &ObjectPath<'_>,
    staged: &mut Staged,
    parent: &OwnedFd,
    precondition: &Precondition,
) -> StoreResult<bool> {
    let name = name_of(path.relative);
    let renamed = match precondition {
        Precondition::None => renameat(staged.dir(), staged.name(), parent, name),
        Precondition::IfMatch(tag) => {
            if !read::open(path, "reading the metadata of")?.is_some_and(|object| object.etag() == tag) {
                return Err(path.precondition_failed());
            }
            renameat(staged.dir(), staged.name(), parent, name)
        }
        Precondition::IfNoneMatch => rename_to_new(staged, parent, name),
    };
    match renamed {
        Ok(()) => {
            staged.mark_published();
            Ok(true)
        }
        Err(Errno::NOENT) => Ok(false),
        Err(errno @ (Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR)) => {
            match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(|s| FileType::from_raw_mode(s.st_mode)) {
                Ok(FileType::RegularFile) => Err(path.precondition_failed()),
                // Removes folders without objects, left by a crash or a person.
                Ok(FileType::Directory) if remove_empty_tree(parent, name) => Ok(false),
                Ok(FileType::Directory) => {
                    Err(path.invalid("it is a folder of other objects, which can't also be an object on a file system"))
                }
                Ok(_) => Err(path.invalid("a link or special file has this name")),
                Err(Errno::NOENT) => Ok(false),
                Err(_) => Err(path.error("writing", errno.into())),
            }
        }
        Err(errno) => Err(path.error("writing", errno.into())),
    }
}

/// Fails with `EXIST` if the name exists.
fn rename_to_new(staged: &Staged, parent: &OwnedFd, name: &str) -> Result<(), Errno> {
    match renameat_with(staged.dir(), staged.name(), parent, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link_to_new(staged, parent, name),
        result => result,
    }
}

/// For file systems without `RENAME_NOREPLACE`.
fn link_to_new(staged: &Staged, parent: &OwnedFd, name: &str) -> Result<(), Errno> {
    match linkat(staged.dir(), staged.name(), parent, name, AtFlags::empty()) {
        Ok(()) => {
            // A remaining second name is harmless, and swept later.
            let _ = unlinkat(staged.dir(), staged.name(), AtFlags::empty());
            Ok(())
        }
        // No links either: the lock on the key excludes only writers of this program.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => renameat(staged.dir(), staged.name(), parent, name),
            Err(errno) => Err(errno),
        },
        Err(errno) => Err(errno),
    }
}

/// Removes a tree of folders without files.
fn remove_empty_tree(parent: &OwnedFd, name: &str) -> bool {
    let Ok(fd) = openat(parent, name, DIRECTORY | rustix::fs::OFlags::NOFOLLOW, Mode::empty()) else { return false };
    let Ok(entries) = rustix::fs::Dir::read_from(&fd) else { return false };
    for entry in entries.flatten() {
        let Ok(child) = entry.file_name().to_str() else { return false };
        if !matches!(child, "." | "..") && !remove_empty_tree(&fd, child) {
            return false;
        }
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::folder::{Folders, Mount};
    use super::*;

    #[test]
    fn link_fallback_creates_only_new_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        let mount =
            Mount { bucket: Bucket::Lake, prefix: String::new(), dir: path.clone(), writable: true, hide: Vec::new() };
        let folders = Folders::from_mounts(vec![mount]).unwrap();
        let parent = rustix::fs::open(&path, DIRECTORY, Mode::empty()).unwrap();
        let staged = |body: &[u8]| stage::from_reader(&folders.all()[0], &mut &body[..]).unwrap();
        link_to_new(&staged(b"first"), &parent, "k").unwrap();
        assert_eq!(link_to_new(&staged(b"second"), &parent, "k"), Err(Errno::EXIST));
        assert_eq!(std::fs::read(path.join("k")).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(path.join(".lakemill/tmp")).unwrap().count(), 0);
    }
}
