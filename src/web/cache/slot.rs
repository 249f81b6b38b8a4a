//! A process's slot in the cache folder, and the files in it.
//!
//! Invariant: a slot's lock is held by the one live process that uses it. A starting process takes a free slot with its
//! files, so that a restart finds them again. Files from before a reboot are deleted, since they weren't synced.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};

use super::types::{CacheError, Name};

/// Processes that may share a folder.
const SLOTS_MAX: usize = 64;
/// A file whose content changes with each boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

pub(super) struct Slot {
    files: PathBuf,
    temporary: PathBuf,
    /// Held while the slot is used.
    _lock: File,
}

impl Slot {
    /// Takes the first free slot in `folder`; empties other free slots.
    pub(super) fn take(folder: &Path) -> io::Result<Self> {
        make(folder)?;
        let mut own = None;
        for number in 0..SLOTS_MAX {
            let path = folder.join(format!("slot-{number:02}"));
            if own.is_some() && !path.is_dir() {
                continue;
            }
            make(&path)?;
            let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join("lock"))?;
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            if own.is_none() {
                own = Some(Self { files: path.join("files"), temporary: path.join("tmp"), _lock: lock });
            } else {
                let _ = fs::remove_dir_all(path.join("files"));
                let _ = fs::remove_dir_all(path.join("tmp"));
            }
        }
        let own = own.ok_or_else(|| io::Error::other(format!("{SLOTS_MAX} processes already use the cache")))?;
        own.refresh(folder)?;
        Ok(own)
    }

    fn refresh(&self, folder: &Path) -> io::Result<()> {
        let boot = self.files.with_file_name("boot");
        let now = fs::read_to_string(BOOT_ID).unwrap_or_default();
        let same = !now.is_empty() && fs::read_to_string(&boot).is_ok_and(|before| before == now);
        if !same && self.files.exists() {
            fs::remove_dir_all(&self.files)?;
            tracing::info!(folder = %folder.display(), "machine rebooted; cache cleared");
        }
        if self.temporary.exists() {
            fs::remove_dir_all(&self.temporary)?;
        }
        make(&self.files)?;
        make(&self.temporary)?;
        fs::write(&boot, now)
    }

    /// The cached files, least recently used first. Foreign and incomplete files are deleted.
    pub(super) fn files(&self) -> io::Result<Vec<(Name, SystemTime)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.files)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            match entry.file_name().to_str().and_then(parse).filter(|name| meta.is_file() && meta.len() == name.1) {
                Some(name) => found.push((name, meta.accessed().or_else(|_| meta.modified())?)),
                None if meta.is_dir() => fs::remove_dir_all(entry.path())?,
                None => fs::remove_file(entry.path())?,
            }
        }
        found.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        Ok(found)
    }

    pub(super) fn path(&self, name: &Name) -> PathBuf {
        self.files.join(format!("{}-{}", name.0, name.1))
    }

    /// A path for a file that isn't complete yet.
    pub(super) fn temporary(&self) -> PathBuf {
        self.temporary.join(uuid::Uuid::new_v4().simple().to_string())
    }

    pub(super) fn remove(&self, name: &Name) {
        let path = self.path(name);
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "deleting cached file failed");
        }
    }

    /// Hard-links a file to `into`; false if it is missing or incomplete.
    pub(super) fn link(&self, name: &Name, into: &Path) -> Result<bool, CacheError> {
        let path = self.path(name);
        let failed = |source: io::Error| CacheError::Io { what: "linking", path: into.to_owned(), source };
        match fs::metadata(&path) {
            Ok(meta) if meta.len() == name.1 => {}
            Ok(_) => {
                self.remove(name);
                return Ok(false);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
        fs::hard_link(&path, into).map(|()| true).map_err(failed)
    }
}

fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn parse(file_name: &str) -> Option<Name> {
    let (hash, size) = file_name.split_once('-')?;
    let plain = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    let size: u64 = size.parse().ok()?;
    (plain && file_name == format!("{hash}-{size}")).then(|| Name(hash.to_owned(), size))
}
