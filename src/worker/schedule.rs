//! Serves what is due: debounce windows, waiting jobs, and jobs that the stream has lost.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::retrying::Outage;
use super::state::Happened;
use super::stopping::Phase;
use super::{Shared, config};
use crate::domain::job::message::TRIGGER_AUTO;
use crate::domain::job::{Job, JobMessage};
use crate::domain::name::Slug;
use crate::ports::kv::{KvError, KvResult};
use crate::ports::schedule::Cursor;
use crate::runtime::rfc3339;
use crate::runtime::threads::{self, Instant};
use crate::runtime::{WatchedThread, failpoint};
use crate::sync::Monitor;

/// Due work is served within this time: half of what is promised.
const TICK: Duration = Duration::from_millis(250);
/// Windows and jobs of one step.
const BATCH: usize = 100;
/// Windows that are served at a time, by a thread each. One whose store hangs keeps its thread until the store answers.
const FIRING_MAX: usize = 32;
/// How long those that are being served may take when the worker ends.
const FIRING_END_MAX: Duration = Duration::from_secs(3);
/// How often a piece of the active jobs is looked through for lost ones.
const RESTORE_EVERY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);
/// Pipelines whose window is remembered as logged; beyond it all are forgotten.
const LOGGED_WINDOWS_MAX: usize = 10_000;

/// Serves the windows until the worker is told to end. Each has a thread of its own, since reading a config may hang.
pub(super) fn windows(shared: &Arc<Shared>, watched: &WatchedThread) {
    let firing = Arc::new(Monitor::new(Firing::default()));
    serve(shared, watched, "serving windows that are due", || due_windows(shared, &firing, watched));
    watched.waiting(|| firing.wait(FIRING_END_MAX, |firing| firing.pipelines.is_empty().then_some(())));
}

/// Pipelines whose windows are being served, and why one could not be.
#[derive(Debug, Default)]
struct Firing {
    pipelines: BTreeSet<Slug>,
    failed: Option<KvError>,
}

/// Ends the serving of one window, by a panic too.
struct FiringOf {
    pipeline: Slug,
    all: Arc<Monitor<Firing>>,
}

impl Drop for FiringOf {
    fn drop(&mut self) {
        self.all.update(|firing| firing.pipelines.remove(&self.pipeline));
    }
}

/// Serves the waiting jobs, and looks for lost ones, until the worker is told to end. No store can hold this up.
pub(super) fn waiting(shared: &Shared, watched: &WatchedThread) {
    let mut restoring = Restoring { cursor: Cursor::default(), at: Instant::now() };
    let mut told: Option<Instant> = None;
    serve(shared, watched, "serving jobs that are due", || {
        if told.is_none_or(|at| at.elapsed() >= RESTORE_EVERY) {
            watched.waiting(|| tell_attempts_max(shared))?;
            told = Some(Instant::now());
        }
        let release = || watched.waiting(|| shared.kv.release_due(BATCH));
        while release()? == BATCH && shared.stopping.phase() == Phase::Working {}
        watched.waiting(|| restoring.go_on(shared))
    });
}

fn serve(shared: &Shared, watched: &WatchedThread, what: &'static str, mut step: impl FnMut() -> KvResult<()>) {
    let mut outage = Outage::new(what);
    let mut wait = TICK;
    while !shared.stopping.wait_for(Phase::Drain, wait) {
        watched.ping();
        wait = match step() {
            Ok(()) => {
                outage.over();
                TICK
            }
            Err(error) => {
                outage.tell(&error);
                PAUSE
            }
        };
    }
}

/// Begins to serve what is due. A pipeline whose window is being served is passed over; one for which there is no thread
/// waits for the next step.
fn due_windows(shared: &Arc<Shared>, firing: &Arc<Monitor<Firing>>, watched: &WatchedThread) -> KvResult<()> {
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
        let of = FiringOf { pipeline: slug.clone(), all: Arc::clone(firing) };
        let shared = Arc::clone(shared);
        if let Err(error) = threads::spawn("window", move || serve_window(&shared, &of)) {
            tracing::warn!(pipeline = %slug, %error, "a thread for its window can't be started; trying again");
            break;
        }
    }
    firing.lock().failed.take().map_or(Ok(()), Err)
}

