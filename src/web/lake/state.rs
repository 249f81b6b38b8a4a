//! The states of lake files: which tables read them, and whether they have.
//!
//! Invariants: files are matched as a run matches them, and compared with the last run's manifest; an unreadable config
//! makes states unknown, but fails no listing.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::service::LakeService;
use crate::domain::layout::{pipeline_of, pipeline_prefix};
use crate::domain::name::Slug;
use crate::domain::table_log::diff::{Difference, ListedSource, compare};
use crate::domain::table_log::entries::SourceEntry;
use crate::domain::table_log::root::Root;
use crate::http::{ApiError, ErrorCode};
use crate::pipelines::tables::Maps;
use crate::ports::store::{Bucket, ObjectMeta};
use crate::sync::parallel_map;
use crate::web::cache::parsed::Cached;
use crate::web::failure::from_store;
use crate::web::tables::catalogs::Declared;

/// Maximum number of HEAD requests per page, for files whose listing doesn't show whether they changed.
const HEADS_MAX: usize = 200;
/// Concurrent HEAD requests.
const PARALLEL_HEADS_MAX: usize = 8;
/// Maximum number of tables of one file whose manifests are read.
const TABLES_MAX: usize = 50;

/// The state of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct State {
    /// The tables whose mappings match it, in the order of the config.
    tables: Vec<String>,
    loaded: Loaded,
    /// Rows that its tables rejected when they last read it; null if none has.
    rows_rejected: Option<u64>,
}

/// Whether a file's rows are in its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Loaded {
    /// All its tables have read its current content.
    #[serde(rename = "loaded")]
    Current,
    /// At least one of its tables has never read it.
    New,
    /// At least one of its tables has read earlier content.
    Changed,
    /// The config or a manifest is unreadable.
    Unknown,
    /// No mapping matches it.
    NotRead,
}

/// The states of files, in order; `None` for a file outside pipelines.
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub fn states(lake: &LakeService, files: &[ObjectMeta]) -> Result<Vec<Option<State>>, ApiError> {
    let mut view: Option<PipelineView<'_>> = None;
    let mut states = Vec::with_capacity(files.len());
    for file in files {
        let Some(slug) = pipeline_of(&file.key) else {
            states.push(None);
            continue;
        };
        // One level has files of one pipeline, so this happens once.
        if view.as_ref().is_none_or(|view| view.slug != slug) {
            view = Some(PipelineView::of(lake, slug)?);
        }
        states.push(match &mut view {
            Some(view) => Some(view.state(file)?),
            None => None,
        });
    }
    resolve_by_tag(lake, files, &mut states, view.as_mut())?;
    Ok(states)
}

/// A pipeline's config and manifests.
struct PipelineView<'a> {
    lake: &'a LakeService,
    slug: Slug,
    prefix: String,
    /// `None`: the pipeline has no config, so no table reads a file.
    config: Option<Arc<Declared>>,
    /// By table, read when needed.
    manifests: Vec<(String, Option<LoadedManifest>)>,
}

/// A table's manifest, with the shards read so far.
struct LoadedManifest {
    root: Cached<Option<Root>>,
    maps: Maps,
}

/// A file compared with a table's record of it.
enum Comparison {
    Known(Loaded),
    /// The tag is needed to decide, and the listing lacks it.
    NeedsTag,
}

impl<'a> PipelineView<'a> {
    fn of(lake: &'a LakeService, slug: Slug) -> Result<Self, ApiError> {
        let config = lake.catalogs.declared(&slug)?;
        let prefix = pipeline_prefix(&slug);
        Ok(Self { lake, slug, prefix, config, manifests: Vec::new() })
    }

    fn state(&mut self, file: &ObjectMeta) -> Result<State, ApiError> {
        let none = |loaded| State { tables: Vec::new(), loaded, rows_rejected: None };
        let Some(config) = self.config.clone() else { return Ok(none(Loaded::NotRead)) };
        let key = file.key.strip_prefix(&self.prefix).unwrap_or_default();
        let Some(tables) = config.reading(key) else { return Ok(none(Loaded::Unknown)) };
        let mut state = none(if tables.is_empty() { Loaded::NotRead } else { Loaded::Current });
        for table in tables.iter().take(TABLES_MAX) {
            let (loaded, rejected) = match self.entry(table, key)? {
                FoundEntry::Unknown => (Loaded::Unknown, None),
                FoundEntry::Absent => (Loaded::New, None),
                FoundEntry::Read(entry) => {
                    let rejected = entry.rows_rejected;
                    let loaded = match compared(key, *entry, file) {
                        Comparison::Known(loaded) => loaded,
                        Comparison::NeedsTag => Loaded::Unknown,
                    };
                    (loaded, Some(rejected))
                }
            };
            state.loaded = state.loaded.max(loaded);
            if let Some(rejected) = rejected {
                state.rows_rejected = Some(state.rows_rejected.unwrap_or_default() + rejected);
            }
        }
        state.tables = tables;
        Ok(state)
    }

