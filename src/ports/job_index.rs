//! An index of jobs, by which those of all pipelines are found without a look at each pipeline.
//!
//! Contract: as in [`super::jobs`]. [`super::jobs::JobQueue::finish`] adds a job to the index, unless it was a dry run or
//! its pipeline was deleted meanwhile; [`super::jobs::JobRegistry::drop_pipeline`] removes a pipeline's jobs, and
//! [`super::jobs::JobRegistry::revive_pipeline`] adds the pipeline to those whose records are to be indexed. Beyond
//! [`crate::domain::limits::ENDED_JOBS_INDEXED_MAX`] jobs the oldest are removed.

use super::kv_error::KvResult;
use crate::domain::job::JobPosition;
use crate::domain::name::Slug;

/// An ended job with a terminal record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedJob {
    pub pipeline: Slug,
    pub position: JobPosition,
    pub failed: bool,
}

/// Which ended jobs are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndedFilter<'a> {
    /// `None` for all pipelines.
    pub pipeline: Option<&'a Slug>,
    pub failed_only: bool,
}

/// Ended jobs from the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedJobs {
    /// Newest first.
    pub jobs: Vec<(Slug, JobPosition)>,
    pub coverage: Coverage,
}

/// Which jobs are in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Records remain to be indexed.
    Incomplete,
    All,
    /// All since this time, in ms since 1970: older ones were removed.
    Since(i64),
}

/// When the newest jobs of a pipeline that completed and that failed were enqueued, in ms since 1970, as far as they are
/// indexed. Among [`NEWEST_ENDS_MAX`] jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NewestEnds {
    pub completed_ms: Option<i64>,
    pub failed_ms: Option<i64>,
}

/// How many of a pipeline's newest jobs are searched for one that completed.
pub const NEWEST_ENDS_MAX: usize = 1_000;

/// A pipeline whose records are to be indexed. `mark` identifies the request, which a later one replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnindexedPipeline {
    pub pipeline: Slug,
    pub mark: u64,
}

/// The index, for all services.
pub trait JobIndex: Send + Sync {
    /// Up to `limit` ended jobs, newest first, older than `before`.
    fn ended(&self, filter: EndedFilter<'_>, before: Option<&JobPosition>, limit: usize) -> KvResult<EndedJobs>;

    /// The newest ends of each pipeline.
    fn newest_ends(&self, pipelines: &[Slug]) -> KvResult<Vec<NewestEnds>>;

    /// Up to `limit` pipelines with active jobs, by name.
    fn active_pipelines(&self, limit: usize) -> KvResult<Vec<Slug>>;

    /// Adds jobs; those that are in the index stay as they are.
    fn index_ended(&self, jobs: &[EndedJob]) -> KvResult<()>;

    /// Removes a pipeline's jobs older than `before_ms`, in ms since 1970.
    fn forget_ended(&self, pipeline: &Slug, before_ms: i64) -> KvResult<()>;

    /// Whether [`JobIndex::mark_built`] was called.
    fn is_built(&self) -> KvResult<bool>;

    /// The records of all pipelines are indexed.
    fn mark_built(&self) -> KvResult<()>;

    /// Up to `limit` pipelines whose records are to be indexed.
    fn unindexed(&self, limit: usize) -> KvResult<Vec<UnindexedPipeline>>;

    /// The records of a pipeline are indexed.
    fn mark_indexed(&self, pipeline: &UnindexedPipeline) -> KvResult<()>;
}
