//! Timed work: debounce windows and waiting jobs.

use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension as _, params};

use crate::domain::job::{ChangedKeys, Job, JobId, window};
use crate::domain::name::Slug;
use crate::ports::kv::KvResult;
use crate::ports::schedule::{CloseReason, Cursor, Schedule};

use super::changes;
use super::db::KvTransaction;
use super::error::StepResult;
use super::jobs;
use super::kv::SqliteKv;
use super::run_requests;
use super::units::{slug, sql_count, time};

/// Active jobs that one call of [`Schedule::requeue_lost`] checks.
const CHECK_BATCH: usize = 100;

/// Returns when the window was opened.
fn extend(step: &KvTransaction<'_>, (pipeline, changed): &(Slug, ChangedKeys)) -> StepResult<DateTime<Utc>> {
    let sql = "SELECT first_ms FROM windows WHERE pipeline = ?1";
    let first: Option<i64> = step.sql(sql)?.query_row([pipeline.as_str()], |row| row.get(0)).optional()?;
    changes::add(step, pipeline, changed, first.is_none())?;
    let first = first.unwrap_or(step.now);
    let due = window::due(time(first), time(step.now)).timestamp_millis();
    step.run(
        "INSERT OR REPLACE INTO windows (pipeline, first_ms, due_ms) VALUES (?1, ?2, ?3)",
        params![pipeline.as_str(), first, due],
    )?;
    Ok(time(first))
}

/// Closes a due window; false if it is not due.
fn close(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<bool> {
    let sql = "DELETE FROM windows WHERE pipeline = ?1 AND due_ms <= ?2";
    Ok(step.run(sql, params![pipeline.as_str(), step.now])? > 0)
}

/// Some active jobs.
#[derive(Default)]
struct Checked {
    /// Jobs whose entry was lost: id and fields.
    lost: Vec<(String, String)>,
    count: usize,
    last: String,
}

/// Checks the next jobs after `from`. A running job needs no entry.
fn check(step: &KvTransaction<'_>, from: &str) -> StepResult<Checked> {
    let sql = "SELECT job_id, fields, due_ms IS NULL
                   AND NOT EXISTS (SELECT 1 FROM stream WHERE id = jobs.entry)
                   AND NOT EXISTS (SELECT 1 FROM locks WHERE pipeline = jobs.pipeline AND job_id = jobs.job_id
                                   AND expires_ms > ?3)
               FROM jobs WHERE job_id > ?1 ORDER BY job_id LIMIT ?2";
    let mut statement = step.sql(sql)?;
    let mut rows = statement.query(params![from, sql_count(CHECK_BATCH), step.now])?;
    let mut checked = Checked::default();
    while let Some(row) = rows.next()? {
        checked.last = row.get(0)?;
        checked.count += 1;
        if row.get(2)? {
            checked.lost.push((checked.last.clone(), row.get(1)?));
        }
    }
    Ok(checked)
}

fn since(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<Option<DateTime<Utc>>> {
    let sql = "SELECT first_ms FROM windows WHERE pipeline = ?1";
    let first: Option<i64> = step.sql(sql)?.query_row([pipeline.as_str()], |row| row.get(0)).optional()?;
    Ok(first.map(time))
}

impl Schedule for SqliteKv {
    fn record_changes(&self, changes: &[(Slug, ChangedKeys)]) -> KvResult<Vec<DateTime<Utc>>> {
        self.db.write("extend windows", |step| changes.iter().map(|change| extend(step, change)).collect())
    }

    fn changed_keys(&self, job_id: &JobId) -> KvResult<ChangedKeys> {
        self.db.read("changed keys", |step| changes::keys_of_job(step, job_id))
    }

    fn window_opened_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>> {
        self.db.read("window opened at", |step| since(step, pipeline))
    }

    fn due_windows(&self, limit: usize) -> KvResult<Vec<Slug>> {
        self.db.read("due windows", |step| {
            let sql = "SELECT pipeline FROM windows
                       WHERE due_ms <= ?1 AND NOT EXISTS (SELECT 1 FROM pauses WHERE pipeline IN (windows.pipeline, '*'))
                       ORDER BY due_ms, first_ms, pipeline LIMIT ?2";
            let mut statement = step.sql(sql)?;
            let rows = statement.query_map([step.now, sql_count(limit)], |row| row.get::<_, String>(0))?;
            rows.map(|name| slug(&name?)).collect()
        })
    }

    fn window_due_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>> {
        self.db.read("window due at", |step| {
            let sql = "SELECT due_ms FROM windows WHERE pipeline = ?1";
            let due: Option<i64> = step.sql(sql)?.query_row([pipeline.as_str()], |row| row.get(0)).optional()?;
            Ok(due.map(time))
        })
    }

    fn fire_window(&self, job: &Job) -> KvResult<bool> {
        self.db.write("fire a window", |step| {
            if !close(step, &job.pipeline)? {
                return Ok(false);
            }
            jobs::enqueue(step, job)?;
            if run_requests::remove(step, &job.pipeline)? {
                changes::change_all(step, &job.pipeline)?;
            }
            changes::move_keys_to_job(step, &job.pipeline, &job.job_id)?;
            Ok(true)
        })
    }

    fn close_window(&self, pipeline: &Slug, reason: CloseReason) -> KvResult<bool> {
        self.db.write("close a window", |step| {
            if !close(step, pipeline)? {
                return Ok(false);
            }
            match reason {
                CloseReason::AutoRunOff => changes::change_all(step, pipeline)?,
                CloseReason::PipelineGone => changes::forget(step, pipeline)?,
            }
            Ok(true)
        })
    }

    fn release_due(&self, limit: usize) -> KvResult<usize> {
        let due = |step: &KvTransaction<'_>| -> StepResult<Vec<(String, String)>> {
            let sql =
                "SELECT job_id, fields FROM jobs WHERE due_ms <= ?1 ORDER BY due_ms, enqueued_ms, job_id LIMIT ?2";
            let mut statement = step.sql(sql)?;
            let rows = statement.query_map([step.now, sql_count(limit)], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        // Usually nothing is due, and no write is needed.
        if self.db.read("release due jobs", due)?.is_empty() {
            return Ok(0);
        }
        self.db.write("release due jobs", |step| {
            let due = due(step)?;
            due.iter().try_for_each(|(job_id, fields)| jobs::to_stream(step, job_id, fields))?;
            Ok(due.len())
        })
    }

    fn requeue_lost(&self, from: &Cursor) -> KvResult<(usize, Option<Cursor>)> {
        self.adopt()?;
        let Checked { lost, count, last } = self.db.read("check for lost jobs", |step| check(step, &from.0))?;
        let mut requeued = 0;
        if !lost.is_empty() {
            requeued = self.db.write("requeue lost jobs", |step| {
                let lost = check(step, &from.0)?.lost;
                lost.iter().try_for_each(|(job_id, fields)| jobs::to_stream(step, job_id, fields))?;
                Ok(lost.len())
            })?;
        }
        Ok((requeued, (count == CHECK_BATCH).then_some(Cursor(last))))
    }

    fn is_initialized(&self) -> KvResult<bool> {
        self.db.read("is initialized", |step| {
            Ok(step.sql("SELECT EXISTS (SELECT 1 FROM epoch)")?.query_row([], |row| row.get(0))?)
        })
    }

    fn mark_initialized(&self) -> KvResult<()> {
        self.db.write("mark initialized", |step| {
            step.run("INSERT OR IGNORE INTO epoch VALUES (1)", [])?;
            Ok(())
        })
    }
}
