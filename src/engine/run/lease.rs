//! The lease of a run that shares its store with nobody: `lakemill run` holds a lock on its output as long as it lives.

use std::time::Duration;

use super::failure::store_error;
use super::manifests;
use crate::domain::job::RunError;
use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::store::{Lease, LeaseLost};

/// A lease without end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalLease {
    slug: Slug,
    fence: u64,
}

impl LocalLease {
    /// Its fence is one above the highest that the pipeline's manifests speak of. Manifests that can't be read count as
    /// none.
    ///
    /// # Errors
    /// If the store fails.
    pub fn next(store: &dyn ObjectStore, slug: &Slug) -> Result<Self, RunError> {
        let mut last = 0;
        for table in manifests::tables(store, slug).map_err(store_error)? {
            if let Ok(Some(found)) = manifests::read(store, slug, &table) {
                last = last.max(found.manifest.as_ref().map_or(0, crate::domain::manifest::Manifest::fence));
            }
        }
        Ok(Self { slug: slug.clone(), fence: last + 1 })
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
