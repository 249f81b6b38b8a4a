//! The lake as people see it: folders and files, uploaded, moved, deleted, downloaded.
//!
//! Invariants:
//! - a key from outside is checked before anything is done with it;
//! - a CSV is in the lake before its pipeline's window is extended, so that the run that follows sees it; whoever is
//!   told of a failure in between may do the same again, and nothing is lost.

mod lines;
mod list;
mod object;
mod state;
mod transfer;
mod upload;

use schemars::JsonSchema;
use serde::Serialize;

use super::Web;
use super::access::key;
use super::endpoint::Endpoint;
use super::exclusive::Exclusive;
use super::failure::{from_kv, from_store};
use crate::domain::digest::sha256_hex;
use crate::domain::layout::{check_stored_key, has_empty_segment, is_csv, pipeline_of};
use crate::domain::limits::UPLOAD_BYTES_MAX;
use crate::http::{ApiError, ContentType, ErrorCode};
use crate::ports::store::{Bucket, ObjectMeta};

/// Largest request to move an object, in bytes.
const MOVE_BYTES_MAX: u64 = 16 << 10;
/// Largest first part of an object that is asked for, in bytes.
const HEAD_BYTES_MAX: u64 = 1 << 20;

pub(super) fn endpoints() -> Vec<Endpoint> {
    const KEY: &str = "The object's key, from the root of the lake.";
    vec![
        Endpoint::get("/api/lake", "lake.list", "Lists one level of the lake", list::list)
            .query::<String>("prefix", "What keys start with: commonly a folder, with a `/` at its end.")
            .query::<String>("after", "What `next` of the page before said.")
            .query::<u64>("limit", "How many folders and files at most: 1 to 1,000, 500 if it is missing.")
            .query::<bool>("state", "Whether to tell of each file which tables read it, and whether they did.")
            .answers::<list::Level>(200, "a page of folders and files")
            .errors(&[ErrorCode::InvalidKey]),
        Endpoint::put(
            "/api/lake",
            "lake.upload",
            "Uploads a file; `If-None-Match: *` keeps what is there",
            upload::upload,
        )
        .query::<String>("key", KEY)
        .required()
        .takes_stream(UPLOAD_BYTES_MAX, ContentType::AnyButForm, "*/*")
        .answers::<Stored>(201, "a new file")
        .header("ETag")
        .answers::<Stored>(200, "the file took the place of another")
        .header("ETag")
        .errors(&[ErrorCode::InvalidKey, ErrorCode::PreconditionFailed]),
        Endpoint::post("/api/lake", "lake.move", "Moves a file to a new key", transfer::transfer)
            .takes::<transfer::Move>(MOVE_BYTES_MAX)
            .answers::<Stored>(200, "the file at its new key")
            .errors(&[
                ErrorCode::InvalidKey,
                ErrorCode::ObjectNotFound,
                ErrorCode::AlreadyExists,
                ErrorCode::PreconditionFailed,
            ]),
        Endpoint::delete("/api/lake", "lake.delete", "Deletes a file", object::delete)
            .query::<String>("key", KEY)
            .required()
            .answers::<object::Deleted>(200, "it is gone")
            .errors(&[ErrorCode::InvalidKey, ErrorCode::ObjectNotFound]),
        Endpoint::get("/api/lake/object", "lake.download", "Downloads a file", object::download)
            .query::<String>("key", KEY)
            .required()
            .query::<u64>("head", "Only so many bytes of its start: 1 to 1,048,576.")
            .answers_bytes(200, OCTETS, "the file as it is stored")
            .header("ETag")
            .header("Content-Disposition")
            .errors(&[ErrorCode::InvalidKey, ErrorCode::ObjectNotFound]),
        Endpoint::get("/api/lake/lines", "lake.lines", "Shows lines of a file as text", lines::lines)
            .query::<String>("key", KEY)
            .required()
            .query::<u64>("line", "The number of the first line, counted from 1; 1 if it is missing.")
            .query::<u64>("count", "How many lines at most: 1 to 1,000, 200 if it is missing.")
            .query::<String>(
                "encoding",
                "How the file is encoded, unless a byte order mark says; found out if missing.",
            )
            .answers::<lines::Lines>(200, "the lines")
            .errors(&[ErrorCode::InvalidKey, ErrorCode::ObjectNotFound, ErrorCode::PreconditionFailed]),
    ]
}

