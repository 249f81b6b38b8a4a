//! Compares a pipeline's part of the lake with the sources of its tables.
//!
//! Used when lake events were lost or there is no source of events.
//!
//! Must not: read a CSV or the warehouse, only one listing of the lake and the manifests; write anything.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use super::archive;
use super::lake::{self, Lake};
use crate::domain::digest::hex;
use crate::domain::job::RunError;
use crate::domain::name::Slug;
use crate::domain::pipeline::{Mapping, Pipeline, WhenRemoved};
use crate::domain::table_log::diff::{Difference as SourceDifference, Differences, ListedSource, compare};
use crate::domain::table_log::entries::SourceEntry;
use crate::engine::run_error::table_error;
use crate::pipelines::tables::{Maps, TableStore};
use crate::ports::ObjectStore;

/// A difference between lake and tables. Equal values mean the same files against the same manifests. A run that keeps
/// failing leaves the same difference, so callers know that they already requested a run for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Difference(String);

/// Whether [`difference`] finds one.
///
/// # Errors
/// Same as for [`difference`].
pub fn differs(store: &dyn ObjectStore, slug: &Slug, pipeline: &Pipeline, scratch: &Path) -> Result<bool, RunError> {
    Ok(difference(store, slug, pipeline, scratch)?.is_some())
}

/// The differences that an incremental run would find: sources that are new, changed (size, ETag) or removed; a table
/// with sources whose manifest is missing or unreadable; leftovers of a dead run.
///
/// Also `None` if no source matches any table, unless all tables keep the rows of removed CSVs, since the requested run would fail with `no_input`. A changed config and
/// changed files in the warehouse are not differences.
///
/// # Errors
/// If the store or `scratch`, an existing folder, fails, or a manifest is of a newer version.
pub fn difference(
    store: &dyn ObjectStore,
    slug: &Slug,
    pipeline: &Pipeline,
    scratch: &Path,
) -> Result<Option<Difference>, RunError> {
    // The time is only used in manifests, and none is written here.
    let lake = Lake::list(store, slug, DateTime::<Utc>::UNIX_EPOCH, scratch, BTreeSet::new())?;
    let mut any = false;
    let mut hasher = Sha256::new();
    let mut differ = false;
    for mapping in &pipeline.mappings {
        let sources = lake.sources(mapping)?.inspect(|_| any = true);
        let table = TableStore::new(store, slug, mapping.table.as_str());
        if let Some(how) = table_difference(&table, mapping, sources)? {
            differ = true;
            hasher.update(how);
        }
    }
    let any = any || (differ && archive::keeps_all(store, slug, &pipeline.mappings)?);
    Ok((any && differ).then(|| Difference(hex(&hasher.finalize()))))
}

/// A text unique to the difference.
fn table_difference(
    table: &TableStore<'_>,
    mapping: &Mapping,
    sources: impl Iterator<Item = Result<ListedSource, RunError>>,
) -> Result<Option<String>, RunError> {
    let found = table.root().map_err(table_error)?;
    let maps = Maps::of(found.readable());
    let keeps = mapping.when_removed == WhenRemoved::KeepRows;
    let mut states = Sha256::new();
    let mut differs = false;
    let mut reader = table.reader();
    // Sources of a lost shard are as good as new.
    let mut is_broken = false;
    let entries = maps.sources.entries(&mut reader).map_while(|entry| match entry {
        Err(error) if error.is_broken() => {
            is_broken = true;
            None
        }
        entry => Some(entry.map_err(table_error)),
    });
    for difference in Differences::new(sources, entries) {
        let state = match difference? {
            SourceDifference::Unknown(listed, entry) => looked_up(table, listed, *entry)?,
            SourceDifference::Removed(_, entry) if entry.archived && keeps => None,
            difference => Some(state(&difference)),
        };
        // Debug output quotes strings, so no two states have the same text.
        states.update(state.as_deref().unwrap_or_default());
        differs |= state.is_some();
    }
    let needs_recovery = table.needs_recovery().map_err(table_error)?;
    if !differs && !is_broken && !needs_recovery {
        return Ok(None);
    }
    let root = found.readable().map(|root| (root.sequence, root.fence));
    Ok(Some(format!("{:?}\n", (table.table, root, needs_recovery, is_broken, hex(&states.finalize())))))
}

fn state(difference: &SourceDifference) -> String {
    match difference {
        SourceDifference::New(listed)
        | SourceDifference::Changed(listed)
        | SourceDifference::Returned(listed, _)
        | SourceDifference::Unknown(listed, _) => format!("{listed:?}"),
        SourceDifference::Removed(key, _) => format!("{key:?}"),
    }
}

/// The state of a source that can only be compared with its entry by a HEAD request; `None` if it is unchanged, or was
/// deleted since the listing.
fn looked_up(table: &TableStore<'_>, listed: ListedSource, entry: SourceEntry) -> Result<Option<String>, RunError> {
    let found = lake::head(table.store, table.slug, &listed.key)?;
    Ok(found.and_then(|found| compare(found, Some(entry))).map(|difference| state(&difference)))
}
