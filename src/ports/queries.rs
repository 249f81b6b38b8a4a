//! Queries that run, so that any process of the web service can end one that another runs.

use std::time::Duration;

use super::kv::KvResult;
use crate::domain::name::{QueryId, Slug};

/// A query that was announced. The token tells it from another of the same id before or after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedQuery {
    pub pipeline: Slug,
    pub id: QueryId,
    pub token: String,
}

/// Ids are a pipeline's own: equal ones of two pipelines are two queries.
pub trait RunningQueries: Send + Sync {
    /// Makes a query known for `life`, after which it is forgotten if its process died; `None` if one of that id is
    /// known already.
    fn announce_query(&self, pipeline: &Slug, id: &QueryId, life: Duration) -> KvResult<Option<AnnouncedQuery>>;

    /// Wishes the end of a query; false if none of that id is known.
    fn cancel_query(&self, pipeline: &Slug, id: &QueryId) -> KvResult<bool>;

    /// Of each query, in this order, whether its end was wished. One step for all; it writes nothing.
    fn cancelled_queries(&self, queries: &[AnnouncedQuery]) -> KvResult<Vec<bool>>;

    /// Forgets a query that has ended; nothing happens if it is forgotten already.
    fn retire_query(&self, query: &AnnouncedQuery) -> KvResult<()>;
}
