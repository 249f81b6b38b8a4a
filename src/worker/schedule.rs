//! Serves what is due: debounce windows, waiting jobs, and jobs that the stream has lost.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::retrying::Outage;
use super::state::Happened;
use super::stopping::Phase;
use super::{Shared, config};
use crate::domain::job::message::TRIGGER_AUTO;
use crate::domain::job::{Job, JobMessage};
use crate::domain::name::Slug;
use crate::ports::clock::rfc3339;
use crate::ports::kv::{KvError, KvResult};
use crate::ports::pace::Instant;
use crate::ports::schedule::Cursor;
use crate::ports::{Pulse, failpoint};

/// Due work is served within this time: half of what is promised.
const TICK: Duration = Duration::from_millis(250);
/// Windows and jobs of one step.
const BATCH: usize = 100;
/// How often a piece of the active jobs is looked through for lost ones.
const RESTORE_EVERY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);
/// Pipelines whose window is remembered as logged; beyond it all are forgotten.
const LOGGED_WINDOWS_MAX: usize = 10_000;

/// Serves the windows until the worker is told to end.
pub(super) fn windows(shared: &Shared, pulse: &Pulse) {
    serve(shared, pulse, "serving windows that are due", || due_windows(shared, pulse));
}

/// Serves the waiting jobs, and looks for lost ones, until the worker is told to end. No store can hold this up.
pub(super) fn waiting(shared: &Shared, pulse: &Pulse) {
    let mut restoring = Restoring { cursor: Cursor::default(), at: Instant::now() };
    serve(shared, pulse, "serving jobs that are due", || {
        let release = || pulse.waiting(|| shared.kv.release_due(BATCH));
        while release()? == BATCH && shared.stopping.phase() == Phase::Working {}
        pulse.waiting(|| restoring.go_on(shared))
    });
}

fn serve(shared: &Shared, pulse: &Pulse, what: &'static str, mut step: impl FnMut() -> KvResult<()>) {
    let mut outage = Outage::new(what);
    let mut wait = TICK;
    while !shared.stopping.wait_for(Phase::Drain, wait) {
        pulse.beat();
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

fn due_windows(shared: &Shared, pulse: &Pulse) -> KvResult<()> {
    loop {
        let due = pulse.waiting(|| shared.kv.due_windows(BATCH))?;
        for slug in &due {
            if shared.stopping.phase() != Phase::Working {
                return Ok(());
            }
            match fire(shared, pulse, slug) {
                Err(error @ KvError::Malformed { .. }) => {
                    tracing::warn!(pipeline = %slug, %error, "its window can't be served; the others are");
                }
                served => served?,
            }
        }
        if due.len() < BATCH {
            return Ok(());
        }
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
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

fn fire(shared: &Shared, pulse: &Pulse, slug: &Slug) -> KvResult<()> {
    let text = pulse.waiting(|| config::read_text(shared, slug));
    // An event that comes after the pipeline was deleted or renamed must not bring it back.
    let is_gone = text.is_err() && pulse.waiting(|| config::is_gone(shared, slug));
    if is_gone || !config::auto_run(&text) {
        if pulse.waiting(|| shared.kv.close_window(slug))? {
            let why = if is_gone { "there is no such pipeline" } else { "`auto_run` is false" };
            tracing::info!(pipeline = %slug, why, "new files, but no job");
        }
        return Ok(());
    }
    let message = JobMessage::new(slug.clone(), false, TRIGGER_AUTO, shared.clock.now());
    failpoint::reach("worker::before_fire");
    let job = Job::queued(&message, shared.options.attempts_max);
    // Read before: it is gone with the window.
    let since = pulse.waiting(|| shared.kv.window_since(slug))?;
    if pulse.waiting(|| shared.kv.fire_window(&job))? {
        failpoint::reach("worker::fired");
        shared.state.count(Happened::Fired);
        let window = since.map(|since| window_id(slug, since));
        tracing::info!(pipeline = %slug, job_id = %message.job_id, window, "new files: a job is queued");
    }
    Ok(())
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
        let (restored, next) = shared.kv.restore(&self.cursor)?;
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
