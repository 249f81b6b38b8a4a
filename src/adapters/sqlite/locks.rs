//! The locks on pipelines with their fences, and locks on names.
//!
//! Invariant: a pipeline has at most one valid lock, and every acquisition increases its fence. An expired lock counts as
//! none, whether or not its row still exists.

use std::time::Duration;

use rusqlite::{OptionalExtension as _, params};

use crate::domain::job::{JobId, WaitReason};
use crate::domain::name::Slug;
use crate::ports::jobs::{JobLease, LockHolder, PipelineLock, PipelineLocks, ReleaseOutcome};
use crate::ports::kv::{KeyLocks, KvResult};

use super::db::KvTransaction;
use super::error::{StepError, StepResult};
use super::kv::SqliteKv;
use super::units::after;

/// A valid lock.
pub(super) struct Lock {
    pub(super) job_id: Option<String>,
    pub(super) expires: i64,
}

pub(super) fn current(step: &KvTransaction<'_>, pipeline: &Slug) -> StepResult<Option<Lock>> {
    let sql = "SELECT job_id, expires_ms FROM locks WHERE pipeline = ?1 AND expires_ms > ?2";
    let read = |row: &rusqlite::Row<'_>| Ok(Lock { job_id: row.get(0)?, expires: row.get(1)? });
    Ok(step.sql(sql)?.query_row(params![pipeline.as_str(), step.now], read).optional()?)
}

/// Acquires the lock, which must be free, under `token`; returns its fence.
pub(super) fn acquire(
    step: &KvTransaction<'_>,
    pipeline: &Slug,
    job_id: Option<&JobId>,
    token: &str,
    ttl: Duration,
    floor: u64,
) -> StepResult<u64> {
    let last = "SELECT last FROM fences WHERE pipeline = ?1";
    let last: Option<i64> = step.sql(last)?.query_row([pipeline.as_str()], |row| row.get(0)).optional()?;
    let too_high = || StepError::Malformed { expected: "a fence below 2^63 - 1", found: floor.to_string() };
    let floor = i64::try_from(floor).ok().and_then(|floor| floor.checked_add(1)).ok_or_else(too_high)?;
    let next = last.unwrap_or(0).checked_add(1).ok_or_else(too_high)?;
    let fence = next.max(floor).max(step.now.saturating_mul(1_000));
    step.run(
        "INSERT INTO fences VALUES (?1, ?2) ON CONFLICT (pipeline) DO UPDATE SET last = excluded.last",
        params![pipeline.as_str(), fence],
    )?;
    step.run(
        "INSERT OR REPLACE INTO locks (pipeline, token, job_id, expires_ms) VALUES (?1, ?2, ?3, ?4)",
        params![pipeline.as_str(), token, job_id.map(JobId::as_str), after(step.now, ttl)],
    )?;
    Ok(fence.unsigned_abs())
}

/// Whether the lease's lock is valid.
pub(super) fn is_held(step: &KvTransaction<'_>, lease: &JobLease) -> StepResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM locks WHERE pipeline = ?1 AND token = ?2 AND expires_ms > ?3)";
    Ok(step.sql(sql)?.query_row(params![lease.pipeline.as_str(), lease.token, step.now], |row| row.get(0))?)
}

/// Extends the lock to `ttl` from now; false if it expired or has another holder.
pub(super) fn extend(step: &KvTransaction<'_>, pipeline: &Slug, token: &str, ttl: Duration) -> StepResult<bool> {
    let sql = "UPDATE locks SET expires_ms = ?4 WHERE pipeline = ?1 AND token = ?2 AND expires_ms > ?3";
    Ok(step.run(sql, params![pipeline.as_str(), token, step.now, after(step.now, ttl)])? > 0)
}

/// Releases the lock and makes the oldest deferred job due, a manual one first; false if it expired or has another holder.
pub(super) fn release(step: &KvTransaction<'_>, pipeline: &Slug, token: &str) -> StepResult<bool> {
    let sql = "DELETE FROM locks WHERE pipeline = ?1 AND token = ?2 AND expires_ms > ?3";
    if step.run(sql, params![pipeline.as_str(), token, step.now])? == 0 {
        return Ok(false);
    }
    step.run(
        "UPDATE jobs SET due_ms = min(due_ms, ?2) WHERE job_id =
             (SELECT job_id FROM jobs WHERE pipeline = ?1 AND reason = ?3
              ORDER BY instr(fields, '[\"trigger\",\"auto\"]') > 0, enqueued_ms, job_id LIMIT 1)",
        params![pipeline.as_str(), step.now, WaitReason::PipelineBusy.as_str()],
    )?;
    Ok(true)
}

fn outcome(released: bool) -> ReleaseOutcome {
    if released { ReleaseOutcome::Released } else { ReleaseOutcome::Lost }
}

impl PipelineLocks for SqliteKv {
    fn lock_holder(&self, pipeline: &Slug) -> KvResult<Option<LockHolder>> {
        self.db.read("lock holder", |step| {
            let sql = "SELECT token, job_id IS NOT NULL FROM locks WHERE pipeline = ?1 AND expires_ms > ?2";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let found = step.sql(sql)?.query_row(params![pipeline.as_str(), step.now], read).optional()?;
            Ok(found.map(|(token, is_run)| if is_run { LockHolder::Run { token } } else { LockHolder::Other }))
        })
    }

    fn lock_pipeline(&self, pipeline: &Slug, ttl: Duration, fence_floor: u64) -> KvResult<Option<PipelineLock>> {
        self.db.write("lock a pipeline", |step| {
            if current(step, pipeline)?.is_some() {
                return Ok(None);
            }
            let token = uuid::Uuid::new_v4().to_string();
            let fence = acquire(step, pipeline, None, &token, ttl, fence_floor)?;
            Ok(Some(PipelineLock { pipeline: pipeline.clone(), token, fence }))
        })
    }

    fn renew(&self, lock: &PipelineLock, ttl: Duration) -> KvResult<ReleaseOutcome> {
        self.db.write("renew", |step| extend(step, &lock.pipeline, &lock.token, ttl)).map(outcome)
    }

    fn release(&self, lock: &PipelineLock) -> KvResult<ReleaseOutcome> {
        self.db.write("release", |step| release(step, &lock.pipeline, &lock.token)).map(outcome)
    }
}

impl KeyLocks for SqliteKv {
    fn try_lock(&self, name: &str, token: &str, ttl: Duration) -> KvResult<bool> {
        self.db.write("lock a name", |step| {
            step.delete_expired("key_locks", "name")?;
            let taken = step.run(
                "INSERT INTO key_locks (name, token, expires_ms) VALUES (?1, ?2, ?3)
                 ON CONFLICT (name) DO UPDATE SET token = excluded.token, expires_ms = excluded.expires_ms
                 WHERE token = excluded.token OR expires_ms <= ?4",
                params![name, token, after(step.now, ttl), step.now],
            )?;
            Ok(taken > 0)
        })
    }

    fn unlock(&self, name: &str, token: &str) -> KvResult<()> {
        self.db.write("unlock a name", |step| {
            step.run("DELETE FROM key_locks WHERE name = ?1 AND token = ?2", [name, token])?;
            Ok(())
        })
    }
}
