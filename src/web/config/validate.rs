//! A worker's verdict on a config, passed on.

use schemars::JsonSchema;
use serde::Serialize;

use super::check::PATIENCE;
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::problem::{Problem, ProblemKind};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::web::Web;
use crate::web::access::slug_param;
use crate::web::worker_client::Findings;

/// `{ "ok": true }`, or `{ "ok": false, "errors": […] }`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Verdict {
    ok: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Problem>,
    /// What is allowed, and probably not meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Problem>,
}

/// Always 200 where a worker answers: the verdict is in the body. The pipeline need not exist, since the config may be its
/// first; a name that no pipeline can have is a problem beside those of the config.
pub(super) fn post(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let name = slug_param(request, "pipeline");
    let (body, bytes) = request.body_start(CONFIG_BYTES_MAX)?;
    let Findings { mut problems, warnings } = match bytes > CONFIG_BYTES_MAX as u64 {
        true => Findings { problems: vec![Problem::config_too_large(bytes)], warnings: Vec::new() },
        false => web
            .worker
            .validate(&body, PATIENCE)
            .map_err(|error| ApiError::caused(ErrorCode::WorkerUnavailable, error))?,
    };
    if let Err(error) = name {
        problems.insert(0, Problem::new(ProblemKind::InvalidValue, "", error.message()));
    }
    Ok(Response::json(200, &Verdict { ok: problems.is_empty(), errors: problems, warnings }))
}
