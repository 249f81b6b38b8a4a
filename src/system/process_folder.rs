//! Folders of one process: removed when dropped or, after a crash, when a process creates the next one in the same parent.
//!
//! A folder `<name>` has a sibling file `<name>.lock`, which its process keeps locked; the kernel releases the lock
//! when the process dies.
//!
//! Invariant: a folder exists only while its lock file does, and is removed only under its lock. So the folder of a living
//! process is never removed, and a folder without a lock file is kept.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

/// Attempts to create a lock file: another process may remove it before it is locked.
const LOCK_TRIES_MAX: u32 = 10;
/// Random characters of a name in a folder shared with other programs.
const RANDOM_CHARS: usize = 12;
/// Entries that one sweep examines.
const SWEPT_MAX: usize = 100_000;
const LOCK: &str = "lock";

/// A folder that is removed when dropped; its lock file shows other processes that it is in use.
#[derive(Debug)]
pub struct ProcessFolder {
    path: PathBuf,
    lock_path: PathBuf,
    /// Locked while the process lives.
    _lock: File,
}

impl ProcessFolder {
    /// Creates `root` (accessible to its owner only) if it is missing, removes folders of dead processes there, and creates
    /// `root/<name>`.
    ///
    /// # Errors
    /// A folder can't be created, or its lock file can't be created or locked.
    pub fn make(root: &Path, name: &str) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).recursive(true).create(root)?;
        Self::make_in(root, "", name)
    }

    /// Like [`ProcessFolder::make`], in a folder shared with other programs, such as the one for temporary files: with
    /// a random name after `prefix`, and removing only folders with that prefix.
    ///
    /// # Errors
    /// Same as for [`ProcessFolder::make`].
    pub fn make_shared(root: &Path, prefix: &str) -> io::Result<Self> {
        let random = uuid::Uuid::new_v4().simple().to_string();
        Self::make_in(root, prefix, &format!("{prefix}{}", &random[..RANDOM_CHARS]))
    }

    fn make_in(root: &Path, prefix: &str, name: &str) -> io::Result<Self> {
        sweep_prefix(root, prefix);
        let lock_path = root.join(format!("{name}.{LOCK}"));
        let lock = lock_file(&lock_path)?;
        let path = root.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, lock_path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ProcessFolder {
    fn drop(&mut self) {
        // Folders that can't be removed now are removed by the next process.
        if std::fs::remove_dir_all(&self.path).is_ok() {
            let _ = std::fs::remove_file(&self.lock_path);
        }
    }
}

/// Creates and locks the file; retries if a sweep of another process removes it in between.
fn lock_file(path: &Path) -> io::Result<File> {
    for _ in 0..LOCK_TRIES_MAX {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(no_follow());
        let lock = options.open(path)?;
        let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        let same = |found: std::fs::Metadata| lock.metadata().is_ok_and(|own| own.ino() == found.ino());
        if locked && std::fs::metadata(path).is_ok_and(same) {
            return Ok(lock);
        }
    }
    Err(io::Error::other(format!("`{}` is locked by another process", path.display())))
}

/// Other users may put links and pipes into a shared folder.
fn no_follow() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}

/// Removes the folders of dead processes in `root`. A later sweep retries those that can't be removed.
pub fn sweep(root: &Path) {
    sweep_prefix(root, "");
}

fn sweep_prefix(root: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    for entry in entries.flatten().take(SWEPT_MAX) {
        let (name, lock_path) = (entry.file_name(), entry.path());
        let ours = name.to_str().is_some_and(|name| name.starts_with(prefix));
        if ours && lock_path.extension().is_some_and(|extension| extension == LOCK) {
            remove_if_dead(&lock_path);
        }
    }
}

fn remove_if_dead(lock_path: &Path) {
    let Ok(lock) = OpenOptions::new().read(true).custom_flags(no_follow()).open(lock_path) else { return };
    let own = |found: std::fs::Metadata| found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
    if !lock.metadata().is_ok_and(own) || flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    let folder = lock_path.with_extension("");
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(folder = %folder.display(), %error, "removing the folder of a dead process failed");
        }
        Ok(()) | Err(_) => {
            let _ = std::fs::remove_file(lock_path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(root: &Path, name: &str) {
        std::fs::create_dir(root.join(name)).unwrap();
        std::fs::write(root.join(name).join("x"), "x").unwrap();
        File::create(root.join(format!("{name}.lock"))).unwrap();
    }

    #[test]
    fn folders_of_dead_processes_are_removed_and_others_kept() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("scratch");
        let living = ProcessFolder::make(&root, "living").unwrap();
        std::fs::write(living.path().join("x"), "x").unwrap();
        dead(&root, "dead.host-1");
        std::fs::create_dir(root.join("foreign")).unwrap();
        let other = ProcessFolder::make(&root, "other").unwrap();
        assert!(living.path().join("x").exists() && root.join("foreign").exists());
        assert!(!root.join("dead.host-1").exists() && !root.join("dead.host-1.lock").exists());
        drop((living, other));
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 1);
    }

    #[test]
    fn sweep_of_a_shared_folder_keeps_other_names_and_links() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        dead(root, "lakemill-x-dead");
        dead(root, "other-dead");
        std::fs::write(root.join("target"), "x").unwrap();
        std::os::unix::fs::symlink(root.join("target"), root.join("lakemill-x-link.lock")).unwrap();
        let folder = ProcessFolder::make_shared(root, "lakemill-x-").unwrap();
        assert!(folder.path().is_dir() && !root.join("lakemill-x-dead").exists());
        assert!(root.join("other-dead/x").exists() && root.join("target").exists());
        assert!(root.join("lakemill-x-link.lock").is_symlink());
        drop(folder);
        let left: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 4, "{left:?}");
    }

    #[test]
    fn folder_is_accessible_to_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let folder = ProcessFolder::make(&home.path().join("a/b"), "c").unwrap();
        for path in [folder.path(), &home.path().join("a/b")] {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
    }
}
