//! The complete content of an object, before it is published.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fchmod, fstat, openat, unlinkat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::domain::digest::hex;

use super::etag::{Signature, is_regular, store_hash};
use super::folder::{DIRECTORY, Folder, OWN_FOLDER};
use super::lock::try_flock;

/// Attempts to create a temporary file.
const NAME_TRIES_MAX: usize = 16;
const COPY_BUFFER_BYTES: usize = 256 << 10;

/// A file to publish.
pub(super) struct Staged {
    pub(super) file: File,
    /// The folder of `name`; `None` if `name` is absolute, or relative to the working directory.
    dir: Option<OwnedFd>,
    name: PathBuf,
    /// Removed on drop unless published.
    temporary: bool,
}

impl Staged {
    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_ref().map_or(CWD, AsFd::as_fd)
    }

    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Called after the rename: there is nothing to remove.
    pub(super) fn mark_published(&mut self) {
        self.temporary = false;
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.temporary {
            // A failure is harmless: opening a store sweeps the folder.
            let _ = unlinkat(self.dir(), &self.name, AtFlags::empty());
        }
    }
}

fn own_folder(folder: &Folder) -> PathBuf {
    folder.dir.join(OWN_FOLDER).join("tmp")
}

/// Creates a temporary file. It is locked while open, which distinguishes it from those of dead processes.
fn temporary(folder: &Folder) -> io::Result<Staged> {
    let path = own_folder(folder);
    let dir = match openat(CWD, &path, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) if !folder.must_exist || folder.dir.is_dir() => {
            folder.create()?;
            std::fs::create_dir_all(&path)?;
            openat(CWD, &path, DIRECTORY, Mode::empty())?
        }
        opened => opened?,
    };
    for _ in 0..NAME_TRIES_MAX {
        let name = PathBuf::from(uuid::Uuid::new_v4().simple().to_string());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&dir, &name, flags, Mode::from_raw_mode(0o666))?);
        // A sweep may remove it before it is locked.
        if try_flock(&file)? && fstat(&file)?.st_nlink > 0 {
            return Ok(Staged { file, dir: Some(dir), name, temporary: true });
        }
    }
    Err(io::Error::other("temporary files are removed as soon as they are created"))
}

/// Removes temporary files of dead processes. Ignores failures: the next store that is opened tries again.
pub(super) fn sweep(folder: &Folder) {
    let Ok(dir) = openat(CWD, own_folder(folder), DIRECTORY, Mode::empty()) else { return };
    let Ok(entries) = Dir::read_from(&dir) else { return };
    for entry in entries.flatten() {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(fd) = openat(&dir, entry.file_name(), flags, Mode::empty()) else { continue };
        let file = File::from(fd);
        if fstat(&file).is_ok_and(|stat| is_regular(&stat)) && try_flock(&file).is_ok_and(|free| free) {
            let _ = unlinkat(&dir, entry.file_name(), AtFlags::empty());
        }
    }
}

pub(super) fn from_reader(folder: &Folder, body: &mut dyn Read) -> io::Result<Staged> {
    let staged = temporary(folder)?;
    let hash = hash_through(body, |bytes| (&staged.file).write_all(bytes))?;
    store_hash(&staged.file, &Signature::for_file(&staged.file)?, &hash);
    staged.file.sync_all()?;
    Ok(staged)
}

/// Takes a local file as it is, not yet durable; `None` if it must be copied: it has several names, or is on another file
/// system.
pub(super) fn from_file(folder: &Folder, path: &Path, sha256: Option<&str>) -> io::Result<Option<Staged>> {
    let file = match open(path) {
        Ok(file) => file,
        Err(Errno::LOOP) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let stat = fstat(&file)?;
    let same_device = rustix::fs::stat(&folder.dir).is_ok_and(|dir| dir.st_dev == stat.st_dev);
    if !same_device || stat.st_nlink != 1 || !is_regular(&stat) {
        return Ok(None);
    }
    let hash = match sha256 {
        Some(known) => known.to_owned(),
        None => hash_through(&mut &file, |_| Ok(()))?,
    };
    // Scratch files are private; objects have the permissions of any new file.
    if fchmod(&file, Mode::from_raw_mode(0o666 & !umask())).is_err() {
        return Ok(None);
    }
    store_hash(&file, &Signature::for_file(&file)?, &hash);
    Ok(Some(Staged { file, dir: None, name: path.to_owned(), temporary: false }))
}

/// A file that [`from_file`] took before, and that hasn't changed since.
pub(super) fn prepared(path: &Path, is_durable: bool) -> io::Result<Staged> {
    let file = open(path)?;
    if !is_durable {
        file.sync_all()?;
    }
    Ok(Staged { file, dir: None, name: path.to_owned(), temporary: false })
}

fn open(path: &Path) -> Result<File, Errno> {
    openat(CWD, path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).map(File::from)
}

fn hash_through(body: &mut dyn Read, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; COPY_BUFFER_BYTES];
    loop {
        let length = match body.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hasher.finalize())),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..length]);
        take(&buffer[..length])?;
    }
}

/// The process's file mode mask. The system call would change it.
fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        mask.and_then(|m| u32::from_str_radix(m.trim(), 8).ok()).unwrap_or(0o022)
    })
}
