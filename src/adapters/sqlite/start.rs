//! The start of a claimed job.

use std::time::Duration;

use rusqlite::params;

use crate::domain::job::{Job, JobMessage, Waiting, retry};
use crate::ports::jobs::{Held, Start, StartRequest, Started};

use super::db::Step;
use super::error::Outcome;
use super::jobs::{self, after, time};
use super::{entries, locks};

pub(super) fn start(step: &Step<'_>, request: &StartRequest<'_>) -> Outcome<Started> {
    let StartRequest { entry, consumer, message, lock_ttl, fence_floor, attempts_max } = *request;
    let JobMessage { job_id, pipeline, .. } = message;
    let Some(number) = entries::pending_for(step, entry, consumer)? else { return Ok(Started::NotMine) };
    let lock = locks::current(step, pipeline)?;
    if lock.as_ref().is_some_and(|lock| lock.job_id.as_deref() == Some(job_id.as_str())) {
        return Ok(Started::RunningElsewhere);
    }
    if is_dropped(step, message)? {
        entries::remove(step, number)?;
        step.run("DELETE FROM jobs WHERE job_id = ?1 AND pipeline = ?2", [job_id.as_str(), pipeline.as_str()])?;
        return Ok(Started::Dropped);
    }
    let job = known(step, message, number, attempts_max)?;
    if let Some(lock) = lock {
        let left = Duration::from_millis(lock.expires.abs_diff(step.now));
        let due = after(step.now, retry::defer_delay(left));
        entries::remove(step, number)?;
        jobs::wait(step, &job, due, Waiting::PipelineBusy)?;
        return Ok(Started::Deferred { until: time(due) });
    }
    let (token, fence) = locks::take(step, pipeline, Some(job_id), lock_ttl, fence_floor)?;
    entries::show_life(step, entry, consumer)?;
    let (attempt, lost_starts, cancelled) = step
        .sql(
            "UPDATE jobs SET attempts = attempts + 1, lost = lost + (running IS NOT NULL), running = ?2, entry = ?3,
                 due_ms = NULL, reason = NULL, deferred_ms = NULL, publishing = 0
             WHERE job_id = ?1 RETURNING attempts, lost, cancel",
        )?
        .query_row(params![job_id.as_str(), fence.cast_signed(), number], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let live = jobs::text(&job.started(consumer, fence, attempt, time(step.now)))?;
    step.run("UPDATE jobs SET live = ?2 WHERE job_id = ?1", params![job_id.as_str(), live])?;
    let held = Held {
        job_id: job_id.clone(),
        pipeline: pipeline.clone(),
        entry: entry.clone(),
        consumer: consumer.to_owned(),
        token,
        fence,
    };
    Ok(Started::Running(Start { held, attempt, lost_starts, cancelled }))
}

/// The pipeline was deleted or renamed after the job was enqueued, or its id is that of another pipeline's job.
fn is_dropped(step: &Step<'_>, message: &JobMessage) -> Outcome<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM tombstones WHERE pipeline = ?1 AND marked_ms >= ?2 AND expires_ms > ?3)
               OR EXISTS (SELECT 1 FROM jobs WHERE job_id = ?4 AND pipeline <> ?1)";
    let enqueued = message.enqueued_at.timestamp_millis();
    let params = params![message.pipeline.as_str(), enqueued, step.now, message.job_id.as_str()];
    Ok(step.sql(sql)?.query_row(params, |row| row.get(0))?)
}

/// The job as it was last shown; where it has no row, because somebody else wrote the entry, makes it. Another entry
/// of the job is no longer needed.
fn known(step: &Step<'_>, message: &JobMessage, entry: i64, attempts_max: u32) -> Outcome<Job> {
    match jobs::find(step, &message.job_id)? {
        Some(active) => {
            if let Some(other) = active.entry.filter(|other| *other != entry) {
                entries::remove(step, other)?;
            }
            Ok(jobs::unended(active.live()?))
        }
        None => {
            let job = Job::queued(message, attempts_max);
            jobs::insert(step, &job, Some(entry))?;
            Ok(job)
        }
    }
}
