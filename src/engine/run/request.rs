//! The inputs of a run.

use crate::domain::name::Slug;
use crate::domain::pipeline::Pipeline;
use crate::engine::convert::Resources;
use crate::ports::store::Lease;
use crate::ports::{Expressions, ObjectStore, RunObserver};
use crate::runtime::Clock;

/// HEAD requests in parallel, where a listing has no tags.
pub(super) const PARALLEL_HEADS_MAX: usize = 64;

/// Everything that a run needs to know and to use.
#[derive(Clone, Copy)]
pub struct RunRequest<'a> {
    pub pipeline: &'a Pipeline,
    pub job_id: &'a str,
    /// Only sources whose key, relative to the pipeline's prefix, starts with it may enter the changed set; `""`: all.
    pub prefix: &'a str,
    pub clean: bool,
    /// Stop before publishing, and tell what would be done.
    pub dry_run: bool,
    /// End with `source_being_written`, before anything is converted, if somebody may still be writing a source that is
    /// to be read. For runs that nobody waits for, which can be done again later.
    pub settle: bool,
    /// Versions of the Parquet writer and whatever else the bytes of a table depend on; those of the expressions are
    /// added to it.
    pub versions: &'a str,
    pub store: &'a dyn ObjectStore,
    pub expressions: &'a dyn Expressions,
    pub clock: &'a dyn Clock,
    /// Goes with every write; names the pipeline.
    pub lease: &'a dyn Lease,
    pub observer: &'a dyn RunObserver,
    /// Scratch is an existing folder; the run makes one of its own in it and removes that at its end.
    pub resources: &'a Resources,
}

impl RunRequest<'_> {
    pub fn slug(&self) -> &Slug {
        self.lease.slug()
    }
}
