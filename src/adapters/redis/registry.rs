//! Active jobs, for all services.

use std::time::Duration;

use super::connection::Repeat;
use super::keys::{self, DEAD, DELAYED, FIRST_EVENTS, GROUP, STREAM, WINDOWS};
use super::kv::RedisKv;
use super::record::{PARTS, decode, encode};
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::domain::job::{Job, JobId};
use crate::domain::limits::TOMBSTONE_MS;
use crate::domain::name::Slug;
use crate::ports::jobs::{CancelOutcome, EnqueueOutcome, JobRegistry, QueueCounts};
use crate::ports::kv::{KvError, KvResult};
use crate::ports::schedule::Cursor;

/// Jobs in one reply.
const ACTIVE_MAX: usize = 10_000;
/// Jobs that one step deletes, and steps of one call. The tombstone drops any others when they start.
const DROP_JOBS_MAX: usize = 1_000;
const DROP_STEPS_MAX: usize = 1_000;
/// Keys that one step of a scan looks at, and the cursor at which a scan begins and ends.
const SCAN_COUNT: usize = 10_000;
const SCAN_START: &str = "0";

impl JobRegistry for RedisKv {
    fn enqueue(&self, job: &Job) -> KvResult<EnqueueOutcome> {
        let (live, message) = (keys::live(&job.job_id), keys::message(&job.job_id));
        let active = keys::active(&job.pipeline);
        let call = Call::new(&scripts::ENQUEUE, [STREAM, &live, &active, &message]);
        let reply = new_job(call, job).run(&self.pool)?;
        match reply.text()?.as_str() {
            "queued" => Ok(EnqueueOutcome::Queued),
            "active" => Ok(EnqueueOutcome::AlreadyActive),
            _ => Err(reply.unexpected("`queued` or `active`")),
        }
    }

    fn attempts_max(&self) -> KvResult<Option<u32>> {
        const OPERATION: &str = "attempts_max";
        let mut get = ::redis::cmd("GET");
        let reply = OperationReply::new(
            OPERATION,
            self.pool.request(OPERATION, Repeat::Idempotent, get.arg(keys::ATTEMPTS_MAX))?,
        );
        if reply.is_nil() {
            return Ok(None);
        }
        u32::try_from(reply.count()?).map(Some).map_err(|_| reply.unexpected("a count of attempts"))
    }

    fn set_attempts_max(&self, attempts_max: u32) -> KvResult<()> {
        let mut set = ::redis::cmd("SET");
        set.arg(keys::ATTEMPTS_MAX).arg(attempts_max);
        self.pool.request("set_attempts_max", Repeat::Idempotent, &set)?;
        Ok(())
    }

    fn job(&self, pipeline: &Slug, job_id: &JobId) -> KvResult<Option<Job>> {
        self.adopt()?;
        let (live, message) = (keys::live(job_id), keys::message(job_id));
        let (active, lock) = (keys::active(pipeline), keys::run_lock(pipeline));
        let keys = [&live, &active, &message, &lock, STREAM, keys::ATTEMPTS_MAX];
        let call = Call::new(&scripts::JOB, keys).arg(job_id).arg(GROUP);
        let [is_active, since_heartbeat, record @ ..] = call.run(&self.pool)?.parts::<{ 2 + PARTS }>()?;
        if record[0].is_nil() && !is_active.flag()? {
            return Ok(None);
        }
        Ok(decode(since_heartbeat, record)?.filter(|job| job.pipeline == *pipeline))
    }

