//! Fires debounce windows, enqueues runs that comparisons requested, releases waiting jobs, and requeues jobs that the stream
//! has lost.
//!
//! A requested run is enqueued once this worker has an idle executor for it and no job is queued: so at most as many of
//! them are queued as there are idle executors, and each job of another kind is before the rest.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::claim::ExecutorQueue;
use super::config;
use super::retry::OutageLog;
use super::shared::WorkerShared;
use super::state::{JobEvent, window_id};
use super::stopping::Phase;
use crate::domain::job::message::TRIGGER_AUTO;
use crate::domain::job::{Job, JobMessage, RunErrorCode};
use crate::domain::name::Slug;
use crate::ports::kv::{KvError, KvResult};
use crate::ports::schedule::{CloseReason, Cursor};
use crate::runtime::threads::{self, Instant};
use crate::runtime::{WatchedThread, failpoint};
use crate::sync::Monitor;

/// Polling interval for due work: half of the documented delay.
const TICK: Duration = Duration::from_millis(250);
/// Windows and jobs per step.
const BATCH: usize = 100;
/// Maximum number of windows being fired, each on its own thread, which a hanging store may block.
const FIRING_MAX: usize = 32;
/// How long firing windows may take when the worker stops.
const FIRING_END_MAX: Duration = Duration::from_secs(3);
/// Interval at which a batch of the active jobs is checked for lost ones.
const REQUEUE_LOST_EVERY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);
/// How often the number of requested runs is logged while there are any.
const REQUESTS_LOGGED_EVERY: Duration = Duration::from_secs(60);

/// Fires due windows and enqueues requested runs until the worker stops. Each has its own thread, since reading a config may
/// hang.
pub(super) fn windows(shared: &Arc<WorkerShared>, executors: &ExecutorQueue, watched: &WatchedThread) {
    let firing = Arc::new(Monitor::new(Firing::default()));
    let mut requests = Requests::default();
    repeat(shared, watched, "firing due windows", || {
        due_windows(shared, &firing, watched)?;
        requests.enqueue(shared, &firing, executors, watched)
    });
    watched.waiting(|| firing.wait(FIRING_END_MAX, |firing| firing.pipelines.is_empty().then_some(())));
}

/// Pipelines whose windows are being fired, and the last error.
#[derive(Debug, Default)]
struct Firing {
    pipelines: BTreeSet<Slug>,
    failed: Option<KvError>,
}

/// Removes a pipeline from those that are being fired when dropped.
struct FiringGuard {
    pipeline: Slug,
    all: Arc<Monitor<Firing>>,
}

impl Drop for FiringGuard {
    fn drop(&mut self) {
        self.all.update(|firing| firing.pipelines.remove(&self.pipeline));
    }
}

/// Releases waiting jobs and requeues lost ones until the worker stops. Never waits for the object store.
pub(super) fn waiting(shared: &WorkerShared, watched: &WatchedThread) {
    let mut lost = LostJobs { cursor: Cursor::default(), at: Instant::now() };
    let mut published: Option<Instant> = None;
    repeat(shared, watched, "releasing due jobs", || {
        if published.is_none_or(|at| at.elapsed() >= REQUEUE_LOST_EVERY) {
            watched.waiting(|| publish_attempts_max(shared))?;
            published = Some(Instant::now());
        }
        let release = || watched.waiting(|| shared.kv.release_due(BATCH));
        while release()? == BATCH && shared.stopping.phase() == Phase::Working {}
        watched.waiting(|| lost.requeue(shared))
    });
}

fn repeat(shared: &WorkerShared, watched: &WatchedThread, what: &'static str, mut step: impl FnMut() -> KvResult<()>) {
    let mut outage = OutageLog::new(what);
    let mut wait = TICK;
    while !shared.stopping.wait_for(Phase::Drain, wait) {
        watched.ping();
        wait = match step() {
            Ok(()) => {
                outage.recovered();
                TICK
            }
            Err(error) => {
                outage.failed(&error);
                PAUSE
            }
        };
    }
}

/// Starts firing due windows.
fn due_windows(shared: &Arc<WorkerShared>, firing: &Arc<Monitor<Firing>>, watched: &WatchedThread) -> KvResult<()> {
    let due = watched.waiting(|| shared.kv.due_windows(BATCH))?;
    fire_all(shared, firing, watched, due, fire)
}

/// Runs requested by comparisons.
#[derive(Debug, Default)]
struct Requests {
    /// When their number was logged.
    logged: Option<Instant>,
}

impl Requests {
    /// Starts enqueueing requested runs for idle executors, if no job is queued.
    fn enqueue(
        &mut self,
        shared: &Arc<WorkerShared>,
        firing: &Arc<Monitor<Firing>>,
        executors: &ExecutorQueue,
        watched: &WatchedThread,
    ) -> KvResult<()> {
        let idle = executors.idle(shared.options.automatic_max()).automatic;
        if idle == 0 || !shared.state.breakers.are_closed() || shared.stopping.phase() != Phase::Working {
            return Ok(());
        }
        let counts = watched.waiting(|| shared.kv.counts())?;
        if counts.requested == 0 {
            if self.logged.take().is_some() {
                tracing::info!("no runs requested by comparisons are left");
            }
            return Ok(());
        }
        if counts.stream > counts.pending {
            return Ok(());
        }
        if self.logged.is_none_or(|at| at.elapsed() >= REQUESTS_LOGGED_EVERY) {
            self.logged = Some(Instant::now());
            tracing::info!(left = counts.requested, "enqueueing runs requested by comparisons");
        }
        let requested = watched.waiting(|| shared.kv.requested_runs(idle))?;
        fire_all(shared, firing, watched, requested, enqueue_requested)
    }
}

