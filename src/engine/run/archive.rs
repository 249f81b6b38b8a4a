//! Rows of CSVs that were removed from the lake, in tables that keep them (`when_removed: keep_rows`).
//!
//! Invariant: a run never removes such rows. If it would need their CSVs to rebuild them, it fails with
//! `archived_sources_missing` before it writes anything.
//!
//! Rows are rebuilt from CSVs in these cases:
//! - the whole table is rebuilt: a clean run, a changed config, or files of another installation after an import (a new
//!   version of the writer doesn't: it merges all CSVs of the lake with the stored rows);
//! - stored files with the rows are lost;
//! - with `sort_by`, the rows of a source can't be distinguished within a changed segment.

use std::collections::BTreeSet;

use super::lake::Lake;
use super::request::RunRequest;
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::name::Slug;
use crate::domain::pipeline::{Mapping, WhenRemoved};
use crate::domain::table_log::entries::SourceEntry;
use crate::domain::table_log::root::{ManifestError, Root};
use crate::domain::table_schema::mapping_digest;
use crate::engine::run_error::table_error;
use crate::pipelines::tables::{FoundRoot, Maps, TableStore};
use crate::ports::ObjectStore;

/// Sources without a CSV whose rows a run can't keep.
#[derive(Debug, Default)]
struct LostSources {
    sources: u64,
    rows: u64,
    first: Option<String>,
}

impl LostSources {
    fn add(&mut self, key: &str, entry: &SourceEntry) {
        self.sources += 1;
        self.rows += entry.rows_written;
        self.first.get_or_insert_with(|| key.to_owned());
    }

    fn error(self, table: &str, cause: &str) -> RunError {
        let Self { sources, rows, first } = self;
        let first = first.unwrap_or_default();
        let (these, have) = match sources {
            1 => ("source", "has"),
            _ => ("sources", "have"),
        };
        let message = format!(
            "table `{table}`: {rows} rows of {sources} {these} that were removed from the lake would be lost: {cause}"
        );
        RunError::new(RunErrorCode::ArchivedSourcesMissing, message).path(first.as_str()).detail(format!(
            "nothing was changed. The table keeps the rows of removed CSVs, but {sources} {these}, first `{first}`, {have} \
             to be read again: put the CSVs back into the lake, or set `when_removed` to `remove_rows` to drop the rows"
        ))
    }
}

/// Splits sources without a listed object into those whose rows stay, and those that are removed from the table. A CSV in
/// the lake that `files` no longer matches wasn't removed from the lake.
pub(super) fn divide(
    mapping: &Mapping,
    lake: &Lake,
    missing: Vec<(String, SourceEntry)>,
) -> Result<[Vec<(String, SourceEntry)>; 2], RunError> {
    if mapping.when_removed == WhenRemoved::RemoveRows || missing.is_empty() {
        return Ok([Vec::new(), missing]);
    }
    let keys: BTreeSet<&str> = missing.iter().map(|(key, _)| key.as_str()).collect();
    let existing = lake.existing(&keys)?;
    let (removed, archived) = missing.into_iter().partition(|(key, _)| existing.contains(key));
    Ok([archived, removed])
}

/// Whether a table that must be rebuilt can reuse its stored rows of archived sources: true if only the versions of
/// programs it was written with changed, so that stored values are still right. `root`: of its manifest.
pub(super) fn may_merge(request: &RunRequest<'_>, mapping: &Mapping, root: &Root) -> bool {
    let keeps = mapping.when_removed == WhenRemoved::KeepRows && !request.clean && request.prefix.is_empty();
    keeps && root.totals.archived > 0 && !root.is_foreign && root.schema.mapping == mapping_digest(mapping)
}

/// Checks that a table can be rebuilt from the CSVs in the lake.
///
/// # Errors
/// `ArchivedSourcesMissing` if rows would be lost that the config says to keep.
pub(super) fn check_rebuild(
    table: &TableStore<'_>,
    mapping: &Mapping,
    lake: &Lake,
    found: &FoundRoot,
    clean: bool,
) -> Result<(), RunError> {
    if mapping.when_removed == WhenRemoved::RemoveRows {
        return Ok(());
    }
    let root = match found {
        // Earlier versions kept no rows of single sources.
        FoundRoot::Absent | FoundRoot::Unusable { error: ManifestError::Older { .. }, .. } => return Ok(()),
        FoundRoot::Unusable { error, .. } => return Err(unusable(table.table, error)),
        FoundRoot::Readable(stored) => &stored.root,
    };
    let mut lost = LostSources::default();
    let maps = Maps::of(Some(root));
    let mut all = lake.keys().peekable();
    for entry in maps.sources.entries(&mut table.reader()) {
        let (key, entry) = entry.map_err(table_error)?;
        while let Some(listed) = all.next_if(|listed| listed.as_ref().map_or(true, |listed| *listed < key)) {
            listed?;
        }
        if all.peek().is_none_or(|listed| listed.as_ref().map_or(true, |listed| *listed != key)) {
            lost.add(&key, &entry);
        }
    }
    let cause = match (clean, root.is_foreign) {
        (true, _) => "a clean run rebuilds all rows",
        (false, true) => "after an import the first change rebuilds all rows",
        (false, false) => "the config changed, which rebuilds all rows",
    };
    if lost.sources == 0 { Ok(()) } else { Err(lost.error(table.table, cause)) }
}

fn unusable(table: &str, error: &ManifestError) -> RunError {
    let message = format!("table `{table}`: rows of CSVs that were removed from the lake may be lost: {error}");
    RunError::new(RunErrorCode::ArchivedSourcesMissing, message).detail(
        "nothing was changed. The table keeps the rows of removed CSVs, and its manifest can't be read: restore the manifest \
         from a backup, or set `when_removed` to `remove_rows` to rebuild the table from the CSVs in the lake",
    )
}

/// The error for sources without a CSV whose stored files are lost.
pub(super) fn check_lost(mapping: &Mapping, lost: &[(String, SourceEntry)]) -> Result<(), RunError> {
    if mapping.when_removed == WhenRemoved::RemoveRows || lost.is_empty() {
        return Ok(());
    }
    let mut of = LostSources::default();
    lost.iter().for_each(|(key, entry)| of.add(key, entry));
    Err(of.error(mapping.table.as_str(), "a stored file is missing or damaged"))
}

/// Fails if a source without a CSV is in a segment whose rows can't be distinguished by source.
pub(super) fn check_reread<'a>(
    table: &str,
    entries: impl IntoIterator<Item = (&'a String, &'a SourceEntry)>,
) -> Result<(), RunError> {
    let mut of = LostSources::default();
    entries.into_iter().filter(|(_, entry)| entry.archived).for_each(|(key, entry)| of.add(key, entry));
    let cause = "another source of the same segment changed, and `sort_by` mixes their rows";
    if of.sources == 0 { Ok(()) } else { Err(of.error(table, cause)) }
}

/// Whether a run without any CSV removes nothing: all tables keep the rows of removed CSVs, and at least one has some.
pub(super) fn keeps_all(store: &dyn ObjectStore, slug: &Slug, mappings: &[Mapping]) -> Result<bool, RunError> {
    if mappings.iter().any(|mapping| mapping.when_removed == WhenRemoved::RemoveRows) {
        return Ok(false);
    }
    for mapping in mappings {
        let table = TableStore::new(store, slug, mapping.table.as_str());
        let found = table.root().map_err(table_error)?;
        if found.readable().is_some_and(|root| root.totals.sources > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}
