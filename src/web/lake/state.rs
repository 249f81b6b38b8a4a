//! The states of lake files: which tables read them, and whether they have.
//!
//! Invariants: files are matched as a run matches them, and compared with what the last run recorded; an unreadable config
//! makes states unknown, but fails no listing.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::service::LakeService;
use crate::domain::layout::{pipeline_of, pipeline_prefix};
use crate::domain::manifest::SourceEntry;
use crate::domain::name::Slug;
use crate::domain::plan::needs_head;
use crate::http::{ApiError, ErrorCode};
use crate::ports::store::{Bucket, ObjectMeta};
use crate::sync::parallel_map;
use crate::web::cache::parsed::Cached;
use crate::web::failure::from_store;
use crate::web::snapshot::manifest::LoadedManifest;
use crate::web::tables::catalogs::Declared;

/// Most HEAD requests per page, for files of which the listing doesn't tell whether they changed.
const HEADS_MAX: usize = 200;
/// Concurrent HEAD requests.
const HEADS_AT_ONCE: usize = 8;
/// Most tables of one file whose manifests are read.
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
    resolve_by_tag(lake, files, &mut states, view.as_ref())?;
    Ok(states)
}

/// A pipeline's config and manifests.
struct PipelineView<'a> {
    lake: &'a LakeService,
    slug: Slug,
    prefix: String,
    /// `None`: there is none, so no file is read.
    config: Option<Arc<Declared>>,
    /// By table, loaded when needed.
    manifests: Vec<(String, Option<Cached<Option<LoadedManifest>>>)>,
}

/// A file compared with a table's record of it.
enum Comparison {
    Known(Loaded),
    /// The tag decides, and the listing has none.
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
            let (loaded, rejected) = match self.manifest(table)? {
                Err(()) => (Loaded::Unknown, None),
                Ok(None) => (Loaded::New, None),
                Ok(Some(known)) => match known.manifest.sources.get(key) {
                    None => (Loaded::New, None),
                    Some(entry) => {
                        let loaded = match compare(entry, file, file.etag.as_ref().map(|tag| tag.0.as_str())) {
                            Comparison::Known(loaded) => loaded,
                            Comparison::NeedsTag => Loaded::Unknown,
                        };
                        (loaded, Some(entry.rows_rejected))
                    }
                },
            };
            state.loaded = state.loaded.max(loaded);
            if let Some(rejected) = rejected {
                state.rows_rejected = Some(state.rows_rejected.unwrap_or_default() + rejected);
            }
        }
        state.tables = tables;
        Ok(state)
    }

    /// A table's manifest; the inner error if it is unreadable.
    fn manifest(&mut self, table: &str) -> Result<Result<Option<&LoadedManifest>, ()>, ApiError> {
        let at = match self.manifests.iter().position(|(name, _)| name == table) {
            Some(at) => at,
            None => {
                let found = match self.lake.manifests.get(&self.slug, table) {
                    Ok(found) => found,
                    Err(error) if error.code() == ErrorCode::InvalidConfig => return Ok(Err(())),
                    Err(error) => return Err(error),
                };
                self.manifests.push((table.to_owned(), found));
                self.manifests.len() - 1
            }
        };
        Ok(Ok(self.manifests[at].1.as_ref().and_then(|found| found.value.as_ref().as_ref())))
    }

    /// Whether a file's state depends on its tag, which the listing lacks.
    fn needs_tag(&self, file: &ObjectMeta, state: &State) -> bool {
        let key = file.key.strip_prefix(&self.prefix).unwrap_or_default();
        let open = |table: &String| {
            let entry = self.entry(table, key);
            entry.is_some_and(|entry| matches!(compare(entry, file, None), Comparison::NeedsTag))
        };
        file.etag.is_none() && state.loaded == Loaded::Unknown && state.tables.iter().any(open)
    }

    fn entry(&self, table: &str, key: &str) -> Option<&SourceEntry> {
        let (_, found) = self.manifests.iter().find(|(name, _)| name == table)?;
        found.as_ref()?.value.as_ref().as_ref()?.manifest.sources.get(key)
    }
}

/// Compares a file as a run does.
fn compare(entry: &SourceEntry, file: &ObjectMeta, etag: Option<&str>) -> Comparison {
    let is = |same| Comparison::Known(if same { Loaded::Current } else { Loaded::Changed });
    match (etag, &entry.etag) {
        _ if entry.size != file.size => is(false),
        (Some(now), Some(then)) => is(now == then),
        _ if !needs_head(Some(entry), file.size, file.modified) => is(true),
        (None, Some(_)) => Comparison::NeedsTag,
        (_, None) => is(false),
    }
}

/// Requests the tags of files whose state depends on them.
fn resolve_by_tag(
    lake: &LakeService,
    files: &[ObjectMeta],
    states: &mut [Option<State>],
    view: Option<&PipelineView<'_>>,
) -> Result<(), ApiError> {
    let Some(view) = view else { return Ok(()) };
    let open: Vec<usize> = files
        .iter()
        .enumerate()
        .filter(|(at, file)| states.get(*at).and_then(Option::as_ref).is_some_and(|state| view.needs_tag(file, state)))
        .map(|(at, _)| at)
        .take(HEADS_MAX)
        .collect();
    let heads =
        parallel_map(&open, HEADS_AT_ONCE, |at| lake.store.head(Bucket::Lake, &files[*at].key)).map_err(from_store)?;
    for (at, head) in open.into_iter().zip(heads) {
        // A file deleted since the listing stays unknown.
        let (Some(head), Some(Some(state))) = (head, states.get_mut(at)) else { continue };
        let tag = head.etag.as_ref().map(|tag| tag.0.as_str());
        let key = head.key.strip_prefix(&view.prefix).unwrap_or_default();
        let loaded = state.tables.iter().take(TABLES_MAX).map(|table| match view.entry(table, key) {
            None if !view.manifests.iter().any(|(name, _)| name == table) => Loaded::Unknown,
            None => Loaded::New,
            Some(entry) => match compare(entry, &head, tag) {
                Comparison::Known(loaded) => loaded,
                Comparison::NeedsTag => Loaded::Unknown,
            },
        });
        state.loaded = loaded.max().unwrap_or(Loaded::Unknown);
    }
    Ok(())
}
