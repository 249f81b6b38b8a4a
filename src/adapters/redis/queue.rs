//! What a worker does with jobs.

use std::time::Duration;

use serde_json::json;

use super::RedisKv;
use super::keys::{self, DEAD, DELAYED, FENCES, GROUP, STREAM};
use super::record::encode;
use super::reply::Reply;
use super::scripts::{self, Call};
use crate::domain::job::{Charge, Job};
use crate::domain::limits::{DEAD_ENTRIES_MAX, DEFER_MARGIN_MS, DEFER_MS_MAX, LIVE_AFTER_END_MS};
use crate::ports::jobs::{Beat, Entry, Held, JobQueue, Publishing, Release, Start, StartRequest, Started, Wait};
use crate::ports::kv::KvResult;

/// Fields of a dead entry that are kept, and characters of each name and value.
const DEAD_FIELDS_MAX: usize = 32;
const DEAD_TEXT_CHARS_MAX: usize = 1_024;

impl JobQueue for RedisKv {
    fn claim(&self, consumer: &str, count: usize, wait: Duration) -> KvResult<Vec<Entry>> {
        self.read_new(consumer, count, wait)
    }

    fn reclaim(&self, consumer: &str, count: usize, idle: Duration) -> KvResult<Vec<Entry>> {
        self.take_over(consumer, count, idle)
    }

    fn start(&self, request: &StartRequest<'_>) -> KvResult<Started> {
        let message = request.message;
        let token = format!("{}/{}", message.job_id, request.token);
        let (live, record) = (keys::live(&message.job_id), keys::message(&message.job_id));
        let (active, lock) = (keys::active(&message.pipeline), keys::run_lock(&message.pipeline));
        let tombstone = keys::tombstone(&message.pipeline);
        let reply = Call::new(&scripts::START, [STREAM, DELAYED, &live, &active, &record, &lock, FENCES, &tombstone])
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
            .fields(message.fields())
            .run(&self.pool)?;
        started(reply, request, token)
    }

    fn heartbeat(&self, held: &Held, lock_ttl: Duration) -> KvResult<Beat> {
        let (message, lock) = (keys::message(&held.job_id), keys::run_lock(&held.pipeline));
        let reply = Call::new(&scripts::HEARTBEAT, [STREAM, &message, &lock])
            .arg(GROUP)
            .arg(&held.consumer)
            .arg(&held.entry.0)
            .arg(&held.token)
            .ms(lock_ttl)
            .run(&self.pool)?;
        beat(reply)
    }

    fn show(&self, held: &Held, job: &Job) -> KvResult<Beat> {
        let (live, lock) = (keys::live(&held.job_id), keys::run_lock(&held.pipeline));
        let message = keys::message(&held.job_id);
        let call = Call::new(&scripts::SHOW, [&live, &lock, &message]).arg(&held.token).arg(encode(job));
        beat(call.run(&self.pool)?)
    }

    fn begin_publishing(&self, held: &Held) -> KvResult<Publishing> {
        let (message, lock) = (keys::message(&held.job_id), keys::run_lock(&held.pipeline));
        let reply = Call::new(&scripts::BEGIN_PUBLISHING, [&message, &lock]).arg(&held.token).run(&self.pool)?;
        match reply.text()?.as_str() {
            "begun" => Ok(Publishing::Begun),
            "cancelled" => Ok(Publishing::Cancelled),
            "lost" => Ok(Publishing::Lost),
            _ => Err(reply.unexpected("`begun`, `cancelled` or `lost`")),
        }
    }

    fn put_back(&self, held: &Held, wait: &Wait<'_>) -> KvResult<Release> {
        let given_back = match wait.charge {
            Charge::Attempt => 0,
            Charge::Nothing => 1,
        };
        let call = held_call(&scripts::PUT_BACK, self.now(), held)
            .arg(wait.delay.as_millis())
            .arg(wait.reason.as_str())
            .arg(given_back)
            .arg(encode(wait.job))
            .arg(wait.job.enqueued_at.timestamp_millis())
            .arg(keys::MESSAGE)
            .fields(wait.job.message().fields());
        release(call.run(&self.pool)?)
    }

