//! Maps I/O errors to the errors of the port.

use std::io;

use crate::ports::store::{Bucket, StoreError};

pub(super) fn not_found(bucket: Bucket, key: &str) -> StoreError {
    StoreError::NotFound { bucket, key: key.to_owned() }
}

pub(super) fn invalid_key(bucket: Bucket, key: &str, reason: impl Into<String>) -> StoreError {
    StoreError::InvalidKey { bucket, key: key.chars().take(1_100).collect(), reason: reason.into() }
}

/// Classifies an I/O error: disk full, access denied, invalid name, or transient.
pub(super) fn store_error(bucket: Bucket, key: &str, operation: &'static str, source: io::Error) -> StoreError {
    let key = key.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull { bucket, key },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::AccessDenied { bucket, key, reason: format!("{operation}: {source}") }
        }
        io::ErrorKind::InvalidFilename => StoreError::InvalidKey {
            bucket,
            key,
            reason: "the file system doesn't support names of this length".to_owned(),
        },
        _ => StoreError::Transient { bucket, key, operation, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn io_errors_are_classified() {
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
