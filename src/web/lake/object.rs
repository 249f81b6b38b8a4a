//! One file of the lake: upload, download, delete.
//!
//! Invariant: the store sees an upload only once its whole body has arrived.

use schemars::JsonSchema;
use serde::Serialize;

use super::service::{Announcement, HEAD_BYTES_MAX, LakeService, OCTETS, Stored, find, missing, verify_stored};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, Precondition, StoreError, WriteOptions};
use crate::runtime::failpoint;
use crate::web::access::{clipped, new_key, number_query, required_query, tagged};
use crate::web::failure::{acquire, from_store};
use crate::web::streams::{attachment, streamed};

pub fn upload(lake: &LakeService, request: &mut Request) -> Result<Response, ApiError> {
    let key = new_key(required_query(request, "key")?)?;
    let precondition = if_none_match(request)?;
    // Checked before the body is read, so that the client needn't send it.
    let before = lake.store.head(Bucket::Lake, &key).map_err(from_store)?;
    if before.is_some() && precondition == Precondition::IfNoneMatch {
        let message = format!("the lake already has an object `{key}`");
        return Err(ApiError::new(ErrorCode::PreconditionFailed, message));
    }
    let permit = acquire(&lake.streams)?;
    let body = lake.spool.take(request.body_reader())?;
    drop(permit);
    let announcement = Announcement::of(lake, &[&key])?;
    let options = WriteOptions { precondition, sha256: Some(&body.sha256), ..WriteOptions::default() };
    let meta = lake.store.put_file(Bucket::Lake, &key, body.path(), &options).map_err(from_store)?;
    failpoint::reach("lake::uploaded");
    verify_stored(lake, &key)?;
    announcement.send()?;
    tracing::info!(key, bytes = meta.size, "file uploaded");
    let response = Response::json(if before.is_some() { 200 } else { 201 }, &Stored::of(&meta));
    Ok(tagged(response, meta.etag.as_ref()))
}

/// Parses `If-None-Match: *`: the object must not exist.
fn if_none_match(request: &Request) -> Result<Precondition, ApiError> {
    match request.header("if-none-match").map(str::trim) {
        None => Ok(Precondition::None),
        Some("*") => Ok(Precondition::IfNoneMatch),
        Some(other) => {
            let message = format!("header `If-None-Match` is `{}`, expected `*`", clipped(other));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedFile")]
pub struct DeletedObjects {
    /// The file's key.
    deleted: String,
}

pub fn delete(lake: &LakeService, request: &mut Request) -> Result<Response, ApiError> {
    let found = find(lake, required_query(request, "key")?)?;
    let announcement = Announcement::of(lake, &[&found.key])?;
    // Announced first, since a repeated request would not find the file.
    announcement.send()?;
    lake.store.delete(Bucket::Lake, std::slice::from_ref(&found.key), &WriteOptions::default()).map_err(from_store)?;
    announcement.repeat();
    tracing::info!(key = found.key, "file deleted");
    Ok(Response::json(200, &DeletedObjects { deleted: found.key }))
}

pub fn download(lake: &LakeService, request: &mut Request) -> Result<Response, ApiError> {
    let key = required_query(request, "key")?;
    let head = number_query(request, "head", 1..=HEAD_BYTES_MAX)?;
    let found = find(lake, key)?;
    let gone = |error| match error {
        StoreError::NotFound { .. } => missing(&found.key),
        error => from_store(error),
    };
    let (response, etag) = if let Some(bytes) = head {
        let start = lake.store.get_range(Bucket::Lake, &found.key, 0..bytes, None).map_err(gone)?;
        (Response::bytes(200, OCTETS, start), found.etag)
    } else {
        let permit = acquire(&lake.streams)?;
        let reader = lake.store.get(Bucket::Lake, &found.key, None).map_err(gone)?;
        (streamed(200, OCTETS, reader.body, Some(reader.meta.size), permit), reader.meta.etag)
    };
    let name = found.key.rsplit('/').next().unwrap_or(&found.key);
    let response = response.with_header("Content-Disposition", attachment(name));
    Ok(tagged(response, etag.as_ref()))
}
