//! The scratch folder of one process.

use std::path::Path;

pub use crate::system::ProcessFolder as Scratch;

/// Bytes that are left on the folder's file system for whoever isn't root; `None` if it doesn't tell.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}
