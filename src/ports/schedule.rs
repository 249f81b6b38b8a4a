//! Timed work: debounce windows of new files, and waiting jobs.
//!
//! Contract: as in [`super::jobs`]. A window becomes exactly one job, also under races and crashes.

use chrono::{DateTime, Utc};

use super::kv_error::KvResult;
use crate::domain::job::Job;
use crate::domain::name::Slug;

/// Position of [`Schedule::requeue_lost`]; opaque.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cursor(pub String);

/// Timed work, shared by all workers.
pub trait Schedule: Send + Sync {
    /// Opens or extends the debounce window of each pipeline, as defined by [`crate::domain::job::window::due`]. Returns
    /// when each was opened, in order; this identifies a window, since two of a pipeline never open at the same time.
    fn extend_windows(&self, pipelines: &[Slug]) -> KvResult<Vec<DateTime<Utc>>>;

    /// When the pipeline's window was opened; `None` if it has none.
    fn window_opened_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>>;

    /// Up to `limit` pipelines whose window is due, the longest due first.
    fn due_windows(&self, limit: usize) -> KvResult<Vec<Slug>>;

    /// When the pipeline's window is due; `None` if it has none.
    fn window_due_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>>;

    /// Closes a due window and enqueues `job` in one step. False if the window is not due, or no longer open.
    fn fire_window(&self, job: &Job) -> KvResult<bool>;

    /// Closes a due window without a job. False as for [`Schedule::fire_window`].
    fn close_window(&self, pipeline: &Slug) -> KvResult<bool>;

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
