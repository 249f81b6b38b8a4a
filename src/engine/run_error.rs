//! Converts errors of the store and of scratch to run errors.

use std::io;
use std::path::Path;

use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::table_log::root::ManifestError;
use crate::pipelines::tables::{TableError, log_of};
use crate::ports::store::StoreError;

/// Converts a store error to a run error that names the object.
pub fn store_error(error: StoreError) -> RunError {
    let message = error.to_string();
    let (code, path, advice) = match error {
        StoreError::BucketNotFound { name, .. } => {
            (RunErrorCode::BucketNotFound, Some(name), Some("create the bucket, or correct its name"))
        }
        StoreError::AccessDenied { key, .. } => {
            (RunErrorCode::AccessDenied, Some(key), Some("check the credentials and their permissions on the bucket"))
        }
        StoreError::DiskFull { key, .. } => (RunErrorCode::DiskFull, Some(key), Some("free some space")),
        StoreError::LeaseLost(_) => (RunErrorCode::LeaseLost, None, None),
        StoreError::PreconditionFailed { key, .. } => {
            (RunErrorCode::LeaseLost, Some(key), Some("another writer changed it after this run planned"))
        }
        StoreError::InvalidKey { key, .. } => (RunErrorCode::Internal, Some(key), None),
        StoreError::NotFound { key, .. } | StoreError::Transient { key, .. } => {
            (RunErrorCode::S3Error, Some(key), None)
        }
    };
    RunError { code, message, detail: advice.map(str::to_owned), path }
}

/// An error of a table's manifest as run error.
pub fn table_error(error: TableError) -> RunError {
    match error {
        TableError::Store(error) => store_error(error),
        TableError::Manifest { key, error: error @ ManifestError::Newer { .. } } => {
            RunError::new(RunErrorCode::Internal, error.to_string())
                .path(key)
                .detail("run it with that version or a later one")
        }
        TableError::Log { format, ref key, .. } => {
            let (key, log) = (key.clone(), log_of(format));
            RunError::new(RunErrorCode::Internal, error.to_string()).path(key).detail(format!(
                "the {log} doesn't agree with the manifest: `lakemill verify --repair` marks it, so that the next run rewrites it"
            ))
        }
        TableError::Catalog { .. } => RunError::new(RunErrorCode::Internal, error.to_string()).detail(
            "the table itself is up to date: drop it from the catalog, without its files, and the next run registers it",
        ),
        TableError::Manifest { ref key, .. } | TableError::Shard { ref key, .. } => {
            let key = key.clone();
            RunError::new(RunErrorCode::Internal, error.to_string())
                .path(key)
                .detail("do a clean run, which rebuilds the manifest")
        }
    }
}

/// An I/O error on a scratch file.
pub fn scratch_error(path: &Path, error: &io::Error) -> RunError {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let code = if full { RunErrorCode::DiskFull } else { RunErrorCode::Internal };
    let error = RunError::new(code, format!("scratch `{}`: {error}", path.display()));
    if full { error.detail("free some space there, or use a larger disk") } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::store::{Bucket, LeaseLost};

    #[test]
    fn store_errors_keep_their_object_and_map_to_codes() {
        let bucket = Bucket::Warehouse;
        let key = || "pipelines/x/t/part-00000.parquet".to_owned();
        let transient = io::Error::other("connection reset");
        for (error, code, path) in [
            (StoreError::NotFound { bucket, key: key() }, RunErrorCode::S3Error, Some(key())),
            (StoreError::PreconditionFailed { bucket, key: key() }, RunErrorCode::LeaseLost, Some(key())),
            (
                StoreError::AccessDenied { bucket, key: key(), reason: "no".into() },
                RunErrorCode::AccessDenied,
                Some(key()),
            ),
            (StoreError::DiskFull { bucket, key: key() }, RunErrorCode::DiskFull, Some(key())),
            (StoreError::LeaseLost(LeaseLost), RunErrorCode::LeaseLost, None),
            (
                StoreError::BucketNotFound { bucket, name: "svc-lake".into() },
                RunErrorCode::BucketNotFound,
                Some("svc-lake".into()),
            ),
            (
                StoreError::Transient { bucket, key: key(), operation: "PUT", source: transient },
                RunErrorCode::S3Error,
                Some(key()),
            ),
        ] {
            let error = store_error(error);
            assert_eq!((error.code, error.path), (code, path), "{}", error.message);
        }
    }
}
