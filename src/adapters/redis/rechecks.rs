//! Pipelines to compare with the lake.

use std::time::Duration;

use super::keys::{RECHECKS, recheck_pause};
use super::kv::RedisKv;
use super::scripts::{self, Call};
use crate::domain::limits::{
    RECHECK_PAUSE_FIRST_MS, RECHECK_PAUSE_MS_MAX, RECHECK_RETRY_MS, RECHECKS_MAX, RECHECKS_TTL_MS,
};
use crate::domain::name::Slug;
use crate::ports::kv::KvResult;
use crate::ports::rechecks::{Recheck, Rechecks};

impl Rechecks for RedisKv {
    fn add_recheck(&self, pipeline: &Slug) -> KvResult<()> {
        let call = Call::new(&scripts::RECHECK_ADD, [RECHECKS, &recheck_pause(pipeline)]).arg(self.now()).arg(pipeline);
        call.arg(RECHECKS_MAX).arg(RECHECKS_TTL_MS).arg(RECHECK_PAUSE_MS_MAX).run(&self.pool)?;
        Ok(())
    }

    fn take_rechecks(&self, limit: usize, timeout: Duration) -> KvResult<Vec<Slug>> {
        let call =
            Call::new(&scripts::RECHECK_TAKE, [RECHECKS]).arg(self.now()).arg(limit.min(RECHECKS_MAX)).ms(timeout);
        self.valid_slugs(call.run(&self.pool)?, RECHECKS, "invalid pipeline name removed from the rechecks")
    }

    fn complete_recheck(&self, pipeline: &Slug, outcome: Recheck) -> KvResult<()> {
        let outcome = match outcome {
            Recheck::Retry => "retry",
            Recheck::RunRequested => "run_requested",
            Recheck::Done => "done",
        };
        let call = Call::new(&scripts::RECHECK_COMPLETE, [RECHECKS, &recheck_pause(pipeline)]).arg(self.now());
        let call = call.arg(pipeline).arg(outcome).arg(RECHECK_PAUSE_FIRST_MS).arg(RECHECK_PAUSE_MS_MAX);
        call.arg(RECHECK_RETRY_MS).run(&self.pool)?;
        Ok(())
    }
}
