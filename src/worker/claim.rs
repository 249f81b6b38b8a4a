//! Claims entries from the stream, never more than there are idle executors: a worker holds no job that another could start.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::drain::DrainCheck;
use super::retry::OutageLog;
use super::shared::WorkerShared;
use super::stopping::Phase;
use super::{execute, probe};
use crate::domain::job::JobMessage;
use crate::ports::jobs::{ClaimLimits, Entry};
use crate::ports::kv::{KvError, KvResult};
use crate::runtime::WatchedThread;
use crate::runtime::failpoint;
use crate::runtime::threads::Instant;
use crate::sync::Monitor;

/// Longest wait for a new entry, and so for an idle worker to notice a stop.
const CLAIM_WAIT: Duration = Duration::from_secs(2);
/// The same for a worker that ends once nothing is left to do.
const CLAIM_WAIT_DRAINING: Duration = Duration::from_millis(500);
/// The same while some idle executors take no automatic jobs: one of the others may become idle.
const CLAIM_WAIT_LIMITED: Duration = Duration::from_millis(250);
/// Bounds of the interval at which abandoned entries are reclaimed.
const RECLAIM_EVERY_MIN: Duration = Duration::from_millis(500);
const RECLAIM_EVERY_MAX: Duration = Duration::from_secs(10);
/// Pause after a failure of the key-value store.
const PAUSE: Duration = Duration::from_secs(1);
/// How often open circuit breakers are checked.
const PAUSED_CHECK_EVERY: Duration = Duration::from_millis(250);

/// How often a worker looks whether all pipelines are paused.
const ALL_PAUSED_CHECK_EVERY: Duration = Duration::from_secs(2);

/// Whether all pipelines are paused, as found at the last check.
#[derive(Default)]
struct AllPaused {
    checked: Option<Instant>,
    is_paused: bool,
}

impl AllPaused {
    fn check(&mut self, shared: &WorkerShared) -> KvResult<bool> {
        if self.checked.is_none_or(|at| at.elapsed() >= ALL_PAUSED_CHECK_EVERY) {
            let found = shared.kv.paused(None)?;
            match &found {
                Some(pause) if !self.is_paused => {
                    tracing::info!(since = %pause.since, reason = pause.reason, "all pipelines are paused; claims paused");
                }
                None if self.is_paused => tracing::info!("pause of all pipelines ended; claims resumed"),
                _ => {}
            }
            (self.checked, self.is_paused) = (Some(Instant::now()), found.is_some());
            shared.state.set_all_paused(self.is_paused);
        }
        Ok(self.is_paused)
    }
}

/// Passes claimed entries to idle executors.
#[derive(Clone, Default)]
pub(super) struct ExecutorQueue(Arc<Monitor<Queued>>);

#[derive(Default)]
struct Queued {
    /// Waiting executors without a queued entry.
    idle: usize,
    /// Executors that run an automatic job, or have its entry queued.
    automatic: usize,
    entries: VecDeque<Entry>,
    is_closed: bool,
}

/// Counts the automatic job of an executor until dropped.
struct AutomaticGuard<'a>(&'a ExecutorQueue);

impl Drop for AutomaticGuard<'_> {
    fn drop(&mut self) {
        self.0.0.update(|queued| queued.automatic -= 1);
    }
}

/// Closes the queue when dropped.
struct CloseGuard(ExecutorQueue);

impl Drop for CloseGuard {
    fn drop(&mut self) {
        self.0.0.update(|queued| queued.is_closed = true);
    }
}

impl ExecutorQueue {
    /// Waits for the next entry; `None` once the queue is closed.
    fn next(&self) -> Option<Entry> {
        self.0.update(|queued| queued.idle += 1);
        let next = |queued: &mut Queued| match queued.entries.pop_front() {
            Some(entry) => Some(Some(entry)),
            None => queued.is_closed.then_some(None),
        };
        self.0.wait(Duration::MAX, next).flatten()
    }

    /// Waits up to [`CLAIM_WAIT`] for an idle executor.
    fn wait_for_idle(&self) -> bool {
        self.0.wait(CLAIM_WAIT, |queued| (queued.idle > 0).then_some(())).is_some()
    }

    /// The idle executors, and how many of them may take automatic jobs if at most `automatic_max` may run.
    pub(super) fn idle(&self, automatic_max: usize) -> ClaimLimits {
        let queued = self.0.lock();
        let automatic = automatic_max.saturating_sub(queued.automatic).min(queued.idle);
        ClaimLimits { entries: queued.idle, automatic }
    }

    /// Whether none of the executors has an entry.
    fn are_idle(&self, executors: usize) -> bool {
        let queued = self.0.lock();
        queued.entries.is_empty() && queued.idle == executors
    }

