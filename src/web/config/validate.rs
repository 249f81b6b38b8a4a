//! A worker's verdict on a config, passed on.

use schemars::JsonSchema;
use serde::Serialize;

use super::check::PATIENCE;
use crate::domain::problem::Problem;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::web::Web;
use crate::web::access::slug_param;

/// `{ "ok": true }`, or `{ "ok": false, "errors": […] }`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Verdict {
    ok: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Problem>,
}

/// The pipeline need not exist: the config may be its first.
pub(super) fn post(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    slug_param(request, "pipeline")?;
    let body = request.body_bytes()?;
    let errors =
        web.worker.validate(&body, PATIENCE).map_err(|error| ApiError::caused(ErrorCode::WorkerUnavailable, error))?;
    Ok(Response::json(200, &Verdict { ok: errors.is_empty(), errors }))
}
