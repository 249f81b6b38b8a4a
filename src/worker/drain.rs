//! Ends a worker that runs until nothing is left to do.
//!
//! Nothing is left once no debounce window is open, no run is requested, no job is queued, waiting or running here, and since
//! then no source of work had anything new. What waits for the end of a pause doesn't count. A job that another worker has claimed doesn't count, but it may be that of a dead one: the worker
//! stays for the time after which it would take that job over.

use std::time::Duration;

use super::shared::WorkerShared;
use crate::domain::job::WaitReason;
use crate::ports::kv::KvResult;
use crate::runtime::threads::Instant;

/// Active jobs of a paused pipeline that are looked at.
const ACTIVE_MAX: usize = 1_000;

/// Finds out whether anything is left to do.
#[derive(Debug, Default)]
pub(super) struct DrainCheck {
    /// Since when this worker has had nothing to do.
    idle_since: Option<Instant>,
}

impl DrainCheck {
    /// Whether nothing is left to do. Called between two claims; `are_executors_idle`: no claimed entry is being
    /// executed. `reclaim_every`: the interval of checks for entries of dead workers.
    pub(super) fn is_done(
        &mut self,
        shared: &WorkerShared,
        are_executors_idle: bool,
        reclaim_every: Duration,
    ) -> KvResult<bool> {
        // Before the counts: a source records its work before it is empty.
        let are_empty = self.idle_since.is_some_and(|since| shared.sources.are_empty_since(since));
        let counts = shared.kv.counts()?;
        let mut is_idle = are_executors_idle && counts.stream.saturating_sub(counts.pending) == 0;
        if is_idle && (counts.windows > 0 || counts.waiting > 0 || counts.requested > 0) {
            is_idle = of_paused(shared)? == (counts.windows, counts.waiting, counts.requested);
        }
        if !is_idle {
            self.idle_since = None;
            return Ok(false);
        }
        let idle = self.idle_since.get_or_insert_with(Instant::now).elapsed();
        let may_be_of_dead = counts.pending > 0 && idle < shared.options.lease.reclaim_idle + 2 * reclaim_every;
        Ok(are_empty && !may_be_of_dead)
    }
}

/// Windows, waiting jobs and requested runs of paused pipelines.
fn of_paused(shared: &WorkerShared) -> KvResult<(u64, u64, u64)> {
    let (mut windows, mut waiting, mut requested) = (0, 0, 0);
    for (pipeline, _) in shared.kv.pauses()?.pipelines {
        windows += u64::from(shared.kv.window_due_at(&pipeline)?.is_some());
        requested += u64::from(shared.kv.is_run_requested(&pipeline)?);
        let jobs = shared.kv.active(&pipeline, ACTIVE_MAX)?;
        waiting += jobs.iter().filter(|job| job.reason == Some(WaitReason::Paused)).count() as u64;
    }
    Ok((windows, waiting, requested))
}
