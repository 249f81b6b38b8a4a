//! The queue, for workers.

use std::time::{Duration, Instant};

use rusqlite::params;

use crate::domain::job::{AttemptCost, Job, JobPosition, JobStatus};
use crate::domain::limits::{DEAD_ENTRIES_MAX, LIVE_AFTER_END_MS};
use crate::ports::job_index::EndedJob;
use crate::ports::jobs::{
    ClaimLimits, Entry, HeartbeatReply, JobLease, JobQueue, PublishReply, ReleaseOutcome, Requeue, StartOutcome,
    StartRequest,
};
use crate::ports::kv::KvResult;

use super::db::KvTransaction;
use super::error::StepResult;
use super::jobs;
use super::kv::SqliteKv;
use super::units::{after, sql_count};
use super::{changes, claim, entries, job_index, locks, start};

/// Longest wait of a claim.
const CLAIM_WAIT_MAX: Duration = Duration::from_secs(5);
/// Interval at which a waiting claim polls for entries of other processes, which SQLite doesn't signal. A poll reads one
/// page of an index, so it costs no more than checking whether the file changed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Runs `act` if the lease is valid.
fn while_leased(
    step: &KvTransaction<'_>,
    lease: &JobLease,
    act: impl FnOnce() -> StepResult<()>,
) -> StepResult<ReleaseOutcome> {
    if !locks::is_held(step, lease)? {
        return Ok(ReleaseOutcome::Lost);
    }
    act()?;
    Ok(ReleaseOutcome::Released)
}

fn heartbeat_reply(step: &KvTransaction<'_>, lease: &JobLease) -> StepResult<HeartbeatReply> {
    let active = jobs::find(step, &lease.job_id)?;
    Ok(HeartbeatReply::Held { cancelled: active.is_some_and(|active| active.cancel) })
}

fn acknowledge(step: &KvTransaction<'_>, lease: &JobLease) -> StepResult<()> {
    if let Some(number) = entries::number(&lease.entry) {
        entries::remove(step, number)?;
    }
    Ok(())
}

impl JobQueue for SqliteKv {
    fn claim(&self, consumer: &str, limits: ClaimLimits, wait: Duration) -> KvResult<Vec<Entry>> {
        let deadline = Instant::now() + wait.min(CLAIM_WAIT_MAX);
        loop {
            let seen = *self.db.entries_added.lock();
            // A job without a row can't be deferred before its start.
            self.adopt()?;
            if self.db.read("claim", |step| claim::any(step, limits))? {
                let mut order = self.order.lock();
                let taken = self.db.write("claim", |step| claim::claim(step, consumer, limits, &mut order))?;
                drop(order);
                if !taken.is_empty() {
                    return Ok(taken);
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Vec::new());
            }
            self.db.entries_added.wait(left.min(POLL_INTERVAL), |count| (*count != seen).then_some(()));
        }
    }

    fn reclaim(&self, consumer: &str, count: usize, idle: Duration) -> KvResult<Vec<Entry>> {
        self.db.write("reclaim", |step| {
            let before = after(0, idle);
            entries::reclaim(step, consumer, count.max(1), step.now.saturating_sub(before))
        })
    }

    fn start(&self, request: &StartRequest<'_>) -> KvResult<StartOutcome> {
        self.db.write("start", |step| start::start(step, request))
    }

    fn heartbeat(&self, lease: &JobLease, lock_ttl: Duration) -> KvResult<HeartbeatReply> {
        self.db.write("heartbeat", |step| {
            if !locks::extend(step, &lease.pipeline, &lease.token, lock_ttl)? {
                return Ok(HeartbeatReply::Lost);
            }
            entries::heartbeat(step, &lease.entry, &lease.consumer)?;
            heartbeat_reply(step, lease)
        })
    }

    fn update_record(&self, lease: &JobLease, job: &Job) -> KvResult<HeartbeatReply> {
        self.db.write("update a record", |step| {
            if !locks::is_held(step, lease)? {
                return Ok(HeartbeatReply::Lost);
            }
            let live = jobs::text(job)?;
            step.run("UPDATE jobs SET live = ?2 WHERE job_id = ?1", params![lease.job_id.as_str(), live])?;
            heartbeat_reply(step, lease)
        })
    }

