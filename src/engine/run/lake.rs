//! The sources of a run: one listing of the pipeline's part of the lake, matched against the globs of each table.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use globset::{GlobSet, GlobSetBuilder};

use super::request::RunRequest;
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::layout::{has_empty_segment, pipeline_prefix};
use crate::domain::limits::{SKIPPED_KEYS_MAX, UNSETTLED_WAIT_MS};
use crate::domain::name::Slug;
use crate::domain::pipeline::{Mapping, compile_glob};
use crate::domain::table_log::diff::ListedSource;
use crate::engine::run_error::store_error;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ObjectMeta, list_all_and_skipped};

/// A listing of the lake.
pub(super) struct Lake {
    /// By the store's clock, before the listing: later writes have later times.
    pub listed_at: DateTime<Utc>,
    /// Relative to the pipeline's prefix.
    pub keys: BTreeSet<String>,
    objects: BTreeMap<String, ObjectMeta>,
    /// Objects that can't be read because of their names: invalid keys, and folder markers with contents.
    skipped: BTreeSet<String>,
    /// How often a source was found to differ from the plan, whatever its listing says.
    suspects: BTreeMap<String, u32>,
}

impl Lake {
    /// `now`: local time before the call.
    pub fn list(
        store: &dyn ObjectStore,
        slug: &Slug,
        now: DateTime<Utc>,
        suspects: BTreeMap<String, u32>,
    ) -> Result<Self, RunError> {
        let prefix = pipeline_prefix(slug);
        let (listed, skipped) = list_all_and_skipped(store, Bucket::Lake, &prefix).map_err(store_error)?;
        let skipped = skipped.into_iter().filter_map(|key| Some(key.strip_prefix(&prefix)?.to_owned()));
        let relative = |o: ObjectMeta| Some((o.key.strip_prefix(&prefix)?.to_owned(), o));
        let is_file = |(key, _): &(String, ObjectMeta)| !key.is_empty() && !key.ends_with('/');
        let (objects, markers): (BTreeMap<String, ObjectMeta>, BTreeMap<_, _>) =
            listed.into_iter().filter_map(relative).partition(is_file);
        let odd_markers = markers.into_iter().filter(|(_, object)| object.size > 0).map(|(key, _)| key);
        let skipped = skipped.chain(odd_markers).collect();
        let listed_at = now - store.clock_skew().unwrap_or_default();
        Ok(Self { listed_at, keys: objects.keys().cloned().collect(), objects, skipped, suspects })
    }

    /// Lists again after `key` differed from the plan.
    pub fn again(self, request: &RunRequest<'_>, key: String) -> Result<Self, RunError> {
        let mut suspects = self.suspects;
        *suspects.entry(key).or_default() += 1;
        Self::list(request.store, request.slug(), request.clock.now(), suspects)
    }

    pub fn matches_any(&self, mapping: &Mapping) -> Result<bool, RunError> {
        let globs = glob_set(mapping)?;
        Ok(self.keys.iter().any(|key| globs.is_match(key)))
    }

    /// Files that no table reads by accident: those with invalid keys, and those that a glob would match without an
    /// empty segment in their keys (`in//a.csv` and `in/*.csv`). At most [`SKIPPED_KEYS_MAX`].
    pub fn overlooked(&self, mappings: &[Mapping]) -> Result<Vec<String>, RunError> {
        let odd: Vec<&String> = self.keys.iter().filter(|key| has_empty_segment(key)).collect();
        let mut overlooked = self.skipped.clone();
        if !odd.is_empty() {
            let globs = mappings.iter().map(glob_set).collect::<Result<Vec<_>, _>>()?;
            let is_read = |key: &str| globs.iter().any(|globs| globs.is_match(key));
            let near = odd.into_iter().filter(|key| !is_read(key) && is_read(&without_empty_segments(key)));
            overlooked.extend(near.cloned());
        }
        Ok(overlooked.into_iter().take(SKIPPED_KEYS_MAX).collect())
    }

    /// The listed objects that match the globs of a table.
    pub fn matching(&self, mapping: &Mapping) -> Result<BTreeMap<&str, &ObjectMeta>, RunError> {
        let globs = glob_set(mapping)?;
        let objects = self.objects.iter().map(|(key, object)| (key.as_str(), object));
        Ok(objects.filter(|(key, _)| globs.is_match(key)).collect())
    }

    /// The sources of a table, in key order.
    pub fn sources(&self, mapping: &Mapping) -> Result<Vec<ListedSource>, RunError> {
        let source = |(key, object): (&str, &ObjectMeta)| {
            let (mut etag, mut modified) = (object.etag.as_ref().map(|etag| etag.0.clone()), object.modified);
            if self.suspects.contains_key(key) {
                // It was found to differ from its listing: only a HEAD tells what it is.
                (etag, modified) = (None, DateTime::<Utc>::MAX_UTC);
            }
            ListedSource { key: key.to_owned(), size: object.size, etag, modified }
        };
        Ok(self.matching(mapping)?.into_iter().map(source).collect())
    }
}

/// Asks the store whether each source is complete, if the request says so. `sources`: keys relative to the pipeline's
/// prefix.
///
/// # Errors
/// `SourceBeingWritten` for the first source that may still be written.
pub(super) fn check_not_being_written<'k>(
    request: &RunRequest<'_>,
    table: &str,
    sources: impl IntoIterator<Item = &'k String>,
) -> Result<(), RunError> {
    if !request.settle {
        return Ok(());
    }
    let prefix = pipeline_prefix(request.slug());
    for key in sources {
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

fn glob_set(mapping: &Mapping) -> Result<GlobSet, RunError> {
    let mut set = GlobSetBuilder::new();
    for glob in &mapping.files {
        set.add(compile_glob(glob).map_err(|e| bad_glob(mapping, &e))?);
    }
    set.build().map_err(|e| bad_glob(mapping, &e))
}

fn bad_glob(mapping: &Mapping, error: &globset::Error) -> RunError {
    RunError::new(RunErrorCode::InvalidConfig, format!("table `{}`: {error}", mapping.table))
}
