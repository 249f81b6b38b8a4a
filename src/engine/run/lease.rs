//! The lease of a run without concurrent writers: `lakemill run` locks its output for its lifetime.

use std::time::Duration;

use crate::domain::job::RunError;
use crate::domain::name::Slug;
use crate::engine::run_error::store_error;
use crate::pipelines::tables::{TableStore, tables};
use crate::ports::ObjectStore;
use crate::ports::store::{Lease, LeaseLost};
use crate::runtime::Clock;

/// A lease that never expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalLease {
    slug: Slug,
    fence: u64,
}

impl LocalLease {
    /// The fence is the time in microseconds, or one above the highest in the pipeline's manifests if the clock was set
    /// back. Manifests alone are not enough: they can be dropped or unreadable, while a store remembers the highest
    /// fence.
    ///
    /// # Errors
    /// If the store fails.
    pub fn next(store: &dyn ObjectStore, slug: &Slug, clock: &dyn Clock) -> Result<Self, RunError> {
        let mut last = 0;
        for table in tables(store, slug).map_err(store_error)? {
            if let Ok(found) = (TableStore::new(store, slug, &table)).root() {
                last = last.max(found.readable().map_or(0, |root| root.fence));
            }
        }
        let now = u64::try_from(clock.now().timestamp_micros()).unwrap_or(0);
        Ok(Self { slug: slug.clone(), fence: now.max(last.saturating_add(1)) })
    }
}

impl Lease for LocalLease {
    fn slug(&self) -> &Slug {
        &self.slug
    }

    fn fence(&self) -> u64 {
        self.fence
    }

    fn remaining(&self) -> Result<Duration, LeaseLost> {
        Ok(Duration::from_secs(365 * 24 * 3600))
    }
}
