//! Timed work: debounce windows and waiting jobs; and the requeueing of lost jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::connection::Repeat;
use super::error::group_is_missing;
use super::keys::{
    self, ACTIVE, ADOPTED, DELAYED, EPOCH, FIRST_EVENTS, GROUP, JOB_CHANGES, LIVE, MESSAGE, PAUSES, RUN_REQUESTS,
    STREAM, WINDOW_CHANGES, WINDOWS,
};
use super::kv::RedisKv;
use super::registry::new_job;
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::domain::job::{ChangedKeys, Job, JobId};
use crate::domain::limits::{
    CHANGED_KEYS_BYTES_MAX, CHANGED_KEYS_MAX, CHANGED_KEYS_TTL_MS, DEBOUNCE_QUIET_MS, DEBOUNCE_WAIT_MS_MAX,
    JOB_WAIT_MS_MAX,
};
use crate::domain::name::Slug;
use crate::ports::kv::{KvError, KvResult};
use crate::ports::schedule::{CloseReason, Cursor, Schedule};

/// Windows that one script extends, and the keys that it adds beyond those of the first window.
const EXTEND_MAX: usize = 500;
const EXTEND_KEYS_MAX: usize = 1_000;
/// Instead of a number of keys: any key may have changed.
const ALL: &str = "all";
/// Windows or jobs per step.
const DUE_MAX: usize = 1_000;
/// Jobs that one script checks, and jobs checked of one pipeline: the oldest. Later ones follow as these end.
const CHECK_BATCH: usize = 100;
const CHECKED_MAX: usize = 1_000;

impl Schedule for RedisKv {
    fn record_changes(&self, changes: &[(Slug, ChangedKeys)]) -> KvResult<Vec<DateTime<Utc>>> {
        let mut opened = Vec::with_capacity(changes.len());
        let mut rest = changes;
        while !rest.is_empty() {
            let (some, others) = rest.split_at(extended_at_once(rest));
            rest = others;
            let mut call = Call::new(&scripts::EXTEND_WINDOWS, [WINDOWS, FIRST_EVENTS])
                .arg(self.now())
                .arg(DEBOUNCE_QUIET_MS)
                .arg(DEBOUNCE_WAIT_MS_MAX)
                .arg(WINDOW_CHANGES)
                .arg(CHANGED_KEYS_MAX)
                .arg(CHANGED_KEYS_BYTES_MAX);
            for (pipeline, keys) in some {
                call = match keys {
                    ChangedKeys::Only(keys) if keys.len() <= CHANGED_KEYS_MAX => {
                        call.arg(pipeline).arg(keys.len()).args(keys.iter().cloned())
                    }
                    ChangedKeys::Only(_) | ChangedKeys::All => call.arg(pipeline).arg(ALL),
                };
            }
            for first in call.run(&self.pool)?.list()? {
                opened.push(first.time()?);
            }
        }
        Ok(opened)
    }

    fn changed_keys(&self, job_id: &JobId) -> KvResult<ChangedKeys> {
        let command = ::redis::cmd("HKEYS").arg(keys::job_changes(job_id)).to_owned();
        let reply =
            OperationReply::new("changed_keys", self.pool.request("changed_keys", Repeat::Idempotent, &command)?);
        let fields = reply.list()?.iter().map(OperationReply::text).collect::<KvResult<BTreeSet<String>>>()?;
        let is_complete = fields.contains("");
        let keys = fields.iter().map(String::as_str).filter(|key| !key.is_empty());
        Ok(if is_complete { keys.collect() } else { ChangedKeys::All })
    }

    fn window_opened_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>> {
        let command = ::redis::cmd("HGET").arg(FIRST_EVENTS).arg(pipeline.as_str()).to_owned();
        let first = OperationReply::new(
            "window_opened_at",
            self.pool.request("window_opened_at", Repeat::Idempotent, &command)?,
        );
        if first.is_nil() { Ok(None) } else { first.time().map(Some) }
    }

    fn due_windows(&self, limit: usize) -> KvResult<Vec<Slug>> {
        let call = Call::new(&scripts::DUE_WINDOWS, [WINDOWS, PAUSES]).arg(self.now()).arg(limit.min(DUE_MAX));
        self.valid_slugs(call.run(&self.pool)?, WINDOWS, "debounce window closed: its pipeline name is invalid")
    }

    fn window_due_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>> {
        let command = ::redis::cmd("ZSCORE").arg(WINDOWS).arg(pipeline.as_str()).to_owned();
        let due =
            OperationReply::new("window_due_at", self.pool.request("window_due_at", Repeat::Idempotent, &command)?);
        if due.is_nil() { Ok(None) } else { due.time().map(Some) }
    }

    fn fire_window(&self, job: &Job) -> KvResult<bool> {
        let (live, message) = (keys::live(&job.job_id), keys::message(&job.job_id));
        let active = keys::active(&job.pipeline);
        let (of_window, of_job) = (keys::window_changes(&job.pipeline), keys::job_changes(&job.job_id));
        let keys = [WINDOWS, FIRST_EVENTS, STREAM, &live, &active, &message, &of_window, &of_job, RUN_REQUESTS];
        let call = Call::new(&scripts::FIRE_WINDOW, keys).arg(self.now()).arg(&job.pipeline).arg(CHANGED_KEYS_TTL_MS);
        new_job(call, job).run(&self.pool)?.flag()
    }

    fn close_window(&self, pipeline: &Slug, reason: CloseReason) -> KvResult<bool> {
        let look_at_all = match reason {
            CloseReason::AutoRunOff => 1,
            CloseReason::PipelineGone => 0,
        };
        let call = Call::new(&scripts::CLOSE_WINDOW, [WINDOWS, FIRST_EVENTS, &keys::window_changes(pipeline)]);
        call.arg(self.now()).arg(pipeline).arg(look_at_all).run(&self.pool)?.flag()
    }

