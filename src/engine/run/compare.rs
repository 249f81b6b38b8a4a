//! Compares a pipeline's part of the lake with the sources of its tables.
//!
//! Used when lake events were lost or there is no source of events.
//!
//! Must not: read a CSV or the warehouse, only one listing of the lake and the manifests; write anything.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use super::lake::Lake;
use super::manifests::{self, FoundManifest};
use crate::domain::digest::hex;
use crate::domain::job::RunError;
use crate::domain::manifest::Manifest;
use crate::domain::name::Slug;
use crate::domain::pipeline::{Mapping, Pipeline};
use crate::domain::plan::{ListedObject, Listing, changed_sources, needs_head};
use crate::engine::run_error::store_error;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ObjectMeta};

/// A difference between lake and tables. Equal values mean the same files against the same manifests. A run that keeps
/// failing leaves the same difference, so callers can tell that they already requested a run for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Difference(String);

/// Whether [`difference`] finds one.
///
/// # Errors
/// As [`difference`].
pub fn differs(store: &dyn ObjectStore, slug: &Slug, pipeline: &Pipeline) -> Result<bool, RunError> {
    Ok(difference(store, slug, pipeline)?.is_some())
}

/// The differences that an incremental run would find: sources that are new, changed (size, ETag) or removed; a table
/// with sources whose manifest is missing or unreadable; the publish intent of an interrupted run.
///
/// Also `None` if no source matches any table, since the requested run would fail with `no_input`. A changed config and
/// changed files in the warehouse are not differences.
///
/// # Errors
/// If the store fails, or a manifest is of a newer version.
pub fn difference(store: &dyn ObjectStore, slug: &Slug, pipeline: &Pipeline) -> Result<Option<Difference>, RunError> {
    // The time is only used in manifests, and none is written here.
    let lake = Lake::list(store, slug, DateTime::<Utc>::UNIX_EPOCH, BTreeMap::new())?;
    let mut any = false;
    let mut hasher = Sha256::new();
    let mut differ = false;
    for mapping in &pipeline.mappings {
        let objects = lake.matching(mapping)?;
        any = any || !objects.is_empty();
        let found = manifests::read(store, slug, mapping.table.as_str())?;
        if let Some(how) = table_difference(store, mapping, &objects, found.as_ref())? {
            differ = true;
            hasher.update(how);
        }
    }
    Ok((any && differ).then(|| Difference(hex(&hasher.finalize()))))
}

/// A text unique to the difference.
fn table_difference(
    store: &dyn ObjectStore,
    mapping: &Mapping,
    objects: &BTreeMap<&str, &ObjectMeta>,
    found: Option<&FoundManifest>,
) -> Result<Option<String>, RunError> {
    let manifest = found.and_then(|f| f.manifest.as_ref());
    let sources = listing(store, objects, manifest)?;
    let differing: BTreeSet<String> = changed_sources(manifest, &sources);
    let mark = manifest.and_then(|m| m.publishing.as_ref());
    if differing.is_empty() && mark.is_none() {
        return Ok(None);
    }
    let state = |key: &String| {
        let object = objects.get(key.as_str());
        (key.clone(), object.map(|o| (o.size, o.modified)), sources.get(key).and_then(|s| s.etag.clone()))
    };
    let states: Vec<_> = differing.iter().map(state).collect();
    let mark = mark.map(|m| (&m.job_id, m.fence));
    // Debug output quotes strings, so no two states have the same text.
    Ok(Some(format!("{:?}\n", (mapping.table.as_str(), found.map(|f| &f.etag), mark, states))))
}

/// As [`Lake::sources`], with a HEAD only where nothing else shows whether a source of the manifest changed.
fn listing(
    store: &dyn ObjectStore,
    objects: &BTreeMap<&str, &ObjectMeta>,
    manifest: Option<&Manifest>,
) -> Result<Listing, RunError> {
    let mut sources = Listing::new();
    for (key, object) in objects {
        let entry = manifest.and_then(|m| m.sources.get(*key));
        let known = entry.filter(|e| e.size == object.size);
        let listed = match (&object.etag, known) {
            (Some(etag), _) => ListedObject { size: object.size, etag: Some(etag.0.clone()) },
            (None, None) => ListedObject { size: object.size, etag: None },
            (None, Some(known)) if !needs_head(entry, object.size, object.modified) => {
                ListedObject { size: object.size, etag: known.etag.clone() }
            }
            (None, Some(_)) => match store.head(Bucket::Lake, &object.key).map_err(store_error)? {
                Some(head) => ListedObject { size: head.size, etag: head.etag.map(|e| e.0) },
                // Deleted since the listing.
                None => continue,
            },
        };
        sources.insert((*key).to_owned(), listed);
    }
    Ok(sources)
}
