//! Proposes a mapping for a CSV of the lake.
//!
//! Must not: write; the proposal goes to whoever asked.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Web;
use super::access::{key, required_query};
use super::endpoint::Endpoint;
use super::failure::from_store;
use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::engine::infer::{InferError, InferOptions, Proposal, infer};
use crate::engine::read::error::ReadError;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::BodyChanged;
use crate::sync::Semaphore;

/// Files that are looked at at a time: each is held in memory as far as it is read.
const AT_A_TIME_MAX: usize = 2;

static CALLS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(AT_A_TIME_MAX));

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/api/p/{pipeline}/infer", "infer.propose", "Proposes a mapping for a CSV of the lake", post)
            .query::<String>("key", "the whole key of the file, which lies under the pipeline's prefix")
            .required()
            .answers::<Inferred>(200, "the mapping, with what speaks for each part of it")
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
    /// As it stands in a config.
    mapping: Value,
    #[serde(flatten)]
    proposal: Proposal,
}

fn post(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let slug = web.existing(request, "pipeline")?;
    let key = key_within(&slug, required_query(request, "key")?)?;
    let proposal = propose(web, &key)?;
    Ok(Response::json(200, &Inferred { mapping: proposal.mapping(), proposal }))
}

/// What a mapping for a CSV of the lake may be. `key`: its whole key.
///
/// # Errors
/// `object_not_found`; `invalid_request` for what is no CSV; `precondition_failed` if it changes meanwhile; `overloaded`,
/// `s3_error`, `bucket_not_found`.
pub(super) fn propose(web: &Web, key: &str) -> Result<Proposal, ApiError> {
    let Some(_place) = CALLS.try_acquire() else {
        return Err(ApiError::caused(ErrorCode::Overloaded, format!("{AT_A_TIME_MAX} files are looked at already")));
    };
    infer(&*web.store, key, &InferOptions::default()).map_err(refusal)
}

/// A text as the key of an object of the pipeline.
///
/// # Errors
/// `invalid_key`.
pub(super) fn key_within(slug: &Slug, text: &str) -> Result<String, ApiError> {
    let (key, prefix) = (key(text)?, pipeline_prefix(slug));
    if key.starts_with(&prefix) {
        return Ok(key);
    }
    Err(ApiError::new(ErrorCode::InvalidKey, format!("the key doesn't lie under `{prefix}`")))
}

fn refusal(error: InferError) -> ApiError {
    match error {
        InferError::Store(error) => from_store(error),
        InferError::Unreadable(ReadError::Io { source, .. }) if BodyChanged::is_in(&source) => {
            ApiError::new(ErrorCode::PreconditionFailed, "the file changed while it was read: try again")
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
