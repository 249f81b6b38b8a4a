//! Running queries.

use std::time::Duration;

use uuid::Uuid;

use super::keys;
use super::kv::RedisKv;
use super::scripts::{self, Call};
use crate::domain::name::{QueryId, Slug};
use crate::ports::kv::KvResult;
use crate::ports::queries::{RegisteredQuery, RunningQueries};

/// Queries per request.
const CHECK_BATCH: usize = 500;

impl RunningQueries for RedisKv {
    fn register_query(&self, pipeline: &Slug, id: &QueryId, ttl: Duration) -> KvResult<Option<RegisteredQuery>> {
        let token = Uuid::new_v4().simple().to_string();
        let call = Call::new(&scripts::QUERY_REGISTER, [&keys::query(pipeline, id)]);
        let registered = call.arg(&token).ms(ttl).run(&self.pool)?.flag()?;
        Ok(registered.then(|| RegisteredQuery { pipeline: pipeline.clone(), id: id.clone(), token }))
    }

    fn cancel_query(&self, pipeline: &Slug, id: &QueryId) -> KvResult<bool> {
        Call::new(&scripts::QUERY_CANCEL, [&keys::query(pipeline, id)]).run(&self.pool)?.flag()
    }

    fn cancelled_queries(&self, queries: &[RegisteredQuery]) -> KvResult<Vec<bool>> {
        let mut cancelled = Vec::with_capacity(queries.len());
        for some in queries.chunks(CHECK_BATCH) {
            let keys = some.iter().map(|query| keys::query(&query.pipeline, &query.id));
            let tokens = some.iter().map(|query| query.token.clone());
            let reply = Call::with_keys(&scripts::QUERY_CANCELLED, keys).args(tokens).run(&self.pool)?;
            let operation = reply.operation();
            let flags = reply.list()?.into_iter().map(|part| part.flag()).collect::<KvResult<Vec<bool>>>()?;
            if flags.len() != some.len() {
                let found = format!("{} parts", flags.len());
                return Err(super::error::malformed(operation, "a flag for each query", &found));
            }
            cancelled.extend(flags);
        }
        Ok(cancelled)
    }

    fn unregister_query(&self, query: &RegisteredQuery) -> KvResult<()> {
        let call = Call::new(&scripts::QUERY_UNREGISTER, [&keys::query(&query.pipeline, &query.id)]);
        call.arg(&query.token).run(&self.pool)?;
        Ok(())
    }
}
