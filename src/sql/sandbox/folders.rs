//! The children's folders: one each, below a folder of this process, below the configured one.
//!
//! Invariant: a folder whose lock is held belongs to a living process; every other one is a leftover. Folders are made
//! and swept under the lock of the configured folder, so that none is swept before its own lock is held.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::SandboxError;

const LOCK: &str = "lock";
/// Leftovers that one start removes.
const SWEPT_MAX: usize = 10_000;

/// The folder of this process; removed when dropped.
pub struct Folders {
    own: PathBuf,
    /// Held as long as the folder is ours.
    _lock: File,
}

impl Folders {
    /// Makes this process's folder below `root` and removes what dead processes left there.
    ///
    /// # Errors
    /// The folder can't be made, locked or read.
    pub fn open(root: &Path) -> Result<Self, SandboxError> {
        let fail = |what: &'static str, path: &Path| {
            let path = path.display().to_string();
            move |source: io::Error| SandboxError::Folder { what, path, source }
        };
        make(root).map_err(fail("making the folder", root))?;
        // DuckDB compares paths as the file system has them.
        let root = root.canonicalize().map_err(fail("finding the folder", root))?;
        let gate = lock_file(&root).map_err(fail("opening the lock of", &root))?;
        flock(&gate, FlockOperation::LockExclusive).map_err(|errno| fail("locking the folder", &root)(errno.into()))?;
        sweep(&root).map_err(fail("sweeping the folder", &root))?;
        let own = root.join(uuid::Uuid::new_v4().simple().to_string());
        make(&own).map_err(fail("making the folder", &own))?;
        let lock = lock_file(&own).map_err(fail("opening the lock of", &own))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| fail("locking the folder", &own)(errno.into()))?;
        Ok(Self { own, _lock: lock })
    }

    /// Makes a fresh folder for a child.
    ///
    /// # Errors
    /// It can't be made.
    pub fn child(&self) -> Result<PathBuf, SandboxError> {
        self.fresh("query")
    }

    /// Makes a fresh folder for files that are made ready.
    ///
    /// # Errors
    /// It can't be made.
    pub fn staging(&self) -> Result<Staging, SandboxError> {
        self.fresh("staged").map(Staging)
    }

    fn fresh(&self, kind: &str) -> Result<PathBuf, SandboxError> {
        let path = self.own.join(format!("{kind}-{}", uuid::Uuid::new_v4().simple()));
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|source| SandboxError::Folder {
            what: "making the folder",
            path: path.display().to_string(),
            source,
        })?;
        Ok(path)
    }
}

/// A folder in which files are made ready for a child; removed when dropped, with what is left in it.
#[derive(Debug)]
pub struct Staging(PathBuf);

impl Staging {
    /// Takes over a folder that is there.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // A leftover is swept at the next start.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        // A leftover is swept at the next start.
        let _ = fs::remove_dir_all(&self.own);
    }
}

fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn lock_file(folder: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK))
}

/// Removes the folders that nobody holds. One that can't be removed stays; the next start tries again.
fn sweep(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)?.take(SWEPT_MAX) {
        let entry = entry?;
        let named_by_us = entry.file_name().to_str().is_some_and(|name| uuid::Uuid::try_parse(name).is_ok());
        if !named_by_us || !entry.file_type()?.is_dir() {
            continue;
        }
        let held = match File::open(entry.path().join(LOCK)) {
            Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        if !held && let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::warn!(folder = %entry.path().display(), %error, "a leftover of queries can't be removed");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_swept_and_living_folders_stay() {
        let root = tempfile::tempdir().unwrap();
        let living = Folders::open(root.path()).unwrap();
        let child = living.child().unwrap();
        let dead = root.path().join(uuid::Uuid::new_v4().simple().to_string());
        fs::create_dir_all(dead.join("child/t")).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        let foreign = root.path().join("mine");
        fs::create_dir(&foreign).unwrap();
        let second = Folders::open(root.path()).unwrap();
        assert!(child.is_dir() && foreign.is_dir() && !dead.exists());
        drop(living);
        assert!(!child.exists() && second.own.is_dir());
    }
}
