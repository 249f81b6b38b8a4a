//! Active jobs, for all services.

use std::time::Duration;

use rusqlite::{OptionalExtension as _, params};

use crate::domain::job::{Job, JobId};
use crate::domain::limits::TOMBSTONE_MS;
use crate::domain::name::Slug;
use crate::ports::jobs::{CancelOutcome, EnqueueOutcome, JobRegistry, QueueCounts};
use crate::ports::kv::KvResult;

use super::changes;
use super::job_index;
use super::jobs;
use super::kv::SqliteKv;
use super::locks;
use super::run_requests;
use super::units::{after, sql_count};

impl JobRegistry for SqliteKv {
    fn enqueue(&self, job: &Job) -> KvResult<EnqueueOutcome> {
        let new = self.db.write("enqueue", |step| jobs::enqueue(step, job))?;
        Ok(if new { EnqueueOutcome::Queued } else { EnqueueOutcome::AlreadyActive })
    }

    fn attempts_max(&self) -> KvResult<Option<u32>> {
        self.db.read("maximum attempts", jobs::attempts_max)
    }

    fn set_attempts_max(&self, attempts_max: u32) -> KvResult<()> {
        self.db.write("set maximum attempts", |step| {
            step.run("INSERT OR REPLACE INTO attempts VALUES (1, ?1)", [attempts_max])?;
            Ok(())
        })
    }

    fn job(&self, pipeline: &Slug, job_id: &JobId) -> KvResult<Option<Job>> {
        self.adopt()?;
        self.db.read("job", |step| {
            if let Some(active) = jobs::find_of(step, pipeline, job_id)? {
                return active.current(step).map(Some);
            }
            let sql = "SELECT live FROM ended WHERE job_id = ?1 AND pipeline = ?2 AND expires_ms > ?3";
            let params = params![job_id.as_str(), pipeline.as_str(), step.now];
            let live: Option<String> = step.sql(sql)?.query_row(params, |row| row.get(0)).optional()?;
            live.map(|live| jobs::parsed(&live)).transpose()
        })
    }

    fn active(&self, pipeline: &Slug, limit: usize) -> KvResult<Vec<Job>> {
        self.adopt()?;
        self.db.read("active jobs", |step| {
            let active = jobs::jobs_of_pipeline(step, pipeline, sql_count(limit))?;
            active.iter().map(|job| job.current(step)).collect()
        })
    }

    fn cancel(&self, pipeline: &Slug, job_id: &JobId) -> KvResult<CancelOutcome> {
        self.adopt()?;
        self.db.write("cancel", |step| {
            let Some(active) = jobs::find_of(step, pipeline, job_id)? else { return Ok(CancelOutcome::NotActive) };
            if active.publishing {
                return Ok(CancelOutcome::TooLate);
            }
            let sql = "UPDATE jobs SET cancel = 1, due_ms = min(due_ms, ?2) WHERE job_id = ?1";
            step.run(sql, params![job_id.as_str(), step.now])?;
            // A queued job ends as soon as a manual one would start.
            step.run("UPDATE stream SET automatic = 0 WHERE id = ?1", [active.entry])?;
            Ok(CancelOutcome::Requested)
        })
    }

    fn counts(&self) -> KvResult<QueueCounts> {
        self.db.read("counts", |step| {
            let sql = "SELECT (SELECT count(*) FROM stream), (SELECT count(*) FROM stream WHERE consumer IS NOT NULL),
                           (SELECT count(*) FROM jobs WHERE due_ms IS NOT NULL), (SELECT count(*) FROM windows),
                           (SELECT count(*) FROM dead), (SELECT count(*) FROM run_requests)";
            let count = |row: &rusqlite::Row<'_>, n| row.get::<_, i64>(n).map(i64::unsigned_abs);
            Ok(step.sql(sql)?.query_row([], |row| {
                Ok(QueueCounts {
                    stream: count(row, 0)?,
                    pending: count(row, 1)?,
                    waiting: count(row, 2)?,
                    windows: count(row, 3)?,
                    dead_letters: count(row, 4)?,
                    requested: count(row, 5)?,
                })
            })?)
        })
    }

    fn oldest_due(&self) -> KvResult<Option<Duration>> {
        self.db.read("oldest due job", |step| {
            let sql = "SELECT min(due) FROM (SELECT min(received_ms) AS due FROM stream
                           UNION ALL SELECT min(due_ms) FROM jobs WHERE due_ms <= ?1)";
            let since: Option<i64> = step.sql(sql)?.query_row([step.now], |row| row.get(0))?;
            Ok(since.map(|since| Duration::from_millis(u64::try_from(step.now - since).unwrap_or_default())))
        })
    }

    fn drop_pipeline(&self, pipeline: &Slug) -> KvResult<()> {
        self.adopt()?;
        self.db.write("drop a pipeline", |step| {
            let slug = pipeline.as_str();
            let running = locks::current(step, pipeline)?.and_then(|lock| lock.job_id);
            step.run(
                "DELETE FROM stream WHERE id IN (SELECT entry FROM jobs WHERE pipeline = ?1 AND job_id IS NOT ?2)",
                params![slug, running],
            )?;
            step.run("DELETE FROM jobs WHERE pipeline = ?1 AND job_id IS NOT ?2", params![slug, running])?;
            step.run("DELETE FROM ended WHERE pipeline = ?1", [slug])?;
            step.run("DELETE FROM windows WHERE pipeline = ?1", [slug])?;
            step.run("DELETE FROM pauses WHERE pipeline = ?1", [slug])?;
            run_requests::remove(step, pipeline)?;
            changes::forget(step, pipeline)?;
            job_index::forget(step, pipeline)?;
            step.run("DELETE FROM tombstones WHERE expires_ms <= ?1", [step.now])?;
            step.run(
                "INSERT OR REPLACE INTO tombstones (pipeline, marked_ms, expires_ms) VALUES (?1, ?2, ?3)",
                params![slug, step.wall, after(step.now, Duration::from_millis(TOMBSTONE_MS))],
            )?;
            Ok(())
        })
    }

    fn revive_pipeline(&self, pipeline: &Slug) -> KvResult<()> {
        self.db.write("revive a pipeline", |step| {
            step.run("DELETE FROM tombstones WHERE pipeline = ?1", [pipeline.as_str()])?;
            job_index::add_unindexed(step, pipeline)?;
            changes::change_all(step, pipeline)
        })
    }
}
