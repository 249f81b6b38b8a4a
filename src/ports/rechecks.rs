//! Pipelines of which a job failed because of the object store or a full disk: their tables may be stale.
//!
//! Contract: as of [`super::jobs`]. A pipeline is due once a job of it failed, and the pause that began when a run was
//! enqueued for it last is over. The pause doubles each time, so that a job that always fails is repeated at most once an
//! hour. A list that is not added to for a week is forgotten.

use std::time::Duration;

use super::kv::KvResult;
use crate::domain::name::Slug;

/// What a comparison led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recheck {
    /// Not compared: due again in 5 s.
    Retry,
    /// A run was enqueued, or will be: a pause begins.
    RunRequested,
    /// The tables are up to date, or can't be compared: forgotten.
    Done,
}

/// The list that all workers share.
pub trait Rechecks: Send + Sync {
    /// A job of the pipeline failed. Does nothing if [`crate::domain::limits::RECHECKS_MAX`] pipelines are on the list.
    fn add_recheck(&self, pipeline: &Slug) -> KvResult<()>;

    /// Takes up to `limit` pipelines that are due, the longest due first. They are due again after `hold`, unless
    /// [`Rechecks::settle_recheck`] is called before.
    fn take_rechecks(&self, limit: usize, hold: Duration) -> KvResult<Vec<Slug>>;

    /// Tells what a comparison led to.
    fn settle_recheck(&self, pipeline: &Slug, outcome: Recheck) -> KvResult<()>;
}