fn serve_window(shared: &Shared, of: &FiringOf) {
    let pipeline = &of.pipeline;
    match catch_unwind(AssertUnwindSafe(|| fire(shared, pipeline))) {
        Ok(Ok(())) => {}
        Ok(Err(error @ KvError::Malformed { .. })) => {
            tracing::warn!(%pipeline, %error, "its window can't be served; the others are");
        }
        Ok(Err(error)) => of.all.lock().failed = Some(error),
        Err(_) => tracing::error!(%pipeline, "serving its window panicked; it is served again"),
    }
}

/// The windows that this process has logged: one line each, however many events extend it.
#[derive(Debug, Default)]
pub(super) struct LoggedWindows(Mutex<BTreeMap<Slug, DateTime<Utc>>>);

impl LoggedWindows {
    /// New files extended a window; its job is logged under the same name.
    pub(super) fn extended(&self, pipeline: &Slug, since: DateTime<Utc>) {
        let window = window_id(pipeline, since);
        if self.is_new(pipeline, since) {
            tracing::info!(%pipeline, window, "new files: the pipeline's window is open");
        } else {
            tracing::debug!(%pipeline, window, "new files: the pipeline's window is extended");
        }
    }

    fn is_new(&self, pipeline: &Slug, since: DateTime<Utc>) -> bool {
        let mut logged = self.0.lock();
        if logged.len() >= LOGGED_WINDOWS_MAX && !logged.contains_key(pipeline) {
            logged.clear();
        }
        logged.insert(pipeline.clone(), since) != Some(since)
    }
}

/// Names a window: no two of a pipeline begin at the same time.
fn window_id(pipeline: &Slug, since: DateTime<Utc>) -> String {
    format!("{pipeline}@{}", rfc3339(since))
}

fn fire(shared: &Shared, slug: &Slug) -> KvResult<()> {
    let text = config::read_text(shared, slug);
    // An event that comes after the pipeline was deleted or renamed must not bring it back.
    let is_gone = text.is_err() && config::is_gone(shared, slug);
    if is_gone || !config::auto_run(&text) {
        if shared.kv.close_window(slug)? {
            let why = if is_gone { "there is no such pipeline" } else { "`auto_run` is false" };
            tracing::info!(pipeline = %slug, why, "new files, but no job");
        }
        return Ok(());
    }
    let message = JobMessage::new(slug.clone(), false, TRIGGER_AUTO, shared.clock.now());
    failpoint::reach("worker::before_fire");
    let job = Job::queued(&message, shared.options.attempts_max);
    // Read before: it is gone with the window.
    let since = shared.kv.window_opened_at(slug)?;
    if shared.kv.fire_window(&job)? {
        failpoint::reach("worker::fired");
        shared.state.count(Happened::Fired);
        let window = since.map(|since| window_id(slug, since));
        tracing::info!(pipeline = %slug, job_id = %message.job_id, window, "new files: a job is queued");
    }
    Ok(())
}

/// Queued jobs show how often this worker starts them, also after the key-value store lost its data.
fn tell_attempts_max(shared: &Shared) -> KvResult<()> {
    let attempts_max = shared.options.attempts_max;
    match shared.kv.attempts_max() {
        Ok(Some(known)) if known == attempts_max => Ok(()),
        // One that can't be read is replaced.
        Ok(_) | Err(KvError::Malformed { .. }) => shared.kv.set_attempts_max(attempts_max),
        Err(error) => Err(error),
    }
}

/// Goes round the active jobs, a piece at a time.
struct Restoring {
    cursor: Cursor,
    at: Instant,
}

impl Restoring {
    fn go_on(&mut self, shared: &Shared) -> KvResult<()> {
        if self.at.elapsed() < RESTORE_EVERY {
            return Ok(());
        }
        let (restored, next) = shared.kv.requeue_lost(&self.cursor)?;
        if restored > 0 {
            tracing::warn!(jobs = restored, "jobs that the stream had lost are back in it");
        }
        self.cursor = next.unwrap_or_default();
        self.at = Instant::now();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_logged_once_however_many_events_extend_it() {
        let (logged, time) = (LoggedWindows::default(), |s| DateTime::from_timestamp(s, 0).unwrap());
        let (one, other) = (Slug::parse("one").unwrap(), Slug::parse("other").unwrap());
        assert!(logged.is_new(&one, time(1)));
        assert!((0..1_000).all(|_| !logged.is_new(&one, time(1))));
        assert!(logged.is_new(&other, time(1)) && logged.is_new(&one, time(2)));
    }
}
