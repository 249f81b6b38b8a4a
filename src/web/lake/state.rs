//! What has become of the files of a pipeline: which tables read them, and whether they did.
//!
//! Invariants: a file is matched as a run matches it, and compared with what the run that read it wrote down; a config
//! that can't be understood makes a state unknown, and no listing fail.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::layout::{pipeline_of, pipeline_prefix};
use crate::domain::manifest::SourceEntry;
use crate::domain::name::Slug;
use crate::domain::plan::needs_head;
use crate::http::{ApiError, ErrorCode};
use crate::ports::store::{Bucket, ObjectMeta};
use crate::sync::parallel_map;
use crate::web::Web;
use crate::web::cache::parsed::Found;
use crate::web::failure::from_store;
use crate::web::snapshot::manifest::Known;
use crate::web::tables::catalog::Declared;

/// Files of a page whose tags are asked for one by one, where a listing leaves open whether they changed.
const HEADS_MAX: usize = 200;
/// Tags that are asked for at a time.
const HEADS_AT_ONCE: usize = 8;
/// Tables of one file of which the manifests are looked at.
const TABLES_MAX: usize = 50;

/// What is known of a file of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct State {
    /// The tables whose mappings match it, in the order of the config.
    tables: Vec<String>,
    loaded: Loaded,
    /// Rows of it that its tables rejected when they read it last; null if none has.
    rows_rejected: Option<u64>,
}

/// Whether a file's rows are in its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Loaded {
    /// As it is now, all its tables have read it.
    #[serde(rename = "loaded")]
    Current,
    /// At least one of its tables has never read it.
    New,
    /// At least one of its tables has read it as it was before.
    Changed,
    /// That can't be told: the config or a manifest can't be understood.
    Unknown,
    /// No mapping matches it.
    NotRead,
}

/// The states of files, in their order; `None` for a file of no pipeline.
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub fn states(web: &Web, files: &[ObjectMeta]) -> Result<Vec<Option<State>>, ApiError> {
    let mut view: Option<View<'_>> = None;
    let mut states = Vec::with_capacity(files.len());
    for file in files {
        let Some(slug) = pipeline_of(&file.key) else {
            states.push(None);
            continue;
        };
        // One level has files of one pipeline, so that this is made once.
        if view.as_ref().is_none_or(|view| view.slug != slug) {
            view = Some(View::of(web, slug)?);
        }
        states.push(match &mut view {
            Some(view) => Some(view.state(file)?),
            None => None,
        });
    }
    settle(web, files, &mut states, view.as_ref())?;
    Ok(states)
}

/// A pipeline as its files' states are told of it.
struct View<'a> {
    web: &'a Web,
    slug: Slug,
    prefix: String,
    /// `None`: there is none, so that no file is read.
    config: Option<Arc<Declared>>,
    /// By table, as far as they were needed.
    manifests: Vec<(String, Option<Found<Option<Known>>>)>,
}

/// What one table says of a file.
enum Said {
    Is(Loaded),
    /// Only a tag can tell, and the listing has none.
    TagDecides,
}

impl<'a> View<'a> {
    fn of(web: &'a Web, slug: Slug) -> Result<Self, ApiError> {
        let config = web.declared(&slug)?;
        let prefix = pipeline_prefix(&slug);
        Ok(Self { web, slug, prefix, config, manifests: Vec::new() })
    }

