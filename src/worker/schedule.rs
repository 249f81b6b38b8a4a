//! Serves what is due: debounce windows, waiting jobs, and jobs that the stream has lost.

use std::time::{Duration, Instant};

use super::retrying::Outage;
use super::state::Happened;
use super::stopping::Phase;
use super::{Shared, config};
use crate::domain::job::message::TRIGGER_AUTO;
use crate::domain::job::{Job, JobMessage};
use crate::domain::name::Slug;
use crate::ports::failpoint;
use crate::ports::kv::KvResult;
use crate::ports::schedule::Cursor;

/// Due work is served within this time: half of what is promised.
const TICK: Duration = Duration::from_millis(250);
/// Windows and jobs of one step.
const BATCH: usize = 100;
/// How often a piece of the active jobs is looked through for lost ones.
const RESTORE_EVERY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);

/// Serves until the worker is told to end.
pub(super) fn run(shared: &Shared) {
    let mut outage = Outage::new("serving what is due");
    let mut restoring = Restoring { cursor: Cursor::default(), at: Instant::now() };
    let mut wait = TICK;
    while !shared.stopping.wait_for(Phase::Drain, wait) {
        let served = windows(shared).and_then(|()| waiting(shared)).and_then(|()| restoring.go_on(shared));
        wait = match served {
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

fn windows(shared: &Shared) -> KvResult<()> {
    loop {
        let due = shared.kv.due_windows(BATCH)?;
        for slug in &due {
            fire(shared, slug)?;
        }
        if due.len() < BATCH || shared.stopping.phase() != Phase::Working {
            return Ok(());
        }
    }
}

fn fire(shared: &Shared, slug: &Slug) -> KvResult<()> {
    if !config::auto_run(shared, slug) {
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

fn waiting(shared: &Shared) -> KvResult<()> {
    while shared.kv.release_due(BATCH)? == BATCH && shared.stopping.phase() == Phase::Working {}
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
