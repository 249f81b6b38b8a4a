//! Takes entries from the stream, never more than executors are free.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::retrying::Outage;
use super::stopping::Phase;
use super::{Shared, execute, probe};
use crate::ports::jobs::Entry;
use crate::ports::kv::KvResult;
use crate::runtime::WatchedThread;
use crate::runtime::failpoint;
use crate::runtime::threads::Instant;
use crate::sync::Monitor;

/// Longest wait for a new entry: also how long an idle worker takes to notice that it is to end.
const CLAIM_WAIT: Duration = Duration::from_secs(2);
/// How often abandoned entries are looked for, at least and at most.
const RECLAIM_EVERY_MIN: Duration = Duration::from_millis(500);
const RECLAIM_EVERY_MAX: Duration = Duration::from_secs(10);
/// Pause after a failure of the key-value store.
const PAUSE: Duration = Duration::from_secs(1);
/// How often an open circuit breaker is looked at.
const PAUSED_LOOK_EVERY: Duration = Duration::from_millis(250);

/// Hands entries to executors; each first says that it is free.
#[derive(Clone, Default)]
pub(super) struct Slots(Arc<Monitor<Handing>>);

#[derive(Default)]
struct Handing {
    /// Executors that wait, without those for whom an entry lies ready.
    free: usize,
    entries: VecDeque<Entry>,
    is_over: bool,
}

/// No entry will come any more once this is dropped.
struct Claiming(Slots);

impl Drop for Claiming {
    fn drop(&mut self) {
        self.0.0.update(|handing| handing.is_over = true);
    }
}

impl Slots {
    /// The next entry for an executor; `None` if there will be none any more.
    fn next(&self) -> Option<Entry> {
        self.0.update(|handing| handing.free += 1);
        let look = |handing: &mut Handing| match handing.entries.pop_front() {
            Some(entry) => Some(Some(entry)),
            None => handing.is_over.then_some(None),
        };
        self.0.wait(Duration::MAX, look).flatten()
    }

    /// How many executors are free, once one is; 0 if that takes too long.
    fn await_free(&self) -> usize {
        self.0.wait(CLAIM_WAIT, |handing| (handing.free > 0).then_some(handing.free)).unwrap_or(0)
    }

    fn give(&self, entry: Entry) {
        self.0.update(|handing| {
            handing.free -= 1;
            handing.entries.push_back(entry);
        });
    }
}

/// Runs entries until there will be none any more.
pub(super) fn execute_all(shared: &Shared, slots: &Slots) {
    while let Some(entry) = slots.next() {
        let id = entry.id.0.clone();
        if catch_unwind(AssertUnwindSafe(|| execute::execute(shared, entry))).is_err() {
            tracing::error!(entry = id, "handling an entry panicked; it stays claimed and will be tried again");
        }
    }
}

/// Claims until the worker is told to end; then the executors end, once they are done.
pub(super) fn run(shared: &Shared, slots: Slots, watched: &WatchedThread) {
    let claiming = Claiming(slots);
    let slots = &claiming.0;
    let every = (shared.options.lease.reclaim_idle / 4).clamp(RECLAIM_EVERY_MIN, RECLAIM_EVERY_MAX);
    let mut outage = Outage::new("claiming jobs");
    let mut reclaimed_at: Option<Instant> = None;
    while shared.stopping.phase() == Phase::Working {
        watched.ping();
        if !probe::may_claim(shared, watched) {
            shared.stopping.wait_for(Phase::Drain, PAUSED_LOOK_EVERY);
            continue;
        }
        let idle = slots.await_free();
        if idle == 0 {
            continue;
        }
        let reclaim = reclaimed_at.is_none_or(|at| at.elapsed() >= every);
        if reclaim {
            reclaimed_at = Some(Instant::now());
        }
        match watched.waiting(|| take(shared, idle, reclaim)) {
            Ok(taken) => {
                outage.over();
                for entry in taken {
                    failpoint::reach("worker::claimed");
                    slots.give(entry);
                }
            }
            Err(error) => {
                outage.tell(&error);
                shared.stopping.wait_for(Phase::Drain, PAUSE);
            }
        }
    }
}

/// At most `count` entries: those whose owner shows no life first.
fn take(shared: &Shared, count: usize, reclaim: bool) -> KvResult<Vec<Entry>> {
    let name = &shared.options.name;
    if reclaim {
        let found = shared.kv.reclaim(name, count, shared.options.lease.reclaim_idle)?;
        if !found.is_empty() {
            tracing::info!(entries = found.len(), "took over entries whose worker shows no life");
            return Ok(found.into_iter().take(count).collect());
        }
    }
    let found = shared.kv.claim(name, count, CLAIM_WAIT)?;
    Ok(found.into_iter().take(count).collect())
}
