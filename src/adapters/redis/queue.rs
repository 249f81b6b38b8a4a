//! The queue, for workers.

use std::time::Duration;

use serde_json::json;

use super::keys::{self, DEAD, DELAYED, FENCES, GROUP, STREAM};
use super::kv::RedisKv;
use super::record::encode;
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::domain::job::{AttemptCost, Job, JobPosition, JobStatus};
use crate::domain::limits::{
    DEAD_ENTRIES_MAX, DEFER_MARGIN_MS, DEFER_MS_MAX, ENDED_JOBS_INDEXED_MAX, LIVE_AFTER_END_MS,
};
use crate::ports::jobs::{
    ClaimLimits, Entry, HeartbeatReply, JobLease, JobQueue, PublishReply, ReleaseOutcome, Requeue, StartOutcome,
    StartRequest, StartedJob,
};
use crate::ports::kv::KvResult;

/// Fields of a dead letter that are kept, and characters of each name and value.
const DEAD_FIELDS_MAX: usize = 32;
const DEAD_TEXT_CHARS_MAX: usize = 1_024;

impl JobQueue for RedisKv {
    fn claim(&self, consumer: &str, limits: ClaimLimits, wait: Duration) -> KvResult<Vec<Entry>> {
        self.claim_queued(consumer, limits, wait)
    }

    fn reclaim(&self, consumer: &str, count: usize, idle: Duration) -> KvResult<Vec<Entry>> {
        self.reclaim_idle(consumer, count, idle)
    }

    fn start(&self, request: &StartRequest<'_>) -> KvResult<StartOutcome> {
        let message = request.message;
        let token = format!("{}/{}", message.job_id, request.token);
        let (live, record) = (keys::live(&message.job_id), keys::message(&message.job_id));
        let (active, lock) = (keys::active(&message.pipeline), keys::run_lock(&message.pipeline));
        let tombstone = keys::tombstone(&message.pipeline);
        let changes = keys::job_changes(&message.job_id);
        let keys = [STREAM, DELAYED, &live, &active, &record, &lock, FENCES, &tombstone, &changes];
        let reply = Call::new(&scripts::START, keys)
            .arg(self.now())
            .arg(GROUP)
            .arg(request.consumer)
            .arg(&request.entry.0)
            .arg(&message.job_id)
            .arg(&message.pipeline)
            .arg(message.enqueued_at.timestamp_millis())
            .arg(&token)
            .ms(request.lock_ttl)
            .arg(request.fence_floor)
            .arg(DEFER_MARGIN_MS)
            .arg(DEFER_MS_MAX)
            .arg(request.attempts_max)
            .arg(encode(&Job::queued(message, request.attempts_max)))
            .arg(keys::MESSAGE)
            .fields(message.fields())
            .run(&self.pool)?;
        started(reply, request, token)
    }

    fn heartbeat(&self, lease: &JobLease, lock_ttl: Duration) -> KvResult<HeartbeatReply> {
        let (message, lock) = (keys::message(&lease.job_id), keys::run_lock(&lease.pipeline));
        let reply = Call::new(&scripts::HEARTBEAT, [STREAM, &message, &lock])
            .arg(GROUP)
            .arg(&lease.consumer)
            .arg(&lease.entry.0)
            .arg(&lease.token)
            .ms(lock_ttl)
            .run(&self.pool)?;
        heartbeat_reply(reply)
    }

    fn update_record(&self, lease: &JobLease, job: &Job) -> KvResult<HeartbeatReply> {
        let (live, lock) = (keys::live(&lease.job_id), keys::run_lock(&lease.pipeline));
        let message = keys::message(&lease.job_id);
        let call = Call::new(&scripts::UPDATE_RECORD, [&live, &lock, &message]).arg(&lease.token).arg(encode(job));
        heartbeat_reply(call.run(&self.pool)?)
    }

    fn begin_publishing(&self, lease: &JobLease) -> KvResult<PublishReply> {
        let (message, lock) = (keys::message(&lease.job_id), keys::run_lock(&lease.pipeline));
        let reply = Call::new(&scripts::BEGIN_PUBLISHING, [&message, &lock]).arg(&lease.token).run(&self.pool)?;
        match reply.text()?.as_str() {
            "begun" => Ok(PublishReply::Begun),
            "cancelled" => Ok(PublishReply::Cancelled),
            "lost" => Ok(PublishReply::Lost),
            _ => Err(reply.unexpected("`begun`, `cancelled` or `lost`")),
        }
    }

    fn requeue(&self, lease: &JobLease, requeue: &Requeue<'_>) -> KvResult<ReleaseOutcome> {
        let refund = match requeue.cost {
            AttemptCost::One => 0,
            AttemptCost::Zero => 1,
        };
        let call = lease_call(&scripts::REQUEUE, self.now(), lease)
            .arg(requeue.delay.as_millis())
            .arg(requeue.reason.as_str())
            .arg(refund)
            .arg(encode(requeue.job))
            .arg(requeue.job.enqueued_at.timestamp_millis())
            .arg(keys::MESSAGE)
            .fields(requeue.job.message().fields());
        release_outcome(call.run(&self.pool)?)
    }

