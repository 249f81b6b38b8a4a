//! A file lock that is held until the process ends, even if it is killed.
//!
//! It is a POSIX record lock. A forked child holds a `flock` of its parent until it executes another program, so the
//! lock of a killed process would stay taken for a moment; record locks are not inherited. They have two pitfalls: a
//! process is granted a second one, and loses its lock when it closes any descriptor of the file. So locked files are
//! registered, and none of them is opened again.
//!
//! Must not: be used for files that a sweep opens to check whether their owner lives: the owner's own sweep would
//! release its lock.

use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

/// Longest text read of a holder, in bytes.
const TEXT_BYTES_MAX: u64 = 4_096;

/// Device and inode of each file that this process has locked.
static HELD: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// A locked file; unlocked when dropped.
#[derive(Debug)]
pub struct ProcessLock {
    id: (u64, u64),
    /// `None` only while dropping.
    file: Option<File>,
}

/// Another process, or another part of this one, holds the lock.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    /// The start of the file; by convention its first line is the process id.
    pub text: String,
}

impl ProcessLock {
    /// Locks the file, created with `mode` if missing. Doesn't wait.
    ///
    /// # Errors
    /// The file can't be opened, or its file system has no locks.
    pub fn try_acquire(path: &Path, mode: u32) -> io::Result<Result<Self, Holder>> {
        let mut held = HELD.lock();
        let id = |found: std::fs::Metadata| (found.dev(), found.ino());
        if std::fs::metadata(path).is_ok_and(|found| held.contains(&id(found))) {
            return Ok(Err(Holder { text: std::process::id().to_string() }));
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(mode).open(path)?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK | Errno::ACCESS) => {
                let mut text = Vec::new();
                file.take(TEXT_BYTES_MAX).read_to_end(&mut text)?;
                return Ok(Err(Holder { text: String::from_utf8_lossy(&text).into_owned() }));
            }
            Err(error) => return Err(error.into()),
        }
        let id = id(file.metadata()?);
        held.push(id);
        Ok(Ok(Self { id, file: Some(file) }))
    }

    /// The locked file. A clone of it must not be closed before the lock is.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        // Closed under the mutex; otherwise closing could release a lock that another thread has taken meanwhile.
        let mut held = HELD.lock();
        held.retain(|id| *id != self.id);
        self.file = None;
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn acquire(path: &Path) -> Result<ProcessLock, Holder> {
        ProcessLock::try_acquire(path, 0o600).unwrap()
    }

    #[test]
    fn lock_is_exclusive_even_within_a_process() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let first = acquire(&path).unwrap();
        assert_eq!(acquire(&path).unwrap_err().text, std::process::id().to_string());
        assert!(acquire(&home.path().join("other")).is_ok());
        drop(first);
        assert!(acquire(&path).is_ok());
    }

    #[test]
    fn child_with_the_file_open_does_not_hold_the_lock() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let lock = acquire(&path).unwrap();
        let inherited = lock.file().unwrap().try_clone().unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(inherited).spawn().unwrap();
        drop(lock);
        let again = acquire(&path);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(again.is_ok(), "{again:?}");
    }
}