    fn push(&self, entry: Entry) {
        self.0.update(|queued| {
            queued.idle -= 1;
            queued.automatic += usize::from(is_automatic(&entry));
            queued.entries.push_back(entry);
        });
    }
}

fn is_automatic(entry: &Entry) -> bool {
    let fields = entry.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    JobMessage::parse(fields, entry.received_at).message().is_some_and(|message| message.is_automatic())
}

/// Executes entries until the queue is closed.
pub(super) fn execute_all(shared: &WorkerShared, queue: &ExecutorQueue) {
    while let Some(entry) = queue.next() {
        let _automatic = is_automatic(&entry).then(|| AutomaticGuard(queue));
        let id = entry.id.0.clone();
        if catch_unwind(AssertUnwindSafe(|| execute::execute(shared, entry))).is_err() {
            tracing::error!(entry = id, "executing an entry panicked; entry stays claimed, will retry");
        }
    }
}

/// Claims entries until the worker stops, then closes the queue.
pub(super) fn run(shared: &WorkerShared, queue: ExecutorQueue, watched: &WatchedThread) {
    let guard = CloseGuard(queue);
    let queue = &guard.0;
    let every = (shared.options.lease.reclaim_idle / 4).clamp(RECLAIM_EVERY_MIN, RECLAIM_EVERY_MAX);
    let mut outage = OutageLog::new("claiming jobs");
    let mut reclaimed_at: Option<Instant> = None;
    let ends = shared.options.lifetime.ends();
    let mut drain = DrainCheck::default();
    let mut all_paused = AllPaused::default();
    while shared.stopping.phase() == Phase::Working {
        watched.ping();
        if !probe::may_claim(shared, watched) {
            shared.stopping.wait_for(Phase::Drain, PAUSED_CHECK_EVERY);
            continue;
        }
        match watched.waiting(|| all_paused.check(shared)) {
            Ok(false) => {}
            Ok(true) if ends => {
                tracing::info!("all pipelines are paused; worker ends");
                shared.state.set_drained();
                shared.stopping.enter(Phase::Drain);
                continue;
            }
            Ok(true) => {
                shared.stopping.wait_for(Phase::Drain, PAUSED_CHECK_EVERY);
                continue;
            }
            Err(error) => {
                outage.failed(&error);
                shared.stopping.wait_for(Phase::Drain, PAUSE);
                continue;
            }
        }
        if !queue.wait_for_idle() {
            continue;
        }
        let idle = queue.idle(shared.options.automatic_max());
        let reclaim = reclaimed_at.is_none_or(|at| at.elapsed() >= every);
        if reclaim {
            reclaimed_at = Some(Instant::now());
        }
        let is_drained = |taken: &[Entry], drain: &mut DrainCheck| match ends && taken.is_empty() {
            true => drain.is_done(shared, queue.are_idle(shared.options.concurrency), every),
            false => Ok(false),
        };
        let taken = watched.waiting(|| {
            let taken = take(shared, idle, reclaim)?;
            Ok::<_, KvError>((is_drained(&taken, &mut drain), taken))
        });
        match taken {
            Ok((drained, taken)) => {
                match drained {
                    Ok(true) => {
                        tracing::info!("nothing left to do; worker ends");
                        shared.state.set_drained();
                        shared.stopping.enter(Phase::Drain);
                    }
                    Ok(false) => outage.recovered(),
                    Err(error) => outage.failed(&error),
                }
                for entry in taken {
                    failpoint::reach("worker::claimed");
                    queue.push(entry);
                }
            }
            Err(error) => {
                outage.failed(&error);
                shared.stopping.wait_for(Phase::Drain, PAUSE);
            }
        }
    }
}

/// Entries for idle executors, first those whose worker stopped sending heartbeats, of any kind.
fn take(shared: &WorkerShared, idle: ClaimLimits, reclaim: bool) -> KvResult<Vec<Entry>> {
    let (name, count) = (&shared.options.name, idle.entries);
    if reclaim {
        let found = shared.kv.reclaim(name, count, shared.options.lease.reclaim_idle)?;
        if !found.is_empty() {
            tracing::info!(entries = found.len(), "reclaimed entries of workers without heartbeat");
            return Ok(found.into_iter().take(count).collect());
        }
    }
    let wait = match shared.options.lifetime.ends() {
        _ if idle.automatic < count => CLAIM_WAIT_LIMITED,
        true => CLAIM_WAIT_DRAINING,
        false => CLAIM_WAIT,
    };
    let found = shared.kv.claim(name, idle, wait)?;
    Ok(found.into_iter().take(count).collect())
}
