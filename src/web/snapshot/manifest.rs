//! Reads manifests, cached by tag.

use std::collections::BTreeMap;

use crate::domain::layout::{manifest_key, manifests_prefix};
use crate::domain::limits::MANIFEST_BYTES_MAX;
use crate::domain::manifest::{FileEntry, Manifest, ManifestError};
use crate::domain::name::{Slug, TableName};
use crate::http::{ApiError, ErrorCode};
use crate::ports::store::{Bucket, ETag, list_all};
use crate::sync::parallel_map;
use crate::web::cache::parsed::{Cached, Parsed};
use crate::web::failure::from_store;
use crate::web::stores::Objects;

/// Concurrent HEAD requests, where a listing lacks tags.
const HEADS_AT_ONCE: usize = 8;

/// Totals of a table's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
}

/// A parsed manifest, with its totals.
#[derive(Debug)]
pub struct LoadedManifest {
    pub manifest: Manifest,
    pub table: Totals,
    pub rejects: Totals,
}

impl Totals {
    fn of<'a>(files: impl Iterator<Item = &'a FileEntry>) -> Self {
        files.fold(Self::default(), |sum, file| Self {
            files: sum.files + 1,
            rows: sum.rows + file.rows,
            bytes: sum.bytes + file.size,
        })
    }

    pub fn and(self, other: Self) -> Self {
        Self { files: self.files + other.files, rows: self.rows + other.rows, bytes: self.bytes + other.bytes }
    }
}

/// Parses a manifest; an unreadable one is `None`, since the next run rebuilds the table.
///
/// # Errors
/// `invalid_config` if a newer version wrote it.
fn parse(bytes: &[u8]) -> Result<Option<LoadedManifest>, ApiError> {
    match Manifest::parse(bytes) {
        Ok(manifest) => {
            let table = Totals::of(manifest.partitions.values().flat_map(|partition| &partition.files));
            let rejects = Totals::of(manifest.rejects.values());
            Ok(Some(LoadedManifest { manifest, table, rejects }))
        }
        Err(error @ ManifestError::Newer { .. }) => {
            Err(ApiError::new(ErrorCode::InvalidConfig, format!("this version can't read a manifest: {error}")))
        }
        Err(error @ ManifestError::Unreadable { .. }) => {
            tracing::warn!(%error, "manifest is unreadable; table is empty until its next run");
            Ok(None)
        }
    }
}

/// The value of a manifest that exceeds the size limit.
#[expect(clippy::unnecessary_wraps, reason = "a parser of `Parsed`")]
fn larger(bytes_max: u64) -> Result<Option<LoadedManifest>, ApiError> {
    tracing::warn!(bytes_max, "manifest exceeds size limit; table is empty until its next run");
    Ok(None)
}

/// Reads manifests.
pub struct Manifests {
    pub(super) store: Objects,
    cache: Parsed<Option<LoadedManifest>>,
}

impl Manifests {
    pub fn new(store: Objects) -> Self {
        Self { store, cache: Parsed::new(MANIFEST_BYTES_MAX, parse, larger) }
    }

    /// A table's current manifest; `None` if there is no readable one.
    pub fn get(&self, pipeline: &Slug, table: &str) -> Result<Option<Cached<Option<LoadedManifest>>>, ApiError> {
        let found = self.cache.get(&self.store, &manifest_key(pipeline, table))?;
        Ok(found.filter(|found| found.value.as_ref().as_ref().is_some_and(|known| known.manifest.table == table)))
    }

    /// All manifests of a pipeline, by table, including those of tables removed from the config.
    pub fn all(&self, pipeline: &Slug) -> Result<BTreeMap<String, Cached<Option<LoadedManifest>>>, ApiError> {
        let mut all = BTreeMap::new();
        for (name, _) in self.listed(pipeline)? {
            if let Some(found) = self.get(pipeline, &name)? {
                all.insert(name, found);
            }
        }
        Ok(all)
    }

    /// The tags of all manifests, by table.
    pub fn tags(&self, pipeline: &Slug) -> Result<BTreeMap<String, ETag>, ApiError> {
        let listed = self.listed(pipeline)?;
        let tag = |(name, listed): &(String, Option<ETag>)| match listed {
            Some(tag) => Ok(Some(tag.clone())),
            None => self.store.head(Bucket::Pipelines, &manifest_key(pipeline, name)).map(|meta| meta?.etag),
        };
        let tags = parallel_map(&listed, HEADS_AT_ONCE, tag).map_err(from_store)?;
        // Those without a tag were deleted meanwhile.
        Ok(listed.into_iter().zip(tags).filter_map(|((name, _), tag)| Some((name, tag?))).collect())
    }

    /// The tables with a manifest, and its tag if listings have tags.
    fn listed(&self, pipeline: &Slug) -> Result<Vec<(String, Option<ETag>)>, ApiError> {
        let prefix = manifests_prefix(pipeline);
        let listed = list_all(&*self.store, Bucket::Pipelines, &prefix).map_err(from_store)?;
        let named = listed.into_iter().filter_map(|object| {
            let name = object.key.strip_prefix(&prefix)?.strip_suffix(".json")?;
            // Other programs may have stored other objects there.
            TableName::parse(name).is_ok().then(|| (name.to_owned(), object.etag))
        });
        Ok(named.collect())
    }
}
