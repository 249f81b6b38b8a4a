//! Reads manifests from the store.

use std::io::Read;

use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::layout::{manifest_key, manifests_prefix};
use crate::domain::manifest::{Manifest, ManifestError};
use crate::domain::name::Slug;
use crate::engine::run_error::store_error;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ETag, StoreError, StoreResult, list_all};

/// A manifest object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundManifest {
    pub etag: Option<ETag>,
    /// `None` if it is unreadable or of an older version.
    pub manifest: Option<Manifest>,
}

/// Reads the manifest of `table`; `None` if it does not exist.
pub(super) fn read(store: &dyn ObjectStore, slug: &Slug, table: &str) -> Result<Option<FoundManifest>, RunError> {
    let key = manifest_key(slug, table);
    let mut reader = match store.get(Bucket::Pipelines, &key, None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(store_error(error)),
    };
    let mut json = Vec::new();
    reader.body.read_to_end(&mut json).map_err(|source| {
        store_error(StoreError::Transient { bucket: Bucket::Pipelines, key: key.clone(), operation: "reading", source })
    })?;
    let parsed = Manifest::parse(&json).and_then(|m| match m.table == table {
        true => Ok(m),
        false => Err(ManifestError::Unreadable { reason: format!("it belongs to table `{}`", m.table) }),
    });
    let manifest = match parsed {
        Ok(manifest) => Some(manifest),
        Err(error @ ManifestError::Newer { .. }) => {
            return Err(RunError::new(RunErrorCode::Internal, format!("table `{table}`: {error}"))
                .path(key)
                .detail("run it with that version or a later one"));
        }
        Err(error @ ManifestError::Unreadable { .. }) => {
            tracing::warn!(table, key, %error, "manifest unreadable; table will be rebuilt");
            None
        }
    };
    Ok(Some(FoundManifest { etag: reader.meta.etag, manifest }))
}

/// The tables with a manifest, in order.
pub(super) fn tables(store: &dyn ObjectStore, slug: &Slug) -> StoreResult<Vec<String>> {
    let prefix = manifests_prefix(slug);
    let objects = list_all(store, Bucket::Pipelines, &prefix)?;
    let names = objects.iter().filter_map(|o| o.key.strip_prefix(&prefix)?.strip_suffix(".json"));
    Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
}
