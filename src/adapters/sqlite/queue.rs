//! What a worker does with jobs.

use std::time::{Duration, Instant};

use rusqlite::params;

use crate::domain::job::{Charge, Job};
use crate::domain::limits::{DEAD_ENTRIES_MAX, LIVE_AFTER_END_MS};
use crate::ports::jobs::{Beat, Entry, Held, JobQueue, Publishing, Release, StartRequest, Started, Wait};
use crate::ports::kv::KvResult;

use super::db::Step;
use super::error::Outcome;
use super::jobs::{self, after};
use super::{SqliteKv, entries, locks, start};

/// Longest wait of a claim.
const CLAIM_WAIT_MAX: Duration = Duration::from_secs(5);
/// A claim looks this often for what other processes put into the stream: SQLite tells nobody. A look reads one page of
/// an index, so it costs no more than asking whether the file changed.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Records that expired and go with one write of their kind.
pub(super) const EXPIRED_AT_ONCE: usize = 100;

/// A step of a hold: does nothing, and says so, if the hold is lost.
fn owned(step: &Step<'_>, held: &Held, act: impl FnOnce() -> Outcome<()>) -> Outcome<Release> {
    if !locks::is_held(step, held)? {
        return Ok(Release::Lost);
    }
    act()?;
    Ok(Release::Done)
}

fn beat(step: &Step<'_>, held: &Held) -> Outcome<Beat> {
    let active = jobs::find(step, &held.job_id)?;
    Ok(Beat::Held { cancelled: active.is_some_and(|active| active.cancel) })
}

fn acknowledge(step: &Step<'_>, held: &Held) -> Outcome<()> {
    if let Some(number) = entries::number(&held.entry) {
        entries::remove(step, number)?;
    }
    Ok(())
}

impl JobQueue for SqliteKv {
    fn claim(&self, consumer: &str, count: usize, wait: Duration) -> KvResult<Vec<Entry>> {
        let deadline = Instant::now() + wait.min(CLAIM_WAIT_MAX);
        loop {
            let seen = *self.db.entries_added.lock();
            if self.db.read("claim", entries::any_new)? {
                let taken = self.db.write("claim", |step| entries::claim(step, consumer, count.max(1)))?;
                if !taken.is_empty() {
                    return Ok(taken);
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Vec::new());
            }
            self.db.entries_added.wait(left.min(LOOK_EVERY), |count| (*count != seen).then_some(()));
        }
    }

    fn reclaim(&self, consumer: &str, count: usize, idle: Duration) -> KvResult<Vec<Entry>> {
        self.db.write("reclaim", |step| {
            let before = after(0, idle);
            entries::reclaim(step, consumer, count.max(1), step.now.saturating_sub(before))
        })
    }

    fn start(&self, request: &StartRequest<'_>) -> KvResult<Started> {
        self.db.write("start", |step| start::start(step, request))
    }

    fn heartbeat(&self, held: &Held, lock_ttl: Duration) -> KvResult<Beat> {
        self.db.write("heartbeat", |step| {
            if !locks::prolong(step, &held.pipeline, &held.token, lock_ttl)? {
                return Ok(Beat::Lost);
            }
            entries::show_life(step, &held.entry, &held.consumer)?;
            beat(step, held)
        })
    }

    fn show(&self, held: &Held, job: &Job) -> KvResult<Beat> {
        self.db.write("show", |step| {
            if !locks::is_held(step, held)? {
                return Ok(Beat::Lost);
            }
            let live = jobs::text(job)?;
            step.run("UPDATE jobs SET live = ?2 WHERE job_id = ?1", params![held.job_id.as_str(), live])?;
            beat(step, held)
        })
    }

    fn begin_publishing(&self, held: &Held) -> KvResult<Publishing> {
        self.db.write("begin publishing", |step| {
            if !locks::is_held(step, held)? {
                return Ok(Publishing::Lost);
            }
            let sql = "UPDATE jobs SET publishing = 1 WHERE job_id = ?1 AND cancel = 0";
            let begun = step.run(sql, [held.job_id.as_str()])? > 0;
            Ok(if begun { Publishing::Begun } else { Publishing::Cancelled })
        })
    }

    fn put_back(&self, held: &Held, wait: &Wait<'_>) -> KvResult<Release> {
        let Wait { job, delay, reason, charge } = *wait;
        self.db.write("put back", |step| {
            owned(step, held, || {
                // First, so that the job doesn't become due by its own release.
                locks::release(step, &held.pipeline, &held.token)?;
                acknowledge(step, held)?;
                let given_back = match charge {
                    Charge::Attempt => 0,
                    Charge::Nothing => 1,
                };
                step.run(
                    "UPDATE jobs SET running = NULL, attempts = max(attempts - ?2, 0) WHERE job_id = ?1",
                    params![held.job_id.as_str(), given_back],
                )?;
                jobs::wait(step, job, after(step.now, delay), reason)
            })
        })
    }

    fn end(&self, held: &Held, job: &Job) -> KvResult<Release> {
        self.db.write("end", |step| {
            owned(step, held, || {
                acknowledge(step, held)?;
                step.run("DELETE FROM jobs WHERE job_id = ?1", [held.job_id.as_str()])?;
                let expires = after(step.now, Duration::from_millis(LIVE_AFTER_END_MS));
                step.run(
                    "INSERT OR REPLACE INTO ended (job_id, pipeline, live, expires_ms) VALUES (?1, ?2, ?3, ?4)",
                    params![held.job_id.as_str(), held.pipeline.as_str(), jobs::text(job)?, expires],
                )?;
                step.run(
                    "DELETE FROM ended WHERE job_id IN
                         (SELECT job_id FROM ended WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2)",
                    params![step.now, entries::limit(EXPIRED_AT_ONCE)],
                )?;
                locks::release(step, &held.pipeline, &held.token)?;
                Ok(())
            })
        })
    }

    fn uncharge(&self, held: &Held) -> KvResult<bool> {
        self.db.write("uncharge", |step| {
            let fence = i64::try_from(held.fence).unwrap_or(i64::MAX);
            let sql =
                "UPDATE jobs SET running = NULL, attempts = max(attempts - 1, 0) WHERE job_id = ?1 AND running = ?2";
            Ok(step.run(sql, params![held.job_id.as_str(), fence])? > 0)
        })
    }

    fn bury(&self, entry: &Entry, why: &str) -> KvResult<()> {
        self.db.write("bury", |step| {
            let Some(number) = entries::number(&entry.id) else { return Ok(()) };
            let moved = step.run(
                "INSERT INTO dead (why, fields, received_ms, buried_ms)
                 SELECT ?2, fields, received_ms, ?3 FROM stream WHERE id = ?1",
                params![number, why, step.now],
            )?;
            if moved > 0 {
                let last = step.last_id();
                entries::remove(step, number)?;
                step.run("DELETE FROM dead WHERE id <= ?1", [last - entries::limit(DEAD_ENTRIES_MAX)])?;
            }
            Ok(())
        })
    }

    fn leave(&self, _consumer: &str) -> KvResult<()> {
        // A consumer is known by what is pending for it alone.
        Ok(())
    }
}
