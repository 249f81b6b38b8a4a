//! Runs that comparisons requested: a sorted set of slugs.

use super::connection::Repeat;
use super::keys::{self, PAUSES, RUN_REQUESTS, STREAM, WINDOWS};
use super::kv::RedisKv;
use super::registry::new_job;
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::domain::job::Job;
use crate::domain::limits::DEBOUNCE_QUIET_MS;
use crate::domain::name::Slug;
use crate::ports::kv::KvResult;
use crate::ports::run_requests::RunRequests;

/// Pipelines in one script, and in one reply.
const REQUEST_MAX: usize = 1_000;

impl RunRequests for RedisKv {
    fn request_runs(&self, pipelines: &[Slug]) -> KvResult<()> {
        for some in pipelines.chunks(REQUEST_MAX) {
            let slugs = some.iter().map(Slug::to_string);
            let call = Call::new(&scripts::REQUEST_RUNS, [RUN_REQUESTS]).arg(self.now()).arg(DEBOUNCE_QUIET_MS);
            call.args(slugs).run(&self.pool)?;
        }
        Ok(())
    }

    fn requested_runs(&self, limit: usize) -> KvResult<Vec<Slug>> {
        let call = Call::new(&scripts::REQUESTED_RUNS, [RUN_REQUESTS, PAUSES, WINDOWS]);
        let call = call.arg(self.now()).arg(limit.min(REQUEST_MAX));
        self.valid_slugs(call.run(&self.pool)?, RUN_REQUESTS, "requested run removed: its pipeline name is invalid")
    }

    fn enqueue_requested(&self, job: &Job) -> KvResult<bool> {
        let (live, message) = (keys::live(&job.job_id), keys::message(&job.job_id));
        let active = keys::active(&job.pipeline);
        let keys = [RUN_REQUESTS, WINDOWS, STREAM, &live, &active, &message];
        let call = Call::new(&scripts::ENQUEUE_REQUESTED, keys).arg(self.now()).arg(&job.pipeline);
        new_job(call, job).run(&self.pool)?.flag()
    }

    fn is_run_requested(&self, pipeline: &Slug) -> KvResult<bool> {
        const OPERATION: &str = "is_run_requested";
        let mut command = ::redis::cmd("ZSCORE");
        command.arg(RUN_REQUESTS).arg(pipeline.as_str());
        Ok(!OperationReply::new(OPERATION, self.pool.request(OPERATION, Repeat::Idempotent, &command)?).is_nil())
    }

    fn withdraw_request(&self, pipeline: &Slug) -> KvResult<bool> {
        const OPERATION: &str = "withdraw_request";
        let mut command = ::redis::cmd("ZREM");
        command.arg(RUN_REQUESTS).arg(pipeline.as_str());
        OperationReply::new(OPERATION, self.pool.request(OPERATION, Repeat::Idempotent, &command)?).flag()
    }
}
