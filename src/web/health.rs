//! Liveness, readiness and metrics of the web service.

use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::Serialize;

use super::cache::Cache;
use super::counts::Counts;
use super::endpoint::{Credential, Endpoint};
use super::stores::Objects;
use crate::http::credentials::MetricsAccess;
use crate::http::{ApiError, Caller, HttpMetrics, Request, RequestHead, Response};
use crate::observability::health_check::{MAX_AGE, PendingCheck};
use crate::observability::{CachedHealthCheck, METRICS_CONTENT_TYPE, MetricKind, MetricsText, write_process};
use crate::ports::kv::Diagnose;
use crate::ports::store::Bucket;
use crate::sql::sandbox::Sandbox;

/// Prefix of all metric names.
const PREFIX: &str = "lakemill_";

/// The service.
pub struct Health {
    store: Objects,
    kv: Arc<dyn Diagnose>,
    sandbox: Arc<Sandbox>,
    cache: Arc<Cache>,
    counts: Arc<Counts>,
    metrics_access: MetricsAccess,
    kv_check: Arc<CachedHealthCheck<bool>>,
    kv_write_check: Arc<CachedHealthCheck<bool>>,
    store_check: Arc<CachedHealthCheck<bool>>,
    /// The server's counters, once it runs.
    http: OnceLock<Arc<HttpMetrics>>,
}

impl Health {
    pub fn new(
        store: Objects,
        kv: Arc<dyn Diagnose>,
        sandbox: Arc<Sandbox>,
        cache: Arc<Cache>,
        counts: Arc<Counts>,
        metrics_access: MetricsAccess,
    ) -> Self {
        let (kv_check, kv_write_check) = (Arc::default(), Arc::default());
        let (store_check, http) = (Arc::default(), OnceLock::new());
        Self { store, kv, sandbox, cache, counts, metrics_access, kv_check, kv_write_check, store_check, http }
    }

    pub fn show_http(&self, metrics: Arc<HttpMetrics>) {
        // Only a bug could start a second server on this state; its counters would be missing.
        let _ = self.http.set(metrics);
    }

    /// # Errors
    /// `unauthorized`.
    pub fn authorize_metrics(&self, head: &RequestHead) -> Result<Caller, ApiError> {
        self.metrics_access.authorize(head)
    }
}

pub(super) fn endpoints() -> Vec<Endpoint<Health>> {
    let open = |endpoint: Endpoint<Health>| endpoint.with_credential(Credential::Nothing).probe();
    vec![
        open(Endpoint::get("/livez", "health.live", "Responds if the process is alive", live))
            .response::<Live>(200, "the process is alive"),
        open(Endpoint::get("/readyz", "health.ready", "Checks whether the stores respond", ready))
            .response::<Ready>(200, "the stores respond")
            .response::<Ready>(503, "at least one store fails"),
        Endpoint::get("/metrics", "health.metrics", "Metrics in Prometheus format", metrics)
            .with_credential(Credential::Metrics)
            .reserved()
            .bytes_response(200, METRICS_CONTENT_TYPE, "the metrics"),
    ]
}

#[derive(Serialize, JsonSchema)]
struct Live {
    status: &'static str,
}

/// Whether the stores respond.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Ready {
    ready: bool,
    /// The key-value store accepts writes.
    kv: bool,
    /// The object store responds.
    store: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
fn live(_: &Health, _: &mut Request) -> Result<Response, ApiError> {
    Ok(Response::json(200, &Live { status: "ok" }))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
fn ready(health: &Health, _: &mut Request) -> Result<Response, ApiError> {
    let kv = begin_write_check(health);
    let store = health.store.shared();
    let store = health.store_check.begin(MAX_AGE, move || {
        let list = |bucket| store.list(bucket, "pipelines/", Some('/'), None, 1).map(drop);
        let listed = Bucket::ALL.into_iter().try_for_each(list);
        listed.inspect_err(|error| tracing::warn!(%error, "not ready: object store failed")).is_ok()
    });
    let (kv, store) = (kv.wait().unwrap_or(false), store.wait().unwrap_or(false));
    let ready = Ready { ready: kv && store, kv, store };
    Ok(Response::json(if ready.ready { 200 } else { 503 }, &ready))
}

/// Whether the key-value store accepts writes.
fn begin_write_check(health: &Health) -> PendingCheck<bool> {
    let kv = Arc::clone(&health.kv);
    health.kv_write_check.begin(MAX_AGE, move || {
        kv.probe_write().inspect_err(|error| tracing::warn!(%error, "not ready: key-value store failed")).is_ok()
    })
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
fn metrics(health: &Health, _: &mut Request) -> Result<Response, ApiError> {
    let mut text = MetricsText::new();
    // Both checks run at once: a store that hangs delays the metrics by one wait.
    let writable = begin_write_check(health);
    let kv = Arc::clone(&health.kv);
    let kv_check = health.kv_check.result(MAX_AGE, move || {
        kv.ping().inspect_err(|error| tracing::warn!(%error, "health check failed: key-value store")).is_ok()
    });
    let kv = kv_check.unwrap_or(false);
    let writable = writable.wait().unwrap_or(false);
    let (sandbox, cache) = (&health.sandbox, health.cache.usage());
    let gauges = [
        ("kv_up", "Whether the key-value store responds.", u64::from(kv)),
        ("kv_writable", "Whether the key-value store accepts writes.", u64::from(writable)),
        (
            "sandbox_confined",
            "Whether Landlock and a filter of system calls confine the processes of queries.",
            u64::from(sandbox.is_confined()),
        ),
        ("queries_running", "Processes that are running a query.", sandbox.borrowed()),
        ("cache_bytes", "Bytes of warehouse files in the cache.", cache.bytes),
        ("cache_limit_bytes", "Bytes that the cache may hold.", cache.bytes_max),
    ];
    for (name, help, value) in gauges {
        text.family(MetricKind::Gauge, &format!("{PREFIX}{name}"), help).sample(&[], value as f64);
    }
    let help = "Cache lookups by queries.";
    text.family(MetricKind::Counter, &format!("{PREFIX}cache_requests_total"), help)
        .sample(&[("outcome", "hit")], cache.hits as f64)
        .sample(&[("outcome", "miss")], cache.misses as f64);
    health.counts.write(PREFIX, &mut text);
    write_process(&mut text);
    if let Some(http) = health.http.get() {
        http.write(PREFIX, &mut text);
    }
    Ok(Response::bytes(200, METRICS_CONTENT_TYPE, text.finish().into_bytes()))
}