    fn state(&mut self, file: &ObjectMeta) -> Result<State, ApiError> {
        let none = |loaded| State { tables: Vec::new(), loaded, rows_rejected: None };
        let Some(config) = self.config.clone() else { return Ok(none(Loaded::NotRead)) };
        let key = file.key.strip_prefix(&self.prefix).unwrap_or_default();
        let Some(tables) = config.reading(key) else { return Ok(none(Loaded::Unknown)) };
        let mut state = none(if tables.is_empty() { Loaded::NotRead } else { Loaded::Current });
        for table in tables.iter().take(TABLES_MAX) {
            let (said, rejected) = match self.manifest(table)? {
                Err(()) => (Loaded::Unknown, None),
                Ok(None) => (Loaded::New, None),
                Ok(Some(known)) => match known.manifest.sources.get(key) {
                    None => (Loaded::New, None),
                    Some(entry) => {
                        let loaded = match compare(entry, file, file.etag.as_ref().map(|tag| tag.0.as_str())) {
                            Said::Is(loaded) => loaded,
                            Said::TagDecides => Loaded::Unknown,
                        };
                        (loaded, Some(entry.rows_rejected))
                    }
                },
            };
            state.loaded = state.loaded.max(said);
            if let Some(rejected) = rejected {
                state.rows_rejected = Some(state.rows_rejected.unwrap_or_default() + rejected);
            }
        }
        state.tables = tables;
        Ok(state)
    }

    /// What a table is made of; an error if that can't be read.
    fn manifest(&mut self, table: &str) -> Result<Result<Option<&Known>, ()>, ApiError> {
        let at = match self.manifests.iter().position(|(name, _)| name == table) {
            Some(at) => at,
            None => {
                let found = match self.web.manifest(&self.slug, table) {
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

    /// Whether only a tag can tell if a file of this state changed.
    fn is_open(&self, file: &ObjectMeta, state: &State) -> bool {
        let key = file.key.strip_prefix(&self.prefix).unwrap_or_default();
        let open = |table: &String| {
            let entry = self.entry(table, key);
            entry.is_some_and(|entry| matches!(compare(entry, file, None), Said::TagDecides))
        };
        file.etag.is_none() && state.loaded == Loaded::Unknown && state.tables.iter().any(open)
    }

    fn entry(&self, table: &str, key: &str) -> Option<&SourceEntry> {
        let (_, found) = self.manifests.iter().find(|(name, _)| name == table)?;
        found.as_ref()?.value.as_ref().as_ref()?.manifest.sources.get(key)
    }
}

/// As a run compares a source with what it was.
fn compare(entry: &SourceEntry, file: &ObjectMeta, etag: Option<&str>) -> Said {
    let is = |same| Said::Is(if same { Loaded::Current } else { Loaded::Changed });
    match (etag, &entry.etag) {
        _ if entry.size != file.size => is(false),
        (Some(now), Some(then)) => is(now == then),
        _ if !needs_head(Some(entry), file.size, file.modified) => is(true),
        (None, Some(_)) => Said::TagDecides,
        (_, None) => is(false),
    }
}

/// Asks for the tags of files of which nothing else tells whether they changed.
fn settle(
    web: &Web,
    files: &[ObjectMeta],
    states: &mut [Option<State>],
    view: Option<&View<'_>>,
) -> Result<(), ApiError> {
    let Some(view) = view else { return Ok(()) };
    let open: Vec<usize> = files
        .iter()
        .enumerate()
        .filter(|(at, file)| states.get(*at).and_then(Option::as_ref).is_some_and(|state| view.is_open(file, state)))
        .map(|(at, _)| at)
        .take(HEADS_MAX)
        .collect();
    let heads =
        parallel_map(&open, HEADS_AT_ONCE, |at| web.store.head(Bucket::Lake, &files[*at].key)).map_err(from_store)?;
    for (at, head) in open.into_iter().zip(heads) {
        // What vanished since the listing stays unknown.
        let (Some(head), Some(Some(state))) = (head, states.get_mut(at)) else { continue };
        let tag = head.etag.as_ref().map(|tag| tag.0.as_str());
        let key = head.key.strip_prefix(&view.prefix).unwrap_or_default();
        let said = state.tables.iter().take(TABLES_MAX).map(|table| match view.entry(table, key) {
            None if !view.manifests.iter().any(|(name, _)| name == table) => Loaded::Unknown,
            None => Loaded::New,
            Some(entry) => match compare(entry, &head, tag) {
                Said::Is(loaded) => loaded,
                Said::TagDecides => Loaded::Unknown,
            },
        });
        state.loaded = said.max().unwrap_or(Loaded::Unknown);
    }
    Ok(())
}
