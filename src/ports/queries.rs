//! Running queries, so that any process of the web service can cancel one that another process runs.

use std::time::Duration;

use super::kv_error::KvResult;
use crate::domain::name::{QueryId, Slug};

/// A registered query. The token distinguishes it from earlier and later ones with the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredQuery {
    pub pipeline: Slug,
    pub id: QueryId,
    pub token: String,
}

/// Ids are unique per pipeline.
pub trait RunningQueries: Send + Sync {
    /// Registers a query; the entry expires after `ttl` if its process dies. `None` if the id is in use.
    fn register_query(&self, pipeline: &Slug, id: &QueryId, ttl: Duration) -> KvResult<Option<RegisteredQuery>>;

    /// Requests the cancellation of a query; false if no query has the id.
    fn cancel_query(&self, pipeline: &Slug, id: &QueryId) -> KvResult<bool>;

    /// Whether each query was cancelled, in order. A single read.
    fn cancelled_queries(&self, queries: &[RegisteredQuery]) -> KvResult<Vec<bool>>;

    /// Removes a query that has ended.
    fn unregister_query(&self, query: &RegisteredQuery) -> KvResult<()>;
}
