//! Wakes the claims of a handle when it puts something into the stream.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Counts what came; those who wait look at the count first, so that nothing slips by.
#[derive(Default)]
pub(super) struct Wake {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Wake {
    pub(super) fn count(&self) -> u64 {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notify(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Until the count is no longer `seen`, but for `timeout` at most.
    pub(super) fn wait(&self, seen: u64, timeout: Duration) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        // Poisoned or timed out: the caller looks again either way.
        let _ = self.changed.wait_timeout_while(count, timeout, |count| *count == seen);
    }
}
