//! What becomes due by itself: batches of new files, and jobs that wait.
//!
//! Contract: as of [`super::jobs`]; a batch becomes exactly one job, however many processes race for it and whoever dies
//! when.

use chrono::{DateTime, Utc};

use super::kv::KvResult;
use crate::domain::job::Job;
use crate::domain::name::Slug;

/// How far [`Schedule::restore`] has come; opaque.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cursor(pub String);

/// The agenda that all workers serve together.
pub trait Schedule: Send + Sync {
    /// Opens or extends the debounce window of each pipeline, as [`crate::domain::job::window::due`] has it. Tells
    /// since when each is open, in their order, which names it: no two of a pipeline have the same beginning.
    fn extend_windows(&self, pipelines: &[Slug]) -> KvResult<Vec<DateTime<Utc>>>;

    /// Since when the pipeline's window is open; `None` if it has none.
    fn window_since(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>>;

    /// Pipelines whose window is due, the longest due first, at most `limit`.
    fn due_windows(&self, limit: usize) -> KvResult<Vec<Slug>>;

    /// When the pipeline's window is due; `None` if it has none.
    fn window(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>>;

    /// Closes a due window and enqueues `job`, in one step. False if the window isn't due (any more).
    fn fire_window(&self, job: &Job) -> KvResult<bool>;

    /// Closes a due window without a job. False as in [`Schedule::fire_window`].
    fn close_window(&self, pipeline: &Slug) -> KvResult<bool>;

    /// Puts up to `limit` waiting jobs that are due into the stream; how many.
    fn release_due(&self, limit: usize) -> KvResult<usize>;

    /// Looks at some active jobs and puts back those that are neither in the stream nor waiting. Gives how many, and
    /// where to go on; `None` after the last.
    fn restore(&self, from: &Cursor) -> KvResult<(usize, Option<Cursor>)>;

    /// Whether the store remembers what it was told: false when it is new or lost its data, until
    /// [`Schedule::remember`]. Making the stream's group anew counts as lost data.
    fn remembers(&self) -> KvResult<bool>;

    fn remember(&self) -> KvResult<()>;
}
