//! How runs fail.

use crate::domain::job::RunError;
use crate::engine::run_error::store_error;
use crate::ports::observer::Stop;
use crate::ports::store::StoreError;

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct RunFailure {
    pub error: RunError,
    /// Some tables may be published, partly or fully; the next run repairs them.
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
    /// The same failure after writes may have been made.
    pub(super) fn partially(mut self) -> Self {
        const PARTIALLY_PUBLISHED: &str = "partially published; the next run repairs it";
        if !self.partially_published {
            let detail = self.error.detail.take();
            self.error.detail =
                Some(detail.map_or(PARTIALLY_PUBLISHED.to_owned(), |d| format!("{d}. {PARTIALLY_PUBLISHED}")));
            self.partially_published = true;
        }
        self
    }
}

/// The error of a run that had to stop.
pub fn stopped(stop: Stop) -> RunError {
    let message = match stop {
        Stop::Cancelled => "the run was cancelled",
        Stop::LeaseLost => "the lease of the run was lost",
        Stop::WorkerStopping => "the worker is stopping",
    };
    RunError::new(stop.code(), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::RunErrorCode;

    #[test]
    fn partial_publish_is_reported_once() {
        let failure = RunFailure::from(RunError::new(RunErrorCode::S3Error, "m").detail("d"));
        let failure = failure.partially().partially();
        assert_eq!(failure.error.detail.as_deref(), Some("d. partially published; the next run repairs it"));
        assert!(failure.partially_published);
    }
}
