//! Files to provide, deadlines and errors of the cache.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use crate::domain::digest::sha256_hex;
use crate::ports::store::StoreError;

/// A file that a query will read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedFile {
    /// The key of an immutable object.
    pub key: String,
    /// Hex.
    pub sha256: String,
    pub size: u64,
    /// Target path, in an existing folder on the file system of the cache.
    pub into: PathBuf,
}

impl RequestedFile {
    /// The file's name in the cache.
    pub(super) fn name(&self) -> Name {
        Name(sha256_hex(format!("{}\n{}", self.key, self.sha256).as_bytes()), self.size)
    }
}

/// The name of a file in the cache: a hash, and its size in bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub(super) String, pub(super) u64);

/// When a query gives up: at a deadline, or when it is cancelled.
#[derive(Clone, Copy)]
pub struct Deadline<'a> {
    pub until: Instant,
    pub stopped: &'a (dyn Fn() -> bool + Sync),
}

/// Why files can't be provided.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("the query reads {needed} bytes; the cache holds {bytes_max}")]
    TooLarge { needed: u64, bytes_max: u64 },
    /// Other queries occupied the cache during the whole wait.
    #[error("the cache is occupied by other queries")]
    Busy,
    /// The object was deleted, or isn't the one that the manifest names.
    #[error("`{key}` is missing or was replaced by another program")]
    Gone { key: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{what} `{}`: {source}", .path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("the query was cancelled while its files were fetched")]
    Stopped,
    #[error("timed out while fetching the query's files")]
    TimedOut,
}

impl Deadline<'_> {
    /// # Errors
    /// [`CacheError::Stopped`], [`CacheError::TimedOut`].
    pub fn check(&self) -> Result<(), CacheError> {
        if (self.stopped)() {
            return Err(CacheError::Stopped);
        }
        if Instant::now() >= self.until { Err(CacheError::TimedOut) } else { Ok(()) }
    }
}
