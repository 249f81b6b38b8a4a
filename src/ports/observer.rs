//! How a run tells its progress and hears that it must stop.

use crate::domain::job::{Progress, RunErrorCode};

/// Why a run must end before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Cancelled,
    LeaseLost,
    /// The worker is told to end now; the job goes back to the queue.
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

/// Watches one run. Called from any thread of the run.
pub trait RunObserver: Send + Sync {
    /// Takes the counters as they are now. Must return quickly: it is called after every chunk.
    fn progress(&self, progress: &Progress);

    /// Asked between pieces of work.
    ///
    /// # Errors
    /// The reason for which the run must stop; it then starts no further write.
    fn check(&self) -> Result<(), Stop>;

    /// Asked once, before the first table is published; after it the run can't be cancelled.
    ///
    /// # Errors
    /// As [`RunObserver::check`].
    fn begin_publishing(&self) -> Result<(), Stop> {
        self.check()
    }

    /// Asked right before a write that commits something: may ask the holder of locks whether the lease still stands,
    /// and take its time for it.
    ///
    /// # Errors
    /// As [`RunObserver::check`].
    fn confirm(&self) -> Result<(), Stop> {
        self.check()
    }
}
