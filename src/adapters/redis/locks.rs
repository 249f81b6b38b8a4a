//! Locks on pipelines for operations other than runs, and on names.

use std::time::Duration;

use uuid::Uuid;

use super::connection::Repeat;
use super::keys::{self, DELAYED, FENCES};
use super::kv::RedisKv;
use super::queue::release_outcome;
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::domain::name::Slug;
use crate::ports::jobs::{LockHolder, PipelineLock, PipelineLocks, ReleaseOutcome};
use crate::ports::kv::{KeyLocks, KvResult};

/// Prefix of the tokens of operations other than runs. Job ids never contain `!`.
const OPERATION_PREFIX: &str = "!hold/";

impl PipelineLocks for RedisKv {
    fn lock_holder(&self, pipeline: &Slug) -> KvResult<Option<LockHolder>> {
        let mut command = ::redis::cmd("GET");
        command.arg(keys::run_lock(pipeline));
        let reply = OperationReply::new("lock_holder", self.pool.request("lock_holder", Repeat::Idempotent, &command)?);
        let holder = |token: String| {
            if token.starts_with(OPERATION_PREFIX) { LockHolder::Other } else { LockHolder::Run { token } }
        };
        Ok(reply.optional_text()?.map(holder))
    }

    fn lock_pipeline(&self, pipeline: &Slug, ttl: Duration, fence_floor: u64) -> KvResult<Option<PipelineLock>> {
        let token = format!("{OPERATION_PREFIX}{}", Uuid::new_v4());
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

    fn renew(&self, lock: &PipelineLock, ttl: Duration) -> KvResult<ReleaseOutcome> {
        let key = keys::run_lock(&lock.pipeline);
        release_outcome(Call::new(&scripts::RENEW, [&key]).arg(&lock.token).ms(ttl).run(&self.pool)?)
    }

    fn release(&self, lock: &PipelineLock) -> KvResult<ReleaseOutcome> {
        let (key, active) = (keys::run_lock(&lock.pipeline), keys::active(&lock.pipeline));
        let call = Call::new(&scripts::RELEASE, [&key, DELAYED, &active]);
        release_outcome(call.arg(self.now()).arg(&lock.token).arg(keys::MESSAGE).run(&self.pool)?)
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
        self.pool.request(operation, Repeat::Idempotent, ::redis::cmd("DEL").arg(key))?;
        Ok(())
    }
}
