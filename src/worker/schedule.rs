//! Serves what is due: debounce windows, waiting jobs, and jobs that the stream has lost.

use std::time::Duration;

use super::retrying::Outage;
use super::state::Happened;
use super::stopping::Phase;
use super::{Shared, config};
use crate::domain::job::message::TRIGGER_AUTO;
use crate::domain::job::{Job, JobMessage};
use crate::domain::name::Slug;
use crate::ports::failpoint;
use crate::ports::kv::{KvError, KvResult};
use crate::ports::pace::Instant;
use crate::ports::schedule::Cursor;

/// Due work is served within this time: half of what is promised.
const TICK: Duration = Duration::from_millis(250);
/// Windows and jobs of one step.
const BATCH: usize = 100;
/// How often a piece of the active jobs is looked through for lost ones.
const RESTORE_EVERY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);

/// Serves the windows until the worker is told to end.
pub(super) fn windows(shared: &Shared) {
    serve(shared, "serving windows that are due", || due_windows(shared));
}

/// Serves the waiting jobs, and looks for lost ones, until the worker is told to end. No store can hold this up.
pub(super) fn waiting(shared: &Shared) {
    let mut restoring = Restoring { cursor: Cursor::default(), at: Instant::now() };
    serve(shared, "serving jobs that are due", || {
        while shared.kv.release_due(BATCH)? == BATCH && shared.stopping.phase() == Phase::Working {}
        restoring.go_on(shared)
    });
}

fn serve(shared: &Shared, what: &'static str, mut step: impl FnMut() -> KvResult<()>) {
    let mut outage = Outage::new(what);
    let mut wait = TICK;
    while !shared.stopping.wait_for(Phase::Drain, wait) {
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

fn due_windows(shared: &Shared) -> KvResult<()> {
    loop {
        let due = shared.kv.due_windows(BATCH)?;
        for slug in &due {
            if shared.stopping.phase() != Phase::Working {
                return Ok(());
            }
            match fire(shared, slug) {
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

fn fire(shared: &Shared, slug: &Slug) -> KvResult<()> {
    if !config::auto_run(&config::read_text(shared, slug)) {
        if shared.kv.close_window(slug)? {
            tracing::info!(pipeline = %slug, "new files, but `auto_run` is false: no job");
        }
        return Ok(());
    }
    let message = JobMessage::new(slug.clone(), false, TRIGGER_AUTO, shared.clock.now());
    failpoint::reach("worker::before_fire");
    if shared.kv.fire_window(&Job::queued(&message, shared.options.attempts_max))? {
        failpoint::reach("worker::fired");
        shared.state.count(Happened::Fired);
        tracing::info!(pipeline = %slug, job_id = %message.job_id, "new files: a job is queued");
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