    /// Whether a file's state depends on its tag, which the listing lacks.
    fn needs_tag(&mut self, file: &ObjectMeta, state: &State) -> Result<bool, ApiError> {
        if file.etag.is_some() || state.loaded != Loaded::Unknown {
            return Ok(false);
        }
        let key = file.key.strip_prefix(&self.prefix).unwrap_or_default().to_owned();
        for table in state.tables.iter().take(TABLES_MAX) {
            if let FoundEntry::Read(entry) = self.entry(table, &key)?
                && matches!(compared(&key, *entry, file), Comparison::NeedsTag)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A table's entry of a source.
    fn entry(&mut self, table: &str, key: &str) -> Result<FoundEntry, ApiError> {
        let at = match self.manifests.iter().position(|(name, _)| name == table) {
            Some(at) => at,
            None => {
                let root = match self.lake.manifests.get(&self.slug, table) {
                    Ok(root) => root,
                    Err(error) if error.code() == ErrorCode::InvalidConfig => return Ok(FoundEntry::Unknown),
                    Err(error) => return Err(error),
                };
                let loaded = root.map(|root| {
                    let maps = Maps::of(root.value.as_ref().as_ref());
                    LoadedManifest { root, maps }
                });
                self.manifests.push((table.to_owned(), loaded));
                self.manifests.len() - 1
            }
        };
        let Some(LoadedManifest { root, maps }) = &mut self.manifests[at].1 else { return Ok(FoundEntry::Absent) };
        let Some(root) = root.value.as_ref() else { return Ok(FoundEntry::Absent) };
        let key = key.to_owned();
        let manifests = &self.lake.manifests;
        let found = manifests.read(&self.slug, root, |table, _| {
            Ok(maps.sources.get(&key, &mut manifests.source_shards.reader(table))?.cloned())
        })?;
        Ok(match found {
            // A later commit deleted the shard; the next request reads its root.
            None => FoundEntry::Unknown,
            Some(None) => FoundEntry::Absent,
            Some(Some(entry)) => FoundEntry::Read(Box::new(entry)),
        })
    }
}

/// A file's entry in a table's manifest.
enum FoundEntry {
    Absent,
    Read(Box<SourceEntry>),
    /// The manifest can't be read.
    Unknown,
}

/// Compares a file as a run does.
fn compared(key: &str, entry: SourceEntry, file: &ObjectMeta) -> Comparison {
    let etag = file.etag.as_ref().map(|tag| tag.0.clone());
    let listed = ListedSource { key: key.to_owned(), size: file.size, etag, modified: file.modified, variant: None };
    match compare(listed, Some(entry)) {
        None | Some(Difference::Returned(..)) => Comparison::Known(Loaded::Current),
        Some(Difference::Unknown(..)) => Comparison::NeedsTag,
        Some(_) => Comparison::Known(Loaded::Changed),
    }
}

/// Requests the tags of files whose state depends on them.
fn resolve_by_tag(
    lake: &LakeService,
    files: &[ObjectMeta],
    states: &mut [Option<State>],
    view: Option<&mut PipelineView<'_>>,
) -> Result<(), ApiError> {
    let Some(view) = view else { return Ok(()) };
    let mut open = Vec::new();
    for (at, file) in files.iter().enumerate() {
        if let Some(Some(state)) = states.get(at)
            && open.len() < HEADS_MAX
            && view.needs_tag(file, state)?
        {
            open.push(at);
        }
    }
    let heads = parallel_map(&open, PARALLEL_HEADS_MAX, |at| lake.store.head(Bucket::Lake, &files[*at].key))
        .map_err(from_store)?;
    for (at, head) in open.into_iter().zip(heads) {
        // A file deleted since the listing stays unknown.
        let (Some(head), Some(state)) = (head, states.get_mut(at)) else { continue };
        *state = Some(view.state(&head)?);
    }
    Ok(())
}
