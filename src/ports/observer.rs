//! Progress reports and cancellation of a run.

use crate::domain::job::{Progress, RunErrorCode};

/// Why a run must stop early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Cancelled,
    LeaseLost,
    /// The worker is shutting down; the job is requeued.
    WorkerStopping,
}

impl Stop {
    pub fn code(self) -> RunErrorCode {
        match self {
            Self::Cancelled => RunErrorCode::Cancelled,
            Self::LeaseLost => RunErrorCode::LeaseLost,
            Self::WorkerStopping => RunErrorCode::WorkerStopping,
        }
    }
}

/// Observes one run. Called from any thread of the run.
pub trait RunObserver: Send + Sync {
    /// Reports the counters. Must return quickly: it is called after every chunk.
    fn progress(&self, progress: &Progress);

    /// Called between units of work.
    ///
    /// # Errors
    /// Why the run must stop; it then starts no further write.
    fn check(&self) -> Result<(), Stop>;

    /// Called once before the first table is published; after it the run can't be cancelled.
    ///
    /// # Errors
    /// Same as for [`RunObserver::check`].
    fn begin_publishing(&self) -> Result<(), Stop> {
        self.check()
    }

    /// Called right before a write that commits something: may verify the lease with the key-value store.
    ///
    /// # Errors
    /// Same as for [`RunObserver::check`].
    fn confirm(&self) -> Result<(), Stop> {
        self.check()
    }
}
