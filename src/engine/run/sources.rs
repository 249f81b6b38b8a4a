//! Which sources of a table changed since its last commit.

use super::lake::Lake;
use super::request::{PARALLEL_HEADS_MAX, RunRequest};
use crate::domain::job::RunError;
use crate::domain::layout::pipeline_prefix;
use crate::domain::pipeline::Mapping;
use crate::domain::table_log::diff::{Difference, Differences, ListedSource, compare};
use crate::domain::table_log::entries::SourceEntry;
use crate::engine::convert::SourceRef;
use crate::engine::run_error::{store_error, table_error};
use crate::pipelines::tables::{Maps, TableError, TableStore};
use crate::ports::store::{Bucket, ETag};
use crate::sync::parallel_map;

/// What a run does with the sources of a table, each list in key order.
#[derive(Debug, Default)]
pub(super) struct SourceChanges {
    /// New and changed ones.
    pub read: Vec<SourceRef>,
    /// Those that left the lake, as they were read.
    pub removed: Vec<(String, SourceEntry)>,
    /// Archived ones that are in the lake again, unchanged.
    pub returned: Vec<(String, SourceEntry)>,
    /// Sources in the lake.
    pub listed: u64,
}

impl SourceChanges {
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.removed.is_empty() && self.returned.is_empty()
    }
}

/// Finds the sources of a table that changed. `maps`: of its manifest; `None`: all sources are read.
pub(super) fn changes(
    request: &RunRequest<'_>,
    table: &TableStore<'_>,
    mapping: &Mapping,
    lake: &Lake,
    maps: Option<&Maps>,
) -> Result<SourceChanges, RunError> {
    let listed = lake.sources(mapping)?;
    let mut changes = SourceChanges { listed: listed.len() as u64, ..SourceChanges::default() };
    let mut unknown = Vec::new();
    match maps {
        None => unknown.extend(listed.into_iter().map(|listed| (listed, None))),
        Some(maps) => {
            let mut reader = table.reader();
            let listing = listed.into_iter().map(Ok::<_, TableError>);
            for difference in Differences::new(listing, maps.sources.entries(&mut reader)) {
                match difference.map_err(table_error)? {
                    Difference::New(listed) | Difference::Changed(listed) => unknown.push((listed, None)),
                    Difference::Unknown(listed, entry) => unknown.push((listed, Some(entry))),
                    Difference::Returned(listed, entry) => changes.returned.push((listed.key, *entry)),
                    Difference::Removed(key, entry) => changes.removed.push((key, *entry)),
                }
            }
        }
    }
    let is_wanted = |key: &str| key.starts_with(request.prefix);
    unknown.retain(|(listed, _)| is_wanted(&listed.key));
    changes.removed.retain(|(key, _)| is_wanted(key));
    changes.returned.retain(|(key, _)| is_wanted(key));
    changes.read = with_tags(request, unknown)?;
    Ok(changes)
}

/// Adds tags where the listing has none, and leaves out sources whose tag says that they didn't change. A source that was
/// deleted since the listing is left to the next run.
pub(super) fn with_tags(
    request: &RunRequest<'_>,
    sources: Vec<(ListedSource, Option<Box<SourceEntry>>)>,
) -> Result<Vec<SourceRef>, RunError> {
    let prefix = pipeline_prefix(request.slug());
    let heads = parallel_map(&sources, PARALLEL_HEADS_MAX, |(listed, _)| match listed.etag {
        None => request.store.head(Bucket::Lake, &format!("{prefix}{}", listed.key)).map(Some),
        Some(_) => Ok(None),
    });
    let mut read = Vec::with_capacity(sources.len());
    for ((listed, entry), head) in sources.into_iter().zip(heads.map_err(store_error)?) {
        let listed = match head {
            Some(None) => continue,
            Some(Some(head)) => {
                let etag = head.etag.map(|etag| etag.0);
                ListedSource { size: head.size, etag, modified: head.modified, ..listed }
            }
            None => listed,
        };
        if let Some(entry) = entry
            && compare(listed.clone(), Some(*entry)).is_none()
        {
            continue;
        }
        read.push(SourceRef { key: listed.key, etag: listed.etag.map(ETag), size: listed.size });
    }
    Ok(read)
}
