//! Whether the worker lives, is ready, and what it has to do.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Surface;
use crate::http::{ApiError, Request, Response};
use crate::ports::ObjectStore;
use crate::ports::store::Bucket;
use crate::worker::Phase;

/// How long a look at the store is waited for before it counts as away.
const STORE_WAIT: Duration = Duration::from_secs(2);

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
    let Dependencies { kv, store } =
        surface.dependencies.look(Dependencies { kv: false, store: false }, || dependencies(surface));
    let working = surface.stopping.phase() == Phase::Working;
    let told = |ok: bool| if ok { "ok" } else { "failed" };
    let ready = kv && store && working;
    let body = json!({ "ready": ready, "kv": told(kv), "store": told(store), "claiming": working });
    Ok(Response::json(if ready { 200 } else { 503 }, &body))
}

/// Whether the store answered lately. One that hangs doesn't: whoever reads metrics has little patience.
pub(super) fn store_is_up(surface: &Surface) -> bool {
    let store = Arc::clone(&surface.store);
    surface.store_answers.look_within(STORE_WAIT, move || lists(&*store)).unwrap_or(false)
}

fn lists(store: &dyn ObjectStore) -> bool {
    let bucket = |bucket| store.list(bucket, "pipelines/", Some('/'), None, 1).map(drop);
    let answers = Bucket::ALL.into_iter().try_for_each(bucket);
    answers.inspect_err(|error| tracing::warn!(%error, "not ready: the object store")).is_ok()
}

/// Whether what a job needs answers.
#[derive(Debug, Clone, Copy)]
pub struct Dependencies {
    kv: bool,
    store: bool,
}

fn dependencies(surface: &Surface) -> Dependencies {
    let kv = surface.kv.ping().inspect_err(|error| tracing::warn!(%error, "not ready: the key-value store"));
    Dependencies { kv: kv.is_ok(), store: lists(&*surface.store) }
}
