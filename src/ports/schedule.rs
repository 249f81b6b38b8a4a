//! Timed work: debounce windows of new files, and waiting jobs.
//!
//! Contract: as in [`super::jobs`]. A window becomes exactly one job, also under races and crashes.
//!
//! A window keeps the keys that its events named, and passes them to its job in the step that fires it. Whenever keys
//! may be missing, the job checks all: too many keys, an event without keys, an event of a program that doesn't record
//! keys, a job of the pipeline that did not complete, or a window that was closed without a job.

use chrono::{DateTime, Utc};

use super::kv_error::KvResult;
use crate::domain::job::{ChangedKeys, Job, JobId};
use crate::domain::name::Slug;

/// Position of [`Schedule::requeue_lost`]; opaque.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cursor(pub String);

/// Why a window is closed without a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The pipeline has no automatic runs: the job of its next window checks all keys.
    AutoRunOff,
    /// The pipeline doesn't exist: nothing is kept.
    PipelineGone,
}

/// Timed work, shared by all workers.
pub trait Schedule: Send + Sync {
    /// Opens or extends the debounce window of each pipeline, as defined by [`crate::domain::job::window::due`], and adds the
    /// keys that changed. Returns when each was opened, in order; this identifies a window, since two of a pipeline never
    /// open at the same time.
    fn record_changes(&self, changes: &[(Slug, ChangedKeys)]) -> KvResult<Vec<DateTime<Utc>>>;

    /// [`Schedule::record_changes`] for pipelines of which any key may have changed.
    fn extend_windows(&self, pipelines: &[Slug]) -> KvResult<Vec<DateTime<Utc>>> {
        let changes: Vec<_> = pipelines.iter().map(|pipeline| (pipeline.clone(), ChangedKeys::All)).collect();
        self.record_changes(&changes)
    }

    /// The keys of the job's window: all for any other job, and if they were lost.
    fn changed_keys(&self, job_id: &JobId) -> KvResult<ChangedKeys>;

    /// When the pipeline's window was opened; `None` if it has none.
    fn window_opened_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>>;

    /// Up to `limit` pipelines whose window is due and which aren't paused ([`super::pauses`]), the longest due first.
    fn due_windows(&self, limit: usize) -> KvResult<Vec<Slug>>;

    /// When the pipeline's window is due; `None` if it has none.
    fn window_due_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>>;

    /// Closes a due window, enqueues `job` and passes it the window's keys, in one step. The job takes the pipeline's
    /// request ([`super::run_requests`]), if there is one. False if the window is not
    /// due, or no longer open.
    fn fire_window(&self, job: &Job) -> KvResult<bool>;

    /// Closes a due window without a job. False under the same conditions as [`Schedule::fire_window`].
    fn close_window(&self, pipeline: &Slug, reason: CloseReason) -> KvResult<bool>;

    /// Moves up to `limit` due jobs to the stream; returns how many.
    fn release_due(&self, limit: usize) -> KvResult<usize>;

    /// Checks some active jobs and requeues those that are neither in the stream nor waiting. Returns how many, and the
    /// position to continue at; `None` after the last.
    fn requeue_lost(&self, from: &Cursor) -> KvResult<(usize, Option<Cursor>)>;

    /// Whether [`Schedule::mark_initialized`] was called: false for a new store, and after a loss of data, which a missing
    /// stream group indicates.
    fn is_initialized(&self) -> KvResult<bool>;

    fn mark_initialized(&self) -> KvResult<()>;
}
