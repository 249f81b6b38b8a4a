//! Moves a file to another key: copies it, then deletes the source.
//!
//! Invariant: the source is deleted only once the target has its bytes and the pipeline is notified; an upload to the
//! source's key that the deletion removes isn't reported as stored ([`verify_stored`]). An interrupted move leaves both
//! files; repeated, it finds them equal and completes.

use std::io::{self, Read};

use schemars::JsonSchema;
use serde::Deserialize;

use super::service::{Announcement, LakeService, Stored, find, lock, missing, verify_stored};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{BodyChanged, Bucket, ObjectMeta, ObjectReader, Precondition, StoreError, WriteOptions};
use crate::runtime::failpoint;
use crate::web::access::new_key;
use crate::web::failure::from_store;

/// Bytes compared at a time.
const PIECE_BYTES: usize = 256 << 10;

/// A move.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The key of an object.
    from: String,
    /// The new key, which must not exist.
    to: String,
}

pub fn transfer(lake: &LakeService, request: &mut Request) -> Result<Response, ApiError> {
    let Move { from, to } = request.json()?;
    let to = new_key(&to)?;
    let same = || ApiError::new(ErrorCode::InvalidRequest, "`from` and `to` are the same key");
    if from == to {
        return Err(same());
    }
    let source = find(lake, &from)?;
    if source.key == to {
        return Err(same());
    }
    let announcement = Announcement::of(lake, &[&source.key, &to])?;
    let target = copy(lake, &source, &to)?;
    verify_stored(lake, &to)?;
    // The source still exists, so that a failed request can be repeated.
    announcement.send()?;
    let lock = lock(lake, &source.key)?;
    let now = lake.store.head(Bucket::Lake, &source.key).map_err(from_store)?;
    if now.is_some_and(|now| now.etag != source.etag || now.size != source.size) {
        return Err(changed(&source.key));
    }
    failpoint::reach("lake::compared");
    lake.store.delete(Bucket::Lake, std::slice::from_ref(&source.key), &lock.options()).map_err(from_store)?;
    announcement.repeat();
    tracing::info!(from = source.key, to, "file moved");
    Ok(Response::json(200, &Stored::of(&target)))
}

fn copy(lake: &LakeService, source: &ObjectMeta, to: &str) -> Result<ObjectMeta, ApiError> {
    let options = WriteOptions::default().with(Precondition::IfNoneMatch);
    match lake.store.copy((Bucket::Lake, &source.key), (Bucket::Lake, to), &options) {
        Ok(meta) => Ok(meta),
        Err(StoreError::PreconditionFailed { .. }) => match same_bytes(lake, source, to)? {
            Some(target) => Ok(target),
            None => Err(ApiError::new(ErrorCode::AlreadyExists, format!("the lake already has an object `{to}`"))),
        },
        Err(StoreError::NotFound { .. }) => Err(missing(&source.key)),
        Err(StoreError::Transient { source: cause, .. }) if BodyChanged::is_in(&cause) => Err(changed(&source.key)),
        Err(error) => Err(from_store(error)),
    }
}

fn changed(key: &str) -> ApiError {
    let message = format!("`{key}` changed while it was moved and is still there; move it again");
    ApiError::new(ErrorCode::PreconditionFailed, message)
}

/// The target, if it has the source's bytes.
fn same_bytes(lake: &LakeService, source: &ObjectMeta, to: &str) -> Result<Option<ObjectMeta>, ApiError> {
    let open = |key: &str| match lake.store.get(Bucket::Lake, key, None) {
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
