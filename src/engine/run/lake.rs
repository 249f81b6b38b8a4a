//! The sources of a run: a listing of the pipeline's part of the lake, or the objects of the keys that events named, matched
//! against the globs of each table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::{DateTime, Utc};

use super::listing::{Listing, ListingWriter};
use super::request::{PARALLEL_HEADS_MAX, RunRequest};
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::layout::{has_empty_segment, pipeline_prefix};
use crate::domain::limits::{LIST_PAGE_KEYS_MAX, SKIPPED_KEYS_MAX, UNSETTLED_WAIT_MS};
use crate::domain::name::Slug;
use crate::domain::pipeline::Mapping;
use crate::domain::pipeline::globs::SourceGlobs;
use crate::domain::table_log::diff::ListedSource;
use crate::engine::convert::TextList;
use crate::engine::run_error::store_error;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ObjectMeta, StoreError};
use crate::sync::parallel_map;

/// A run's view of the lake.
pub(super) struct Lake {
    /// When the listing began, by the store's clock; later writes have later times.
    pub listed_at: DateTime<Utc>,
    seen: SeenKeys,
    /// Objects that can't be read because of their names: invalid keys, and folder markers with contents.
    skipped: BTreeSet<String>,
    /// Whether a key has an empty segment.
    has_odd_keys: bool,
    /// Sources that were found to differ from the plan, whatever their listing says.
    suspects: BTreeSet<String>,
}

enum SeenKeys {
    /// Every object.
    All(Listing),
    /// Only these keys, with the objects that exist.
    Only(BTreeMap<String, Option<ListedSource>>),
}

impl Lake {
    /// Lists the pipeline's part of the lake into a file in `scratch`. `now`: local time before the call.
    pub fn list(
        store: &dyn ObjectStore,
        slug: &Slug,
        now: DateTime<Utc>,
        scratch: &Path,
        suspects: BTreeSet<String>,
    ) -> Result<Self, RunError> {
        let prefix = pipeline_prefix(slug);
        let mut listing = ListingWriter::create(scratch)?;
        let (mut skipped, mut has_odd_keys, mut after) = (BTreeSet::new(), false, None);
        let mut skip = |key: &str| {
            if skipped.len() < SKIPPED_KEYS_MAX {
                skipped.insert(key.to_owned());
            }
        };
        loop {
            let page = store.list(Bucket::Lake, &prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX);
            let page = page.map_err(store_error)?;
            page.skipped.iter().filter_map(|key| key.strip_prefix(&prefix)).for_each(&mut skip);
            for object in page.objects {
                let Some(source) = listed(&prefix, object) else { continue };
                if is_file(&source.key) {
                    has_odd_keys |= has_empty_segment(&source.key);
                    listing.push(&source)?;
                } else if source.size > 0 {
                    skip(&source.key);
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let seen = SeenKeys::All(listing.finish()?);
        let listed_at = now - store.clock_skew().unwrap_or_default();
        Ok(Self { listed_at, seen, skipped, has_odd_keys, suspects })
    }

    /// Reads the metadata of only these keys, relative to the pipeline's prefix.
    pub fn from_keys(
        request: &RunRequest<'_>,
        keys: &BTreeSet<String>,
        suspects: BTreeSet<String>,
    ) -> Result<Self, RunError> {
        let now = request.clock.now();
        let files: Vec<&String> = keys.iter().filter(|key| is_file(key)).collect();
        let objects = parallel_map(&files, PARALLEL_HEADS_MAX, |key| head(request.store, request.slug(), key))?;
        let has_odd_keys = files.iter().any(|key| has_empty_segment(key));
        let seen = SeenKeys::Only(files.into_iter().cloned().zip(objects).collect());
        let listed_at = now - request.store.clock_skew().unwrap_or_default();
        Ok(Self { listed_at, seen, skipped: BTreeSet::new(), has_odd_keys, suspects })
    }

    /// Lists the whole lake again.
    pub fn whole(self, request: &RunRequest<'_>, scratch: &Path) -> Result<Self, RunError> {
        Self::list(request.store, request.slug(), request.clock.now(), scratch, self.suspects)
    }

    /// Looks again after `key` differed from the plan.
    pub fn refresh(mut self, request: &RunRequest<'_>, key: String, scratch: &Path) -> Result<Self, RunError> {
        self.suspects.insert(key.clone());
        match self.seen {
            SeenKeys::All(_) => self.whole(request, scratch),
            SeenKeys::Only(seen) => {
                let keys = seen.into_keys().chain([key]).collect();
                Self::from_keys(request, &keys, self.suspects)
            }
        }
    }

    /// Whether every object was seen.
    pub fn is_whole(&self) -> bool {
        matches!(self.seen, SeenKeys::All(_))
    }

    /// The keys that were looked at; `None`: all.
    pub fn keys_seen(&self) -> Option<impl Iterator<Item = &String>> {
        match &self.seen {
            SeenKeys::All(_) => None,
            SeenKeys::Only(seen) => Some(seen.keys()),
        }
    }

    /// A key of the lake, if there is any.
    pub fn any_key(&self) -> Option<String> {
        self.objects().next().and_then(Result::ok).map(|source| source.key)
    }

    /// Objects that were seen, in key order.
    fn objects(&self) -> Box<dyn Iterator<Item = Result<ListedSource, RunError>> + '_> {
        match &self.seen {
            SeenKeys::All(listing) => Box::new(listing.iter()),
            SeenKeys::Only(seen) => Box::new(seen.values().flatten().cloned().map(Ok)),
        }
    }

    /// The keys that were seen, in order.
    pub fn keys(&self) -> impl Iterator<Item = Result<String, RunError>> + '_ {
        self.objects().map(|object| object.map(|source| source.key))
    }

    /// Which of these keys were seen, whether a table reads them or not.
    pub fn existing(&self, keys: &BTreeSet<&str>) -> Result<BTreeSet<String>, RunError> {
        let is_wanted = |key: &Result<String, RunError>| key.as_ref().map_or(true, |key| keys.contains(key.as_str()));
        self.keys().filter(is_wanted).collect()
    }

    /// Files that no table reads by accident: those with invalid keys, and those that a glob would match without an
    /// empty segment in their keys (`in//a.csv` and `in/*.csv`). At most [`SKIPPED_KEYS_MAX`].
    pub fn unmatched_files(&self, mappings: &[Mapping]) -> Result<Vec<String>, RunError> {
        let mut unmatched_files = self.skipped.clone();
        if self.has_odd_keys {
            let globs = mappings.iter().map(globs_of).collect::<Result<Vec<_>, _>>()?;
            let is_read = |key: &str| globs.iter().any(|globs| globs.is_match(key));
            for object in self.objects() {
                let ListedSource { key, .. } = object?;
                let is_near = has_empty_segment(&key) && !is_read(&key) && is_read(&without_empty_segments(&key));
                if is_near && unmatched_files.len() < SKIPPED_KEYS_MAX {
                    unmatched_files.insert(key);
                }
            }
        }
        Ok(unmatched_files.into_iter().collect())
    }

    /// The sources of a table that were seen, in key order.
    pub fn sources<'l>(
        &'l self,
        mapping: &Mapping,
    ) -> Result<impl Iterator<Item = Result<ListedSource, RunError>> + 'l, RunError> {
        let globs = globs_of(mapping)?;
        let is_wanted = move |object: &Result<ListedSource, RunError>| match object {
            Ok(object) => globs.is_match(&object.key),
            Err(_) => true,
        };
        Ok(self.objects().filter(is_wanted).map(|object| object.map(|source| self.suspected(source))))
    }

    fn suspected(&self, source: ListedSource) -> ListedSource {
        match self.suspects.contains(&source.key) {
            // It differed from its listing, so only a HEAD request is reliable.
            true => ListedSource { etag: None, modified: DateTime::<Utc>::MAX_UTC, ..source },
            false => source,
        }
    }

    /// Some sources of a table, whether they were seen or not.
    pub fn some_sources(
        &self,
        request: &RunRequest<'_>,
        mapping: &Mapping,
        keys: &BTreeSet<String>,
    ) -> Result<Vec<ListedSource>, RunError> {
        if self.is_whole() {
            let is_wanted = |found: &Result<ListedSource, RunError>| {
                found.as_ref().map_or(true, |source| keys.contains(&source.key))
            };
            return self.sources(mapping)?.filter(is_wanted).collect();
        }
        Self::from_keys(request, keys, self.suspects.clone())?.sources(mapping)?.collect()
    }
}

