//! Pipelines to compare with the lake.

use std::time::Duration;

use rusqlite::{OptionalExtension as _, params};

use crate::domain::limits::{
    RECHECK_PAUSE_FIRST_MS, RECHECK_PAUSE_MS_MAX, RECHECK_RETRY_MS, RECHECKS_MAX, RECHECKS_TTL_MS,
};
use crate::domain::name::Slug;
use crate::ports::kv::KvResult;
use crate::ports::rechecks::{Recheck, Rechecks};

use super::kv::SqliteKv;
use super::units::{after, slug, sql_count};

impl Rechecks for SqliteKv {
    fn add_recheck(&self, pipeline: &Slug) -> KvResult<()> {
        self.db.write("add a recheck", |step| {
            step.delete_expired("rechecks", "pipeline")?;
            let expires = after(step.now, Duration::from_millis(RECHECKS_TTL_MS));
            step.run(
                "INSERT INTO rechecks (pipeline, due_ms, expires_ms)
                 SELECT ?1, ?2, ?3 WHERE (SELECT count(*) FROM rechecks) < ?4
                     OR EXISTS (SELECT 1 FROM rechecks WHERE pipeline = ?1)
                 ON CONFLICT (pipeline) DO UPDATE
                 SET due_ms = coalesce(due_ms, max(excluded.due_ms, coalesce(over_ms, 0))), expires_ms = excluded.expires_ms",
                params![pipeline.as_str(), step.now, expires, sql_count(RECHECKS_MAX)],
            )?;
            Ok(())
        })
    }

    fn take_rechecks(&self, limit: usize, timeout: Duration) -> KvResult<Vec<Slug>> {
        // Usually nothing is due, and no write is needed.
        let any: bool = self.db.read("check for rechecks", |step| {
            let sql = "SELECT EXISTS (SELECT 1 FROM rechecks WHERE due_ms <= ?1 AND expires_ms > ?1)";
            Ok(step.sql(sql)?.query_row([step.now], |row| row.get(0))?)
        })?;
        if !any {
            return Ok(Vec::new());
        }
        self.db.write("take rechecks", |step| {
            let sql = "SELECT pipeline FROM rechecks WHERE due_ms <= ?1 AND expires_ms > ?1
                       ORDER BY due_ms, pipeline LIMIT ?2";
            let mut statement = step.sql(sql)?;
            let rows = statement.query_map([step.now, sql_count(limit)], |row| row.get::<_, String>(0))?;
            let names: Vec<String> = rows.collect::<Result<_, _>>()?;
            names
                .into_iter()
                .map(|name| {
                    step.run(
                        "UPDATE rechecks SET due_ms = ?2 WHERE pipeline = ?1",
                        params![name, after(step.now, timeout)],
                    )?;
                    slug(&name)
                })
                .collect()
        })
    }

    fn complete_recheck(&self, pipeline: &Slug, outcome: Recheck) -> KvResult<()> {
        self.db.write("complete a recheck", |step| {
            let name = pipeline.as_str();
            match outcome {
                Recheck::Retry => {
                    let sql = "UPDATE rechecks SET due_ms = ?2 WHERE pipeline = ?1 AND due_ms IS NOT NULL";
                    step.run(sql, params![name, after(step.now, Duration::from_millis(RECHECK_RETRY_MS))])?;
                }
                Recheck::RunRequested => {
                    let sql = "SELECT pause_ms FROM rechecks WHERE pipeline = ?1 AND expires_ms > ?2";
                    let last: Option<Option<i64>> =
                        step.sql(sql)?.query_row(params![name, step.now], |row| row.get(0)).optional()?;
                    let pause = match last.flatten() {
                        Some(last) => last.unsigned_abs().saturating_mul(2).min(RECHECK_PAUSE_MS_MAX),
                        None => RECHECK_PAUSE_FIRST_MS,
                    };
                    let over = after(step.now, Duration::from_millis(pause));
                    let expires = after(step.now, Duration::from_millis(RECHECK_PAUSE_MS_MAX));
                    step.run(
                        "INSERT OR REPLACE INTO rechecks (pipeline, pause_ms, over_ms, expires_ms) VALUES (?1, ?2, ?3, ?4)",
                        params![name, pause.cast_signed(), over, expires],
                    )?;
                }
                Recheck::Done => {
                    step.run("DELETE FROM rechecks WHERE pipeline = ?1", [name])?;
                }
            }
            Ok(())
        })
    }
}
