//! What the worker answers over HTTP: health, config validation, events of the object store, metrics.
//!
//! Must not: run or enqueue anything; an event only extends a debounce window.

pub mod events;
mod handlers;
pub mod health;
mod metrics;
mod refusals;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::config::Secret;
use crate::domain::limits::{EVENT_BYTES_MAX, VALIDATE_BYTES_MAX};
use crate::http::credentials::{MetricsAccess, bears, bears_webhook_secret};
use crate::http::{ApiError, BodyRule, Caller, ErrorCode, Head, HttpMetrics, Method, Route, Router, Service};
use crate::ports::{Expressions, Kv, ObjectStore};

use super::{State, Stopping};
pub use refusals::{Refusal, Refusals};

/// What a route asks of its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    Nothing,
    /// `SVC_WORKER_TOKEN`.
    WorkerToken,
    /// `SVC_WEBHOOK_SECRET`.
    WebhookSecret,
    /// That of [`MetricsAccess`].
    Metrics,
}

/// What the handlers use.
pub struct Surface {
    pub store: Arc<dyn ObjectStore>,
    pub kv: Arc<dyn Kv>,
    pub expressions: Arc<dyn Expressions>,
    pub state: Arc<State>,
    pub stopping: Arc<Stopping>,
    /// The name by which events call the lake.
    pub lake_bucket: String,
    pub worker_token: Secret,
    pub webhook_secret: Secret,
    pub metrics_access: MetricsAccess,
    pub refusals: Refusals,
    /// Jobs at a time.
    pub executors: usize,
    pub scratch_dir: PathBuf,
    pub checks: health::Checks,
    /// Of the server, once it is there.
    pub http: OnceLock<Arc<HttpMetrics>>,
}

impl Service for Surface {
    type Credential = Credential;

    fn authorize(&self, credential: Credential, head: &Head) -> Result<Caller, ApiError> {
        let has_secret = match credential {
            Credential::Nothing => return Ok(Caller::Anonymous),
            Credential::WorkerToken => bears(head, &self.worker_token),
            Credential::WebhookSecret => bears_webhook_secret(head, &self.webhook_secret),
            Credential::Metrics => return self.metrics_access.authorize(head),
        };
        if has_secret {
            return Ok(Caller::Secret);
        }
        if credential == Credential::WebhookSecret {
            let headers = head.headers();
            let sent = ["authorization", "x-svc-webhook-secret"].iter().any(|name| headers.bytes(name).is_some());
            let refusal = if sent { Refusal::WrongSecret } else { Refusal::NoSecret };
            self.refusals.add(refusal, head.client(), "status 401");
        }
        Err(ApiError::of(ErrorCode::Unauthorized))
    }
}

/// The table of the worker's routes.
pub fn router() -> Router<Surface> {
    let route = |method, pattern, credential, handler| Route::<Surface>::new(method, pattern, credential, handler);
    Router::new(vec![
        route(Method::Get, "/", Credential::Nothing, handlers::root).probe(),
        route(Method::Get, "/health", Credential::Nothing, health::health).probe(),
        route(Method::Get, "/livez", Credential::Nothing, health::live).probe(),
        route(Method::Get, "/readyz", Credential::Nothing, health::ready).probe(),
        route(Method::Get, "/metrics", Credential::Metrics, metrics::metrics).reserved(),
        route(Method::Post, "/config/validate", Credential::WorkerToken, handlers::validate)
            .with_body(BodyRule::stream(VALIDATE_BYTES_MAX))
            .for_any_host(),
        route(Method::Post, "/events/s3", Credential::WebhookSecret, handlers::events)
            .with_body(BodyRule::any(EVENT_BYTES_MAX))
            .for_any_host()
            .reserved(),
    ])
}