    fn finish(&self, lease: &JobLease, job: &Job) -> KvResult<ReleaseOutcome> {
        let position = if job.is_dry_run() { String::new() } else { keys::indexed(&JobPosition::of(job)) };
        let call = lease_call(&scripts::FINISH, self.now(), lease)
            .key(keys::ENDED)
            .key(keys::FAILED)
            .key(keys::JOB_INDEX)
            .arg(encode(job))
            .arg(LIVE_AFTER_END_MS)
            .arg(keys::MESSAGE)
            .arg(keys::JOB_CHANGES)
            .arg(keys::window_changes(&lease.pipeline))
            .arg(keys::tombstone(&lease.pipeline))
            .arg(u8::from(job.status == JobStatus::Completed))
            .arg(keys::ENDED_OF)
            .arg(keys::FAILED_OF)
            .arg(ENDED_JOBS_INDEXED_MAX)
            .arg(&lease.pipeline)
            .arg(position);
        release_outcome(call.run(&self.pool)?)
    }

    fn refund_attempt(&self, lease: &JobLease) -> KvResult<bool> {
        let message = keys::message(&lease.job_id);
        Call::new(&scripts::REFUND_ATTEMPT, [message.as_str()]).arg(lease.fence).run(&self.pool)?.flag()
    }

    fn dead_letter(&self, entry: &Entry, why: &str) -> KvResult<()> {
        let cut = |text: &str| text.chars().take(DEAD_TEXT_CHARS_MAX).collect::<String>();
        let fields: Vec<[String; 2]> =
            entry.fields.iter().take(DEAD_FIELDS_MAX).map(|(name, value)| [cut(name), cut(value)]).collect();
        let kept = json!({
            "id": entry.id.0,
            "received_at": entry.received_at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            "why": cut(why),
            "fields": fields,
        });
        Call::new(&scripts::DEAD_LETTER, [STREAM, DEAD])
            .arg(GROUP)
            .arg(&entry.id.0)
            .arg(kept)
            .arg(DEAD_ENTRIES_MAX)
            .run(&self.pool)?;
        Ok(())
    }

    fn remove_consumer(&self, consumer: &str) -> KvResult<()> {
        self.remove_idle_consumer(consumer).map(drop)
    }
}

impl RedisKv {
    /// False if entries are pending for it.
    pub(super) fn remove_idle_consumer(&self, consumer: &str) -> KvResult<bool> {
        Call::new(&scripts::REMOVE_CONSUMER, [STREAM]).arg(GROUP).arg(consumer).run(&self.pool)?.flag()
    }
}

/// The keys and arguments of a step that ends a lease.
fn lease_call(source: &'static scripts::Source, now: i64, lease: &JobLease) -> Call {
    let (live, message) = (keys::live(&lease.job_id), keys::message(&lease.job_id));
    let (active, lock) = (keys::active(&lease.pipeline), keys::run_lock(&lease.pipeline));
    Call::new(source, [STREAM, DELAYED, &live, &active, &message, &lock])
        .arg(now)
        .arg(GROUP)
        .arg(&lease.entry.0)
        .arg(&lease.job_id)
        .arg(&lease.token)
}

fn heartbeat_reply(reply: OperationReply) -> KvResult<HeartbeatReply> {
    match reply.text()?.as_str() {
        "held" => Ok(HeartbeatReply::Held { cancelled: false }),
        "cancelled" => Ok(HeartbeatReply::Held { cancelled: true }),
        "lost" => Ok(HeartbeatReply::Lost),
        _ => Err(reply.unexpected("`held`, `cancelled` or `lost`")),
    }
}

pub(super) fn release_outcome(reply: OperationReply) -> KvResult<ReleaseOutcome> {
    match reply.text()?.as_str() {
        "done" => Ok(ReleaseOutcome::Released),
        "lost" => Ok(ReleaseOutcome::Lost),
        _ => Err(reply.unexpected("`done` or `lost`")),
    }
}

fn started(reply: OperationReply, request: &StartRequest<'_>, token: String) -> KvResult<StartOutcome> {
    let [word, first, attempt, lost, cancelled] = reply.parts()?;
    match word.text()?.as_str() {
        "running" => {
            let message = request.message;
            let lease = JobLease {
                job_id: message.job_id.clone(),
                pipeline: message.pipeline.clone(),
                entry: request.entry.clone(),
                consumer: request.consumer.to_owned(),
                token,
                fence: first.count()?,
            };
            let small = |reply: &OperationReply| Ok(u32::try_from(reply.count()?).unwrap_or(u32::MAX));
            let (attempt, lost_starts) = (small(&attempt)?, small(&lost)?);
            Ok(StartOutcome::Running(StartedJob { lease, attempt, lost_starts, cancelled: cancelled.flag()? }))
        }
        "deferred" => Ok(StartOutcome::Deferred { until: first.time()? }),
        "running_elsewhere" => Ok(StartOutcome::RunningElsewhere),
        "not_mine" => Ok(StartOutcome::NotClaimed),
        "dropped" => Ok(StartOutcome::Dropped),
        "id_taken" => Ok(StartOutcome::IdTaken),
        _ => Err(word.unexpected("a start's outcome")),
    }
}
