//! Locks: on a pipeline's runs for those that are no run, and on single names.

use std::time::Duration;

use uuid::Uuid;

use super::connection::Repeat;
use super::keys::{self, DELAYED, FENCES};
use super::kv::RedisKv;
use super::queue::release;
use super::reply::Reply;
use super::scripts::{self, Call};
use crate::domain::name::Slug;
use crate::ports::jobs::{LockHolder, PipelineLock, PipelineLocks, ReleaseOutcome};
use crate::ports::kv::{KeyLocks, KvResult};

/// How the token of a hold begins that is no run's: no job id has a `!`, so it is never taken for the lock of a job.
const HOLD: &str = "!hold/";

impl PipelineLocks for RedisKv {
    fn lock_holder(&self, pipeline: &Slug) -> KvResult<Option<LockHolder>> {
        let mut command = ::redis::cmd("GET");
        command.arg(keys::run_lock(pipeline));
        let reply = Reply::new("holder", self.pool.request("holder", Repeat::Harmless, &command)?);
        let holder =
            |token: String| if token.starts_with(HOLD) { LockHolder::Other } else { LockHolder::Run { token } };
        Ok(reply.optional_text()?.map(holder))
    }

    fn lock_pipeline(&self, pipeline: &Slug, ttl: Duration, fence_floor: u64) -> KvResult<Option<PipelineLock>> {
        let token = format!("{HOLD}{}", Uuid::new_v4());
        let reply = Call::new(&scripts::LOCK_PIPELINE, [&keys::run_lock(pipeline), FENCES])
            .arg(self.now())
            .arg(pipeline)
            .arg(&token)
            .ms(ttl)
            .arg(fence_floor)
            .run(&self.pool)?;
        if reply.is_nil() {
            return Ok(None);
        }
        Ok(Some(PipelineLock { pipeline: pipeline.clone(), token, fence: reply.count()? }))
    }

    fn renew(&self, hold: &PipelineLock, ttl: Duration) -> KvResult<ReleaseOutcome> {
        let lock = keys::run_lock(&hold.pipeline);
        release(Call::new(&scripts::RENEW, [&lock]).arg(&hold.token).ms(ttl).run(&self.pool)?)
    }

    fn release(&self, hold: &PipelineLock) -> KvResult<ReleaseOutcome> {
        let (lock, active) = (keys::run_lock(&hold.pipeline), keys::active(&hold.pipeline));
        let call = Call::new(&scripts::RELEASE, [&lock, DELAYED, &active]);
        release(call.arg(self.now()).arg(&hold.token).arg(keys::MESSAGE).run(&self.pool)?)
    }
}

impl KeyLocks for RedisKv {
    fn try_lock(&self, name: &str, token: &str, ttl: Duration) -> KvResult<bool> {
        Call::new(&scripts::TRY_LOCK, [&keys::name_lock(name)]).arg(token).ms(ttl).run(&self.pool)?.flag()
    }

    fn unlock(&self, name: &str, token: &str) -> KvResult<()> {
        Call::new(&scripts::UNLOCK, [&keys::name_lock(name)]).arg(token).run(&self.pool)?;
        Ok(())
    }
}

impl RedisKv {
    pub(super) fn delete(&self, operation: &'static str, key: &str) -> KvResult<()> {
        self.pool.request(operation, Repeat::Harmless, ::redis::cmd("DEL").arg(key))?;
        Ok(())
    }
}
