//! An object takes its place: one rename, under the locks, after all checks.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Mode, RenameFlags, fsync, linkat, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::ports::store::{Bucket, ObjectMeta, Precondition, StagedFile, StoreError, StoreResult, WriteOptions};

use super::FsStore;
use super::error::Place;
use super::etag::{Signature, Tag};
use super::folder::DIRECTORY;
use super::later::Made;
use super::lock::{FenceError, Held};
use super::read;
use super::remove::parent_of;
use super::stage::{self, Staged};

/// Times that a parent folder may be removed (its last object was deleted) between its making and the rename.
const PLACE_TRIES_MAX: usize = 64;
const MODE_DIR: Mode = Mode::from_raw_mode(0o777);

/// A file that bears its tag. It is not kept open: there can be as many as partitions.
struct SealedFile<'a> {
    store: &'a FsStore,
    bucket: Bucket,
    key: String,
    file: PathBuf,
    /// `None` if it is durable.
    unsynced: Option<Made>,
}

/// Larger files are synced one by one, as soon as they can be.
const SYNCED_TOGETHER_BYTES_MAX: u64 = 1 << 20;

impl StagedFile for SealedFile<'_> {
    fn put(self: Box<Self>, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let place = self.store.place_to_start(self.bucket, &self.key, options)?;
        let is_durable = self.unsynced.is_none_or(|made| self.store.later.has(made));
        self.store.write_staged(&place, &self.file, stage::sealed(&self.file, is_durable).map(Some), options)
    }
}

impl FsStore {
    /// Writes what `stage` gives.
    pub(super) fn write<'a>(
        &'a self,
        bucket: Bucket,
        key: &'a str,
        options: &WriteOptions<'_>,
        stage: impl FnOnce(&Place<'a>) -> io::Result<Staged>,
    ) -> StoreResult<ObjectMeta> {
        let place = self.place_to_start(bucket, key, options)?;
        let mut staged = stage(&place).map_err(|error| place.error_or_no_bucket("writing", error))?;
        self.put_in_place(&place, &mut staged, options)
    }

    pub(super) fn write_file(
        &self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let place = self.place_to_start(bucket, key, options)?;
        let staged = stage::from_file_in_place(place.folder, file, options.sha256);
        self.write_staged(&place, file, staged, options)
    }

