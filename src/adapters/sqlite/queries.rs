//! Running queries.

use std::time::Duration;

use rusqlite::{OptionalExtension as _, params};
use uuid::Uuid;

use crate::domain::name::{QueryId, Slug};
use crate::ports::kv::KvResult;
use crate::ports::queries::{RegisteredQuery, RunningQueries};

use super::kv::SqliteKv;
use super::units::after;

impl RunningQueries for SqliteKv {
    fn register_query(&self, pipeline: &Slug, id: &QueryId, ttl: Duration) -> KvResult<Option<RegisteredQuery>> {
        let token = Uuid::new_v4().simple().to_string();
        self.db.write("register a query", |step| {
            step.delete_expired("queries", "pipeline, id")?;
            let registered = step.run(
                "INSERT INTO queries (pipeline, id, token, expires_ms) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (pipeline, id) DO UPDATE
                 SET token = excluded.token, cancel = 0, expires_ms = excluded.expires_ms
                 WHERE expires_ms <= ?5",
                params![pipeline.as_str(), id.as_str(), token, after(step.now, ttl), step.now],
            )?;
            let query = RegisteredQuery { pipeline: pipeline.clone(), id: id.clone(), token: token.clone() };
            Ok((registered > 0).then_some(query))
        })
    }

    fn cancel_query(&self, pipeline: &Slug, id: &QueryId) -> KvResult<bool> {
        self.db.write("cancel a query", |step| {
            let sql = "UPDATE queries SET cancel = 1 WHERE pipeline = ?1 AND id = ?2 AND expires_ms > ?3";
            Ok(step.run(sql, params![pipeline.as_str(), id.as_str(), step.now])? > 0)
        })
    }

    fn cancelled_queries(&self, queries: &[RegisteredQuery]) -> KvResult<Vec<bool>> {
        self.db.read("check for cancelled queries", |step| {
            let sql = "SELECT cancel FROM queries WHERE pipeline = ?1 AND id = ?2 AND token = ?3";
            let mut statement = step.sql(sql)?;
            let mut cancelled = Vec::with_capacity(queries.len());
            for RegisteredQuery { pipeline, id, token } in queries {
                let key = params![pipeline.as_str(), id.as_str(), token];
                let cancel: Option<bool> = statement.query_row(key, |row| row.get(0)).optional()?;
                cancelled.push(cancel.unwrap_or(false));
            }
            Ok(cancelled)
        })
    }

    fn unregister_query(&self, query: &RegisteredQuery) -> KvResult<()> {
        self.db.write("unregister a query", |step| {
            step.run(
                "DELETE FROM queries WHERE pipeline = ?1 AND id = ?2 AND token = ?3",
                params![query.pipeline.as_str(), query.id.as_str(), query.token],
            )?;
            Ok(())
        })
    }
}
