//! Starts a claimed job.

use std::time::Duration;

use rusqlite::{OptionalExtension as _, params};

use crate::domain::job::{Job, JobMessage, WaitReason, retry};
use crate::ports::jobs::{JobLease, StartOutcome, StartRequest, StartedJob};

use super::db::KvTransaction;
use super::error::StepResult;
use super::jobs;
use super::units::{after, time};
use super::{claim, entries, locks};

pub(super) fn start(step: &KvTransaction<'_>, request: &StartRequest<'_>) -> StepResult<StartOutcome> {
    let StartRequest { entry, consumer, message, token, lock_ttl, fence_floor, attempts_max } = *request;
    let JobMessage { job_id, pipeline, .. } = message;
    if let Some(start) = repeated(step, request)? {
        return Ok(StartOutcome::Running(start));
    }
    let Some(number) = entries::pending_for(step, entry, consumer)? else { return Ok(StartOutcome::NotClaimed) };
    let lock = locks::current(step, pipeline)?;
    if lock.as_ref().is_some_and(|lock| lock.job_id.as_deref() == Some(job_id.as_str())) {
        return Ok(StartOutcome::RunningElsewhere);
    }
    if id_is_taken(step, message)? {
        return Ok(StartOutcome::IdTaken);
    }
    if is_dropped(step, message)? {
        entries::remove(step, number)?;
        step.run("DELETE FROM jobs WHERE job_id = ?1 AND pipeline = ?2", [job_id.as_str(), pipeline.as_str()])?;
        return Ok(StartOutcome::Dropped);
    }
    let job = Job { max_attempts: attempts_max, ..find_or_insert(step, message, number, attempts_max)? };
    if let Some(lock) = lock {
        let left = Duration::from_millis(lock.expires.abs_diff(step.now));
        let due = after(step.now, retry::defer_delay(left));
        entries::remove(step, number)?;
        jobs::wait(step, &job, due, WaitReason::PipelineBusy)?;
        return Ok(StartOutcome::Deferred { until: time(due) });
    }
    let fence = locks::acquire(step, pipeline, Some(job_id), token, lock_ttl, fence_floor)?;
    claim::defer_others(step, pipeline, job_id, lock_ttl)?;
    entries::heartbeat(step, entry, consumer)?;
    let (attempt, lost_starts, cancelled) = step
        .sql(
            "UPDATE jobs SET attempts = attempts + 1, lost = lost + (running IS NOT NULL), running = ?2, entry = ?3,
                 due_ms = NULL, reason = NULL, publishing = 0
             WHERE job_id = ?1 RETURNING attempts, lost, cancel",
        )?
        .query_row(params![job_id.as_str(), fence.cast_signed(), number], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let live = jobs::text(&job.started(consumer, fence, attempt, time(step.now)))?;
    step.run("UPDATE jobs SET live = ?2 WHERE job_id = ?1", params![job_id.as_str(), live])?;
    let lease = JobLease {
        job_id: job_id.clone(),
        pipeline: pipeline.clone(),
        entry: entry.clone(),
        consumer: consumer.to_owned(),
        token: token.to_owned(),
        fence,
    };
    Ok(StartOutcome::Running(StartedJob { lease, attempt, lost_starts, cancelled }))
}

/// The earlier start with this token, if its lock is valid.
fn repeated(step: &KvTransaction<'_>, request: &StartRequest<'_>) -> StepResult<Option<StartedJob>> {
    let JobMessage { job_id, pipeline, .. } = request.message;
    let sql = "SELECT jobs.running, jobs.attempts, jobs.lost, jobs.cancel FROM locks JOIN jobs USING (job_id)
               WHERE locks.pipeline = ?1 AND locks.token = ?2 AND locks.expires_ms > ?3 AND jobs.running IS NOT NULL";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let found = step.sql(sql)?.query_row(params![pipeline.as_str(), request.token, step.now], read).optional()?;
    Ok(found.map(|(fence, attempt, lost_starts, cancelled)| {
        let lease = JobLease {
            job_id: job_id.clone(),
            pipeline: pipeline.clone(),
            entry: request.entry.clone(),
            consumer: request.consumer.to_owned(),
            token: request.token.to_owned(),
            fence: fence.unsigned_abs(),
        };
        StartedJob { lease, attempt, lost_starts, cancelled }
    }))
}

/// Whether the pipeline was deleted or renamed after the job was enqueued.
pub(super) fn is_dropped(step: &KvTransaction<'_>, message: &JobMessage) -> StepResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM tombstones WHERE pipeline = ?1 AND marked_ms >= ?2 AND expires_ms > ?3)";
    let enqueued = message.enqueued_at.timestamp_millis();
    let params = params![message.pipeline.as_str(), enqueued, step.now];
    Ok(step.sql(sql)?.query_row(params, |row| row.get(0))?)
}

/// Whether a job of another pipeline has the id.
fn id_is_taken(step: &KvTransaction<'_>, message: &JobMessage) -> StepResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM jobs WHERE job_id = ?1 AND pipeline <> ?2)";
    Ok(step.sql(sql)?.query_row(params![message.job_id.as_str(), message.pipeline.as_str()], |row| row.get(0))?)
}

/// The job's record. Inserts the row of a job that another program enqueued; deletes another entry of the job.
fn find_or_insert(step: &KvTransaction<'_>, message: &JobMessage, entry: i64, attempts_max: u32) -> StepResult<Job> {
    match jobs::find(step, &message.job_id)? {
        Some(active) => {
            if let Some(other) = active.entry.filter(|other| *other != entry) {
                entries::remove(step, other)?;
            }
            Ok(jobs::without_outcome(active.live()?))
        }
        None => {
            let job = Job::queued(message, attempts_max);
            jobs::insert(step, &job, Some(entry))?;
            Ok(job)
        }
    }
}