fn listed(prefix: &str, object: ObjectMeta) -> Option<ListedSource> {
    let key = object.key.strip_prefix(prefix)?.to_owned();
    let etag = object.etag.map(|etag| etag.0);
    Some(ListedSource { key, size: object.size, etag, modified: object.modified, variant: None })
}

/// A source by a HEAD request; `key` is relative to the pipeline's prefix. `None` if it doesn't exist.
pub(super) fn head(store: &dyn ObjectStore, slug: &Slug, key: &str) -> Result<Option<ListedSource>, RunError> {
    let prefix = pipeline_prefix(slug);
    match store.head(Bucket::Lake, &format!("{prefix}{key}")) {
        Ok(object) => Ok(object.and_then(|object| listed(&prefix, object))),
        // Events may name keys that can't exist.
        Err(StoreError::InvalidKey { .. }) => Ok(None),
        Err(error) => Err(store_error(error)),
    }
}

fn is_file(key: &str) -> bool {
    !key.is_empty() && !key.ends_with('/')
}

/// Asks the store whether each source is complete, if the request says so. `sources`: keys relative to the pipeline's
/// prefix.
///
/// # Errors
/// `SourceBeingWritten` for the first source that may still be written.
pub(super) fn check_not_being_written(
    request: &RunRequest<'_>,
    table: &str,
    sources: &TextList,
) -> Result<(), RunError> {
    if !request.settle {
        return Ok(());
    }
    let prefix = pipeline_prefix(request.slug());
    for key in sources.iter() {
        if request.store.is_being_written(Bucket::Lake, &format!("{prefix}{key}")).map_err(store_error)? {
            return Err(being_written(table, key));
        }
    }
    Ok(())
}

fn being_written(table: &str, key: &str) -> RunError {
    let message = format!("table `{table}`: source `{key}` is still being written");
    RunError::new(RunErrorCode::SourceBeingWritten, message).path(key).detail(format!(
        "it changed less than {} s ago; nothing was done, and the run is retried until the file stops changing. To have \
         it read sooner and never incomplete, write it under a name that starts with a dot, then rename it",
        UNSETTLED_WAIT_MS / 1_000
    ))
}

fn without_empty_segments(key: &str) -> String {
    key.split('/').filter(|segment| !segment.is_empty()).collect::<Vec<_>>().join("/")
}

fn globs_of(mapping: &Mapping) -> Result<SourceGlobs, RunError> {
    SourceGlobs::compile([&mapping.files])
        .map_err(|error| RunError::new(RunErrorCode::InvalidConfig, format!("table `{}`: {error}", mapping.table)))
}
