//! The lake service, and helpers shared by its handlers.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::digest::sha256_hex;
use crate::domain::job::ChangedKeys;
use crate::domain::layout::{check_stored_key, has_empty_segment, split_key};
use crate::domain::name::Slug;
use crate::domain::source_name::is_text;
use crate::http::{ApiError, ErrorCode};
use crate::ports::kv::Diagnose;
use crate::ports::schedule::Schedule;
use crate::ports::store::{Bucket, ObjectMeta};
use crate::sync::Semaphore;
use crate::web::access::{clipped, key};
use crate::web::failure::{from_kv, from_store};
use crate::web::locks::{Locks, NamedLock};
use crate::web::snapshot::manifest::Manifests;
use crate::web::spool::Spool;
use crate::web::stores::{Objects, record_changes};
use crate::web::tables::catalogs::Catalogs;

/// Largest head of an object that a request may ask for, in bytes.
pub(super) const HEAD_BYTES_MAX: u64 = 1 << 20;

/// The service.
pub struct LakeService {
    pub store: Objects,
    pub schedule: Arc<dyn Schedule>,
    pub diagnose: Arc<dyn Diagnose>,
    pub locks: Arc<Locks>,
    pub catalogs: Arc<Catalogs>,
    pub manifests: Arc<Manifests>,
    pub spool: Spool,
    pub streams: Semaphore,
}

/// The content type of all downloads: browsers neither render nor run it.
pub(super) const OCTETS: &str = "application/octet-stream";

/// A stored file.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Stored {
    key: String,
    /// Bytes.
    size: u64,
    etag: Option<String>,
}

impl Stored {
    pub(super) fn of(meta: &ObjectMeta) -> Self {
        Self { key: meta.key.clone(), size: meta.size, etag: meta.etag.as_ref().map(|tag| tag.0.clone()) }
    }
}

/// Finds an object by a key from a request. Other programs may have stored it under a key in another normal form, or one
/// that this service doesn't allow for new objects (`a\b.csv`, a line break, `in//a.csv`): a key of exactly these bytes
/// takes precedence.
///
/// # Errors
/// `invalid_key`, `object_not_found`, `s3_error`, `bucket_not_found`.
pub(super) fn find(lake: &LakeService, text: &str) -> Result<ObjectMeta, ApiError> {
    check_stored_key(text).map_err(|error| ApiError::new(ErrorCode::InvalidKey, error.to_string()))?;
    // Stores that keep objects in folders fail on keys with empty segments, or return another object.
    let may_exist = !has_empty_segment(text) || is_listed(lake, text)?;
    let found = if may_exist { lake.store.head(Bucket::Lake, text).map_err(from_store)? } else { None };
    if let Some(found) = found {
        return Ok(found);
    }
    let normal = key(text)?;
    let found = if text == normal { None } else { lake.store.head(Bucket::Lake, &normal).map_err(from_store)? };
    found.ok_or_else(|| missing(text))
}

fn is_listed(lake: &LakeService, key: &str) -> Result<bool, ApiError> {
    let page = lake.store.list(Bucket::Lake, key, None, None, 1).map_err(from_store)?;
    Ok(page.objects.first().is_some_and(|object| object.key == key))
}

pub(super) fn missing(key: &str) -> ApiError {
    ApiError::new(ErrorCode::ObjectNotFound, format!("the lake has no object `{}`", clipped(key)))
}

/// The lock under which a move checks its source once more and deletes it.
pub(super) fn lock<'a>(lake: &'a LakeService, key: &str) -> Result<NamedLock<'a>, ApiError> {
    // Hashed, since names of locks are short.
    lake.locks.named(&format!("lake/{}", sha256_hex(key.as_bytes())))
}

/// Checks that a file still exists after it was stored, before success is reported: a concurrent move that checked the
/// key earlier may have deleted the new file instead of the one it moved.
///
/// # Errors
/// `precondition_failed` if it was deleted; `overloaded`, `s3_error`, `bucket_not_found`, `kv_unavailable`.
pub(super) fn verify_stored(lake: &LakeService, key: &str) -> Result<(), ApiError> {
    let _lock = lock(lake, key)?;
    if lake.store.head(Bucket::Lake, key).map_err(from_store)?.is_some() {
        return Ok(());
    }
    let message = format!("`{key}` was moved or deleted by a concurrent request; check it and retry");
    Err(ApiError::new(ErrorCode::PreconditionFailed, message))
}

/// Sources that are created or deleted, and whose pipelines are to be notified.
pub(super) struct Announcement<'a> {
    schedule: &'a dyn Schedule,
    changes: Vec<(Slug, ChangedKeys)>,
}

impl<'a> Announcement<'a> {
    /// Created before a file is stored or deleted, which fails if its pipeline couldn't be notified.
    ///
    /// # Errors
    /// `kv_unavailable`.
    pub(super) fn of(lake: &'a LakeService, keys: &[&str]) -> Result<Self, ApiError> {
        let mut changes = BTreeMap::new();
        for (pipeline, key) in keys.iter().filter(|key| is_text(key)).filter_map(|key| split_key(key)) {
            changes.entry(pipeline).or_insert_with(ChangedKeys::none).insert(key);
        }
        if !changes.is_empty() {
            lake.diagnose.ping().map_err(from_kv)?;
        }
        Ok(Self { schedule: &*lake.schedule, changes: changes.into_iter().collect() })
    }

    /// Extends the debounce windows of the pipelines.
    ///
    /// # Errors
    /// `kv_unavailable`: the request can be repeated.
    pub(super) fn send(&self) -> Result<(), ApiError> {
        if self.changes.is_empty() { Ok(()) } else { record_changes(self.schedule, &self.changes) }
    }

    /// Sends the event again after the deletion, since a run that started in between still saw the file.
    pub(super) fn repeat(&self) {
        if let Err(error) = self.send() {
            tracing::warn!(%error, "repeated event of a deletion failed");
        }
    }
}
