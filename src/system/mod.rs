//! Access to the operating system: temporary folders and lock files of processes, disk space, memory and time-zone data.
//! Also HTTP clients.
//!
//! Must not: know what the folders contain.

pub mod http_client;
mod memory;
pub mod process_folder;
mod process_lock;
pub mod tzdata;

use std::path::Path;

pub use memory::{available_memory, release_memory, total_memory};
pub use process_folder::ProcessFolder;
pub use process_lock::{Holder, ProcessLock};

/// Free bytes on the folder's file system for users other than root; `None` if unknown.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Free and total bytes of the folder's file system, as [`free_bytes`] counts them; `None` if unknown.
pub fn disk_space(folder: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(folder).ok()?;
    let total = found.f_blocks.saturating_mul(found.f_frsize);
    #[cfg(feature = "failpoints")]
    if let Some(free) = crate::runtime::failpoint::number("disk::free_bytes") {
        return Some((free.unsigned_abs(), total));
    }
    Some((found.f_bavail.saturating_mul(found.f_frsize), total))
}
