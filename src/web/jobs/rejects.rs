//! The rejected rows of a failed job: as the file that the run kept, or the first of them as JSON.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;

use super::service::{Jobs, PARQUET, find_job, path_params};
use crate::domain::job::JobId;
use crate::domain::layout::job_rejects_key;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{BodyChanged, Bucket, ETag, ObjectMeta, StoreError};
use crate::sync::Semaphore;
use crate::web::access::{clipped, number_query, optional_query};
use crate::web::failure::{acquire, from_store};
use crate::web::parquet::rejects::{OPERATION, Rejects, RejectsRequest as Wanted};
use crate::web::parquet::{ParquetReadError, Reader};
use crate::web::sql::failure::from_sandbox;
use crate::web::streams::{attachment, streamed};

/// Default and largest number of rows.
const ROWS_DEFAULT: u64 = 100;
const ROWS_MAX: u64 = 1_000;
/// Largest file whose rows are shown, in bytes: it is copied to the local disk, or linked.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// Concurrent reads.
const CONCURRENT_MAX: usize = 2;
/// The file's name in the staging folder.
const FILE: &str = "rejected.parquet";

static CALLS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(CONCURRENT_MAX));

/// `GET …/jobs/{id}/rejects`
pub fn rejects(jobs: &Jobs, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = path_params(request)?;
    let limit = number_query(request, "limit", 1..=ROWS_MAX)?.unwrap_or(ROWS_DEFAULT);
    match optional_query(request, "format")? {
        None | Some("parquet") => download(jobs, &pipeline, &id),
        Some("json") => show(jobs, &pipeline, &id, usize::try_from(limit).unwrap_or(usize::MAX)),
        Some(other) => {
            let message = format!("query parameter `format` is `{}`, expected `parquet` or `json`", clipped(other));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

fn download(jobs: &Jobs, pipeline: &Slug, id: &JobId) -> Result<Response, ApiError> {
    let permit = acquire(&jobs.streams)?;
    let reader = match jobs.store.get(Bucket::Pipelines, &job_rejects_key(pipeline, id.as_str()), None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Err(not_found(jobs, pipeline, id)),
        Err(error) => return Err(from_store(error)),
    };
    let name = attachment(&format!("{pipeline}-{id}.rejected.parquet"));
    let response = streamed(200, PARQUET, reader.body, Some(reader.meta.size), permit);
    Ok(response.with_header("Content-Disposition", name))
}

/// Explains why there is no file.
fn not_found(jobs: &Jobs, pipeline: &Slug, id: &JobId) -> ApiError {
    find_job(jobs, pipeline, id)
        .err()
        .unwrap_or_else(|| ApiError::new(ErrorCode::ObjectNotFound, format!("the job `{id}` has no rejected rows")))
}

fn show(jobs: &Jobs, pipeline: &Slug, id: &JobId, limit: usize) -> Result<Response, ApiError> {
    let key = job_rejects_key(pipeline, id.as_str());
    let Some(meta) = jobs.store.head(Bucket::Pipelines, &key).map_err(from_store)? else {
        return Err(not_found(jobs, pipeline, id));
    };
    if meta.size > FILE_BYTES_MAX {
        let message = format!(
            "the rejected rows have {} bytes, expected at most {FILE_BYTES_MAX} to show them; download the file",
            meta.size
        );
        return Err(ApiError::new(ErrorCode::QueryTooLarge, message));
    }
    let etag = meta.etag.clone().unwrap_or(ETag(String::new()));
    if let Some(reason) = jobs.unreadable.reason(&key, &etag.0) {
        return Err(unreadable(&reason));
    }
    let _permit = acquire(&CALLS)?;
    let staging = jobs.sandbox.staging().map_err(from_sandbox)?;
    let path = staging.path().join(FILE);
    stage(jobs, &meta, &path)?;
    match Reader::new(&jobs.sandbox, &path).call::<Rejects>(OPERATION, &Wanted { limit }) {
        Ok(rejects) => Ok(Response::json(200, &rejects.cut(limit))),
        Err(ParquetReadError::Failed(error)) => Err(error),
        Err(ParquetReadError::Unreadable(reason)) => {
            jobs.unreadable.add(&key, &etag.0, &reason);
            Err(unreadable(&reason))
        }
    }
}

fn unreadable(reason: &str) -> ApiError {
    let message = format!("the file of rejected rows can't be read: {reason}");
    ApiError::new(ErrorCode::InvalidRequest, message)
}

/// Links or copies the object to `path`.
fn stage(jobs: &Jobs, meta: &ObjectMeta, path: &Path) -> Result<(), ApiError> {
    let (bucket, key) = (Bucket::Pipelines, meta.key.as_str());
    if meta.etag.is_some() && jobs.store.link(bucket, key, meta.etag.as_ref(), path).map_err(from_store)? {
        return Ok(());
    }
    let internal = |error: io::Error| ApiError::internal(format!("`{}`: {error}", path.display()));
    let mut body = jobs.store.get(bucket, key, meta.etag.as_ref()).map_err(from_store)?.body.take(FILE_BYTES_MAX);
    let mut file = File::create_new(path).map_err(internal)?;
    io::copy(&mut body, &mut file).map(drop).map_err(|error| match BodyChanged::is_in(&error) {
        true => ApiError::new(ErrorCode::Overloaded, "the file changed while it was read"),
        false => ApiError::caused(ErrorCode::S3Error, format!("copying `{key}`: {error}")),
    })
}
