//! Deletes a pipeline: every object of it, in all three buckets.
//!
//! Invariant: the config goes first, so that whatever a delete that was cut off leaves is no pipeline that could run, and
//! shows by any one object that the delete can be repeated to the end. Jobs and windows go before the objects, so that
//! none finds half of them, and again at the end, with those that were asked for meanwhile.

use schemars::JsonSchema;
use serde::Serialize;

use super::hold::{Held, holding};
use super::mark;
use crate::domain::layout::{UNFINISHED, config_key, pipeline_prefix};
use crate::domain::limits::{DELETE_ROUNDS_MAX, LIST_PAGE_KEYS_MAX};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ObjectMeta, StoreError, WriteOptions, list_all};
use crate::runtime::failpoint::reach;
use crate::web::Web;
use crate::web::access::clipped;
use crate::web::failure::{from_kv, from_store};

/// Pages of one bucket that one request deletes.
const PAGES_MAX: usize = 10_000;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedPipeline")]
pub(super) struct Deleted {
    slug: String,
    /// Objects that were deleted, besides the config.
    objects: u64,
}

/// `DELETE /api/pipelines/{slug}`
pub(super) fn delete(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let slug = web.existing(request, "slug")?;
    let objects = holding(web, &[&slug], |held| delete_all(web, &held[0]))?;
    tracing::info!(pipeline = %slug, objects, request_id = request.id().as_str(), "the pipeline is deleted");
    Ok(Response::json(200, &Deleted { slug: slug.to_string(), objects }))
}

fn delete_all(web: &Web, held: &Held) -> Result<u64, ApiError> {
    let slug = held.slug();
    if !web.exists(slug)? {
        return Err(not_found(slug));
    }
    web.kv.drop_pipeline(slug).map_err(from_kv)?;
    reach("delete::dropped");
    web.store.delete(Bucket::Pipelines, &[config_key(slug)], &held.options()).map_err(from_store)?;
    reach("delete::config_deleted");
    let mut objects = 0;
    // Until a look at all finds nothing: uploads wait for nobody.
    for _ in 0..DELETE_ROUNDS_MAX {
        let before = objects;
        // The mark of something unfinished lies in the bucket that goes last.
        for bucket in [Bucket::Warehouse, Bucket::Lake, Bucket::Pipelines] {
            objects += delete_bucket(web, held, bucket)?;
        }
        reach("delete::round");
        if objects == before {
            break;
        }
    }
    reach("delete::deleted");
    held.check()?;
    web.kv.drop_pipeline(slug).map_err(from_kv)?;
    Ok(objects)
}

/// How many objects there were.
fn delete_bucket(web: &Web, held: &Held, bucket: Bucket) -> Result<u64, ApiError> {
    let prefix = pipeline_prefix(held.slug());
    let mut objects = 0;
    for _ in 0..PAGES_MAX {
        let page = web.store.list(bucket, &prefix, None, None, LIST_PAGE_KEYS_MAX).map_err(from_store)?;
        if page.objects.is_empty() {
            return refuse_unreachable(&*web.store, bucket, &page.skipped).map(|()| objects);
        }
        objects += page.objects.len() as u64;
        delete_objects(web, held, bucket, &page.objects)?;
        reach("delete::between_pages");
    }
    Err(ApiError::internal(format!("the {bucket} bucket fills as fast as `{prefix}` is deleted")))
}

/// Refuses to take a pipeline for whole, or for gone, that has objects which no request can name. `skipped`: see
/// [`ListPage::skipped`](crate::ports::store::ListPage::skipped). In folders these are files of somebody else.
///
/// # Errors
/// `invalid_key` that names the first of them.
pub(super) fn refuse_unreachable(store: &dyn ObjectStore, bucket: Bucket, skipped: &[String]) -> Result<(), ApiError> {
    let Some(first) = skipped.first().filter(|_| store.is_remote()) else { return Ok(()) };
    let message = format!(
        "{bucket} bucket: `{}` has a segment `.` or `..`, which no request can name: delete it by the tools of the \
         object store, then repeat",
        clipped(first)
    );
    Err(ApiError::new(ErrorCode::InvalidKey, message))
}

/// Deletes these objects of the pipeline of the lock.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn delete_objects(web: &Web, held: &Held, bucket: Bucket, objects: &[ObjectMeta]) -> Result<(), ApiError> {
    for page in objects.chunks(LIST_PAGE_KEYS_MAX) {
        let keys: Vec<String> = page.iter().map(|object| object.key.clone()).collect();
        web.store.delete(bucket, &keys, &held.options()).map_err(from_store)?;
    }
    Ok(())
}

