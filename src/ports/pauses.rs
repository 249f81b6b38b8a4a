//! Pauses of pipelines, by people. They hold for all workers.
//!
//! Contract: as in [`super::jobs`]. Windows of paused pipelines are not due ([`super::schedule::Schedule::due_windows`]);
//! workers make their jobs wait. A pause ends with its pipeline ([`super::jobs::JobRegistry::drop_pipeline`]). A store
//! that lost its data has none.

use super::kv_error::KvResult;
use crate::domain::name::Slug;
use crate::domain::pause::Pause;

/// The pauses in force.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PausesInForce {
    /// The pause of all pipelines.
    pub all: Option<Pause>,
    /// By name.
    pub pipelines: Vec<(Slug, Pause)>,
}

/// Pauses of single pipelines, and of all. `None` stands for all.
pub trait RunPauses: Send + Sync {
    /// Replaces an earlier pause of the same pipeline, or of all.
    fn pause(&self, pipeline: Option<&Slug>, pause: &Pause) -> KvResult<()>;

    /// False if there is no such pause. Jobs that waited for the end of a single pipeline's pause are due at once.
    fn resume(&self, pipeline: Option<&Slug>) -> KvResult<bool>;

    /// The pause of the pipeline or, without one, of all.
    fn paused(&self, pipeline: Option<&Slug>) -> KvResult<Option<Pause>>;

    fn pauses(&self) -> KvResult<PausesInForce>;
}
