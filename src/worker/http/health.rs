//! Whether the worker lives, is ready, and what it has to do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Surface;
use crate::http::{ApiError, Request, Response};
use crate::observability::CachedHealthCheck;
use crate::observability::health_check::{MAX_AGE, PendingCheck};
use crate::ports::Kv;
use crate::ports::jobs::QueueCounts;
use crate::ports::kv::KvError;
use crate::ports::store::Bucket;
use crate::worker::Phase;

/// Health checks of what jobs need.
#[derive(Debug, Default)]
pub struct Checks {
    queue: Arc<CachedHealthCheck<Option<QueueCounts>>>,
    kv: Arc<CachedHealthCheck<KvState>>,
    store: Arc<CachedHealthCheck<bool>>,
}

/// The contract's: 503 when the key-value store can't be reached. The counts are those of now.
#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
pub(super) fn health(surface: &Surface, _: &mut Request) -> Result<Response, ApiError> {
    let in_flight = surface.state.counts().in_flight;
    Ok(match queue_counts(surface) {
        Some(counts) => {
            Response::json(200, &json!({ "kv": "ok", "queue_depth": counts.stream, "in_flight": in_flight }))
        }
        None => Response::json(503, &json!({ "kv": "unreachable", "queue_depth": null, "in_flight": in_flight })),
    })
}

/// The counts of now; `None` if the key-value store doesn't answer, or not in time.
pub(super) fn queue_counts(surface: &Surface) -> Option<QueueCounts> {
    let kv = Arc::clone(&surface.kv);
    let counts = surface.checks.queue.result(Duration::ZERO, move || {
        kv.counts().inspect_err(|error| tracing::warn!(%error, "health check failed: key-value store")).ok()
    });
    counts.flatten()
}

/// The process answers.
#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
pub(super) fn live(_: &Surface, _: &mut Request) -> Result<Response, ApiError> {
    Ok(Response::json(200, &json!({ "status": "ok" })))
}

/// Everything that a job needs answers, and jobs are taken.
#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
pub(super) fn ready(surface: &Surface, _: &mut Request) -> Result<Response, ApiError> {
    let (kv, store) = (begin_kv_check(surface), begin_store_check(surface));
    let (kv, store) = (kv.wait().unwrap_or(KvState::Failed), store.wait().unwrap_or(false));
    let open = surface.state.breakers.open();
    let claiming = surface.stopping.phase() == Phase::Working && surface.state.breakers.are_closed();
    let ready = kv == KvState::Ok && store && claiming;
    let store = if store { "ok" } else { "failed" };
    let mut body = json!({ "ready": ready, "kv": kv.name(), "store": store, "claiming": claiming });
    if !open.is_empty() {
        let paused: BTreeMap<String, String> = open.into_iter().map(|(name, why)| (name.to_string(), why)).collect();
        body["paused"] = json!(paused);
    }
    Ok(Response::json(if ready { 200 } else { 503 }, &body))
}

/// What a write to the key-value store led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvState {
    Ok,
    /// It answers, but takes no writes: out of memory, read-only, or not permitted.
    RefusesWrites,
    Failed,
}

impl KvState {
    fn of(kv: &dyn Kv) -> Self {
        let Err(error) = kv.probe_write() else { return Self::Ok };
        tracing::warn!(%error, "not ready: the key-value store");
        match error {
            KvError::Refused { .. } | KvError::Malformed { .. } => Self::RefusesWrites,
            KvError::Unavailable { .. } => Self::Failed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::RefusesWrites => "refuses writes",
            Self::Failed => "failed",
        }
    }
}

/// Whether the key-value store takes writes; one that hangs doesn't.
pub(super) fn kv_is_writable(surface: &Surface) -> bool {
    begin_kv_check(surface).wait() == Some(KvState::Ok)
}

/// Whether the object store answers; one that hangs doesn't.
pub(super) fn store_is_up(surface: &Surface) -> bool {
    begin_store_check(surface).wait().unwrap_or(false)
}

fn begin_kv_check(surface: &Surface) -> PendingCheck<KvState> {
    let kv = Arc::clone(&surface.kv);
    surface.checks.kv.begin(MAX_AGE, move || KvState::of(&*kv))
}

fn begin_store_check(surface: &Surface) -> PendingCheck<bool> {
    let store = Arc::clone(&surface.store);
    surface.checks.store.begin(MAX_AGE, move || {
        let list = |bucket| store.list(bucket, "pipelines/", Some('/'), None, 1).map(drop);
        let listed = Bucket::ALL.into_iter().try_for_each(list);
        listed.inspect_err(|error| tracing::warn!(%error, "not ready: object store failed")).is_ok()
    })
}