    fn active(&self, pipeline: &Slug, limit: usize) -> KvResult<Vec<Job>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        self.adopt()?;
        let (active, lock) = (keys::active(pipeline), keys::run_lock(pipeline));
        let reply = Call::new(&scripts::ACTIVE, [&active, &lock, STREAM, keys::ATTEMPTS_MAX])
            .arg(keys::LIVE)
            .arg(keys::MESSAGE)
            .arg(limit.min(ACTIVE_MAX))
            .arg(GROUP)
            .run(&self.pool)?;
        let mut jobs = Vec::new();
        for reply in reply.list()? {
            let [job_id, since_heartbeat, record @ ..] = reply.parts::<{ 2 + PARTS }>()?;
            match decode(since_heartbeat, record) {
                Ok(Some(job)) if job.pipeline == *pipeline => jobs.push(job),
                Ok(_) => {}
                // A malformed record must not hide others.
                Err(error @ KvError::Malformed { .. }) => {
                    let job_id = job_id.text().unwrap_or_default();
                    tracing::warn!(job_id, pipeline = pipeline.as_str(), %error, "job not shown: its record is malformed");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(jobs)
    }

    fn cancel(&self, pipeline: &Slug, job_id: &JobId) -> KvResult<CancelOutcome> {
        self.adopt()?;
        let (active, message) = (keys::active(pipeline), keys::message(job_id));
        let call = Call::new(&scripts::CANCEL, [DELAYED, &active, &message, STREAM]);
        let call = call.arg(self.now()).arg(job_id).arg(GROUP);
        let reply = call.run(&self.pool)?;
        match reply.text()?.as_str() {
            "requested" => Ok(CancelOutcome::Requested),
            "too_late" => Ok(CancelOutcome::TooLate),
            "not_active" => Ok(CancelOutcome::NotActive),
            _ => Err(reply.unexpected("`requested`, `too_late` or `not_active`")),
        }
    }

    fn counts(&self) -> KvResult<QueueCounts> {
        let reply = Call::new(&scripts::COUNTS, [STREAM, DELAYED, WINDOWS, DEAD, keys::RUN_REQUESTS])
            .arg(GROUP)
            .run(&self.pool)?;
        let [stream, pending, waiting, windows, dead, requested] = reply.parts()?;
        Ok(QueueCounts {
            stream: stream.count()?,
            pending: pending.count()?,
            waiting: waiting.count()?,
            requested: requested.count()?,
            windows: windows.count()?,
            dead_letters: dead.count()?,
        })
    }

    fn oldest_due(&self) -> KvResult<Option<Duration>> {
        let ms = Call::new(&scripts::OLDEST_DUE, [STREAM, DELAYED]).arg(self.now()).run(&self.pool)?.number()?;
        Ok(u64::try_from(ms).ok().map(Duration::from_millis))
    }

    fn drop_pipeline(&self, pipeline: &Slug) -> KvResult<()> {
        self.adopt()?;
        let (active, lock) = (keys::active(pipeline), keys::run_lock(pipeline));
        let (tombstone, changes) = (keys::tombstone(pipeline), keys::window_changes(pipeline));
        for _ in 0..DROP_STEPS_MAX {
            let of_jobs = [STREAM, DELAYED, &active, WINDOWS, FIRST_EVENTS, &lock, &tombstone, &changes];
            let rest = [keys::ENDED, keys::FAILED, keys::JOB_INDEX, keys::UNINDEXED, keys::PAUSES, keys::RUN_REQUESTS];
            let keys = of_jobs.into_iter().chain(rest).map(str::to_owned);
            let call = Call::with_keys(&scripts::DROP_PIPELINE, keys);
            let call = call.arg(self.now()).arg(GROUP).arg(pipeline).arg(TOMBSTONE_MS);
            let call = call.arg(keys::LIVE).arg(keys::MESSAGE).arg(DROP_JOBS_MAX).arg(keys::JOB_CHANGES);
            let call = call.arg(keys::ENDED_OF).arg(keys::FAILED_OF);
            if call.run(&self.pool)?.number()? <= 0 {
                break;
            }
        }
        Ok(())
    }

    fn revive_pipeline(&self, pipeline: &Slug) -> KvResult<()> {
        let (tombstone, changes) = (keys::tombstone(pipeline), keys::window_changes(pipeline));
        Call::new(&scripts::REVIVE_PIPELINE, [&tombstone, &changes, keys::JOB_INDEX, keys::UNINDEXED])
            .arg(pipeline)
            .run(&self.pool)?;
        Ok(())
    }
}

impl RedisKv {
    /// One step of a scan of the keys of active jobs: those found, and the position to continue at; `None` after the last.
    pub(super) fn scan_active(
        &self,
        operation: &'static str,
        from: &Cursor,
    ) -> KvResult<(Vec<String>, Option<Cursor>)> {
        let at = if from.0.is_empty() { SCAN_START } else { &from.0 };
        let mut scan = ::redis::cmd("SCAN");
        scan.arg(at).arg("MATCH").arg(format!("{}*", keys::ACTIVE)).arg("COUNT").arg(SCAN_COUNT);
        let reply = OperationReply::new(operation, self.pool.request(operation, Repeat::Idempotent, &scan)?);
        let [next, found] = reply.parts()?;
        let found = found.list()?.iter().map(OperationReply::text).collect::<KvResult<_>>()?;
        let next = next.text()?;
        Ok((found, (next != SCAN_START).then_some(Cursor(next))))
    }
}

/// Adds the arguments of a new job.
pub(super) fn new_job(call: Call, job: &Job) -> Call {
    call.arg(&job.job_id)
        .arg(encode(job))
        .arg(job.enqueued_at.timestamp_millis())
        .arg(job.max_attempts)
        .fields(job.message().fields())
}
