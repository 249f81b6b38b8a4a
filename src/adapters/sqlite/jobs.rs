//! The rows of active jobs, and the merging of a job's record with its columns.
//!
//! Invariant: the live record is the last one a worker wrote; the columns are newer for waiting times and attempts, so every
//! read merges them in.

use rusqlite::{OptionalExtension as _, Row, params};

use crate::domain::job::{Job, JobId, JobStatus, WaitReason};
use crate::domain::name::Slug;

use super::db::KvTransaction;
use super::error::{StepError, StepResult};
use super::units::time;
use super::{entries, locks};

/// The columns of an active job that are read.
pub(super) struct Active {
    live: String,
    pub(super) entry: Option<i64>,
    due: Option<i64>,
    reason: Option<String>,
    attempts: u32,
    pub(super) cancel: bool,
    pub(super) publishing: bool,
}

/// The columns that [`Active::read`] takes.
const COLUMNS: &str = "live, entry, due_ms, reason, attempts, cancel, publishing FROM jobs";

impl Active {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            live: row.get(0)?,
            entry: row.get(1)?,
            due: row.get(2)?,
            reason: row.get(3)?,
            attempts: row.get(4)?,
            cancel: row.get(5)?,
            publishing: row.get(6)?,
        })
    }

    /// The live record as written.
    pub(super) fn live(&self) -> StepResult<Job> {
        parsed(&self.live)
    }

    /// The job's current state.
    pub(super) fn current(&self, step: &KvTransaction<'_>) -> StepResult<Job> {
        let mut job = self.live()?;
        if let (Some(due), Some(reason)) = (self.due, &self.reason) {
            let found = || StepError::Malformed { expected: "a reason for waiting", found: reason.clone() };
            job = without_outcome(job).waiting(WaitReason::parse(reason).ok_or_else(found)?, time(due), None);
        } else if job.status == JobStatus::Queued {
            (job.not_before, job.reason) = (None, None);
        }
        if !job.status.is_terminal() {
            job.attempt = self.attempts;
        }
        if job.status == JobStatus::Queued {
            job.max_attempts = attempts_max(step)?.unwrap_or(job.max_attempts);
        }
        if job.status == JobStatus::Running {
            job.silent_ms = self.silent_ms(step, &job)?;
        }
        Ok(job)
    }

    /// Time since its last heartbeat, if its lock has expired.
    fn silent_ms(&self, step: &KvTransaction<'_>, job: &Job) -> StepResult<Option<u64>> {
        let holder = locks::current(step, &job.pipeline)?.and_then(|lock| lock.job_id);
        if holder.as_deref() == Some(job.job_id.as_str()) {
            return Ok(None);
        }
        let sql = "SELECT seen_ms FROM stream WHERE id = ?1 AND consumer IS NOT NULL";
        let seen: Option<i64> = step.sql(sql)?.query_row([self.entry], |row| row.get(0)).optional()?;
        Ok(seen.map(|seen| u64::try_from(step.now.saturating_sub(seen)).unwrap_or_default()))
    }
}

/// The maximum attempts that workers last set.
pub(super) fn attempts_max(step: &KvTransaction<'_>) -> StepResult<Option<u32>> {
    Ok(step.sql("SELECT attempts_max FROM attempts")?.query_row([], |row| row.get(0)).optional()?)
}

/// Resets a job whose worker wrote its outcome, but died before ending it.
pub(super) fn without_outcome(job: Job) -> Job {
    if job.status.is_terminal() { Job::queued(&job.message(), job.max_attempts) } else { job }
}

pub(super) fn parsed(live: &str) -> StepResult<Job> {
    serde_json::from_str(live).map_err(|error| {
        let shown: String = live.chars().take(200).collect();
        StepError::Malformed { expected: "the JSON of a job", found: format!("{shown}: {error}") }
    })
}

pub(super) fn text(job: &Job) -> StepResult<String> {
    serde_json::to_string(job).map_err(|error| StepError::Refused(format!("a job that can't be encoded: {error}")))
}

/// The active job with this id, of any pipeline.
pub(super) fn find(step: &KvTransaction<'_>, job_id: &JobId) -> StepResult<Option<Active>> {
    let sql = format!("SELECT {COLUMNS} WHERE job_id = ?1");
    Ok(step.sql(&sql)?.query_row([job_id.as_str()], Active::read).optional()?)
}

/// Like [`find`], of one pipeline.
pub(super) fn find_of(step: &KvTransaction<'_>, pipeline: &Slug, job_id: &JobId) -> StepResult<Option<Active>> {
    let sql = format!("SELECT {COLUMNS} WHERE job_id = ?1 AND pipeline = ?2");
    Ok(step.sql(&sql)?.query_row([job_id.as_str(), pipeline.as_str()], Active::read).optional()?)
}

/// The active jobs of a pipeline, oldest first.
pub(super) fn jobs_of_pipeline(step: &KvTransaction<'_>, pipeline: &Slug, limit: i64) -> StepResult<Vec<Active>> {
    let sql = format!("SELECT {COLUMNS} WHERE pipeline = ?1 ORDER BY enqueued_ms, job_id LIMIT ?2");
    let mut statement = step.sql(&sql)?;
    let rows = statement.query_map(params![pipeline.as_str(), limit], Active::read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Inserts the row of a job that is not active yet.
pub(super) fn insert(step: &KvTransaction<'_>, job: &Job, entry: Option<i64>) -> StepResult<()> {
    step.run("DELETE FROM ended WHERE job_id = ?1", [job.job_id.as_str()])?;
    step.run(
        "INSERT INTO jobs (job_id, pipeline, enqueued_ms, fields, live, entry) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            job.job_id.as_str(),
            job.pipeline.as_str(),
            job.enqueued_at.timestamp_millis(),
            entries::encode_fields(&job.message()),
            text(job)?,
            entry
        ],
    )?;
    Ok(())
}

/// Enqueues a job; false if one with its id is active.
pub(super) fn enqueue(step: &KvTransaction<'_>, job: &Job) -> StepResult<bool> {
    if find(step, &job.job_id)?.is_some() {
        return Ok(false);
    }
    let entry = entries::add(step, &entries::encode_fields(&job.message()))?;
    insert(step, job, Some(entry))?;
    Ok(true)
}

/// Makes the job wait. The caller has deleted its entry.
pub(super) fn wait(step: &KvTransaction<'_>, job: &Job, due: i64, reason: WaitReason) -> StepResult<()> {
    let live = text(&without_outcome(job.clone()).waiting(reason, time(due), None))?;
    step.run(
        "UPDATE jobs SET live = ?2, entry = NULL, due_ms = ?3, reason = ?4, publishing = 0
         WHERE job_id = ?1",
        params![job.job_id.as_str(), live, due, reason.as_str()],
    )?;
    Ok(())
}

/// Moves a waiting job, or one whose entry was lost, to the stream.
pub(super) fn to_stream(step: &KvTransaction<'_>, job_id: &str, fields: &str) -> StepResult<()> {
    let entry = entries::add(step, fields)?;
    let sql = "UPDATE jobs SET entry = ?2, due_ms = NULL, reason = NULL WHERE job_id = ?1";
    step.run(sql, params![job_id, entry])?;
    // A cancelled job ends as soon as a manual one would start.
    let sql = "UPDATE stream SET automatic = 0 WHERE id = ?2 AND (SELECT cancel FROM jobs WHERE job_id = ?1)";
    step.run(sql, params![job_id, entry])?;
    Ok(())
}
