//! Fires debounce windows, releases waiting jobs, and requeues jobs that the stream has lost.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

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

/// Fires due windows until the worker stops. Each has its own thread, since reading a config may hang.
pub(super) fn windows(shared: &Arc<WorkerShared>, watched: &WatchedThread) {
    let firing = Arc::new(Monitor::new(Firing::default()));
    repeat(shared, watched, "firing due windows", || due_windows(shared, &firing, watched));
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

/// Starts firing due windows. Skips pipelines whose window is being fired; without a free thread, the rest waits for the
/// next step.
fn due_windows(shared: &Arc<WorkerShared>, firing: &Arc<Monitor<Firing>>, watched: &WatchedThread) -> KvResult<()> {
    for slug in watched.waiting(|| shared.kv.due_windows(BATCH))? {
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
        if let Err(error) = threads::spawn("window", move || fire_guarded(&shared, &guard)) {
            tracing::warn!(pipeline = %slug, %error, "starting a thread for the window failed; retrying");
            break;
        }
    }
    firing.lock().failed.take().map_or(Ok(()), Err)
}

fn fire_guarded(shared: &WorkerShared, guard: &FiringGuard) {
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

fn fire(shared: &WorkerShared, slug: &Slug) -> KvResult<()> {
    let text = config::read_text(shared, slug);
    // A late event must not recreate a pipeline that was deleted or renamed.
    let without_config = text.as_ref().is_err_and(|error| error.code == RunErrorCode::PipelineConfigNotFound);
    let is_gone = without_config && config::is_gone(shared, slug);
    if is_gone || !config::auto_run(&text) {
        let reason = if is_gone { CloseReason::PipelineGone } else { CloseReason::AutoRunOff };
        if shared.kv.close_window(slug, reason)? {
            let why = if is_gone { "the pipeline does not exist" } else { "`auto_run` is false" };
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
