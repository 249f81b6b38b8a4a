//! The scratch folder of one process.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

const LOCK_TRIES_MAX: u32 = 10;

/// A folder of this process's own below a shared one; gone when dropped. What dead processes left beside it is removed
/// when it is made.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    lock_path: PathBuf,
    /// Locked as long as the process lives.
    _lock: File,
}

impl Scratch {
    /// Makes `root` (for its owner alone) if it is missing, and `root/<name>`.
    ///
    /// # Errors
    /// If a folder can't be made or locked.
    pub fn make(root: &Path, name: &str) -> io::Result<Self> {
        let folder = |path: &Path, deep| std::fs::DirBuilder::new().mode(0o700).recursive(deep).create(path);
        folder(root, true)?;
        sweep(root);
        let lock_path = root.join(format!("{name}.lock"));
        let lock = lock_file(&lock_path)?;
        let path = root.join(name);
        folder(&path, false)?;
        Ok(Self { path, lock_path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
        let _ = std::fs::remove_file(&self.lock_path);
    }
}

/// Bytes that are left on the folder's file system for whoever isn't root; `None` if it doesn't tell.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Makes the file and locks it. A sweep of another process may take it away in between; then again.
fn lock_file(path: &Path) -> io::Result<File> {
    for _ in 0..LOCK_TRIES_MAX {
        let lock = File::create(path)?;
        let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        let same = |found: std::fs::Metadata| lock.metadata().is_ok_and(|own| own.ino() == found.ino());
        if locked && std::fs::metadata(path).is_ok_and(same) {
            return Ok(lock);
        }
    }
    Err(io::Error::other(format!("`{}` is locked by another process", path.display())))
}

/// Removes the folders of processes that are dead: those whose lock can be had. What can't be removed is left.
fn sweep(root: &Path) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    for lock_path in
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "lock"))
    {
        let Ok(lock) = File::open(&lock_path) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = std::fs::remove_dir_all(lock_path.with_extension(""));
            let _ = std::fs::remove_file(&lock_path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_are_swept_and_those_of_the_living_stay() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("scratch");
        let living = Scratch::make(&root, "living").unwrap();
        std::fs::write(living.path().join("x"), "x").unwrap();
        std::fs::create_dir(root.join("dead")).unwrap();
        std::fs::write(root.join("dead/run"), "x").unwrap();
        File::create(root.join("dead.lock")).unwrap();
        let other = Scratch::make(&root, "other").unwrap();
        assert!(living.path().join("x").exists() && !root.join("dead").exists() && !root.join("dead.lock").exists());
        drop((living, other));
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
    }
}
