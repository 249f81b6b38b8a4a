//! Proposes a mapping for CSVs in the lake.
//!
//! Must not: write anything.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::access::{key, required_query};
use super::endpoint::Endpoint;
use super::failure::{acquire, from_store};
use super::stores::Objects;
use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::engine::infer::formats::{JOINED_MAX, Joined, infer_all};
use crate::engine::infer::join::FileSample;
use crate::engine::infer::{InferError, InferOptions, Proposal};
use crate::engine::read::error::ReadError;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::BodyChanged;
use crate::sync::Semaphore;

/// Concurrent calls: each holds the part of a file that it reads in memory.
const CONCURRENT_MAX: usize = 2;

static CALLS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(CONCURRENT_MAX));

/// The service.
pub struct Inference {
    pub store: Objects,
}

pub(super) fn endpoints() -> Vec<Endpoint<Inference>> {
    vec![
        Endpoint::post("/api/p/{pipeline}/infer", "infer.propose", "Proposes a mapping for CSVs in the lake", post)
            .changing_nothing()
            .query::<String>("key", "the file's key, under the pipeline's prefix")
            .required()
            .query::<String>("also", "another file of the same table, by its key; at most 15")
            .repeated()
            .response::<Inferred>(200, "the mapping, with the evidence for each part")
            .errors(&[
                ErrorCode::InvalidSlug,
                ErrorCode::InvalidKey,
                ErrorCode::PipelineNotFound,
                ErrorCode::ObjectNotFound,
                ErrorCode::PreconditionFailed,
            ]),
    ]
}

#[derive(Serialize, JsonSchema)]
struct Inferred {
    /// In the form of a config.
    mapping: Value,
    #[serde(flatten)]
    proposal: Proposal,
    /// How much of each file was sampled, and the outcome of a run with the mapping.
    files_read: Vec<FileSample>,
    /// Files without a proposal.
    files_failed: Vec<FailedFile>,
}

/// A file that nothing can be proposed for.
#[derive(Serialize, JsonSchema)]
struct FailedFile {
    key: String,
    message: String,
}

fn post(inference: &Inference, request: &mut Request) -> Result<Response, ApiError> {
    let slug = inference.store.existing(request, "pipeline")?;
    let mut keys = vec![key_within(&slug, required_query(request, "key")?)?];
    for also in request.query().all("also") {
        if keys.len() == JOINED_MAX {
            let message = format!("a proposal is for at most {JOINED_MAX} files; leave out some `also`");
            return Err(ApiError::new(ErrorCode::InvalidRequest, message));
        }
        let key = key_within(&slug, also)?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let Joined { proposal, files, failed } = propose(&inference.store, &keys)?;
    let failed = failed.into_iter().map(|(key, error)| FailedFile { key, message: error.to_string() }).collect();
    let mapping = proposal.mapping();
    Ok(Response::json(200, &Inferred { mapping, proposal, files_read: files, files_failed: failed }))
}

/// Proposes a mapping for CSVs in the lake, by their full keys.
///
/// # Errors
/// `object_not_found`; `invalid_request` if the file isn't a CSV; `precondition_failed` if it changes meanwhile;
/// `overloaded`, `s3_error`, `bucket_not_found`.
pub(super) fn propose(store: &Objects, keys: &[String]) -> Result<Joined, ApiError> {
    let _permit = acquire(&CALLS)?;
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    infer_all(&**store, &keys, &InferOptions::default()).map_err(infer_error)
}

/// Parses the key of an object of the pipeline.
///
/// # Errors
/// `invalid_key`.
pub(super) fn key_within(slug: &Slug, text: &str) -> Result<String, ApiError> {
    let (key, prefix) = (key(text)?, pipeline_prefix(slug));
    if key.starts_with(&prefix) {
        return Ok(key);
    }
    Err(ApiError::new(ErrorCode::InvalidKey, format!("expected a key under `{prefix}`, found `{key}`")))
}

fn infer_error(error: InferError) -> ApiError {
    match error {
        InferError::Store(error) => from_store(error),
        InferError::Unreadable(ReadError::Io { source, .. }) if BodyChanged::is_in(&source) => {
            ApiError::new(ErrorCode::PreconditionFailed, "the file changed while it was read; retry")
        }
        InferError::Unreadable(ReadError::Io { key, source }) => {
            ApiError::caused(ErrorCode::S3Error, format!("reading `{key}`: {source}"))
        }
        InferError::NotCsv { .. }
        | InferError::Empty { .. }
        | InferError::NoMapping { .. }
        | InferError::Unreadable(_) => ApiError::new(ErrorCode::InvalidRequest, error.to_string()),
    }
}
