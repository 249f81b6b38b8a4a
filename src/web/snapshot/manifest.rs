//! Manifests as readers need them.

use std::collections::BTreeMap;

use crate::domain::layout::{manifest_key, manifests_prefix};
use crate::domain::manifest::{FileEntry, Manifest, ManifestError};
use crate::domain::name::{Slug, TableName};
use crate::http::{ApiError, ErrorCode};
use crate::ports::store::{Bucket, ETag, list_all};
use crate::sync::parallel_map;
use crate::web::Web;
use crate::web::cache::parsed::Found;
use crate::web::failure::from_store;

/// Tags that are asked for at a time, where a listing has none.
const HEADS_AT_ONCE: usize = 8;

/// What a table's files amount to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
}

/// A manifest, with what is asked of it most.
#[derive(Debug)]
pub struct Known {
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

/// A manifest's text; `None` for one that can't be read, which counts as none: the next run makes the table anew.
///
/// # Errors
/// `invalid_config` for one that a newer version wrote: what its table has isn't known here.
pub fn parse(bytes: &[u8]) -> Result<Option<Known>, ApiError> {
    match Manifest::parse(bytes) {
        Ok(manifest) => {
            let table = Totals::of(manifest.partitions.values().flat_map(|partition| &partition.files));
            let rejects = Totals::of(manifest.rejects.values());
            Ok(Some(Known { manifest, table, rejects }))
        }
        Err(error @ ManifestError::Newer { .. }) => {
            Err(ApiError::new(ErrorCode::InvalidConfig, format!("a manifest can't be read by this version: {error}")))
        }
        Err(error @ ManifestError::Unreadable { .. }) => {
            tracing::warn!(%error, "a table counts as empty until its next run");
            Ok(None)
        }
    }
}

/// A manifest that is larger than any is read, which counts as none.
///
/// # Errors
/// None.
pub fn larger(bytes_max: u64) -> Result<Option<Known>, ApiError> {
    tracing::warn!(bytes_max, "a manifest is larger than any is: its table counts as empty until its next run");
    Ok(None)
}

impl Web {
    /// A table's manifest as it is now; `None` if there is none that can be read.
    pub(in crate::web) fn manifest(
        &self,
        pipeline: &Slug,
        table: &str,
    ) -> Result<Option<Found<Option<Known>>>, ApiError> {
        let found = self.manifests.get(self, &manifest_key(pipeline, table))?;
        Ok(found.filter(|found| found.value.as_ref().as_ref().is_some_and(|known| known.manifest.table == table)))
    }

    /// All manifests of a pipeline, by table; those of tables that the config no longer has, too.
    pub(in crate::web) fn all_manifests(
        &self,
        pipeline: &Slug,
    ) -> Result<BTreeMap<String, Found<Option<Known>>>, ApiError> {
        let mut all = BTreeMap::new();
        for (name, _) in self.listed_manifests(pipeline)? {
            if let Some(found) = self.manifest(pipeline, &name)? {
                all.insert(name, found);
            }
        }
        Ok(all)
    }

    /// The tags of all manifests, by table.
    pub(in crate::web) fn manifest_tags(&self, pipeline: &Slug) -> Result<BTreeMap<String, ETag>, ApiError> {
        let listed = self.listed_manifests(pipeline)?;
        let tag = |(name, listed): &(String, Option<ETag>)| match listed {
            Some(tag) => Ok(Some(tag.clone())),
            None => self.store.head(Bucket::Pipelines, &manifest_key(pipeline, name)).map(|meta| meta?.etag),
        };
        let tags = parallel_map(&listed, HEADS_AT_ONCE, tag).map_err(from_store)?;
        // One without a tag was deleted since.
        Ok(listed.into_iter().zip(tags).filter_map(|((name, _), tag)| Some((name, tag?))).collect())
    }

    /// The tables that have a manifest, with its tag where listings have tags.
    fn listed_manifests(&self, pipeline: &Slug) -> Result<Vec<(String, Option<ETag>)>, ApiError> {
        let prefix = manifests_prefix(pipeline);
        let listed = list_all(&*self.store, Bucket::Pipelines, &prefix).map_err(from_store)?;
        let named = listed.into_iter().filter_map(|object| {
            let name = object.key.strip_prefix(&prefix)?.strip_suffix(".json")?;
            // Others may have put something else there.
            TableName::parse(name).is_ok().then(|| (name.to_owned(), object.etag))
        });
        Ok(named.collect())
    }
}