/// Deletes what an earlier try left and this one doesn't make, among it records of jobs that found no config yet; the
/// mark stays. `is_wanted` takes keys relative to the pipeline's prefix.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub(super) fn delete_others(
    web: &Web,
    held: &Held,
    bucket: Bucket,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(), ApiError> {
    let prefix = pipeline_prefix(held.slug());
    let mut others = list_all(&*web.store, bucket, &prefix).map_err(from_store)?;
    others.retain(|object| {
        let key = object.key.strip_prefix(&prefix).unwrap_or(&object.key);
        key != UNFINISHED && !is_wanted(key)
    });
    delete_objects(web, held, bucket, &others)
}

pub(super) fn not_found(slug: &Slug) -> ApiError {
    ApiError::new(ErrorCode::PipelineNotFound, format!("there is no pipeline `{slug}`"))
}

/// Pages that fail one after the other before the rest is left to a later delete.
const FAILED_PAGES_MAX: usize = 3;

/// Objects left by a failed request that its answer names; the rest is counted.
const LEFT_TOLD_MAX: usize = 100;

/// An object that a request wrote, that failed then, and that could not be deleted.
#[derive(Debug, Serialize)]
struct Left {
    message: String,
    bucket: Option<String>,
    key: Option<String>,
}

fn left_problems(left: &[(Bucket, String)]) -> Vec<Left> {
    let named = left.iter().take(LEFT_TOLD_MAX).map(|(bucket, key)| Left {
        message: format!("`{key}` was written before the failure and may be left in the {bucket} bucket"),
        bucket: Some(bucket.to_string()),
        key: Some(key.clone()),
    });
    let rest = left.len().saturating_sub(LEFT_TOLD_MAX);
    let rest = (rest > 0).then(|| Left { message: format!("and {rest} more objects"), bucket: None, key: None });
    named.chain(rest).collect()
}

/// Deletes what a request that failed with `error` has written, and then its mark. If some of it is left, the mark stays:
/// the same request again, or a delete of the pipeline, mends it; and the answer names it. `whole`: `written` names all
/// of it.
pub(super) fn undo(web: &Web, held: &Held, written: &[(Bucket, String)], whole: bool, error: ApiError) -> ApiError {
    let left = take_back(&*web.store, written, &held.options());
    remove_mark(web, held, &left, whole);
    if left.is_empty() { error } else { error.and_problems(left_problems(&left)) }
}

fn remove_mark(web: &Web, held: &Held, left: &[(Bucket, String)], whole: bool) {
    let pipeline = held.slug();
    if !whole || !left.is_empty() {
        let (count, first) = (left.len(), left.first().map_or("", |(_, key)| key));
        tracing::warn!(%pipeline, count, first, whole, "objects of a failed request are left; delete the pipeline");
        return;
    }
    if let Err(error) = mark::remove(web, held) {
        tracing::warn!(%pipeline, %error, "the mark of a failed request is left; delete the pipeline");
    }
}

/// Deletes objects, going on past errors. Gives those that may be left.
fn take_back(
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
                    // Such a key was not written; it must not keep the others.
                    result = page.iter().try_for_each(|key| {
                        match store.delete(bucket, std::slice::from_ref(key), options) {
                            Ok(()) | Err(StoreError::InvalidKey { .. }) => Ok(()),
                            Err(error) => Err(error),
                        }
                    });
                }
            }
            if let Err(error) = &result {
                tracing::warn!(%bucket, %error, "objects of a failed request can't be deleted");
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
    fn an_answer_names_what_is_left_beside_its_own_problems_and_counts_the_rest() {
        let left: Vec<_> = (0..LEFT_TOLD_MAX + 2).map(|at| (Bucket::Lake, format!("pipelines/p/{at}"))).collect();
        let error = ApiError::of(ErrorCode::S3Error).with_problems(["own"]).and_problems(left_problems(&left));
        let problems = error.problems().and_then(serde_json::Value::as_array).unwrap();
        assert_eq!(problems.len(), 1 + LEFT_TOLD_MAX + 1);
        assert_eq!(problems[0], "own");
        assert_eq!((&problems[1]["bucket"], &problems[1]["key"]), (&"lake".into(), &"pipelines/p/0".into()));
        assert!(problems.last().unwrap()["message"].as_str().unwrap().contains("2 more"));
        let bare = ApiError::of(ErrorCode::S3Error).and_problems(left_problems(&left[..1]));
        assert_eq!(bare.problems().and_then(serde_json::Value::as_array).unwrap().len(), 1);
    }

    #[test]
    fn what_can_be_deleted_is_deleted_beside_keys_that_cannot() {
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
        assert_eq!(take_back(&store, &written, &WriteOptions::default()), []);
        for bucket in Bucket::ALL {
            assert!(list_all(&store, bucket, "").unwrap().is_empty(), "{bucket}");
        }
    }
}