/// What every download is, so that no browser takes it for something to show or run.
const OCTETS: &str = "application/octet-stream";

/// A file that is in the lake now.
#[derive(Debug, Serialize, JsonSchema)]
struct Stored {
    key: String,
    /// Bytes.
    size: u64,
    etag: Option<String>,
}

impl Stored {
    fn of(meta: &ObjectMeta) -> Self {
        Self { key: meta.key.clone(), size: meta.size, etag: meta.etag.as_ref().map(|tag| tag.0.clone()) }
    }
}

/// The object that a key from outside names. Others may have stored it under a key in another normal form, or one that
/// this service gives to no new object (`a\b.csv`, a line break, `in//a.csv`): if there is one of exactly these bytes, it
/// is meant.
///
/// # Errors
/// `invalid_key`, `object_not_found`, `s3_error`, `bucket_not_found`.
fn find(web: &Web, text: &str) -> Result<ObjectMeta, ApiError> {
    check_stored_key(text).map_err(|error| ApiError::new(ErrorCode::InvalidKey, error.to_string()))?;
    // Asked for a key with an empty segment, stores that keep objects in folders fail, or answer for another object.
    let may_be = !has_empty_segment(text) || is_listed(web, text)?;
    let found = if may_be { web.store.head(Bucket::Lake, text).map_err(from_store)? } else { None };
    if let Some(found) = found {
        return Ok(found);
    }
    let normal = key(text)?;
    let found = if text == normal { None } else { web.store.head(Bucket::Lake, &normal).map_err(from_store)? };
    found.ok_or_else(|| missing(text))
}

fn is_listed(web: &Web, key: &str) -> Result<bool, ApiError> {
    let page = web.store.list(Bucket::Lake, key, None, None, 1).map_err(from_store)?;
    Ok(page.objects.first().is_some_and(|object| object.key == key))
}

fn missing(key: &str) -> ApiError {
    ApiError::new(ErrorCode::ObjectNotFound, format!("the lake has no object `{}`", super::access::clipped(key)))
}

/// The lock under which a move looks at its source once more and deletes it.
fn alone<'a>(web: &'a Web, key: &str) -> Result<Exclusive<'a>, ApiError> {
    // Names of locks stay short.
    web.exclusive(format!("lake/{}", sha256_hex(key.as_bytes())))
}

/// Asked after a file was stored, and before anybody is told so: a move that had looked at the key before may have
/// deleted the new file instead of the one it moved. Who stores the next one comes here later than that.
///
/// # Errors
/// `precondition_failed` if it is gone; `overloaded`, `s3_error`, `bucket_not_found`, `kv_unavailable`.
fn settle(web: &Web, key: &str) -> Result<(), ApiError> {
    let _lock = alone(web, key)?;
    if web.store.head(Bucket::Lake, key).map_err(from_store)?.is_some() {
        return Ok(());
    }
    let message = format!("`{key}` was moved or deleted as soon as it was stored: look what is there, and repeat");
    Err(ApiError::new(ErrorCode::PreconditionFailed, message))
}

/// What has to be told of a new file.
struct News<'a> {
    web: &'a Web,
    key: &'a str,
}

impl<'a> News<'a> {
    /// Made before the file is stored: where its run could not be asked for, it had better not be.
    ///
    /// # Errors
    /// `kv_unavailable`.
    fn of(web: &'a Web, key: &'a str) -> Result<Self, ApiError> {
        if is_csv(key) && pipeline_of(key).is_some() {
            web.kv.ping().map_err(from_kv)?;
        }
        Ok(Self { web, key })
    }

    /// Extends the window of the pipeline whose CSV it is, if it is one.
    ///
    /// # Errors
    /// `kv_unavailable`: the file is there, and the request can be repeated.
    fn tell(&self) -> Result<(), ApiError> {
        match pipeline_of(self.key).filter(|_| is_csv(self.key)) {
            Some(pipeline) => self.web.extend_window(&pipeline),
            None => Ok(()),
        }
    }
}
