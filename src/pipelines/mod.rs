//! Pipelines, for all services: which exist, the history of their jobs ([`history`]), jobs of all of them
//! ([`all_jobs`]), their backups ([`backup`]), and the lease under which a process
//! may write for one ([`lease`]), with a lock in the object store ([`object_lock`]) where there is no key-value store.
//!
//! A pipeline exists if a bucket has a folder named like its slug. Folders with other names are ignored.

pub mod all_jobs;
pub mod backup;
pub mod history;
pub mod lease;
pub mod object_lock;
pub mod tables;

use std::collections::BTreeSet;
use std::vec::IntoIter;

use crate::domain::layout::{PIPELINES_PREFIX, job_records_prefix, pipeline_prefix};
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, StoreError, StoreResult};

/// Lists the slugs of a bucket.
pub struct Slugs<'a> {
    store: &'a dyn ObjectStore,
    bucket: Bucket,
    page: IntoIter<Slug>,
    next: Next,
}

enum Next {
    First,
    After(String),
    End,
}

/// Lists the slugs of a bucket in order, page by page as needed. Ends after an error.
pub fn slugs(store: &dyn ObjectStore, bucket: Bucket) -> Slugs<'_> {
    Slugs { store, bucket, page: Vec::new().into_iter(), next: Next::First }
}

impl Slugs<'_> {
    fn read(&mut self, after: Option<&str>) -> StoreResult<()> {
        let page = self.store.list(self.bucket, PIPELINES_PREFIX, Some('/'), after, LIST_PAGE_KEYS_MAX)?;
        let slug = |folder: &String| {
            let name = folder.strip_prefix(PIPELINES_PREFIX)?.strip_suffix('/')?;
            Slug::parse(name).ok()
        };
        self.page = page.prefixes.iter().filter_map(slug).collect::<Vec<Slug>>().into_iter();
        self.next = page.next.map_or(Next::End, Next::After);
        Ok(())
    }
}

impl Iterator for Slugs<'_> {
    type Item = StoreResult<Slug>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(slug) = self.page.next() {
                return Some(Ok(slug));
            }
            let after = match std::mem::replace(&mut self.next, Next::End) {
                Next::First => None,
                Next::After(after) => Some(after),
                Next::End => return None,
            };
            if let Err(error) = self.read(after.as_deref()) {
                return Some(Err(error));
            }
        }
    }
}

/// Whether there is any pipeline in the bucket of configs.
///
/// # Errors
/// The store failed.
pub fn any(store: &dyn ObjectStore) -> StoreResult<bool> {
    Ok(slugs(store, Bucket::Pipelines).next().transpose()?.is_some())
}

/// The slugs of all buckets.
///
/// # Errors
/// The store failed.
pub fn all(store: &dyn ObjectStore) -> StoreResult<BTreeSet<Slug>> {
    Bucket::ALL.into_iter().flat_map(|bucket| slugs(store, bucket)).collect()
}

/// Whether these buckets have objects of the slug other than records of jobs: a run requested for a wrong name leaves a
/// record, and the name stays free.
///
/// # Errors
/// The store failed.
pub fn is_in_use(store: &dyn ObjectStore, slug: &Slug, buckets: &[Bucket]) -> Result<bool, StoreError> {
    let (prefix, records) = (pipeline_prefix(slug), job_records_prefix(slug));
    for bucket in buckets {
        // If there are two entries, at least one is not the folder of records.
        let page = store.list(*bucket, &prefix, Some('/'), None, 2)?;
        let are_records = |folder: &String| *bucket == Bucket::Pipelines && *folder == records;
        if !page.objects.is_empty() || page.prefixes.iter().any(|folder| !are_records(folder)) {
            return Ok(true);
        }
    }
    Ok(false)
}
