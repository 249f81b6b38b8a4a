//! How a run ends badly: the one place where errors of the store and of scratch become errors of a run.

use std::io;
use std::path::{Path, PathBuf};

use crate::domain::job::{RunError, RunErrorCode};
use crate::ports::observer::Stop;
use crate::ports::store::StoreError;

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct RunFailure {
    pub error: RunError,
    /// Some tables may be partly or wholly published; the next run repairs them.
    pub partially_published: bool,
}

impl From<RunError> for RunFailure {
    fn from(error: RunError) -> Self {
        Self { error, partially_published: false }
    }
}

impl From<StoreError> for RunFailure {
    fn from(error: StoreError) -> Self {
        store_error(error).into()
    }
}

impl RunFailure {
    /// The same failure, once writes may have been made.
    pub(super) fn partially(mut self) -> Self {
        const SAYING: &str = "partially published; the next run repairs it";
        if !self.partially_published {
            let detail = self.error.detail.take();
            self.error.detail = Some(detail.map_or(SAYING.to_owned(), |d| format!("{d}. {SAYING}")));
            self.partially_published = true;
        }
        self
    }
}

/// An error of the store as the error of a run, with the object it is about.
pub fn store_error(error: StoreError) -> RunError {
    let message = error.to_string();
    let (code, path, advice) = match error {
        StoreError::BucketNotFound { name, .. } => {
            (RunErrorCode::BucketNotFound, Some(name), Some("create the bucket, or correct its name"))
        }
        StoreError::AccessDenied { key, .. } => {
            (RunErrorCode::AccessDenied, Some(key), Some("check the credentials and what they may do on the bucket"))
        }
        StoreError::DiskFull { key, .. } => (RunErrorCode::DiskFull, Some(key), Some("free some space")),
        StoreError::LeaseLost(_) => (RunErrorCode::LeaseLost, None, None),
        StoreError::PreconditionFailed { key, .. } => {
            (RunErrorCode::LeaseLost, Some(key), Some("someone else wrote it since this run planned"))
        }
        StoreError::InvalidKey { key, .. } => (RunErrorCode::Internal, Some(key), None),
        StoreError::NotFound { key, .. } | StoreError::Transient { key, .. } => {
            (RunErrorCode::S3Error, Some(key), None)
        }
    };
    RunError { code, message, detail: advice.map(str::to_owned), path }
}

pub(super) fn stopped(stop: Stop) -> RunError {
    let message = match stop {
        Stop::Cancelled => "the run was cancelled",
        Stop::LeaseLost => "the lease on the run is lost",
    };
    RunError::new(stop.code(), message)
}

/// An error of the local file system on a file of the run's own.
pub(super) fn scratch_error(path: &Path, error: &io::Error) -> RunError {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let code = if full { RunErrorCode::DiskFull } else { RunErrorCode::Internal };
    let error = RunError::new(code, format!("scratch `{}`: {error}", path.display()));
    if full { error.detail("free some space there, or use a larger disk") } else { error }
}

pub(super) fn make_folder(path: &Path) -> Result<PathBuf, RunError> {
    std::fs::create_dir_all(path).map_err(|e| scratch_error(path, &e))?;
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::store::{Bucket, LeaseLost};

    #[test]
    fn errors_of_the_store_keep_their_object_and_say_whether_another_try_helps() {
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

    #[test]
    fn a_partial_publish_says_so_once() {
        let failure = RunFailure::from(RunError::new(RunErrorCode::S3Error, "m").detail("d"));
        let failure = failure.partially().partially();
        assert_eq!(failure.error.detail.as_deref(), Some("d. partially published; the next run repairs it"));
        assert!(failure.partially_published);
    }
}
