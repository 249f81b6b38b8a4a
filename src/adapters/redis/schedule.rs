//! What becomes due by itself, and the janitor that puts back what got lost.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::connection::Repeat;
use super::error::group_is_missing;
use super::keys::{self, ACTIVE, ADOPTED, DELAYED, EPOCH, FIRST_EVENTS, GROUP, LIVE, MESSAGE, STREAM, WINDOWS};
use super::kv::RedisKv;
use super::registry::new_job;
use super::reply::Reply;
use super::scripts::{self, Call};
use crate::domain::job::Job;
use crate::domain::limits::{DEBOUNCE_QUIET_MS, DEBOUNCE_WAIT_MS_MAX, JOB_WAIT_MS_MAX};
use crate::domain::name::Slug;
use crate::ports::kv::{KvError, KvResult};
use crate::ports::schedule::{Cursor, Schedule};

/// Windows that one script extends; more go into further ones.
const EXTEND_MAX: usize = 500;
/// Windows or jobs of one step.
const DUE_MAX: usize = 1_000;
/// Keys that one step of a restore looks at.
const RESTORE_KEYS: usize = 10_000;
/// Jobs that one script looks at, and jobs of one pipeline: the oldest. Later ones come up as these end.
const RESTORE_JOBS: usize = 100;
const RESTORE_JOBS_MAX: usize = 1_000;
/// The position at which a walk over all keys begins and ends.
const START: &str = "0";

impl Schedule for RedisKv {
    fn extend_windows(&self, pipelines: &[Slug]) -> KvResult<Vec<DateTime<Utc>>> {
        let mut since = Vec::with_capacity(pipelines.len());
        for some in pipelines.chunks(EXTEND_MAX) {
            let reply = Call::new(&scripts::EXTEND_WINDOWS, [WINDOWS, FIRST_EVENTS])
                .arg(self.now())
                .arg(DEBOUNCE_QUIET_MS)
                .arg(DEBOUNCE_WAIT_MS_MAX)
                .args(some.iter().map(Slug::to_string))
                .run(&self.pool)?;
            for first in reply.list()? {
                since.push(first.time()?);
            }
        }
        Ok(since)
    }

    fn window_opened_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>> {
        let command = ::redis::cmd("HGET").arg(FIRST_EVENTS).arg(pipeline.as_str()).to_owned();
        let first = Reply::new("window_since", self.pool.request("window_since", Repeat::Harmless, &command)?);
        if first.is_nil() { Ok(None) } else { first.time().map(Some) }
    }

    fn due_windows(&self, limit: usize) -> KvResult<Vec<Slug>> {
        let call = Call::new(&scripts::DUE_WINDOWS, [WINDOWS]).arg(self.now()).arg(limit.min(DUE_MAX));
        let mut due = Vec::new();
        for reply in call.run(&self.pool)?.list()? {
            let name = reply.text()?;
            match Slug::parse(&name) {
                Ok(slug) => due.push(slug),
                Err(error) => {
                    tracing::warn!(%error, "a debounce window of nobody is closed");
                    self.pool.request("due_windows", Repeat::Harmless, ::redis::cmd("ZREM").arg(WINDOWS).arg(&name))?;
                }
            }
        }
        Ok(due)
    }

    fn window_due_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>> {
        let command = ::redis::cmd("ZSCORE").arg(WINDOWS).arg(pipeline.as_str()).to_owned();
        let due = Reply::new("window", self.pool.request("window", Repeat::Harmless, &command)?);
        if due.is_nil() { Ok(None) } else { due.time().map(Some) }
    }

    fn fire_window(&self, job: &Job) -> KvResult<bool> {
        let (live, message) = (keys::live(&job.job_id), keys::message(&job.job_id));
        let active = keys::active(&job.pipeline);
        let call = Call::new(&scripts::FIRE_WINDOW, [WINDOWS, FIRST_EVENTS, STREAM, &live, &active, &message]);
        new_job(call.arg(self.now()).arg(&job.pipeline), job).run(&self.pool)?.flag()
    }

    fn close_window(&self, pipeline: &Slug) -> KvResult<bool> {
        let call = Call::new(&scripts::CLOSE_WINDOW, [WINDOWS, FIRST_EVENTS]);
        call.arg(self.now()).arg(pipeline).run(&self.pool)?.flag()
    }

    fn release_due(&self, limit: usize) -> KvResult<usize> {
        let call = Call::new(&scripts::RELEASE_DUE, [STREAM, DELAYED]);
        let reply = call.arg(self.now()).arg(limit.min(DUE_MAX)).arg(MESSAGE).run(&self.pool)?;
        Ok(usize::try_from(reply.count()?).unwrap_or(usize::MAX))
    }

