//! Counts refunded attempts per job, so that a job that always fails still ends.

use parking_lot::Mutex;
use std::collections::BTreeMap;

use crate::domain::job::JobId;

/// Maximum number of refunds of one job by this process.
const REFUNDS_MAX: u32 = 10;
/// Jobs whose refunds are counted; beyond it all counts are reset.
const REFUNDED_JOBS_MAX: usize = 10_000;

/// Refunded attempts by job.
#[derive(Debug, Default)]
pub(super) struct Refunds(Mutex<BTreeMap<JobId, u32>>);

impl Refunds {
    /// Counts a refund, from 1; `None` if the job has had [`REFUNDS_MAX`].
    pub(super) fn take(&self, job: &JobId) -> Option<u32> {
        let mut refunds = self.0.lock();
        if refunds.len() >= REFUNDED_JOBS_MAX && !refunds.contains_key(job) {
            refunds.clear();
        }
        let count = refunds.entry(job.clone()).or_default();
        if *count >= REFUNDS_MAX {
            return None;
        }
        *count += 1;
        Some(*count)
    }

    pub(super) fn forget(&self, job: &JobId) {
        self.0.lock().remove(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_is_refunded_a_bounded_number_of_times() {
        let (refunds, job) = (Refunds::default(), JobId::mint());
        assert_eq!((1..=REFUNDS_MAX).map(|_| refunds.take(&job)).max(), Some(Some(REFUNDS_MAX)));
        assert_eq!(refunds.take(&job), None);
        assert_eq!(refunds.take(&JobId::mint()), Some(1), "jobs are counted separately");
        refunds.forget(&job);
        assert_eq!(refunds.take(&job), Some(1));
    }
}
