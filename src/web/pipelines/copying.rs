//! Copies objects of one pipeline to another.
//!
//! Each object is checked again after it is copied and before it is deleted.

use std::collections::BTreeMap;

use crate::domain::layout::pipeline_prefix;
use crate::http::ApiError;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ObjectMeta, StoreError};
use crate::runtime::failpoint::reach;
use crate::sync::parallel_map;
use crate::web::failure::from_store;
use crate::web::locks::LockedPipeline;

/// Concurrent copies.
const THREADS_MAX: usize = 8;
/// Objects checked before they are deleted together: few, so that the check is recent.
const DELETES_MAX: usize = 64;
/// Attempts to copy an object that changes meanwhile.
const TRIES_MAX: usize = 5;

/// A copied object, and the tag of the copy.
#[derive(Debug, Clone)]
pub(super) struct Copied {
    original: ObjectMeta,
    tag: Option<String>,
}

impl Copied {
    pub(super) fn original(&self) -> &ObjectMeta {
        &self.original
    }

    /// Whether a listed object is the original, unchanged.
    pub(super) fn is_copy_of(&self, listed: &ObjectMeta) -> bool {
        is_same(&self.original, listed)
    }

    /// The copy's tag, if the original had this size and tag.
    pub(super) fn tag_of_copy_of(&self, size: u64, etag: Option<&str>) -> Option<String> {
        let original = self.original.etag.as_ref().map(|tag| tag.0.as_str());
        if self.original.size == size && original.is_some() && original == etag { self.tag.clone() } else { None }
    }
}

/// Compares objects by seconds, which all responses have, and by tags, which some listings lack.
fn is_same(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    let tags_differ = a.etag.as_ref().zip(b.etag.as_ref()).is_some_and(|(a, b)| a != b);
    a.size == b.size && !tags_differ && a.modified.timestamp() == b.modified.timestamp()
}

/// Copies `objects` of `from` to `to`; returns the copies by key relative to the pipeline, without objects that were
/// deleted meanwhile.
///
/// # Errors
/// The first that failed: `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn copy_objects(
    store: &dyn ObjectStore,
    bucket: Bucket,
    objects: &[ObjectMeta],
    from: &LockedPipeline,
    to: &LockedPipeline,
) -> Result<BTreeMap<String, Copied>, ApiError> {
    let (old, new) = (pipeline_prefix(from.slug()), pipeline_prefix(to.slug()));
    let copied = parallel_map(objects, THREADS_MAX, |object| {
        let key = object.key.strip_prefix(&old).unwrap_or(&object.key);
        let copied = copy_one(store, bucket, object, &format!("{new}{key}"), to).map_err(from_store)?;
        reach("rename::between_copies");
        Ok::<_, ApiError>(copied.map(|copied| (key.to_owned(), copied)))
    })?;
    Ok(copied.into_iter().flatten().collect())
}

/// Deletes those of `objects` that are unchanged; returns the keys of the others.
///
/// Stores have no conditional delete, so a write between the check and the delete is lost.
///
/// # Errors
/// The first that failed: `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn delete_unchanged(
    store: &dyn ObjectStore,
    bucket: Bucket,
    objects: &[ObjectMeta],
    locked: &LockedPipeline,
) -> Result<Vec<String>, ApiError> {
    let mut changed = Vec::new();
    for some in objects.chunks(DELETES_MAX) {
        let now = parallel_map(some, THREADS_MAX, |object| store.head(bucket, &object.key).map_err(from_store))?;
        let mut unchanged = Vec::with_capacity(some.len());
        for (object, now) in some.iter().zip(now) {
            if let Some(now) = now {
                if is_same(object, &now) { unchanged.push(now.key) } else { changed.push(now.key) }
            }
        }
        store.delete(bucket, &unchanged, &locked.options()).map_err(from_store)?;
    }
    Ok(changed)
}

fn copy_one(
    store: &dyn ObjectStore,
    bucket: Bucket,
    object: &ObjectMeta,
    to: &str,
    locked: &LockedPipeline,
) -> Result<Option<Copied>, StoreError> {
    let mut seen = object.clone();
    for _ in 0..TRIES_MAX {
        let copy = match store.copy((bucket, &object.key), (bucket, to), &locked.options()) {
            Err(StoreError::NotFound { .. }) => None,
            copy => Some(copy?),
        };
        let after = store.head(bucket, &object.key)?;
        match (copy, after) {
            (Some(copy), Some(after)) if is_same(&seen, &after) && copy.size == after.size => {
                return Ok(Some(Copied { original: after, tag: copy.etag.map(|tag| tag.0) }));
            }
            (_, Some(after)) => seen = after,
            (_, None) => {
                store.delete(bucket, &[to.to_owned()], &locked.options())?;
                return Ok(None);
            }
        }
    }
    let source = std::io::Error::other("the object keeps changing while it is copied");
    Err(StoreError::Transient { bucket, key: object.key.clone(), operation: "copying", source })
}
