//! A pipeline's config: read, validate, save, and the configs that it had.
//!
//! Invariant: a config is stored and returned byte for byte, unknown fields included.

mod history;
mod impact;
mod save;
mod service;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::access::{flag_query, quoted, slug_param, tagged};
use super::endpoint::Endpoint;
use super::failure::pipeline_not_found;
use super::worker_client::Findings;
use crate::domain::layout::config_key;
use crate::domain::limits::{CONFIG_BYTES_MAX, VALIDATE_BYTES_MAX};
use crate::domain::name::Slug;
use crate::domain::problem::{Problem, ProblemKind};
use crate::http::{ApiError, ContentType, ErrorCode, Request, Response};
use crate::ports::store::Bucket;

use service::{BYTES_MAX, VALIDATE_TIMEOUT, json_text};
pub use service::{Configs, text_of_body};

const PATH: &str = "/api/p/{pipeline}/config";

pub(super) fn endpoints() -> Vec<Endpoint<Configs>> {
    let mut endpoints = vec![
        Endpoint::get(PATH, "config.get", "Shows the stored config", get)
            .query::<bool>("raw", "whether to show a config that is not JSON, too, as `text/plain`")
            .bytes_response(200, "application/json", "the bytes of `pipeline.json`")
            .header("ETag")
            .bytes_response(200, "text/plain", "the bytes of `pipeline.json`")
            .header("ETag")
            .errors(&[
                ErrorCode::InvalidSlug,
                ErrorCode::PipelineNotFound,
                ErrorCode::PipelineConfigNotFound,
                ErrorCode::InvalidConfig,
            ]),
        Endpoint::put(PATH, "config.put", "Saves a config and reports its problems", save::put)
            .takes::<Value>(BYTES_MAX)
            .query::<bool>(
                "strict",
                "whether to reject a config with problems (422), or whose expressions no worker could check (502)",
            )
            .query::<bool>("dry_run", "whether to check without saving")
            .query::<u64>(
                "restores",
                "the version that this save restores; recorded in the history if the content equals that version",
            )
            .response::<save::Saved>(200, "the findings; `ETag` is that of the stored config")
            .header("ETag")
            .if_match_or_none()
            .errors(&[
                ErrorCode::InvalidSlug,
                ErrorCode::InvalidConfig,
                ErrorCode::PipelineBusy,
                ErrorCode::WorkerUnavailable,
            ]),
        Endpoint::post("/api/p/{pipeline}/validate", "config.validate", "Validates a config by a worker", validate)
            .changing_nothing()
            .takes_stream(VALIDATE_BYTES_MAX, ContentType::Any, "application/json")
            .response::<Verdict>(200, "the verdict")
            .errors(&[ErrorCode::WorkerUnavailable]),
    ];
    endpoints.extend(history::endpoints());
    endpoints
}

/// `GET …/config`. Invalid JSON, which another program stored, is `invalid_config` with the tag, so that a save can
/// replace exactly that; with `raw`, it is shown as text.
fn get(configs: &Configs, request: &mut Request) -> Result<Response, ApiError> {
    let slug = slug_param(request, "pipeline")?;
    let raw = flag_query(request, "raw")?;
    let key = config_key(&slug);
    let Some((meta, bytes)) = configs.store.read_start(Bucket::Pipelines, &key, BYTES_MAX)? else {
        return Err(missing(configs, &slug)?);
    };
    let etag = meta.etag.as_ref();
    let content_type = match json_text(&bytes) {
        Ok(_) => "application/json",
        Err(problem) if raw && problem.kind != ProblemKind::Limit => "text/plain",
        Err(problem) => {
            let message = format!("the stored config of `{slug}` is not JSON: {}", problem.message);
            let error = ApiError::new(ErrorCode::InvalidConfig, message).with_problems([problem]);
            return Err(etag.into_iter().fold(error, |error, tag| error.with_header("ETag", quoted(tag))));
        }
    };
    Ok(tagged(Response::bytes(200, content_type, bytes), etag))
}

fn missing(configs: &Configs, slug: &Slug) -> Result<ApiError, ApiError> {
    Ok(match configs.store.exists(slug)? {
        true => ApiError::new(ErrorCode::PipelineConfigNotFound, format!("the pipeline `{slug}` has no config")),
        false => pipeline_not_found(slug),
    })
}

/// `{ "ok": true }`, or `{ "ok": false, "errors": […] }`.
#[derive(Serialize, JsonSchema)]
struct Verdict {
    ok: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Problem>,
    /// Valid, but probably unintended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Problem>,
}

/// `POST …/validate`. Always 200 if a worker responds: the verdict is in the body. The pipeline need not exist, since the
/// config may be its first; an invalid name is reported along with the config's problems.
fn validate(configs: &Configs, request: &mut Request) -> Result<Response, ApiError> {
    let name = slug_param(request, "pipeline");
    let (body, bytes) = request.body_start(CONFIG_BYTES_MAX)?;
    let Findings { mut problems, warnings } = match bytes > CONFIG_BYTES_MAX as u64 {
        true => Findings { problems: vec![Problem::config_too_large(bytes)], warnings: Vec::new() },
        false => configs
            .worker
            .validate(&body, VALIDATE_TIMEOUT)
            .map_err(|error| ApiError::caused(ErrorCode::WorkerUnavailable, error))?,
    };
    if let Err(error) = name {
        problems.insert(0, Problem::new(ProblemKind::InvalidValue, "", error.message()));
    }
    Ok(Response::json(200, &Verdict { ok: problems.is_empty(), errors: problems, warnings }))
}
