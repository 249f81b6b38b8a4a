//! Whether the web service lives and is ready, and what it counts.

use schemars::JsonSchema;
use serde::Serialize;

use super::Web;
use super::endpoint::Endpoint;
use super::service::Credential;
use crate::http::{ApiError, METRICS_CONTENT_TYPE, MetricKind, MetricsText, Request, Response, write_process};
use crate::ports::store::Bucket;

/// Before the name of every metric.
const PREFIX: &str = "lakemill_";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let open = |endpoint: Endpoint| endpoint.with_credential(Credential::Nothing).light();
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
    let ready = web.dependencies.look(Ready { ready: false, kv: false, store: false }, || dependencies(web));
    Ok(Response::json(if ready.ready { 200 } else { 503 }, &ready))
}

fn dependencies(web: &Web) -> Ready {
    let bucket = |bucket| web.store.list(bucket, "pipelines/", Some('/'), None, 1).map(drop);
    let kv = web.kv.ping().inspect_err(|error| tracing::warn!(%error, "not ready: the key-value store"));
    let store = Bucket::ALL.into_iter().try_for_each(bucket);
    let store = store.inspect_err(|error| tracing::warn!(%error, "not ready: the object store"));
    Ready { ready: kv.is_ok() && store.is_ok(), kv: kv.is_ok(), store: store.is_ok() }
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
fn metrics(web: &Web, _: &mut Request) -> Result<Response, ApiError> {
    let mut text = MetricsText::new();
    let kv = web.kv.ping().inspect_err(|error| tracing::warn!(%error, "the key-value store can't be reached"));
    let (sandbox, cache) = (&web.sql.sandbox, web.cache.usage());
    let gauges = [
        ("kv_up", "Whether the key-value store answers.", u64::from(kv.is_ok())),
        ("sandbox_confined", "Whether Landlock confines the processes of queries.", u64::from(sandbox.is_confined())),
        ("queries_running", "Processes that work for a query now.", sandbox.lent()),
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
