//! The order in which queued jobs are claimed: those that a person or a program requested before automatic ones, each the
//! oldest first.
//!
//! So that automatic jobs don't wait without end, at most [`MANUAL_PREFERRED_MAX`] manual ones in a row are claimed before
//! an older automatic one.

use crate::domain::limits::MANUAL_PREFERRED_MAX;

/// The order of one process's claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClaimOrder {
    /// How many manual jobs in a row were claimed before an older automatic one.
    preferred: u32,
}

impl ClaimOrder {
    /// Continues after `preferred` manual jobs.
    pub fn after(preferred: u32) -> Self {
        Self { preferred }
    }

    pub fn preferred(self) -> u32 {
        self.preferred
    }

    /// Whether the next job is the oldest automatic one, if both kinds wait.
    pub fn is_automatic_next(&mut self, is_automatic_older: bool) -> bool {
        let is_automatic = is_automatic_older && self.preferred >= MANUAL_PREFERRED_MAX;
        self.preferred = if is_automatic || !is_automatic_older { 0 } else { self.preferred + 1 };
        is_automatic
    }

    /// One kind of job waits.
    pub fn reset(&mut self) {
        self.preferred = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_five_jobs_is_automatic_while_older_automatic_jobs_wait() {
        let mut order = ClaimOrder::default();
        let first: Vec<bool> = (0..10).map(|_| order.is_automatic_next(true)).collect();
        let turn = [false, false, false, false, true];
        assert_eq!(first, [turn, turn].concat());
    }

    #[test]
    fn newer_automatic_jobs_wait_for_older_manual_ones() {
        let mut order = ClaimOrder::default();
        assert!((0..100).all(|_| !order.is_automatic_next(false)));
        // They begin to count once an automatic one is older.
        assert!(!order.is_automatic_next(true));
        assert_eq!(order.preferred(), 1);
        order.reset();
        assert_eq!(order, ClaimOrder::after(0));
    }
}
