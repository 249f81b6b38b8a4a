//! Which sources of a table changed since its last commit.

use std::sync::Arc;

use super::archive;
use super::lake::{self, Lake};
use super::request::{PARALLEL_HEADS_MAX, RunRequest};
use crate::domain::job::RunError;
use crate::domain::pipeline::{Mapping, WhenRemoved};
use crate::domain::table_log::diff::{Difference, Differences, ListedSource, compare};
use crate::domain::table_log::entries::SourceEntry;
use crate::engine::convert::{SourceList, SourceRef};
use crate::engine::run_error::table_error;
use crate::pipelines::tables::{Maps, TableStore};
use crate::ports::store::ETag;
use crate::sync::parallel_map;

/// Sources looked up by HEAD in one batch.
const BATCH_SOURCES: usize = 1_024;

/// The sources of a table by what a run does with them, each list in key order.
#[derive(Debug, Default)]
pub(super) struct SourceChanges {
    /// New and changed ones.
    pub read: Arc<SourceList>,
    /// Sources that left the table, as they were read.
    pub removed: Vec<(String, SourceEntry)>,
    /// Sources that left the lake and whose rows stay, as they were read.
    pub archived: Vec<(String, SourceEntry)>,
    /// Archived ones that are in the lake again, unchanged.
    pub returned: Vec<(String, SourceEntry)>,
    /// Sources in the lake.
    pub listed: u64,
}

impl SourceChanges {
    /// Whether files of the table may change, and not only marks of its sources.
    pub fn changes_files(&self) -> bool {
        !self.read.is_empty() || !self.removed.is_empty()
    }

    /// The entries whose marks change, with their new marks.
    pub fn marked(&self) -> impl Iterator<Item = (&String, SourceEntry)> {
        let archived = self.archived.iter().map(|(key, entry)| (key, entry, true));
        let marks = archived.chain(self.returned.iter().map(|(key, entry)| (key, entry, false)));
        marks.map(|(key, entry, archived)| (key, SourceEntry { archived, ..entry.clone() }))
    }

    pub fn is_empty(&self) -> bool {
        !self.changes_files() && self.archived.is_empty() && self.returned.is_empty()
    }
}

/// The sources of the lake, all of which are read.
pub(super) fn all(request: &RunRequest<'_>, mapping: &Mapping, lake: &Lake) -> Result<SourceChanges, RunError> {
    let (mut read, mut listed) = (SourcesToRead::new(request), 0);
    for source in lake.sources(mapping)? {
        listed += 1;
        read.add(source?, None)?;
    }
    Ok(SourceChanges { read: read.finish()?, listed, ..SourceChanges::default() })
}

/// Finds the sources of a table that changed. `maps`: of its manifest. `known`: its sources in the lake as of then.
pub(super) fn changes(
    request: &RunRequest<'_>,
    table: &TableStore<'_>,
    mapping: &Mapping,
    lake: &Lake,
    maps: &mut Maps,
    known: u64,
) -> Result<SourceChanges, RunError> {
    let (mut seen, mut added) = (0, 0);
    let listing = lake.sources(mapping)?.inspect(|_| seen += 1).map(|source| {
        let source = source?;
        Ok(ListedSource { variant: Some(mapping.format_of(&source.key).id.map(str::to_owned)), ..source })
    });
    let (mut found, mut missing) = (SourceChanges::default(), Vec::new());
    let keeps = mapping.when_removed == WhenRemoved::KeepRows;
    let mut read = SourcesToRead::new(request);
    let mut reader = table.reader();
    let mut take = |difference: Result<Difference, RunError>| -> Result<(), RunError> {
        match difference? {
            Difference::New(listed) => {
                added += 1;
                read.add(listed, None)?;
            }
            Difference::Changed(listed) => read.add(listed, None)?,
            Difference::Unknown(listed, entry) => read.add(listed, Some(entry))?,
            Difference::Returned(listed, entry) => {
                added += 1;
                if listed.key.starts_with(request.prefix) {
                    found.returned.push((listed.key, *entry));
                }
            }
            Difference::Removed(_, entry) if keeps && entry.archived => {}
            Difference::Removed(key, entry) => missing.push((key, *entry)),
        }
        Ok(())
    };
    match lake.keys_seen() {
        None => {
            let entries = maps.sources.entries(&mut reader).map(|entry| entry.map_err(table_error));
            Differences::new(listing, entries).try_for_each(&mut take)?;
        }
        Some(keys) => {
            let mut entries = Vec::new();
            for key in keys {
                let entry = maps.sources.get(key, &mut reader).map_err(table_error)?;
                entries.extend(entry.map(|entry| Ok((key.clone(), entry.clone()))));
            }
            Differences::new(listing, entries.into_iter()).try_for_each(&mut take)?;
        }
    }
    missing.retain(|(key, _)| key.starts_with(request.prefix));
    let gone = missing.iter().filter(|(_, entry)| !entry.archived).count();
    [found.archived, found.removed] = archive::divide(mapping, lake, missing)?;
    found.read = read.finish()?;
    found.listed = if lake.is_whole() { seen } else { (known + added).saturating_sub(gone as u64) };
    Ok(found)
}

/// These sources, as they are in the lake now.
pub(super) fn read_again(request: &RunRequest<'_>, listed: Vec<ListedSource>) -> Result<Arc<SourceList>, RunError> {
    let mut read = SourcesToRead { everywhere: true, ..SourcesToRead::new(request) };
    listed.into_iter().try_for_each(|listed| read.add(listed, None))?;
    read.finish()
}

/// Sources to read, in key order.
struct SourcesToRead<'a> {
    request: &'a RunRequest<'a>,
    /// Includes sources outside the request's prefix.
    everywhere: bool,
    /// Not looked up yet, with the entries of those that may not have changed.
    batch: Vec<(ListedSource, Option<Box<SourceEntry>>)>,
    list: SourceList,
}

impl<'a> SourcesToRead<'a> {
    fn new(request: &'a RunRequest<'a>) -> Self {
        Self { request, everywhere: false, batch: Vec::new(), list: SourceList::default() }
    }

    fn add(&mut self, listed: ListedSource, entry: Option<Box<SourceEntry>>) -> Result<(), RunError> {
        if self.everywhere || listed.key.starts_with(self.request.prefix) {
            self.batch.push((listed, entry));
        }
        if self.batch.len() < BATCH_SOURCES { Ok(()) } else { self.look_up() }
    }

    fn finish(mut self) -> Result<Arc<SourceList>, RunError> {
        self.look_up()?;
        Ok(Arc::new(self.list))
    }

    /// Adds tags where the listing has none, and leaves out sources whose tag says that they didn't change. A source that
    /// was deleted since the listing is left to the next run.
    fn look_up(&mut self) -> Result<(), RunError> {
        let batch = std::mem::take(&mut self.batch);
        let untagged: Vec<&str> =
            batch.iter().filter(|(listed, _)| listed.etag.is_none()).map(|(listed, _)| listed.key.as_str()).collect();
        let heads =
            parallel_map(&untagged, PARALLEL_HEADS_MAX, |key| lake::head(self.request.store, self.request.slug(), key));
        let mut heads = heads?.into_iter();
        for (listed, entry) in batch {
            let listed = match listed.etag.is_none().then(|| heads.next().flatten()) {
                Some(None) => continue,
                Some(Some(found)) => found,
                None => listed,
            };
            if let Some(entry) = entry
                && compare(listed.clone(), Some(*entry)).is_none()
            {
                continue;
            }
            self.list.push(&SourceRef { key: listed.key, etag: listed.etag.map(ETag), size: listed.size });
        }
        Ok(())
    }
}
