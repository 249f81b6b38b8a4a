//! A file comes into the lake.
//!
//! Invariant: the store sees a body only when all of it came.

use super::{News, Stored, settle};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, Precondition, WriteOptions};
use crate::runtime::failpoint;
use crate::web::Web;
use crate::web::access::{clipped, new_key, required_query, tagged};
use crate::web::failure::{acquire, from_store};

pub fn upload(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let key = new_key(required_query(request, "key")?)?;
    let precondition = if_none_match(request)?;
    // Before the body: what can be told without it spares the sending.
    let before = web.store.head(Bucket::Lake, &key).map_err(from_store)?;
    if before.is_some() && precondition == Precondition::IfNoneMatch {
        let message = format!("the lake has an object `{key}` already");
        return Err(ApiError::new(ErrorCode::PreconditionFailed, message));
    }
    let permit = acquire(&web.streams)?;
    let body = web.spool.take(request.body_reader())?;
    drop(permit);
    let news = News::of(web, &key)?;
    let options = WriteOptions { precondition, sha256: Some(&body.sha256), ..WriteOptions::default() };
    let meta = web.store.put_file(Bucket::Lake, &key, body.path(), &options).map_err(from_store)?;
    failpoint::reach("lake::uploaded");
    settle(web, &key)?;
    news.tell()?;
    tracing::info!(key, bytes = meta.size, "a file was uploaded");
    let response = Response::json(if before.is_some() { 200 } else { 201 }, &Stored::of(&meta));
    Ok(tagged(response, meta.etag.as_ref()))
}

/// `If-None-Match: *`: only where there is nothing.
fn if_none_match(request: &Request) -> Result<Precondition, ApiError> {
    match request.header("if-none-match").map(str::trim) {
        None => Ok(Precondition::None),
        Some("*") => Ok(Precondition::IfNoneMatch),
        Some(other) => {
            let message = format!("the header `If-None-Match` is `{}`, expected `*`", clipped(other));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}
