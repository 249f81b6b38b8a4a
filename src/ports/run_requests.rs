//! Runs that comparisons of the lake with the tables requested, which wait until an executor is free and no other job is
//! queued.
//!
//! Contract: as in [`super::jobs`]. A request is of one pipeline and becomes one job that checks all keys, also under races
//! and crashes. It is due after the quiet time of a window ([`crate::domain::job::window`]), so that the comparisons of
//! several workers request one run. If the pipeline has a window, that of new files, the window's job takes the request and
//! checks all keys. A request ends with its pipeline ([`super::jobs::JobRegistry::drop_pipeline`]).

use super::kv_error::KvResult;
use crate::domain::job::Job;
use crate::domain::name::Slug;

/// The requests, shared by all workers.
pub trait RunRequests: Send + Sync {
    /// Adds pipelines; one that is already there keeps its position.
    fn request_runs(&self, pipelines: &[Slug]) -> KvResult<()>;

    /// Up to `limit` pipelines with a due request that neither are paused ([`super::pauses`]) nor have a window, the longest
    /// due first.
    fn requested_runs(&self, limit: usize) -> KvResult<Vec<Slug>>;

    /// Removes the due request of the job's pipeline and enqueues the job, in one step. False if no request is due, or the
    /// pipeline has a window.
    fn enqueue_requested(&self, job: &Job) -> KvResult<bool>;

    /// Whether a run of the pipeline is requested.
    fn is_run_requested(&self, pipeline: &Slug) -> KvResult<bool>;

    /// Removes a request without a job; whether there was one.
    fn withdraw_request(&self, pipeline: &Slug) -> KvResult<bool>;
}
