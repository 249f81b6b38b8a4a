//! A file moves to another key: a copy, then the deletion of the source.
//!
//! Invariant: the source is deleted only if the target has its bytes, and its pipeline was told; whoever put another
//! file under its key meanwhile is not told that it is there ([`settle`]). A move that was cut
//! off leaves both, and the same move again finds them equal and goes on to the end.

use std::io::{self, Read};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{News, Stored, alone, find, missing, settle};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{BodyChanged, Bucket, ObjectMeta, ObjectReader, Precondition, StoreError, WriteOptions};
use crate::runtime::failpoint;
use crate::web::Web;
use crate::web::access::new_key;
use crate::web::failure::from_store;

/// Compared at a time, in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// A move.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The key of an object.
    from: String,
    /// A key of which there is none.
    to: String,
}

pub fn transfer(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let Move { from, to } = request.json()?;
    let to = new_key(&to)?;
    let same = || ApiError::new(ErrorCode::InvalidRequest, "`from` and `to` are the same key");
    if from == to {
        return Err(same());
    }
    let source = find(web, &from)?;
    if source.key == to {
        return Err(same());
    }
    let news = News::of(web, &to)?;
    let target = copy(web, &source, &to)?;
    settle(web, &to)?;
    // While the source is there, whoever is told of a failure can do it all again.
    news.tell()?;
    let lock = alone(web, &source.key)?;
    let now = web.store.head(Bucket::Lake, &source.key).map_err(from_store)?;
    if now.is_some_and(|now| now.etag != source.etag || now.size != source.size) {
        return Err(changed(&source.key));
    }
    failpoint::reach("lake::compared");
    web.store.delete(Bucket::Lake, std::slice::from_ref(&source.key), &lock.options()).map_err(from_store)?;
    tracing::info!(from = source.key, to, "a file was moved");
    Ok(Response::json(200, &Stored::of(&target)))
}

fn copy(web: &Web, source: &ObjectMeta, to: &str) -> Result<ObjectMeta, ApiError> {
    let options = WriteOptions::default().with(Precondition::IfNoneMatch);
    match web.store.copy((Bucket::Lake, &source.key), (Bucket::Lake, to), &options) {
        Ok(meta) => Ok(meta),
        Err(StoreError::PreconditionFailed { .. }) => match same_bytes(web, source, to)? {
            Some(target) => Ok(target),
            None => Err(ApiError::new(ErrorCode::AlreadyExists, format!("the lake has an object `{to}` already"))),
        },
        Err(StoreError::NotFound { .. }) => Err(missing(&source.key)),
        Err(StoreError::Transient { source: cause, .. }) if BodyChanged::is_in(&cause) => Err(changed(&source.key)),
        Err(error) => Err(from_store(error)),
    }
}

fn changed(key: &str) -> ApiError {
    let message =
        format!("`{key}` was changed while it was moved: it is still there; move it again, or what is new of it");
    ApiError::new(ErrorCode::PreconditionFailed, message)
}

/// The target, if it has the bytes of the source.
fn same_bytes(web: &Web, source: &ObjectMeta, to: &str) -> Result<Option<ObjectMeta>, ApiError> {
    let open = |key: &str| match web.store.get(Bucket::Lake, key, None) {
        Ok(reader) => Ok(Some(reader)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(from_store(error)),
    };
    let Some(one) = open(&source.key)?.filter(|one| one.meta.size == source.size) else { return Ok(None) };
    let Some(other) = open(to)?.filter(|other| other.meta.size == source.size) else { return Ok(None) };
    let meta = other.meta.clone();
    let same = equal(one, other).map_err(|error| match BodyChanged::is_in(&error) {
        true => changed(&source.key),
        false => ApiError::caused(ErrorCode::S3Error, error),
    })?;
    Ok(same.then_some(meta))
}

fn equal(one: ObjectReader, other: ObjectReader) -> io::Result<bool> {
    let (mut one, mut other) = (one.body, other.body);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        a.clear();
        b.clear();
        one.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut a)?;
        other.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut b)?;
        if a != b {
            return Ok(false);
        }
        if a.is_empty() {
            return Ok(true);
        }
    }
}