    /// Moves the file, or copies it where it can't be moved.
    fn write_staged<'a>(
        &'a self,
        place: &Place<'a>,
        file: &Path,
        staged: io::Result<Option<Staged>>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        if let Some(mut staged) = staged.map_err(|error| place.error("reading the file for", error))? {
            match self.put_in_place(place, &mut staged, options) {
                Err(StoreError::Transient { source, .. }) if source.kind() == io::ErrorKind::CrossesDevices => {}
                result => return result,
            }
        }
        let mut body = std::fs::File::open(file).map_err(|error| place.error("reading the file for", error))?;
        self.write(place.bucket, place.key, options, |place| stage::from_reader(place.folder, &mut body))
    }

    /// Makes a file that can be moved ready for it: durable, if it isn't small.
    pub(super) fn seal_file<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        sha256: &str,
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        let place = self.folders.place_to_write(bucket, key)?;
        let failed = |error: io::Error| place.error("reading the file for", error);
        let Some(staged) = stage::from_file_unsynced(place.folder, file, Some(sha256)).map_err(failed)? else {
            return Ok(None);
        };
        let unsynced = if staged.file.metadata().map_err(failed)?.len() <= SYNCED_TOGETHER_BYTES_MAX {
            Some(self.later.begin(&place.folder.dir).map_err(|errno| failed(errno.into()))?)
        } else {
            staged.file.sync_all().map_err(failed)?;
            None
        };
        let (key, file) = (key.to_owned(), file.to_owned());
        Ok(Some(Box::new(SealedFile { store: self, bucket, key, file, unsynced })))
    }

    fn place_to_start<'a>(
        &'a self,
        bucket: Bucket,
        key: &'a str,
        options: &WriteOptions<'_>,
    ) -> StoreResult<Place<'a>> {
        let place = self.folders.place_to_write(bucket, key)?;
        if let Some(lease) = options.lease {
            lease.remaining()?;
        }
        if place.folder.must_exist {
            place.folder.open_root()?;
        }
        Ok(place)
    }

    /// Waits for the key, and for the fence if the write is a run's; not past the time for the write.
    pub(super) fn lock(
        &self,
        place: &Place<'_>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<(Option<Held<'_>>, Held<'_>)> {
        let key = self.locks.key(place.bucket, place.key).map_err(|e| place.error("locking", e))?;
        let fence = options.lease.map(|lease| self.locks.fence(lease)).transpose();
        let fence = fence.map_err(|error| match error {
            FenceError::Lost(lost) => StoreError::LeaseLost(lost),
            FenceError::Io(error) => place.error("checking the fence for", error),
        })?;
        if options.until.is_some_and(|until| Instant::now() > until) {
            let late = io::Error::new(io::ErrorKind::TimedOut, "the time for the write ran out");
            return Err(place.error("writing", late));
        }
        Ok((fence, key))
    }

    fn put_in_place(
        &self,
        place: &Place<'_>,
        staged: &mut Staged,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        for _ in 0..PLACE_TRIES_MAX {
            let Some(parent) = make_parent(place)? else { continue };
            let held = self.lock(place, options)?;
            if options.sync_later {
                let named = self.later.name_in(&place.folder.dir, parent_of(place.path));
                named.map_err(|errno| place.error("opening the folder of", errno.into()))?;
            }
            let done = rename_if(place, staged, &parent, &options.precondition)?;
            drop(held);
            if done {
                self.snapshots.object_changed();
                if !options.sync_later {
                    self.make_durable(place, &parent)?;
                }
                let signature = Signature::of_file(&staged.file).map_err(|e| place.error("looking at", e))?;
                let tag = Tag::of_file(place.folder, &staged.file, &signature);
                return Ok(read::meta(place.key, &signature, &tag));
            }
        }
        Err(place.error("writing", io::Error::other("its folder is removed as soon as it is made")))
    }

    /// Syncs the parent, which holds the object's name, and above it the folders whose names may not be on disk.
    fn make_durable(&self, place: &Place<'_>, parent: &OwnedFd) -> StoreResult<()> {
        let failed = |errno: Errno| place.error("syncing the folder of", errno.into());
        let dir = &place.folder.dir;
        self.durable.sync(dir, parent_of(place.path), || fsync(parent)).map_err(failed)?;
        self.sync_above(dir, parent_of(place.path)).map_err(failed)
    }

    /// Syncs a folder, if it is still there, and those above it whose names may not be on disk.
    pub(super) fn sync_folder(&self, dir: &Path, path: &str) -> Result<(), Errno> {
        match rustix::fs::open(dir.join(path), DIRECTORY, Mode::empty()) {
            Ok(fd) => self.durable.sync(dir, path, || fsync(&fd))?,
            // Another deleted what it held, and it with that.
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno),
        }
        self.sync_above(dir, path)
    }

    /// Syncs the folders above one whose names may not be on disk.
    fn sync_above(&self, dir: &Path, path: &str) -> Result<(), Errno> {
        let mut child = path;
        while !child.is_empty() && !self.durable.knows(dir, child) {
            let above = parent_of(child);
            match rustix::fs::open(dir.join(above), DIRECTORY, Mode::empty()) {
                Ok(fd) => self.durable.sync(dir, above, || fsync(&fd))?,
                // Another deleted the object, and its folder with it.
                Err(Errno::NOENT) => return Ok(()),
                Err(errno) => return Err(errno),
            }
            self.durable.add(dir, child);
            child = above;
        }
        Ok(())
    }
}

/// Opens the folder of an object, made where it is missing; `None` if it was removed in the same moment.
fn make_parent(place: &Place<'_>) -> StoreResult<Option<OwnedFd>> {
    let failed = |errno: Errno| place.error("making the folder of", errno.into());
    place.folder.make().map_err(|error| place.error("making the folder of", error))?;
    let Some(mut fd) = place.folder.open_root()? else { return Ok(None) };
    let Some((parents, _)) = place.path.rsplit_once('/') else { return Ok(Some(fd)) };
    let mut end = 0;
    for segment in parents.split('/') {
        end += segment.len() + 1;
        let open = |fd: &OwnedFd| openat(fd, segment, place.folder.flags(DIRECTORY), Mode::empty());
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
                return Err(in_the_way(place, &fd, segment, &place.path[..end - 1]));
            }
            Err(errno) => return Err(failed(errno)),
        };
    }
    Ok(Some(fd))
}

