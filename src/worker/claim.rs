//! Takes entries from the stream, never more than executors are free.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::retrying::Outage;
use super::stopping::Phase;
use super::{Shared, execute};
use crate::ports::Pulse;
use crate::ports::failpoint;
use crate::ports::jobs::Entry;
use crate::ports::kv::KvResult;
use crate::ports::store::{Bucket, StoreError};

/// Longest wait for a new entry: also how long an idle worker takes to notice that it is to end.
const CLAIM_WAIT: Duration = Duration::from_secs(2);
/// How often abandoned entries are looked for, at least and at most.
const RECLAIM_EVERY_MIN: Duration = Duration::from_millis(500);
const RECLAIM_EVERY_MAX: Duration = Duration::from_secs(10);
/// Pause after a failure of the key-value store.
const PAUSE: Duration = Duration::from_secs(1);
/// Pause after the store refused a look at the pipelines bucket.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);

/// Hands entries to executors; each first says that it is free.
pub(super) struct Slots {
    entries: (Sender<Entry>, Receiver<Entry>),
    free: (Sender<()>, Receiver<()>),
}

/// An executor's end.
pub(super) struct Entries {
    next: Receiver<Entry>,
    free: Sender<()>,
}

impl Slots {
    pub(super) fn new(executors: usize) -> Self {
        Self { entries: bounded(executors), free: bounded(executors) }
    }

    pub(super) fn entries(&self) -> Entries {
        Entries { next: self.entries.1.clone(), free: self.free.0.clone() }
    }
}

/// Runs entries until there will be none any more.
pub(super) fn execute_all(shared: &Shared, entries: &Entries) {
    while entries.free.send(()).is_ok() {
        let Ok(entry) = entries.next.recv() else { return };
        let id = entry.id.0.clone();
        if catch_unwind(AssertUnwindSafe(|| execute::execute(shared, entry))).is_err() {
            tracing::error!(entry = id, "handling an entry panicked; it stays claimed and will be tried again");
        }
    }
}

/// Claims until the worker is told to end; then the executors end, once they are done.
pub(super) fn run(shared: &Shared, slots: Slots, pulse: &Pulse) {
    let Slots { entries: (sender, receiver), free: (free_sender, free) } = slots;
    // Only executors may hold these ends, or the channels would never close.
    drop((receiver, free_sender));
    let every = (shared.options.lease.reclaim_idle / 4).clamp(RECLAIM_EVERY_MIN, RECLAIM_EVERY_MAX);
    let mut outage = Outage::new("claiming jobs");
    let mut refusal = Outage::new("looking at the pipelines bucket");
    let mut reclaimed_at: Option<Instant> = None;
    let mut idle = 0;
    while shared.stopping.phase() == Phase::Working {
        pulse.beat();
        if !pulse.waiting(|| may_claim(shared, &mut refusal)) {
            shared.stopping.wait_for(Phase::Drain, REFUSED_PAUSE);
            continue;
        }
        if idle == 0 {
            match free.recv_timeout(CLAIM_WAIT) {
                Ok(()) => idle = 1,
                Err(crossbeam_channel::RecvTimeoutError::Timeout) => continue,
                Err(crossbeam_channel::RecvTimeoutError::Disconnected) => return,
            }
        }
        idle += free.try_iter().count();
        let reclaim = reclaimed_at.is_none_or(|at| at.elapsed() >= every);
        if reclaim {
            reclaimed_at = Some(Instant::now());
        }
        match pulse.waiting(|| take(shared, idle, reclaim)) {
            Ok(taken) => {
                outage.over();
                for entry in taken {
                    failpoint::reach("worker::claimed");
                    idle -= 1;
                    if sender.send(entry).is_err() {
                        return;
                    }
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

/// Whether a job's end could be recorded: a worker with a wrong key or a mistyped bucket must take no job from those who
/// could run it. A store that is away for a while is no reason; retries are for that.
fn may_claim(shared: &Shared, refusal: &mut Outage) -> bool {
    if !shared.refused.load(Ordering::SeqCst) {
        return true;
    }
    match shared.store.list(Bucket::Pipelines, "pipelines/", Some('/'), None, 1) {
        Ok(_) => refusal.over(),
        Err(error @ (StoreError::AccessDenied { .. } | StoreError::BucketNotFound { .. })) => {
            refusal.tell(&format_args!("{error}; no job is claimed until this is mended"));
            return false;
        }
        Err(_) => {}
    }
    shared.refused.store(false, Ordering::SeqCst);
    true
}
