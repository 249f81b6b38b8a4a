//! The state that the worker's handlers use, and the credentials of its routes.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::rejections::{EventRejections, Rejection};
use crate::config::Secret;
use crate::domain::name::Slug;
use crate::http::credentials::{MetricsAccess, has_bearer, has_webhook_secret};
use crate::http::{ApiError, Caller, ErrorCode, HttpMetrics, RequestHead, Service};
use crate::observability::CachedHealthCheck;
use crate::ports::job_index::NewestEnds;
use crate::ports::jobs::QueueCounts;
use crate::ports::kv::{Diagnose, KvError};
use crate::ports::{EventTopics, Expressions, Kv, ObjectStore};
use crate::worker::state::WorkerState;
use crate::worker::stopping::Stopping;

/// Asks clients with credentials in their URL (SNS) to send them.
const CHALLENGE: &str = "Basic realm=\"lakemill\"";

/// What a route requires of its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerCredential {
    Nothing,
    /// `SVC_WORKER_TOKEN`.
    WorkerToken,
    /// `SVC_WEBHOOK_SECRET`.
    WebhookSecret,
    /// The requirement of [`MetricsAccess`].
    Metrics,
}

/// The state of the handlers.
pub struct WorkerApi {
    pub store: Arc<dyn ObjectStore>,
    pub kv: Arc<dyn Kv>,
    pub expressions: Arc<dyn Expressions>,
    pub state: Arc<WorkerState>,
    pub stopping: Arc<Stopping>,
    /// The lake's bucket, as named in events.
    pub lake_bucket: String,
    pub worker_token: Secret,
    pub webhook_secret: Secret,
    /// The topics that may send events.
    pub topics: Arc<dyn EventTopics>,
    pub metrics_access: MetricsAccess,
    /// Whether events come from a queue.
    pub has_event_queue: bool,
    pub rejections: EventRejections,
    /// Maximum number of concurrent jobs.
    pub executors: usize,
    /// How many of them take no automatic jobs.
    pub manual_executors: usize,
    /// Maximum number of pipelines with metrics of their own.
    pub metrics_pipelines: usize,
    pub scratch_dir: PathBuf,
    pub checks: HealthChecks,
    /// Metrics of the server, once it runs.
    pub http: OnceLock<Arc<HttpMetrics>>,
}

impl Service for WorkerApi {
    type Credential = WorkerCredential;

    fn authorize(&self, credential: WorkerCredential, head: &RequestHead) -> Result<Caller, ApiError> {
        let has_secret = match credential {
            WorkerCredential::Nothing => return Ok(Caller::Anonymous),
            WorkerCredential::WorkerToken => has_bearer(head, &self.worker_token),
            WorkerCredential::WebhookSecret => has_webhook_secret(head, &self.webhook_secret),
            WorkerCredential::Metrics => return self.metrics_access.authorize(head),
        };
        if has_secret {
            return Ok(Caller::Secret);
        }
        if credential == WorkerCredential::WebhookSecret {
            let headers = head.headers();
            let has = |name: &str| headers.bytes(name).is_some();
            let is_sent = ["authorization", "x-svc-webhook-secret"].into_iter().any(has);
            let reason = if is_sent { Rejection::WrongSecret } else { Rejection::NoSecret };
            // SNS sends the credentials of its URL once it is asked for them.
            if is_sent || !has("x-amz-sns-message-type") {
                self.rejections.add(reason, head.client(), "status 401");
            }
            return Err(ApiError::of(ErrorCode::Unauthorized).with_header("WWW-Authenticate", CHALLENGE));
        }
        Err(ApiError::of(ErrorCode::Unauthorized))
    }
}

/// Health checks of the dependencies of jobs.
#[derive(Debug, Default)]
pub struct HealthChecks {
    pub(super) queue: Arc<CachedHealthCheck<Option<QueueCounts>>>,
    pub(super) kv: Arc<CachedHealthCheck<KvState>>,
    pub(super) store: Arc<CachedHealthCheck<bool>>,
    pub(super) pipelines: Arc<CachedHealthCheck<Option<Arc<PipelineEnds>>>>,
}

/// The newest ends of pipelines, for metrics.
#[derive(Debug)]
pub(super) struct PipelineEnds {
    /// In the order of names.
    pub(super) pipelines: Vec<(Slug, NewestEnds)>,
    /// How many there are beyond the maximum.
    pub(super) omitted: u64,
}

/// The outcome of a write to the key-value store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvState {
    Ok,
    /// It responds, but rejects writes: out of memory, read-only, or not permitted.
    RefusesWrites,
    Failed,
}

impl KvState {
    pub(super) fn of(kv: &dyn Diagnose) -> Self {
        let Err(error) = kv.probe_write() else { return Self::Ok };
        tracing::warn!(%error, "not ready: key-value store failed");
        match error {
            KvError::Refused { .. } | KvError::Malformed { .. } => Self::RefusesWrites,
            KvError::Unavailable { .. } => Self::Failed,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::RefusesWrites => "refuses writes",
            Self::Failed => "failed",
        }
    }
}