/// Calls `fire` for each pipeline on its own thread. Skips pipelines for which one runs; without a free thread, the rest
/// waits for the next step.
fn fire_all(
    shared: &Arc<WorkerShared>,
    firing: &Arc<Monitor<Firing>>,
    watched: &WatchedThread,
    pipelines: Vec<Slug>,
    fire: fn(&WorkerShared, &Slug) -> KvResult<()>,
) -> KvResult<()> {
    for slug in pipelines {
        if shared.stopping.phase() != Phase::Working {
            return Ok(());
        }
        let begin = |firing: &mut Firing| match firing.pipelines.len() < FIRING_MAX {
            true => Some(firing.pipelines.insert(slug.clone())),
            false => None,
        };
        match watched.waiting(|| firing.wait(TICK, begin)) {
            Some(true) => {}
            Some(false) => continue,
            None => break,
        }
        let guard = FiringGuard { pipeline: slug.clone(), all: Arc::clone(firing) };
        let shared = Arc::clone(shared);
        if let Err(error) = threads::spawn("window", move || fire_guarded(&shared, &guard, fire)) {
            tracing::warn!(pipeline = %slug, %error, "starting a thread for the window failed; retrying");
            break;
        }
    }
    firing.lock().failed.take().map_or(Ok(()), Err)
}

fn fire_guarded(shared: &WorkerShared, guard: &FiringGuard, fire: fn(&WorkerShared, &Slug) -> KvResult<()>) {
    let pipeline = &guard.pipeline;
    match catch_unwind(AssertUnwindSafe(|| fire(shared, pipeline))) {
        Ok(Ok(())) => {}
        Ok(Err(error @ KvError::Malformed { .. })) => {
            tracing::warn!(%pipeline, %error, "firing the window failed; others continue");
        }
        Ok(Err(error)) => guard.all.lock().failed = Some(error),
        Err(_) => tracing::error!(%pipeline, "firing the window panicked; will retry"),
    }
}

/// Why a pipeline has no automatic runs. A late event must not recreate one that was deleted or renamed.
fn has_no_runs(shared: &WorkerShared, slug: &Slug) -> Option<(CloseReason, &'static str)> {
    let text = config::read_text(shared, slug);
    let without_config = text.as_ref().is_err_and(|error| error.code == RunErrorCode::PipelineConfigNotFound);
    if without_config && config::is_gone(shared, slug) {
        return Some((CloseReason::PipelineGone, "the pipeline does not exist"));
    }
    (!config::auto_run(&text)).then_some((CloseReason::AutoRunOff, "`auto_run` is false"))
}

fn enqueue_requested(shared: &WorkerShared, slug: &Slug) -> KvResult<()> {
    if let Some((_, why)) = has_no_runs(shared, slug) {
        if shared.kv.withdraw_request(slug)? {
            tracing::info!(pipeline = %slug, why, "requested run withdrawn");
        }
        return Ok(());
    }
    let message = JobMessage::new(slug.clone(), false, TRIGGER_AUTO, shared.clock.now());
    failpoint::reach("worker::before_request");
    if shared.kv.enqueue_requested(&Job::queued(&message, shared.options.attempts_max))? {
        failpoint::reach("worker::requested");
        tracing::info!(pipeline = %slug, job_id = %message.job_id, "run requested by a comparison; job enqueued");
    }
    Ok(())
}

fn fire(shared: &WorkerShared, slug: &Slug) -> KvResult<()> {
    if let Some((reason, why)) = has_no_runs(shared, slug) {
        if shared.kv.close_window(slug, reason)? {
            tracing::info!(pipeline = %slug, why, "new files ignored");
        }
        return Ok(());
    }
    let message = JobMessage::new(slug.clone(), false, TRIGGER_AUTO, shared.clock.now());
    failpoint::reach("worker::before_fire");
    let job = Job::queued(&message, shared.options.attempts_max);
    // Read first, since it is deleted with the window.
    let since = shared.kv.window_opened_at(slug)?;
    if shared.kv.fire_window(&job)? {
        failpoint::reach("worker::fired");
        shared.state.count(JobEvent::Fired);
        let window = since.map(|since| window_id(slug, since));
        tracing::info!(pipeline = %slug, job_id = %message.job_id, window, "new files; job enqueued");
    }
    Ok(())
}

/// Publishes the maximum of attempts, which queued jobs show, also after the key-value store lost its data.
fn publish_attempts_max(shared: &WorkerShared) -> KvResult<()> {
    let attempts_max = shared.options.attempts_max;
    match shared.kv.attempts_max() {
        Ok(Some(known)) if known == attempts_max => Ok(()),
        // A malformed value is replaced.
        Ok(_) | Err(KvError::Malformed { .. }) => shared.kv.set_attempts_max(attempts_max),
        Err(error) => Err(error),
    }
}

/// Checks the active jobs in a cycle, a batch at a time.
struct LostJobs {
    cursor: Cursor,
    at: Instant,
}

impl LostJobs {
    fn requeue(&mut self, shared: &WorkerShared) -> KvResult<()> {
        if self.at.elapsed() < REQUEUE_LOST_EVERY {
            return Ok(());
        }
        let (requeued, next) = shared.kv.requeue_lost(&self.cursor)?;
        if requeued > 0 {
            tracing::warn!(jobs = requeued, "requeued jobs that the stream had lost");
        }
        self.cursor = next.unwrap_or_default();
        self.at = Instant::now();
        Ok(())
    }
}
