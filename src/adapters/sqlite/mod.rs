//! The key-value store in one SQLite file, for the processes of one machine.
//!
//! Each step of the ports is one `BEGIN IMMEDIATE` transaction in WAL mode with `synchronous=FULL`: what a call said is
//! on the disk. Any number of processes may use the file at once; network file systems are refused, since their locks
//! and shared memory don't hold.
//!
//! A handle has one connection behind a mutex. SQLite lets one writer in at a time anyway, and threads that queue at a
//! mutex wake at once, where those that queue at the file's lock sleep and look again. Nobody holds the mutex while
//! waiting: a claim waits outside, so heartbeats go on beside it.
//!
//! Must not: do anything but SQL inside a transaction; open the file other than through SQLite, because closing it
//! would take the process's locks on it away.

mod adopt;
mod board;
mod clock;
mod db;
mod entries;
mod error;
mod file;
mod jobs;
mod key_locks;
mod locks;
mod network;
mod queries;
mod queue;
mod rechecks;
mod report;
mod schedule;
mod schema;
mod sessions;
mod start;

use std::path::PathBuf;
use std::sync::Arc;

use crate::ports::kv::KvResult;
use crate::runtime::{Clock, SystemClock};

use db::Db;

/// Where the file is, and whose time it goes by.
#[derive(Clone)]
pub struct SqliteOptions {
    /// Made (with mode 0600), as its folder is (0700), where it is missing.
    pub path: PathBuf,
    pub clock: Arc<dyn Clock>,
}

impl SqliteOptions {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), clock: Arc::new(SystemClock) }
    }
}

/// All ports of the key-value store on one SQLite file. One handle serves all threads of a process.
pub struct SqliteKv {
    db: Db,
}

impl SqliteKv {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// `Refused` if the file lies on a network file system, can't be written or is of a newer version; `Malformed` if it
    /// is no intact file of ours; `Unavailable` if it can't be opened or stays locked.
    pub fn open(options: SqliteOptions) -> KvResult<Self> {
        let db = Db::new(options);
        db.read("open", |_| Ok(()))?;
        Ok(Self { db })
    }
}