    fn end(&self, held: &Held, job: &Job) -> KvResult<Release> {
        let call =
            held_call(&scripts::FINISH, self.now(), held).arg(encode(job)).arg(LIVE_AFTER_END_MS).arg(keys::MESSAGE);
        release(call.run(&self.pool)?)
    }

    fn uncharge(&self, held: &Held) -> KvResult<bool> {
        let message = keys::message(&held.job_id);
        Call::new(&scripts::UNCHARGE, [message.as_str()]).arg(held.fence).run(&self.pool)?.flag()
    }

    fn bury(&self, entry: &Entry, why: &str) -> KvResult<()> {
        let cut = |text: &str| text.chars().take(DEAD_TEXT_CHARS_MAX).collect::<String>();
        let fields: Vec<[String; 2]> =
            entry.fields.iter().take(DEAD_FIELDS_MAX).map(|(name, value)| [cut(name), cut(value)]).collect();
        let kept = json!({
            "id": entry.id.0,
            "received_at": entry.received_at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            "why": cut(why),
            "fields": fields,
        });
        Call::new(&scripts::BURY, [STREAM, DEAD])
            .arg(GROUP)
            .arg(&entry.id.0)
            .arg(kept)
            .arg(DEAD_ENTRIES_MAX)
            .run(&self.pool)?;
        Ok(())
    }

    fn leave(&self, consumer: &str) -> KvResult<()> {
        self.forget_consumer(consumer).map(drop)
    }
}

impl RedisKv {
    /// Whether it is gone: with entries pending it stays.
    pub(super) fn forget_consumer(&self, consumer: &str) -> KvResult<bool> {
        Call::new(&scripts::LEAVE, [STREAM]).arg(GROUP).arg(consumer).run(&self.pool)?.flag()
    }
}

/// The keys of a job that ends its hold, and the arguments that name the hold.
fn held_call(source: &'static scripts::Source, now: i64, held: &Held) -> Call {
    let (live, message) = (keys::live(&held.job_id), keys::message(&held.job_id));
    let (active, lock) = (keys::active(&held.pipeline), keys::run_lock(&held.pipeline));
    Call::new(source, [STREAM, DELAYED, &live, &active, &message, &lock])
        .arg(now)
        .arg(GROUP)
        .arg(&held.entry.0)
        .arg(&held.job_id)
        .arg(&held.token)
}

fn beat(reply: Reply) -> KvResult<Beat> {
    match reply.text()?.as_str() {
        "held" => Ok(Beat::Held { cancelled: false }),
        "cancelled" => Ok(Beat::Held { cancelled: true }),
        "lost" => Ok(Beat::Lost),
        _ => Err(reply.unexpected("`held`, `cancelled` or `lost`")),
    }
}

pub(super) fn release(reply: Reply) -> KvResult<Release> {
    match reply.text()?.as_str() {
        "done" => Ok(Release::Done),
        "lost" => Ok(Release::Lost),
        _ => Err(reply.unexpected("`done` or `lost`")),
    }
}

fn started(reply: Reply, request: &StartRequest<'_>, token: String) -> KvResult<Started> {
    let [word, first, attempt, lost, cancelled] = reply.parts()?;
    match word.text()?.as_str() {
        "running" => {
            let message = request.message;
            let held = Held {
                job_id: message.job_id.clone(),
                pipeline: message.pipeline.clone(),
                entry: request.entry.clone(),
                consumer: request.consumer.to_owned(),
                token,
                fence: first.count()?,
            };
            let small = |reply: &Reply| Ok(u32::try_from(reply.count()?).unwrap_or(u32::MAX));
            let (attempt, lost_starts) = (small(&attempt)?, small(&lost)?);
            Ok(Started::Running(Start { held, attempt, lost_starts, cancelled: cancelled.flag()? }))
        }
        "deferred" => Ok(Started::Deferred { until: first.time()? }),
        "running_elsewhere" => Ok(Started::RunningElsewhere),
        "not_mine" => Ok(Started::NotMine),
        "dropped" => Ok(Started::Dropped),
        "id_taken" => Ok(Started::IdTaken),
        _ => Err(word.unexpected("how a start ended")),
    }
}
