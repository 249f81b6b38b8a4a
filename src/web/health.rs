//! Whether the web service lives and is ready, and what it counts.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::Web;
use super::endpoint::Endpoint;
use super::service::Credential;
use crate::http::{ApiError, Request, Response};
use crate::observability::health_check::{MAX_AGE, PendingCheck};
use crate::observability::{METRICS_CONTENT_TYPE, MetricKind, MetricsText, write_process};
use crate::ports::store::Bucket;

/// Before the name of every metric.
const PREFIX: &str = "lakemill_";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let open = |endpoint: Endpoint| endpoint.with_credential(Credential::Nothing).probe();
    vec![
        open(Endpoint::get("/livez", "health.live", "Tells that the process answers", live))
            .answers::<Live>(200, "it does"),
        open(Endpoint::get("/readyz", "health.ready", "Tells whether the stores answer", ready))
            .answers::<Ready>(200, "they do")
            .answers::<Ready>(503, "at least one doesn't"),
        Endpoint::get("/metrics", "health.metrics", "Counts, for Prometheus", metrics)
            .with_credential(Credential::Metrics)
            .light()
            .answers_bytes(200, METRICS_CONTENT_TYPE, "the metrics"),
    ]
}

#[derive(Serialize, JsonSchema)]
struct Live {
    status: &'static str,
}

/// Whether what a request needs answers.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Ready {
    ready: bool,
    /// The key-value store.
    kv: bool,
    /// The object store.
    store: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
fn live(_: &Web, _: &mut Request) -> Result<Response, ApiError> {
    Ok(Response::json(200, &Live { status: "ok" }))
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
fn ready(web: &Web, _: &mut Request) -> Result<Response, ApiError> {
    let kv = begin_kv_check(web);
    let store = Arc::clone(&web.store);
    let store = web.store_check.begin(MAX_AGE, move || {
        let list = |bucket| store.list(bucket, "pipelines/", Some('/'), None, 1).map(drop);
        let listed = Bucket::ALL.into_iter().try_for_each(list);
        listed.inspect_err(|error| tracing::warn!(%error, "not ready: object store failed")).is_ok()
    });
    let (kv, store) = (kv.wait().unwrap_or(false), store.wait().unwrap_or(false));
    let ready = Ready { ready: kv && store, kv, store };
    Ok(Response::json(if ready.ready { 200 } else { 503 }, &ready))
}

fn begin_kv_check(web: &Web) -> PendingCheck<bool> {
    let kv = Arc::clone(&web.kv);
    web.kv_check.begin(MAX_AGE, move || {
        kv.ping().inspect_err(|error| tracing::warn!(%error, "not ready: key-value store failed")).is_ok()
    })
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
fn metrics(web: &Web, _: &mut Request) -> Result<Response, ApiError> {
    let mut text = MetricsText::new();
    let kv = begin_kv_check(web).wait().unwrap_or(false);
    let (sandbox, cache) = (&web.sql.sandbox, web.cache.usage());
    let gauges = [
        ("kv_up", "Whether the key-value store answers.", u64::from(kv)),
        (
            "sandbox_confined",
            "Whether Landlock and a filter of system calls confine the processes of queries.",
            u64::from(sandbox.is_confined()),
        ),
        ("queries_running", "Processes that work for a query now.", sandbox.borrowed()),
        ("cache_bytes", "What the cache of the warehouse's files holds.", cache.bytes),
        ("cache_limit_bytes", "What it may hold.", cache.bytes_max),
    ];
    for (name, help, value) in gauges {
        text.family(MetricKind::Gauge, &format!("{PREFIX}{name}"), help).sample(&[], value as f64);
    }
    let help = "Files that queries wanted of the cache.";
    text.family(MetricKind::Counter, &format!("{PREFIX}cache_requests_total"), help)
        .sample(&[("outcome", "hit")], cache.hits as f64)
        .sample(&[("outcome", "miss")], cache.misses as f64);
    web.counts.write(PREFIX, &mut text);
    write_process(&mut text);
    if let Some(http) = web.http.get() {
        http.write(PREFIX, &mut text);
    }
    Ok(Response::bytes(200, METRICS_CONTENT_TYPE, text.finish().into_bytes()))
}