fn in_the_way(place: &Place<'_>, parent: &OwnedFd, segment: &str, path: &str) -> StoreError {
    let what = match statat(parent, segment, AtFlags::SYMLINK_NOFOLLOW).map(|s| FileType::from_raw_mode(s.st_mode)) {
        Ok(FileType::RegularFile) => "an object, which can't be a folder too on a file system",
        Ok(FileType::Symlink) => "a symbolic link, which is not followed in a folder that is written",
        Ok(_) | Err(_) => "no folder",
    };
    place.invalid(format!("`{}{path}` is {what}", place.folder.prefix))
}

/// Renames the staged file to the object's name if the precondition holds. False if the parent is gone. Called under
/// the locks.
fn rename_if(place: &Place<'_>, staged: &mut Staged, parent: &OwnedFd, when: &Precondition) -> StoreResult<bool> {
    let name = place.path.rsplit_once('/').map_or(place.path, |(_, name)| name);
    let renamed = match when {
        Precondition::None => renameat(staged.dir(), staged.name(), parent, name),
        Precondition::IfMatch(tag) => {
            if !read::open(place, "looking at")?.is_some_and(|object| object.etag() == tag) {
                return Err(place.precondition_failed());
            }
            renameat(staged.dir(), staged.name(), parent, name)
        }
        Precondition::IfAbsent => rename_to_new(staged, parent, name),
    };
    match renamed {
        Ok(()) => {
            staged.placed();
            Ok(true)
        }
        Err(Errno::NOENT) => Ok(false),
        Err(errno @ (Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR)) => {
            match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(|s| FileType::from_raw_mode(s.st_mode)) {
                Ok(FileType::RegularFile) => Err(place.precondition_failed()),
                // Folders without an object are no objects: what a crash, or a person, left is cleared away.
                Ok(FileType::Directory) if remove_empty_tree(parent, name) => Ok(false),
                Ok(FileType::Directory) => {
                    Err(place.invalid("it is a folder of other objects, which can't be an object too on a file system"))
                }
                Ok(_) => Err(place.invalid("a link or special file has its name")),
                Err(Errno::NOENT) => Ok(false),
                Err(_) => Err(place.error("writing", errno.into())),
            }
        }
        Err(errno) => Err(place.error("writing", errno.into())),
    }
}

/// Fails with `EXIST` if there is something of that name.
fn rename_to_new(staged: &Staged, parent: &OwnedFd, name: &str) -> Result<(), Errno> {
    match renameat_with(staged.dir(), staged.name(), parent, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link_to_new(staged, parent, name),
        result => result,
    }
}

/// For file systems without that rename.
fn link_to_new(staged: &Staged, parent: &OwnedFd, name: &str) -> Result<(), Errno> {
    match linkat(staged.dir(), staged.name(), parent, name, AtFlags::empty()) {
        Ok(()) => {
            // A second name that stays does no harm; it is swept later.
            let _ = unlinkat(staged.dir(), staged.name(), AtFlags::empty());
            Ok(())
        }
        // Nor links: the lock on the key keeps our writers out, and only ours.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => renameat(staged.dir(), staged.name(), parent, name),
            Err(errno) => Err(errno),
        },
        Err(errno) => Err(errno),
    }
}

/// Removes a folder that holds nothing but folders.
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
    use super::super::Mount;
    use super::super::folder::Folders;
    use super::*;

    #[test]
    fn a_link_creates_only_what_is_new_where_no_such_rename_exists() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        let mount =
            Mount { bucket: Bucket::Lake, prefix: String::new(), dir: path.clone(), writable: true, hide: Vec::new() };
        let folders = Folders::of_mounts(vec![mount]).unwrap();
        let parent = rustix::fs::open(&path, DIRECTORY, Mode::empty()).unwrap();
        let staged = |body: &[u8]| stage::from_bytes(&folders.all()[0], body).unwrap();
        link_to_new(&staged(b"first"), &parent, "k").unwrap();
        assert_eq!(link_to_new(&staged(b"second"), &parent, "k"), Err(Errno::EXIST));
        assert_eq!(std::fs::read(path.join("k")).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(path.join(".lakemill/tmp")).unwrap().count(), 0);
    }
}