    fn begin_publishing(&self, lease: &JobLease) -> KvResult<PublishReply> {
        self.db.write("begin publishing", |step| {
            if !locks::is_held(step, lease)? {
                return Ok(PublishReply::Lost);
            }
            let sql = "UPDATE jobs SET publishing = 1 WHERE job_id = ?1 AND cancel = 0";
            let begun = step.run(sql, [lease.job_id.as_str()])? > 0;
            Ok(if begun { PublishReply::Begun } else { PublishReply::Cancelled })
        })
    }

    fn requeue(&self, lease: &JobLease, requeue: &Requeue<'_>) -> KvResult<ReleaseOutcome> {
        let Requeue { job, delay, reason, cost } = *requeue;
        self.db.write("requeue", |step| {
            while_leased(step, lease, || {
                // First, so that the release doesn't make this job due.
                locks::release(step, &lease.pipeline, &lease.token)?;
                acknowledge(step, lease)?;
                let refund = match cost {
                    AttemptCost::One => 0,
                    AttemptCost::Zero => 1,
                };
                step.run(
                    "UPDATE jobs SET running = NULL, attempts = max(attempts - ?2, 0) WHERE job_id = ?1",
                    params![lease.job_id.as_str(), refund],
                )?;
                jobs::wait(step, job, after(step.now, delay), reason)
            })
        })
    }

    fn finish(&self, lease: &JobLease, job: &Job) -> KvResult<ReleaseOutcome> {
        self.db.write("finish", |step| {
            while_leased(step, lease, || {
                acknowledge(step, lease)?;
                step.run("DELETE FROM jobs WHERE job_id = ?1", [lease.job_id.as_str()])?;
                if job.status != JobStatus::Completed {
                    changes::check_all_keys(step, &lease.pipeline)?;
                }
                let expires = after(step.now, Duration::from_millis(LIVE_AFTER_END_MS));
                step.run(
                    "INSERT OR REPLACE INTO ended (job_id, pipeline, live, expires_ms) VALUES (?1, ?2, ?3, ?4)",
                    params![lease.job_id.as_str(), lease.pipeline.as_str(), jobs::text(job)?, expires],
                )?;
                step.delete_expired("ended", "job_id")?;
                if !job.is_dry_run() && !changes::is_dropped(step, &lease.pipeline)? {
                    let (pipeline, position) = (lease.pipeline.clone(), JobPosition::of(job));
                    let failed = job.status != JobStatus::Completed;
                    job_index::add(step, &EndedJob { pipeline, position, failed })?;
                    job_index::trim(step)?;
                }
                locks::release(step, &lease.pipeline, &lease.token)?;
                Ok(())
            })
        })
    }

    fn refund_attempt(&self, lease: &JobLease) -> KvResult<bool> {
        self.db.write("refund an attempt", |step| {
            let fence = i64::try_from(lease.fence).unwrap_or(i64::MAX);
            let sql =
                "UPDATE jobs SET running = NULL, attempts = max(attempts - 1, 0) WHERE job_id = ?1 AND running = ?2";
            Ok(step.run(sql, params![lease.job_id.as_str(), fence])? > 0)
        })
    }

    fn dead_letter(&self, entry: &Entry, why: &str) -> KvResult<()> {
        self.db.write("dead-letter", |step| {
            let Some(number) = entries::number(&entry.id) else { return Ok(()) };
            let moved = step.run(
                "INSERT INTO dead (why, fields, received_ms, buried_ms)
                 SELECT ?2, fields, received_ms, ?3 FROM stream WHERE id = ?1",
                params![number, why, step.now],
            )?;
            if moved > 0 {
                let last = step.last_id();
                entries::remove(step, number)?;
                step.run("DELETE FROM dead WHERE id <= ?1", [last - sql_count(DEAD_ENTRIES_MAX)])?;
            }
            Ok(())
        })
    }

    fn remove_consumer(&self, _consumer: &str) -> KvResult<()> {
        // A consumer exists only through its pending entries.
        Ok(())
    }
}
