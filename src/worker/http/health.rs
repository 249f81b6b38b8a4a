//! Whether the worker lives, is ready, and what it has to do.

use serde_json::json;

use super::Surface;
use crate::http::{ApiError, Request, Response};
use crate::ports::store::Bucket;
use crate::worker::Phase;

/// The contract's: 503 when the key-value store can't be reached.
#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
pub(super) fn health(surface: &Surface, _: &mut Request) -> Result<Response, ApiError> {
    let in_flight = surface.state.counts().in_flight;
    Ok(match surface.kv.counts() {
        Ok(counts) => Response::json(200, &json!({ "kv": "ok", "queue_depth": counts.stream, "in_flight": in_flight })),
        Err(error) => {
            tracing::warn!(%error, "the key-value store can't be reached");
            Response::json(503, &json!({ "kv": "unreachable", "queue_depth": null, "in_flight": in_flight }))
        }
    })
}

/// The process answers.
#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
pub(super) fn live(_: &Surface, _: &mut Request) -> Result<Response, ApiError> {
    Ok(Response::json(200, &json!({ "status": "ok" })))
}

/// Everything that a job needs answers, and jobs are taken.
#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
pub(super) fn ready(surface: &Surface, _: &mut Request) -> Result<Response, ApiError> {
    let kv = surface.kv.ping().map_err(|error| error.to_string());
    let bucket = |bucket| surface.store.list(bucket, "pipelines/", Some('/'), None, 1).map(drop);
    let store = Bucket::ALL.into_iter().try_for_each(bucket).map_err(|error| error.to_string());
    let working = surface.stopping.phase() == Phase::Working;
    for (what, error) in [("kv", kv.as_ref().err()), ("store", store.as_ref().err())] {
        if let Some(error) = error {
            tracing::warn!(what, error, "the worker is not ready");
        }
    }
    let told = |ok: bool| if ok { "ok" } else { "failed" };
    let ready = kv.is_ok() && store.is_ok() && working;
    let body = json!({
        "ready": ready,
        "kv": told(kv.is_ok()),
        "store": told(store.is_ok()),
        "claiming": working,
    });
    Ok(Response::json(if ready { 200 } else { 503 }, &body))
}
