//! Deletes a pipeline: all its objects in all three buckets.
//!
//! Invariant: the config is deleted first, so that an interrupted delete leaves no pipeline that could run, and any
//! remaining object allows the delete to be repeated. Jobs and windows are dropped before the objects, so that no run sees
//! half of them, and again at the end.

use schemars::JsonSchema;
use serde::Serialize;

use super::marker;
use super::service::Pipelines;
use crate::domain::layout::{UNFINISHED, config_key, pipeline_prefix};
use crate::domain::limits::{DELETE_ROUNDS_MAX, LIST_PAGE_KEYS_MAX};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::tables::remove_all_from_catalog;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ObjectMeta, StoreError, WriteOptions, list_all};
use crate::runtime::failpoint::reach;
use crate::web::access::clipped;
use crate::web::failure::{from_kv, from_store, pipeline_not_found};
use crate::web::locks::LockedPipeline;
use crate::web::stores::Objects;

/// Maximum number of pages of one bucket that one request deletes.
const PAGES_MAX: usize = 10_000;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedPipeline")]
pub(super) struct DeletedPipeline {
    slug: String,
    /// Deleted objects, besides the config.
    objects: u64,
}

/// `DELETE /api/pipelines/{slug}`
pub(super) fn delete(pipelines: &Pipelines, request: &mut Request) -> Result<Response, ApiError> {
    let slug = pipelines.store.existing(request, "slug")?;
    let objects = pipelines.locks.with_pipeline_locks(&[&slug], |locked| delete_all(pipelines, &locked[0]))?;
    tracing::info!(pipeline = %slug, objects, request_id = request.id().as_str(), "pipeline deleted");
    Ok(Response::json(200, &DeletedPipeline { slug: slug.to_string(), objects }))
}

fn delete_all(pipelines: &Pipelines, locked: &LockedPipeline) -> Result<u64, ApiError> {
    let slug = locked.slug();
    if !pipelines.store.exists(slug)? {
        return Err(pipeline_not_found(slug));
    }
    pipelines.ports.registry.drop_pipeline(slug).map_err(from_kv)?;
    reach("delete::dropped");
    pipelines.store.delete(Bucket::Pipelines, &[config_key(slug)], &locked.options()).map_err(from_store)?;
    reach("delete::config_deleted");
    remove_all_from_catalog(&*pipelines.store, slug, pipelines.options.catalog.as_deref());
    let mut objects = 0;
    // Repeated until all listings are empty, since uploads take no lock.
    for _ in 0..DELETE_ROUNDS_MAX {
        let before = objects;
        // The marker of an unfinished pipeline is in the last bucket.
        for bucket in [Bucket::Warehouse, Bucket::Lake, Bucket::Pipelines] {
            objects += delete_bucket(&pipelines.store, locked, bucket)?;
        }
        reach("delete::round");
        if objects == before {
            break;
        }
    }
    reach("delete::deleted");
    locked.check()?;
    pipelines.ports.registry.drop_pipeline(slug).map_err(from_kv)?;
    Ok(objects)
}

/// Deletes all objects of a bucket; returns their number.
fn delete_bucket(store: &Objects, locked: &LockedPipeline, bucket: Bucket) -> Result<u64, ApiError> {
    let prefix = pipeline_prefix(locked.slug());
    let mut objects = 0;
    for _ in 0..PAGES_MAX {
        let page = store.list(bucket, &prefix, None, None, LIST_PAGE_KEYS_MAX).map_err(from_store)?;
        if page.objects.is_empty() {
            return refuse_unreachable(&**store, bucket, &page.skipped).map(|()| objects);
        }
        objects += page.objects.len() as u64;
        delete_objects(store, locked, bucket, &page.objects)?;
        reach("delete::between_pages");
    }
    Err(ApiError::internal(format!("objects keep arriving under `{prefix}` in the {bucket} bucket")))
}

/// Rejects an operation on a pipeline with objects that no request can name. `skipped`: see
/// [`ListPage::skipped`](crate::ports::store::ListPage::skipped). In local folders such files are foreign and ignored.
///
/// # Errors
/// `invalid_key` that names the first of them.
pub(super) fn refuse_unreachable(store: &dyn ObjectStore, bucket: Bucket, skipped: &[String]) -> Result<(), ApiError> {
    let Some(first) = skipped.first().filter(|_| store.is_remote()) else { return Ok(()) };
    let message = format!(
        "{bucket} bucket: `{}` has a segment `.` or `..`, which no request can name: delete it with the object store's own \
         tools, then retry",
        clipped(first)
    );
    Err(ApiError::new(ErrorCode::InvalidKey, message))
}

/// Deletes objects of the locked pipeline.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn delete_objects(
    store: &Objects,
    locked: &LockedPipeline,
    bucket: Bucket,
    objects: &[ObjectMeta],
) -> Result<(), ApiError> {
    for page in objects.chunks(LIST_PAGE_KEYS_MAX) {
        let keys: Vec<String> = page.iter().map(|object| object.key.clone()).collect();
        store.delete(bucket, &keys, &locked.options()).map_err(from_store)?;
    }
    Ok(())
}

/// Deletes objects of an earlier attempt that this one doesn't write, such as records of jobs that found no config; the
/// marker stays. `is_wanted` takes keys relative to the pipeline's prefix.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn delete_others(
    store: &Objects,
    locked: &LockedPipeline,
    bucket: Bucket,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(), ApiError> {
    let prefix = pipeline_prefix(locked.slug());
    let mut others = list_all(&**store, bucket, &prefix).map_err(from_store)?;
    others.retain(|object| {
        let key = object.key.strip_prefix(&prefix).unwrap_or(&object.key);
        key != UNFINISHED && !is_wanted(key)
    });
    delete_objects(store, locked, bucket, &others)
}

