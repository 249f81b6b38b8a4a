//! Whether the worker lives, is ready, and what it has to do.

use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Surface;
use crate::http::{ApiError, Request, Response};
use crate::ports::store::Bucket;
use crate::worker::Phase;

/// How old a look at the dependencies may be.
const LOOK_EVERY: Duration = Duration::from_secs(2);

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
    let Dependencies { kv, store } = surface.dependencies.look(surface);
    let working = surface.stopping.phase() == Phase::Working;
    let told = |ok: bool| if ok { "ok" } else { "failed" };
    let ready = kv && store && working;
    let body = json!({ "ready": ready, "kv": told(kv), "store": told(store), "claiming": working });
    Ok(Response::json(if ready { 200 } else { 503 }, &body))
}

/// Whether what a job needs answers.
#[derive(Debug, Clone, Copy)]
struct Dependencies {
    kv: bool,
    store: bool,
}

/// The last look at the dependencies. One caller looks at a time, and the others take what it saw: anybody may ask, and
/// each look costs requests to the store.
#[derive(Debug, Default)]
pub struct LastLook {
    last: Mutex<Option<(Instant, Dependencies)>>,
    /// Held by the one who looks.
    looking: Mutex<()>,
}

impl LastLook {
    fn look(&self, surface: &Surface) -> Dependencies {
        let last = || *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || last().filter(|(at, _)| at.elapsed() < LOOK_EVERY).map(|(_, found)| found);
        if let Some(found) = fresh() {
            return found;
        }
        let _looking = match self.looking.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
            // Somebody is waiting for the stores right now: nobody else need.
            Err(TryLockError::WouldBlock) => {
                return last().map_or(Dependencies { kv: false, store: false }, |(_, found)| found);
            }
        };
        let found = fresh().unwrap_or_else(|| dependencies(surface));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), found));
        found
    }
}

fn dependencies(surface: &Surface) -> Dependencies {
    let bucket = |bucket| surface.store.list(bucket, "pipelines/", Some('/'), None, 1).map(drop);
    let kv = surface.kv.ping().inspect_err(|error| tracing::warn!(%error, "not ready: the key-value store"));
    let store = Bucket::ALL.into_iter().try_for_each(bucket);
    let store = store.inspect_err(|error| tracing::warn!(%error, "not ready: the object store"));
    Dependencies { kv: kv.is_ok(), store: store.is_ok() }
}
