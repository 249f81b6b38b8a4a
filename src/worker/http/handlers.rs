//! The root, config validation, and events.

use serde_json::json;

use super::{Refusal, Surface, events};
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::name::Slug;
use crate::domain::problem::{Problem, ProblemKind};
use crate::engine::validate::validate_with_warnings;
use crate::http::{ApiError, ErrorCode, Request, Response};

/// Asked by object stores before they deliver events.
#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
pub(super) fn root(_: &Surface, _: &mut Request) -> Result<Response, ApiError> {
    Ok(Response::json(200, &json!({ "service": "lakemill-worker", "version": env!("CARGO_PKG_VERSION") })))
}

/// Always 200: the verdict is in the body.
pub(super) fn validate(surface: &Surface, request: &mut Request) -> Result<Response, ApiError> {
    let (body, bytes) = request.body_start(CONFIG_BYTES_MAX)?;
    let mut warnings = Vec::new();
    let problems = match std::str::from_utf8(&body) {
        _ if bytes > CONFIG_BYTES_MAX as u64 => vec![Problem::config_too_large(bytes)],
        Err(error) => {
            let message = format!("expected UTF-8; byte {} is none", error.valid_up_to());
            vec![Problem::new(ProblemKind::Syntax, String::new(), message)]
        }
        Ok(text) => {
            let (pipeline, found) = validate_with_warnings(text, &*surface.expressions);
            warnings = found;
            pipeline.err().unwrap_or_default()
        }
    };
    let mut verdict = json!({ "ok": problems.is_empty() });
    for (name, found) in [("errors", problems), ("warnings", warnings)] {
        if !found.is_empty() {
            verdict[name] = json!(found);
        }
    }
    Ok(Response::json(200, &verdict))
}

/// Extends the windows of the pipelines that got new objects. 503 when that isn't possible now, so that the store posts
/// again.
pub(super) fn events(surface: &Surface, request: &mut Request) -> Result<Response, ApiError> {
    let client = request.client();
    let refuse = |refusal: Refusal, code: ErrorCode, why: String| {
        surface.refusals.add(refusal, client, &why);
        ApiError::new(code, why)
    };
    let body = request.body_bytes().inspect_err(|error| {
        surface.refusals.add(Refusal::InvalidBody, client, &error.to_string());
    })?;
    let told = events::read(&body, &surface.lake_bucket)
        .map_err(|error| refuse(Refusal::InvalidBody, ErrorCode::InvalidEvent, error.to_string()))?;
    if !told.pipelines.is_empty() {
        let slugs: Vec<Slug> = told.pipelines.into_iter().collect();
        let since = surface
            .kv
            .extend_windows(&slugs)
            .map_err(|error| refuse(Refusal::KvUnavailable, ErrorCode::KvUnavailable, error.to_string()))?;
        for (pipeline, since) in slugs.iter().zip(since) {
            surface.state.windows.extended(pipeline, since);
        }
    }
    surface.state.count_events(told.accepted, told.ignored);
    Ok(Response::json(200, &json!({ "accepted": told.accepted, "ignored": told.ignored })))
}
