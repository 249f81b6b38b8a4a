//! The inputs of a run.

use crate::domain::job::ChangedKeys;
use crate::domain::name::Slug;
use crate::domain::pipeline::Pipeline;
use crate::engine::convert::Resources;
use crate::pipelines::tables::TableStore;
use crate::ports::store::Lease;
use crate::ports::{Expressions, IcebergCatalog, ObjectStore, RunObserver};
use crate::runtime::Clock;

/// Parallel HEAD requests, where a listing has no ETags.
pub(super) const PARALLEL_HEADS_MAX: usize = 64;

/// The inputs of a run.
#[derive(Clone, Copy)]
pub struct RunRequest<'a> {
    pub pipeline: &'a Pipeline,
    pub job_id: &'a str,
    /// Only sources whose key, relative to the pipeline's prefix, starts with it may be read as changed; `""`: all.
    pub prefix: &'a str,
    /// The keys that events named since the last automatic run. [`ChangedKeys::All`] for any other run.
    pub changed: &'a ChangedKeys,
    pub clean: bool,
    /// Stop before publishing and report the plan.
    pub dry_run: bool,
    /// Fail with `source_being_written` before converting anything if a source to read may still be written. For
    /// automatic runs, which can be repeated later.
    pub settle: bool,
    /// Versions of everything the bytes of a table depend on; that of the expressions is added.
    pub versions: &'a str,
    pub store: &'a dyn ObjectStore,
    /// The catalog that Iceberg tables are published in, besides the store.
    pub catalog: Option<&'a dyn IcebergCatalog>,
    pub expressions: &'a dyn Expressions,
    pub clock: &'a dyn Clock,
    /// Passed with every write; names the pipeline.
    pub lease: &'a dyn Lease,
    pub observer: &'a dyn RunObserver,
    /// Scratch is an existing folder; the run creates its own folder inside and removes it at the end.
    pub resources: &'a Resources,
}

impl RunRequest<'_> {
    pub fn slug(&self) -> &Slug {
        self.lease.slug()
    }

    pub(super) fn table<'s>(&'s self, name: &'s str) -> TableStore<'s> {
        TableStore { catalog: self.catalog, ..TableStore::new(self.store, self.slug(), name) }
    }
}