    fn requeue_lost(&self, from: &Cursor) -> KvResult<(usize, Option<Cursor>)> {
        self.clamp()?;
        let at = if from.0.is_empty() { START } else { &from.0 };
        self.adopt()?;
        if at == START {
            self.forget_idle_consumers()?;
        }
        let mut scan = ::redis::cmd("SCAN");
        scan.arg(at).arg("MATCH").arg(format!("{ACTIVE}*")).arg("COUNT").arg(RESTORE_KEYS);
        let value = self.pool.request("restore", Repeat::Harmless, &scan)?;
        let [next, found] = Reply::new("restore", value).parts()?;
        let mut restored = 0;
        for key in found.list()? {
            let key = key.text()?;
            match self.restore_pipeline(&key) {
                Ok(count) => restored += count,
                // One bad key keeps no other pipeline from being looked after.
                Err(error @ KvError::Malformed { .. }) => {
                    tracing::warn!(key, %error, "the jobs of a pipeline can't be looked after");
                }
                Err(error) => return Err(error),
            }
        }
        let next = next.text()?;
        Ok((restored, (next != START).then_some(Cursor(next))))
    }

    fn is_initialized(&self) -> KvResult<bool> {
        Call::new(&scripts::IS_INITIALIZED, [STREAM, EPOCH, ADOPTED]).arg(GROUP).run(&self.pool)?.flag()
    }

    fn mark_initialized(&self) -> KvResult<()> {
        let epoch = uuid::Uuid::new_v4().to_string();
        self.pool.request("remember", Repeat::Harmless, ::redis::cmd("SET").arg(EPOCH).arg(epoch))?;
        Ok(())
    }
}

impl RedisKv {
    fn clamp(&self) -> KvResult<()> {
        let call = Call::new(&scripts::CLAMP, [DELAYED, WINDOWS, FIRST_EVENTS]);
        let call = call.arg(self.now()).arg(JOB_WAIT_MS_MAX).arg(DEBOUNCE_WAIT_MS_MAX).arg(DUE_MAX);
        let clamped = call.run(&self.pool)?.count()?;
        if clamped > 0 {
            tracing::warn!(clamped, "jobs and windows were due beyond any wait: the clock of Redis was set back");
        }
        Ok(())
    }

    fn restore_pipeline(&self, key: &str) -> KvResult<usize> {
        let Ok(slug) = Slug::parse(key.strip_prefix(ACTIVE).unwrap_or_default()) else { return Ok(0) };
        let mut range = ::redis::cmd("ZRANGE");
        range.arg(key).arg(0).arg(RESTORE_JOBS_MAX - 1);
        let ids = Reply::new("restore", self.pool.request("restore", Repeat::Harmless, &range)?).list()?;
        let ids = ids.iter().map(Reply::text).collect::<KvResult<Vec<String>>>()?;
        let mut restored = 0;
        for some in ids.chunks(RESTORE_JOBS) {
            let reply = Call::new(&scripts::REQUEUE_LOST, [STREAM, DELAYED, key, &keys::run_lock(&slug)])
                .arg(GROUP)
                .arg(LIVE)
                .arg(MESSAGE)
                .args(some.iter().cloned())
                .run(&self.pool)?;
            for job in reply.list()? {
                tracing::warn!(
                    job_id = job.text()?,
                    pipeline = slug.as_str(),
                    "a job was lost from the stream: put back"
                );
                restored += 1;
            }
        }
        Ok(restored)
    }

    /// Every process that died without leaving has left a consumer behind.
    fn forget_idle_consumers(&self) -> KvResult<()> {
        let mut command = ::redis::cmd("XINFO");
        command.arg("CONSUMERS").arg(STREAM).arg(GROUP);
        let value = match self.pool.try_request(Repeat::Harmless, &command, Duration::ZERO) {
            Ok(value) => value,
            Err(error) if group_is_missing(&error) => return Ok(()),
            Err(error) if error.detail().is_some_and(|text| text.contains("no such key")) => return Ok(()),
            Err(error) => return Err(self.pool.told("restore", &error)),
        };
        for consumer in Reply::new("restore", value).list()? {
            let properties = consumer.list()?;
            let get = |name: &str| {
                let at = properties.chunks(2).find(|pair| pair[0].text().is_ok_and(|text| text == name))?;
                at.get(1)
            };
            let (Some(name), Some(pending), Some(idle)) = (get("name"), get("pending"), get("idle")) else { continue };
            if pending.count()? == 0 && u128::from(idle.count()?) > self.consumer_idle.as_millis() {
                let name = name.text()?;
                if self.forget_consumer(&name)? {
                    tracing::info!(consumer = name, "forgot a consumer that asked for nothing for long");
                }
            }
        }
        Ok(())
    }
}
