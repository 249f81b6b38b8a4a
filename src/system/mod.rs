//! What the operating system gives a process: folders that are removed with it, locks that are released with it, room on
//! disks, and newer time-zone data.
//!
//! Must not: know what the folders hold.

pub mod process_folder;
mod process_lock;
pub mod tzdata;

use std::path::Path;

pub use process_folder::ProcessFolder;
pub use process_lock::{Holder, ProcessLock};

/// Bytes that are left on the folder's file system for whoever isn't root; `None` if it doesn't tell.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}
