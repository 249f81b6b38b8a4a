//! Liveness, readiness, and the depth of the queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::api::{KvState, WorkerApi};
use crate::http::{ApiError, Request, Response};
use crate::observability::health_check::{MAX_AGE, PendingCheck};
use crate::ports::jobs::QueueCounts;
use crate::ports::store::Bucket;
use crate::worker::stopping::Phase;

/// `/health`: 503 if the key-value store can't be reached.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
pub(super) fn health(api: &WorkerApi, _: &mut Request) -> Result<Response, ApiError> {
    let in_flight = api.state.counts().in_flight;
    Ok(match queue_counts(api) {
        Some(counts) => {
            Response::json(200, &json!({ "kv": "ok", "queue_depth": counts.stream, "in_flight": in_flight }))
        }
        None => Response::json(503, &json!({ "kv": "unreachable", "queue_depth": null, "in_flight": in_flight })),
    })
}

/// The current counts; `None` if the key-value store doesn't respond in time.
pub(super) fn queue_counts(api: &WorkerApi) -> Option<QueueCounts> {
    let kv = Arc::clone(&api.kv);
    let counts = api.checks.queue.result(Duration::ZERO, move || {
        kv.counts().inspect_err(|error| tracing::warn!(%error, "health check failed: key-value store")).ok()
    });
    counts.flatten()
}

/// Responds if the process does.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
pub(super) fn live(_: &WorkerApi, _: &mut Request) -> Result<Response, ApiError> {
    Ok(Response::json(200, &json!({ "status": "ok" })))
}

/// Ready if all dependencies respond and jobs are claimed.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
pub(super) fn ready(api: &WorkerApi, _: &mut Request) -> Result<Response, ApiError> {
    let (kv, store) = (begin_kv_check(api), begin_store_check(api));
    let (kv, store) = (kv.wait().unwrap_or(KvState::Failed), store.wait().unwrap_or(false));
    let open = api.state.breakers.open();
    let claiming = api.stopping.phase() == Phase::Working && api.state.breakers.are_closed();
    let ready = kv == KvState::Ok && store && claiming;
    let store = if store { "ok" } else { "failed" };
    let mut body = json!({ "ready": ready, "kv": kv.name(), "store": store, "claiming": claiming });
    if api.has_event_queue {
        // Without it, new files are noticed late; jobs still run.
        body["event_queue"] = api.state.event_queue.last().error.map_or_else(|| "ok".into(), Into::into);
    }
    if api.state.are_all_paused() {
        body["all_paused"] = json!(true);
    }
    if !open.is_empty() {
        let paused: BTreeMap<String, String> = open.into_iter().map(|(name, why)| (name.to_string(), why)).collect();
        body["paused"] = json!(paused);
    }
    Ok(Response::json(if ready { 200 } else { 503 }, &body))
}

/// Whether the key-value store accepts writes; false if it hangs.
pub(super) fn kv_is_writable(api: &WorkerApi) -> bool {
    begin_kv_check(api).wait() == Some(KvState::Ok)
}

/// Whether the object store responds; false if it hangs.
pub(super) fn store_is_up(api: &WorkerApi) -> bool {
    begin_store_check(api).wait().unwrap_or(false)
}

fn begin_kv_check(api: &WorkerApi) -> PendingCheck<KvState> {
    let kv = Arc::clone(&api.kv);
    api.checks.kv.begin(MAX_AGE, move || KvState::of(&*kv))
}

fn begin_store_check(api: &WorkerApi) -> PendingCheck<bool> {
    let store = Arc::clone(&api.store);
    api.checks.store.begin(MAX_AGE, move || {
        let list = |bucket| store.list(bucket, "pipelines/", Some('/'), None, 1).map(drop);
        let listed = Bucket::ALL.into_iter().try_for_each(list);
        listed.inspect_err(|error| tracing::warn!(%error, "not ready: object store failed")).is_ok()
    })
}
