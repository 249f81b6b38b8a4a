//! Pipelines whose tables may be stale, since a job failed because of the object store or a full disk.
//!
//! Contract: as in [`super::jobs`]. A pipeline becomes due when a job fails, but not before the pause after its last
//! enqueued run. The pause doubles each time, so that a job that always fails is repeated at most once an hour. The list
//! expires a week after the last addition.

use std::time::Duration;

use super::kv_error::KvResult;
use crate::domain::name::Slug;

/// Result of comparing a pipeline with the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recheck {
    /// Comparison failed: due again in 5 s.
    Retry,
    /// A run was enqueued, or will be: starts a pause.
    RunRequested,
    /// The tables are up to date, or can't be compared: removes the pipeline.
    Done,
}

/// The list, shared by all workers.
pub trait Rechecks: Send + Sync {
    /// Adds a pipeline, unless the list has [`crate::domain::limits::RECHECKS_MAX`].
    fn add_recheck(&self, pipeline: &Slug) -> KvResult<()>;

    /// Takes up to `limit` due pipelines, the longest due first. They become due again after `timeout`, unless
    /// [`Rechecks::complete_recheck`] is called before.
    fn take_rechecks(&self, limit: usize, timeout: Duration) -> KvResult<Vec<Slug>>;

    fn complete_recheck(&self, pipeline: &Slug, outcome: Recheck) -> KvResult<()>;
}
