//! Jobs that filled this worker's scratch folder. They are left to other workers first, whose disks may be larger.

use parking_lot::Mutex;
use std::collections::BTreeMap;

use crate::domain::job::JobId;

/// How often a job is given back before this worker tries it again. With the pauses of [`crate::domain::job::retry`] that
/// is 14 seconds.
const TIMES_MAX: u32 = 3;
/// Jobs that are remembered; beyond it all are forgotten.
const JOBS_MAX: usize = 10_000;

/// How often each was given back.
#[derive(Debug, Default)]
pub(super) struct LeftToOthers(Mutex<BTreeMap<JobId, u32>>);

impl LeftToOthers {
    /// The job filled the scratch folder.
    pub(super) fn add(&self, job: &JobId) {
        let mut jobs = self.0.lock();
        if jobs.len() >= JOBS_MAX && !jobs.contains_key(job) {
            jobs.clear();
        }
        jobs.insert(job.clone(), 0);
    }

    /// Counts from 1 how often the job was given back; `None` if it is to be run here.
    pub(super) fn give_back(&self, job: &JobId) -> Option<u32> {
        let mut jobs = self.0.lock();
        let times = jobs.get_mut(job)?;
        if *times >= TIMES_MAX {
            return None;
        }
        *times += 1;
        Some(*times)
    }

    pub(super) fn forget(&self, job: &JobId) {
        self.0.lock().remove(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_job_that_filled_scratch_is_given_back_and_a_bounded_number_of_times() {
        let (left, job, other) = (LeftToOthers::default(), JobId::mint(), JobId::mint());
        assert_eq!(left.give_back(&job), None);
        left.add(&job);
        assert_eq!((1..=TIMES_MAX).map(|_| left.give_back(&job)).max(), Some(Some(TIMES_MAX)));
        assert_eq!((left.give_back(&job), left.give_back(&other)), (None, None));
        left.add(&job);
        assert_eq!(left.give_back(&job), Some(1), "it filled the folder again");
        left.forget(&job);
        assert_eq!(left.give_back(&job), None);
    }
}
