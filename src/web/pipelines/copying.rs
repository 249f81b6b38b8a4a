//! Copies objects of one pipeline to another, several at a time, each looked at again afterwards.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::hold::Held;
use crate::domain::layout::pipeline_prefix;
use crate::http::ApiError;
use crate::ports::ObjectStore;
use crate::ports::failpoint::reach;
use crate::ports::store::{Bucket, ObjectMeta, StoreError};
use crate::web::failure::from_store;

/// Copies that are made at a time.
const THREADS_MAX: usize = 8;
/// Times that an object is copied again since it changed meanwhile.
const TRIES_MAX: usize = 5;

/// An object that was copied: what it was, with its tag, and the tag of the copy.
#[derive(Debug, Clone)]
pub(super) struct Copied {
    original: ObjectMeta,
    tag: Option<String>,
}

impl Copied {
    /// Whether the original is what is listed now.
    pub(super) fn is_of(&self, listed: &ObjectMeta) -> bool {
        is_same(&self.original, listed)
    }

    /// The copy's tag, if the original was of this size and tag.
    pub(super) fn tag_if_it_was(&self, size: u64, etag: Option<&str>) -> Option<String> {
        let original = self.original.etag.as_ref().map(|tag| tag.0.as_str());
        if self.original.size == size && original.is_some() && original == etag { self.tag.clone() } else { None }
    }
}

/// Listings tell times more exactly than other answers, and some tell no tags.
fn is_same(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    let tags_differ = a.etag.as_ref().zip(b.etag.as_ref()).is_some_and(|(a, b)| a != b);
    a.size == b.size && !tags_differ && a.modified.timestamp() == b.modified.timestamp()
}

/// Copies `objects` of `from` to `to`, and gives them by their key relative to the pipeline. Those that vanish meanwhile
/// are left out.
///
/// # Errors
/// The first that failed: `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn copy_objects(
    store: &dyn ObjectStore,
    bucket: Bucket,
    objects: &[ObjectMeta],
    from: &Held,
    to: &Held,
) -> Result<BTreeMap<String, Copied>, ApiError> {
    let (old, new) = (pipeline_prefix(from.slug()), pipeline_prefix(to.slug()));
    let next = AtomicUsize::new(0);
    let done = Mutex::new((BTreeMap::new(), None));
    let work = || {
        while let Some(object) = objects.get(next.fetch_add(1, Ordering::Relaxed)) {
            let key = object.key.strip_prefix(&old).unwrap_or(&object.key);
            let copied = copy_one(store, bucket, object, &format!("{new}{key}"), to);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            match copied {
                Ok(copied) => done.0.extend(copied.map(|copied| (key.to_owned(), copied))),
                Err(error) => {
                    // Nobody begins another.
                    next.store(objects.len(), Ordering::Relaxed);
                    done.1.get_or_insert(error);
                }
            }
            drop(done);
            reach("rename::between_copies");
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..THREADS_MAX.min(objects.len()) {
            // Fewer are slower, and no more than that.
            let _ = std::thread::Builder::new().name("copier".into()).spawn_scoped(scope, work);
        }
        work();
    });
    let (copied, failed) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(copied), |error| Err(from_store(error)))
}

fn copy_one(
    store: &dyn ObjectStore,
    bucket: Bucket,
    object: &ObjectMeta,
    to: &str,
    held: &Held,
) -> Result<Option<Copied>, StoreError> {
    let mut seen = object.clone();
    for _ in 0..TRIES_MAX {
        let copy = match store.copy((bucket, &object.key), (bucket, to), &held.options()) {
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
                store.delete(bucket, &[to.to_owned()], &held.options())?;
                return Ok(None);
            }
        }
    }
    let source = std::io::Error::other("it changes as fast as it is copied");
    Err(StoreError::Transient { bucket, key: object.key.clone(), operation: "copying", source })
}
