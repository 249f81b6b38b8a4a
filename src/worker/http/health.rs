//! Whether the worker lives, is ready, and what it has to do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Surface;
use crate::http::{ApiError, Request, Response};
use crate::ports::kv::KvError;
use crate::ports::store::Bucket;
use crate::ports::{Kv, ObjectStore};
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
        surface.dependencies.look(Dependencies { kv: KvState::Failed, store: false }, || dependencies(surface));
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
        let Err(error) = kv.prove_write() else { return Self::Ok };
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

/// Whether the key-value store took a write lately. One that hangs doesn't.
pub(super) fn kv_is_writable(surface: &Surface) -> bool {
    let kv = Arc::clone(&surface.kv);
    surface.kv_writes.look_within(STORE_WAIT, move || KvState::of(&*kv)) == Some(KvState::Ok)
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
    kv: KvState,
    store: bool,
}

fn dependencies(surface: &Surface) -> Dependencies {
    Dependencies { kv: KvState::of(&*surface.kv), store: lists(&*surface.store) }
}
