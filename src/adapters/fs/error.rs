//! Where an operation is, and what an I/O error means there.

use std::io;

use crate::ports::store::{Bucket, StoreError};

use super::folder::Folder;

/// A key, and the folder and path that it stands for.
pub(super) struct Place<'a> {
    pub(super) bucket: Bucket,
    pub(super) key: &'a str,
    pub(super) folder: &'a Folder,
    /// Relative to the folder.
    pub(super) path: &'a str,
}

impl Place<'_> {
    pub(super) fn invalid(&self, reason: impl Into<String>) -> StoreError {
        invalid_key(self.bucket, self.key, reason)
    }

    pub(super) fn not_found(&self) -> StoreError {
        not_found(self.bucket, self.key)
    }

    pub(super) fn precondition_failed(&self) -> StoreError {
        StoreError::PreconditionFailed { bucket: self.bucket, key: self.key.to_owned() }
    }

    pub(super) fn error(&self, operation: &'static str, source: io::Error) -> StoreError {
        store_error(self.bucket, self.key, operation, source)
    }

    /// As [`Place::error`], for an operation that needs the bucket's folder: its absence is told as such.
    pub(super) fn error_or_no_bucket(&self, operation: &'static str, source: io::Error) -> StoreError {
        if source.kind() == io::ErrorKind::NotFound && self.folder.must_exist && !self.folder.dir.is_dir() {
            return self.folder.missing();
        }
        self.error(operation, source)
    }
}

pub(super) fn not_found(bucket: Bucket, key: &str) -> StoreError {
    StoreError::NotFound { bucket, key: key.to_owned() }
}

pub(super) fn invalid_key(bucket: Bucket, key: &str, reason: impl Into<String>) -> StoreError {
    StoreError::InvalidKey { bucket, key: key.chars().take(1_100).collect(), reason: reason.into() }
}

/// Sorts an I/O error: no room, no right, no such name, or worth another try.
pub(super) fn store_error(bucket: Bucket, key: &str, operation: &'static str, source: io::Error) -> StoreError {
    let key = key.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull { bucket, key },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::AccessDenied { bucket, key, reason: format!("{operation}: {source}") }
        }
        io::ErrorKind::InvalidFilename => {
            StoreError::InvalidKey { bucket, key, reason: "the file system takes no name as long".to_owned() }
        }
        _ => StoreError::Transient { bucket, key, operation, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_full_disk_and_missing_rights_are_told_from_what_may_pass() {
        let of = |errno: Errno| store_error(Bucket::Lake, "k", "writing", errno.into());
        assert!(matches!(of(Errno::NOSPC), StoreError::DiskFull { .. }));
        assert!(matches!(of(Errno::DQUOT), StoreError::DiskFull { .. }));
        assert!(matches!(of(Errno::ACCESS), StoreError::AccessDenied { .. }));
        assert!(matches!(of(Errno::PERM), StoreError::AccessDenied { .. }));
        assert!(matches!(of(Errno::ROFS), StoreError::AccessDenied { .. }));
        assert!(matches!(of(Errno::NAMETOOLONG), StoreError::InvalidKey { .. }));
        assert!(matches!(of(Errno::IO), StoreError::Transient { .. }));
    }
}
