//! Runs that comparisons requested.

use rusqlite::params;

use crate::domain::job::Job;
use crate::domain::limits::DEBOUNCE_QUIET_MS;
use crate::domain::name::Slug;
use crate::ports::kv::KvResult;
use crate::ports::run_requests::RunRequests;

use super::db::KvTransaction;
use super::error::StepResult;
use super::jobs;
use super::kv::SqliteKv;
use super::units::{slug, sql_count};

impl RunRequests for SqliteKv {
    fn request_runs(&self, pipelines: &[Slug]) -> KvResult<()> {
        self.db.write("request runs", |step| {
            for pipeline in pipelines {
                let sql = "INSERT OR IGNORE INTO run_requests (pipeline, due_ms) VALUES (?1, ?2)";
                step.run(sql, params![pipeline.as_str(), step.now + DEBOUNCE_QUIET_MS])?;
            }
            Ok(())
        })
    }

    fn requested_runs(&self, limit: usize) -> KvResult<Vec<Slug>> {
        self.db.read("requested runs", |step| {
            let sql = "SELECT pipeline FROM run_requests
                       WHERE due_ms <= ?1
                           AND NOT EXISTS (SELECT 1 FROM pauses WHERE pipeline IN (run_requests.pipeline, '*'))
                           AND NOT EXISTS (SELECT 1 FROM windows WHERE pipeline = run_requests.pipeline)
                       ORDER BY due_ms, pipeline LIMIT ?2";
            let mut statement = step.sql(sql)?;
            let rows = statement.query_map([step.now, sql_count(limit)], |row| row.get::<_, String>(0))?;
            rows.map(|name| slug(&name?)).collect()
        })
    }

    fn enqueue_requested(&self, job: &Job) -> KvResult<bool> {
        self.db.write("enqueue a requested run", |step| {
            let sql = "DELETE FROM run_requests WHERE pipeline = ?1 AND due_ms <= ?2
                           AND NOT EXISTS (SELECT 1 FROM windows WHERE pipeline = ?1)";
            if step.run(sql, params![job.pipeline.as_str(), step.now])? == 0 {
                return Ok(false);
            }
            jobs::enqueue(step, job)?;
            Ok(true)
        })
    }

    fn is_run_requested(&self, pipeline: &Slug) -> KvResult<bool> {
        self.db.read("is a run requested", |step| {
            let sql = "SELECT EXISTS (SELECT 1 FROM run_requests WHERE pipeline = ?1)";
            Ok(step.sql(sql)?.query_row([pipeline.as_str()], |row| row.get(0))?)
        })
    }

    fn withdraw_request(&self, pipeline: &Slug) -> KvResult<bool> {
        self.db.write("withdraw a requested run", |step| remove(step, pipeline))
    }
}

/// Whether there was a request.
pub(super) fn remove(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<bool> {
    Ok(step.run("DELETE FROM run_requests WHERE pipeline = ?1", [pipeline.as_str()])? > 0)
}
