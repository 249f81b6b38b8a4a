//! The two short locks of a write, between threads and processes.
//!
//! A thread waits for other threads of its store on a mutex, then for other processes on a `flock`. Order: key, then fence;
//! never two of the same kind.

use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::domain::name::Slug;
use crate::ports::store::{Bucket, Lease, LeaseLost};
use crate::sync::Backoff;

/// Keys share this many locks.
const KEY_LOCKS: usize = 64;
const FENCE_LOCKS: usize = 16;
/// Longest wait for a `flock` of another process, polled with pauses: it has no blocking wait with a deadline.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(30);
const LOCK_PAUSE_MIN: Duration = Duration::from_micros(100);
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(20);
/// Digits of a fence file: fixed, so that one write in place replaces it.
const FENCE_DIGITS: usize = 20;

/// The locks of a store.
pub(super) struct StoreLocks {
    /// `None` if the store is read-only.
    dir: Option<PathBuf>,
    keys: [Mutex<()>; KEY_LOCKS],
    fences: [Mutex<()>; FENCE_LOCKS],
}

/// A held lock. The file is closed before the mutex is released.
pub(super) struct LockGuard<'a> {
    _file: File,
    _mutex: MutexGuard<'a, ()>,
}

/// Why a fence lock was not acquired.
pub(super) enum FenceError {
    Lost(LeaseLost),
    Io(io::Error),
}

impl From<io::Error> for FenceError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<LeaseLost> for FenceError {
    fn from(lost: LeaseLost) -> Self {
        Self::Lost(lost)
    }
}

impl StoreLocks {
    pub(super) fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, keys: std::array::from_fn(|_| Mutex::new(())), fences: std::array::from_fn(|_| Mutex::new(())) }
    }

    fn path(&self, kind: &str, name: &str) -> io::Result<PathBuf> {
        let dir = self.dir.as_ref().ok_or(io::ErrorKind::ReadOnlyFilesystem)?;
        Ok(dir.join(kind).join(name))
    }

    /// Excludes every other writer and deleter of the key.
    pub(super) fn key(&self, bucket: Bucket, key: &str) -> io::Result<LockGuard<'_>> {
        let index = stripe(&(bucket, key), KEY_LOCKS);
        let mutex = self.keys[index].lock();
        let file = locked(&self.path("locks", &format!("{index:02}"))?)?;
        Ok(LockGuard { _file: file, _mutex: mutex })
    }

    /// Excludes writers of the pipeline while held; rejects a lower fence than the highest that wrote.
    pub(super) fn fence(&self, lease: &dyn Lease) -> Result<LockGuard<'_>, FenceError> {
        let slug = lease.slug().as_str();
        let mutex = self.fences[stripe(slug, FENCE_LOCKS)].lock();
        let path = self.path("fence", slug)?;
        let file = locked(&path)?;
        let highest = read_fence(&file, &path)?;
        if lease.fence() < highest {
            return Err(LeaseLost.into());
        }
        lease.remaining()?;
        if lease.fence() > highest {
            let digits = format!("{:0FENCE_DIGITS$}", lease.fence());
            file.write_all_at(digits.as_bytes(), 0)?;
            file.sync_data()?;
        }
        Ok(LockGuard { _file: file, _mutex: mutex })
    }

    /// The highest fence that wrote for a pipeline; 0 if none did.
    pub(super) fn highest_fence(&self, slug: &Slug) -> io::Result<u64> {
        let path = self.path("fence", slug.as_str())?;
        match File::open(&path) {
            Ok(file) => read_fence(&file, &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }
}

fn stripe(value: &(impl Hash + ?Sized), count: usize) -> usize {
    // Fixed seed: every process of one build uses the same lock for a key.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    (hasher.finish() % count as u64) as usize
}

fn read_fence(file: &File, path: &Path) -> io::Result<u64> {
    let mut digits = [0; FENCE_DIGITS];
    let length = file.read_at(&mut digits, 0)?;
    if length == 0 {
        return Ok(0);
    }
    std::str::from_utf8(&digits[..length])
        .ok()
        .filter(|_| length == FENCE_DIGITS)
        .and_then(|d| d.parse().ok())
        .ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("`{}` contains no fence: remove it", path.display()))
        })
}

/// Opens a lock file, created if missing, and waits for its lock.
fn locked(path: &Path) -> io::Result<File> {
    let file = open_lock(path)?;
    let (start, mut backoff) = (Instant::now(), Backoff::new(LOCK_PAUSE_MIN, LOCK_PAUSE_MAX));
    while start.elapsed() < LOCK_WAIT_MAX {
        if try_flock(&file)? {
            return Ok(file);
        }
        std::thread::sleep(backoff.next_pause());
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("`{}` is locked by another process", path.display())))
}

fn open_lock(path: &Path) -> io::Result<File> {
    let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            open()
        }
        opened => opened,
    }
}

/// Takes the exclusive lock of a file if it is free. Closing the file releases it.
pub(super) fn try_flock(file: &File) -> io::Result<bool> {
    loop {
        return match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(Errno::INTR) => continue,
            Err(errno) => Err(errno.into()),
        };
    }
}
