//! One file of the lake: downloaded, looked into, deleted.

use schemars::JsonSchema;
use serde::Serialize;

use super::{HEAD_BYTES_MAX, OCTETS, find, missing};
use crate::http::{ApiError, Request, Response};
use crate::ports::store::{Bucket, StoreError, WriteOptions};
use crate::web::Web;
use crate::web::access::{number_query, required_query, tagged};
use crate::web::attachment::attachment;
use crate::web::failure::{acquire, from_store};
use crate::web::streams::streamed;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedFile")]
pub struct Deleted {
    /// The key.
    deleted: String,
}

pub fn delete(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let found = find(web, required_query(request, "key")?)?;
    web.store.delete(Bucket::Lake, std::slice::from_ref(&found.key), &WriteOptions::default()).map_err(from_store)?;
    tracing::info!(key = found.key, "a file was deleted");
    Ok(Response::json(200, &Deleted { deleted: found.key }))
}

pub fn download(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let key = required_query(request, "key")?;
    let head = number_query(request, "head", 1..=HEAD_BYTES_MAX)?;
    let found = find(web, key)?;
    let gone = |error| match error {
        StoreError::NotFound { .. } => missing(&found.key),
        error => from_store(error),
    };
    let (response, etag) = if let Some(bytes) = head {
        let start = web.store.get_range(Bucket::Lake, &found.key, 0..bytes, None).map_err(gone)?;
        (Response::bytes(200, OCTETS, start), found.etag)
    } else {
        let permit = acquire(&web.streams)?;
        let reader = web.store.get(Bucket::Lake, &found.key, None).map_err(gone)?;
        (streamed(200, OCTETS, reader.body, Some(reader.meta.size), permit), reader.meta.etag)
    };
    let name = found.key.rsplit('/').next().unwrap_or(&found.key);
    let response = response.with_header("Content-Disposition", attachment(name));
    Ok(tagged(response, etag.as_ref()))
}