/// Consecutive failed pages after which the rest is left.
const FAILED_PAGES_MAX: usize = 3;

/// Maximum number of remaining objects that an error names; the rest is counted.
const REMAINING_NAMED_MAX: usize = 100;

/// An object that a failed request wrote and could not delete.
#[derive(Debug, Serialize)]
struct RemainingObject {
    message: String,
    bucket: Option<String>,
    key: Option<String>,
}

fn left_problems(left: &[(Bucket, String)]) -> Vec<RemainingObject> {
    let named = left.iter().take(REMAINING_NAMED_MAX).map(|(bucket, key)| RemainingObject {
        message: format!("`{key}` was written before the failure and may be left in the {bucket} bucket"),
        bucket: Some(bucket.to_string()),
        key: Some(key.clone()),
    });
    let rest = left.len().saturating_sub(REMAINING_NAMED_MAX);
    let rest =
        (rest > 0).then(|| RemainingObject { message: format!("and {rest} more objects"), bucket: None, key: None });
    named.chain(rest).collect()
}

/// Deletes the objects that a failed request has written, then its marker. If objects remain, the marker stays, so that
/// the same request or a delete of the pipeline can clean up, and the error names them. `is_complete`: `written` names
/// all objects.
pub(super) fn undo(
    store: &Objects,
    locked: &LockedPipeline,
    written: &[(Bucket, String)],
    is_complete: bool,
    error: ApiError,
) -> ApiError {
    let left = delete_written(&**store, written, &locked.options());
    remove_marker(store, locked, &left, is_complete);
    if left.is_empty() { error } else { error.and_problems(left_problems(&left)) }
}

fn remove_marker(store: &Objects, locked: &LockedPipeline, left: &[(Bucket, String)], is_complete: bool) {
    let pipeline = locked.slug();
    if !is_complete || !left.is_empty() {
        let (count, first) = (left.len(), left.first().map_or("", |(_, key)| key));
        tracing::warn!(%pipeline, count, first, whole = is_complete, "objects of a failed request remain; delete the pipeline");
        return;
    }
    if let Err(error) = marker::remove(store, locked) {
        tracing::warn!(%pipeline, %error, "marker of a failed request remains; delete the pipeline");
    }
}

/// Deletes objects, continuing after errors; returns those that may remain.
fn delete_written(
    store: &dyn ObjectStore,
    written: &[(Bucket, String)],
    options: &WriteOptions<'_>,
) -> Vec<(Bucket, String)> {
    let mut left = Vec::new();
    let mut failed_in_a_row = 0;
    for bucket in [Bucket::Pipelines, Bucket::Warehouse, Bucket::Lake] {
        let keys: Vec<String> = written.iter().filter(|(of, _)| *of == bucket).map(|(_, key)| key.clone()).collect();
        for page in keys.chunks(LIST_PAGE_KEYS_MAX) {
            let mut result = Ok(());
            if failed_in_a_row < FAILED_PAGES_MAX {
                result = store.delete(bucket, page, options);
                if let Err(StoreError::InvalidKey { .. }) = result {
                    // An invalid key wasn't written; delete the others one by one.
                    result = page.iter().try_for_each(|key| {
                        match store.delete(bucket, std::slice::from_ref(key), options) {
                            Ok(()) | Err(StoreError::InvalidKey { .. }) => Ok(()),
                            Err(error) => Err(error),
                        }
                    });
                }
            }
            if let Err(error) = &result {
                tracing::warn!(%bucket, %error, "deleting objects of a failed request failed");
            }
            if result.is_ok() && failed_in_a_row < FAILED_PAGES_MAX {
                failed_in_a_row = 0;
            } else {
                failed_in_a_row += 1;
                left.extend(page.iter().map(|key| (bucket, key.clone())));
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::fs::FsStore;
    use crate::ports::store::list_all;

    #[test]
    fn error_names_remaining_objects_up_to_a_limit() {
        let left: Vec<_> = (0..REMAINING_NAMED_MAX + 2).map(|at| (Bucket::Lake, format!("pipelines/p/{at}"))).collect();
        let error = ApiError::of(ErrorCode::S3Error).with_problems(["own"]).and_problems(left_problems(&left));
        let problems = error.problems().and_then(serde_json::Value::as_array).unwrap();
        assert_eq!(problems.len(), 1 + REMAINING_NAMED_MAX + 1);
        assert_eq!(problems[0], "own");
        assert_eq!((&problems[1]["bucket"], &problems[1]["key"]), (&"lake".into(), &"pipelines/p/0".into()));
        assert!(problems.last().unwrap()["message"].as_str().unwrap().contains("2 more"));
        let bare = ApiError::of(ErrorCode::S3Error).and_problems(left_problems(&left[..1]));
        assert_eq!(bare.problems().and_then(serde_json::Value::as_array).unwrap().len(), 1);
    }

    #[test]
    fn invalid_keys_do_not_prevent_deletion_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let store = FsStore::create(folder.path()).unwrap();
        let key = |name: &str| format!("pipelines/p/{name}");
        let mut written: Vec<(Bucket, String)> = Vec::new();
        for bucket in Bucket::ALL {
            for name in ["a", "b", "z"] {
                store.put(bucket, &key(name), b"x", &WriteOptions::default()).unwrap();
                written.push((bucket, key(name)));
            }
            written.insert(written.len() - 2, (bucket, key(&"x".repeat(300))));
            written.insert(written.len() - 1, (bucket, key("../q")));
            written.push((bucket, key("never-written")));
        }
        assert_eq!(delete_written(&store, &written, &WriteOptions::default()), []);
        for bucket in Bucket::ALL {
            assert!(list_all(&store, bucket, "").unwrap().is_empty(), "{bucket}");
        }
    }
}