    fn release_due(&self, limit: usize) -> KvResult<usize> {
        let call = Call::new(&scripts::RELEASE_DUE, [STREAM, DELAYED]);
        let reply = call.arg(self.now()).arg(limit.min(DUE_MAX)).arg(MESSAGE).run(&self.pool)?;
        Ok(usize::try_from(reply.count()?).unwrap_or(usize::MAX))
    }

    fn requeue_lost(&self, from: &Cursor) -> KvResult<(usize, Option<Cursor>)> {
        self.clamp()?;
        self.adopt()?;
        if from.0.is_empty() {
            self.remove_idle_consumers()?;
        }
        let (keys, next) = self.scan_active("requeue_lost", from)?;
        let mut requeued = 0;
        for key in keys {
            match self.requeue_lost_of(&key) {
                Ok(count) => requeued += count,
                // A malformed key must not block other pipelines.
                Err(error @ KvError::Malformed { .. }) => {
                    tracing::warn!(key, %error, "lost jobs of a pipeline not checked");
                }
                Err(error) => return Err(error),
            }
        }
        Ok((requeued, next))
    }

    fn is_initialized(&self) -> KvResult<bool> {
        Call::new(&scripts::IS_INITIALIZED, [STREAM, EPOCH, ADOPTED]).arg(GROUP).run(&self.pool)?.flag()
    }

    fn mark_initialized(&self) -> KvResult<()> {
        let epoch = uuid::Uuid::new_v4().to_string();
        self.pool.request("mark_initialized", Repeat::Idempotent, ::redis::cmd("SET").arg(EPOCH).arg(epoch))?;
        Ok(())
    }
}

/// How many of the changes one script records; at least 1.
fn extended_at_once(changes: &[(Slug, ChangedKeys)]) -> usize {
    let mut keys = 0;
    let fits = |(_, changed): &&(Slug, ChangedKeys)| {
        if let ChangedKeys::Only(these) = changed {
            keys += these.len();
        }
        keys <= EXTEND_KEYS_MAX
    };
    changes.iter().take(EXTEND_MAX).take_while(fits).count().max(1)
}

impl RedisKv {
    fn clamp(&self) -> KvResult<()> {
        let call = Call::new(&scripts::CLAMP, [DELAYED, WINDOWS, FIRST_EVENTS, RUN_REQUESTS]);
        let call = call.arg(self.now()).arg(JOB_WAIT_MS_MAX).arg(DEBOUNCE_WAIT_MS_MAX).arg(DUE_MAX);
        let clamped = call.run(&self.pool)?.count()?;
        if clamped > 0 {
            tracing::warn!(clamped, "due times were too far ahead and were corrected: Redis's clock was set back");
        }
        Ok(())
    }

    fn requeue_lost_of(&self, key: &str) -> KvResult<usize> {
        let Ok(slug) = Slug::parse(key.strip_prefix(ACTIVE).unwrap_or_default()) else { return Ok(0) };
        let mut range = ::redis::cmd("ZRANGE");
        range.arg(key).arg(0).arg(CHECKED_MAX - 1);
        let ids = OperationReply::new("requeue_lost", self.pool.request("requeue_lost", Repeat::Idempotent, &range)?)
            .list()?;
        let ids = ids.iter().map(OperationReply::text).collect::<KvResult<Vec<String>>>()?;
        let mut requeued = 0;
        for some in ids.chunks(CHECK_BATCH) {
            let reply = Call::new(&scripts::REQUEUE_LOST, [STREAM, DELAYED, key, &keys::run_lock(&slug)])
                .arg(GROUP)
                .arg(LIVE)
                .arg(MESSAGE)
                .arg(JOB_CHANGES)
                .arg(keys::window_changes(&slug))
                .args(some.iter().cloned())
                .run(&self.pool)?;
            for job in reply.list()? {
                tracing::warn!(
                    job_id = job.text()?,
                    pipeline = slug.as_str(),
                    "job requeued: it was lost from the stream"
                );
                requeued += 1;
            }
        }
        Ok(requeued)
    }

    /// Removes the consumers of processes that died.
    fn remove_idle_consumers(&self) -> KvResult<()> {
        let mut command = ::redis::cmd("XINFO");
        command.arg("CONSUMERS").arg(STREAM).arg(GROUP);
        let value = match self.pool.try_request(Repeat::Idempotent, &command, Duration::ZERO) {
            Ok(value) => value,
            Err(error) if group_is_missing(&error) => return Ok(()),
            Err(error) if error.detail().is_some_and(|text| text.contains("no such key")) => return Ok(()),
            Err(error) => return Err(self.pool.kv_error("requeue_lost", &error)),
        };
        for consumer in OperationReply::new("requeue_lost", value).list()? {
            let properties = consumer.list()?;
            let get = |name: &str| {
                let at = properties.chunks(2).find(|pair| pair[0].text().is_ok_and(|text| text == name))?;
                at.get(1)
            };
            let (Some(name), Some(pending), Some(idle)) = (get("name"), get("pending"), get("idle")) else { continue };
            let is_worker = !matches!(name.text()?.as_str(), keys::QUEUED_MANUAL | keys::QUEUED_AUTOMATIC);
            if is_worker && pending.count()? == 0 && u128::from(idle.count()?) > self.consumer_idle.as_millis() {
                let name = name.text()?;
                if self.remove_idle_consumer(&name)? {
                    tracing::info!(consumer = name, "idle consumer removed");
                }
            }
        }
        Ok(())
    }
}
