//! `/metrics`, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use super::api::{PipelineEnds, WorkerApi};
use super::health;
use crate::http::{ApiError, Request, Response};
use crate::observability::{METRICS_CONTENT_TYPE, MetricKind, MetricsText, write_process};
use crate::pipelines::slugs;
use crate::ports::ObjectStore;
use crate::ports::job_index::{JobIndex, NewestEnds};
use crate::ports::store::Bucket;
use crate::system::free_bytes;
use crate::worker::breaker::Dependency;
use crate::worker::stopping::Phase;

/// Prefix of every name.
const PREFIX: &str = "lakemill_";

#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
pub(super) fn metrics(api: &WorkerApi, _: &mut Request) -> Result<Response, ApiError> {
    let mut text = MetricsText::new();
    jobs(api, &mut text);
    if api.has_event_queue {
        event_queue(api, &mut text);
    }
    runs(api, &mut text);
    queue(api, &mut text);
    pipelines(api, &mut text);
    stores(api, &mut text);
    machine(api, &mut text);
    write_process(&mut text);
    if let Some(http) = api.http.get() {
        http.write(PREFIX, &mut text);
    }
    Ok(Response::bytes(200, METRICS_CONTENT_TYPE, text.finish().into_bytes()))
}

fn jobs(api: &WorkerApi, text: &mut MetricsText) {
    let counts = api.state.counts();
    gauge(text, "jobs_in_flight", "Running jobs of this process.", counts.in_flight);
    gauge(text, "executors", "Maximum number of concurrent jobs of this process.", api.executors as u64);
    let help = "How many of the executors take no automatic jobs.";
    gauge(text, "manual_executors", help, api.manual_executors as u64);
    let draining = api.stopping.phase() != Phase::Working;
    gauge(text, "draining", "Whether this process is stopping and claims no more jobs.", u64::from(draining));
    let help = "Whether claims are paused because somebody paused all pipelines.";
    gauge(text, "all_paused", help, u64::from(api.state.are_all_paused()));
    let help = "Whether claims are paused because this dependency of all jobs fails its probe.";
    family(text, MetricKind::Gauge, "claims_paused", help);
    let open = api.state.breakers.open();
    for dependency in Dependency::ALL {
        let paused = open.iter().any(|(open, _)| *open == dependency);
        text.sample(&[("dependency", &dependency.to_string())], f64::from(u8::from(paused)));
    }
    family(text, MetricKind::Counter, "jobs_total", "Jobs that this process ended.")
        .sample(&[("status", "completed")], counts.completed as f64)
        .sample(&[("status", "failed")], counts.failed as f64);
    family(text, MetricKind::Counter, "job_failures_total", "Jobs that this process failed, by error code.");
    for (code, count) in api.state.failures() {
        text.sample(&[("code", &code.to_string())], count as f64);
    }
    family(
        text,
        MetricKind::Counter,
        "job_attempts_total",
        "Attempts by this process that did not end their job, by \
     reason.",
    )
    .sample(&[("why", "deferred")], counts.deferred as f64)
    .sample(&[("why", "retried")], counts.retried as f64)
    .sample(&[("why", "refunded")], counts.refunded as f64)
    .sample(&[("why", "abandoned")], counts.abandoned as f64)
    .sample(&[("why", "lease_lost")], counts.lost as f64);
    counter(text, "dead_entries_total", "Stream entries without a valid pipeline.", counts.dead_letters);
    counter(text, "windows_fired_total", "Jobs created from debounce windows.", counts.fired);
    family(text, MetricKind::Counter, "event_records_total", "Records in event notifications.")
        .sample(&[("outcome", "accepted")], counts.events_accepted as f64)
        .sample(&[("outcome", "ignored")], counts.events_ignored as f64);
    family(text, MetricKind::Counter, "events_refused_total", "Rejected event notifications, by reason.");
    for (reason, count) in api.rejections.counts() {
        text.sample(&[("reason", reason.name())], count as f64);
    }
    if let Some(age) = api.rejections.last() {
        let help = "Time since the last rejected event notification.";
        family(text, MetricKind::Gauge, "events_refused_age_seconds", help).sample(&[], age.as_secs_f64());
    }
}

fn event_queue(api: &WorkerApi, text: &mut MetricsText) {
    let state = &api.state.event_queue;
    let last = state.last();
    gauge(
        text,
        "event_queue_up",
        "Whether the last use of the event queue succeeded.",
        u64::from(last.error.is_none()),
    );
    let help = "Messages of the event queue, by outcome; redeliveries count again.";
    family(text, MetricKind::Counter, "event_queue_messages_total", help);
    for (outcome, count) in state.counts() {
        text.sample(&[("outcome", outcome.name())], count as f64);
    }
    if let Some(age) = last.age_s {
        let help = "Age of the oldest message in the last batch of the event queue, when it was received.";
        family(text, MetricKind::Gauge, "event_queue_age_seconds", help).sample(&[], age);
    }
}

fn runs(api: &WorkerApi, text: &mut MetricsText) {
    let counts = api.state.counts();
    let name = "run_duration_seconds";
    let text = family(text, MetricKind::Histogram, name, "Duration of attempts, whatever their outcome.");
    api.state.run_durations.write(&[], text);
    counter(text, "rows_read_total", "Rows read from CSVs.", counts.rows_read);
    counter(text, "bytes_read_total", "Bytes of CSVs read, as stored.", counts.bytes_read);
    counter(text, "rows_written_total", "Rows written by completed jobs of this process.", counts.rows_written);
    counter(text, "rows_rejected_total", "Rows rejected by completed jobs of this process.", counts.rows_rejected);
}

fn queue(api: &WorkerApi, text: &mut MetricsText) {
    let counts = health::queue_counts(api);
    gauge(text, "kv_up", "Whether the key-value store responds.", u64::from(counts.is_some()));
    let writable = u64::from(health::kv_is_writable(api));
    gauge(text, "kv_writable", "Whether the key-value store accepts writes.", writable);
    let oldest = counts.map(|_| api.kv.oldest_due());
    match counts.zip(oldest) {
        Some((counts, Ok(oldest))) => {
            gauge(text, "queue_entries", "Entries in the stream, including claimed ones.", counts.stream);
            gauge(text, "queue_pending", "Claimed entries.", counts.pending);
            gauge(text, "queue_waiting", "Jobs waiting until they are due.", counts.waiting);
            let help = "Runs requested by comparisons that are not enqueued yet.";
            gauge(text, "queue_requested", help, counts.requested);
            gauge(text, "queue_windows", "Open debounce windows.", counts.windows);
            gauge(text, "queue_dead", "Dead letters.", counts.dead_letters);
            let help = "How long the oldest due job has been due, including running jobs.";
            let oldest = oldest.unwrap_or_default().as_secs_f64();
            family(text, MetricKind::Gauge, "queue_oldest_seconds", help).sample(&[], oldest);
        }
        Some((_, Err(error))) => tracing::warn!(%error, "the key-value store can't be reached"),
        None => {}
    }
    let help = "Failed operations of the key-value store.";
    counter(text, "kv_errors_total", help, api.kv.failures());
}

/// Age up to which the ends of pipelines are served again.
const ENDS_MAX_AGE: Duration = Duration::from_secs(5);

/// When each pipeline's newest jobs completed and failed. Omitted while a store doesn't respond.
fn pipelines(api: &WorkerApi, text: &mut MetricsText) {
    let most = api.metrics_pipelines;
    if most == 0 {
        return;
    }
    let (kv, store) = (Arc::clone(&api.kv), Arc::clone(&api.store));
    let found = api.checks.pipelines.result(ENDS_MAX_AGE, move || match ends(&*kv, &*store, most) {
        Ok(ends) => Some(Arc::new(ends)),
        Err(error) => {
            tracing::warn!(error, "no metrics of pipelines");
            None
        }
    });
    let Some(ends) = found.flatten() else { return };
    let mut times = |end: &str, ms_of: fn(&NewestEnds) -> Option<i64>| {
        let name = format!("pipeline_{end}_timestamp_seconds");
        let help = format!("When the newest job of the pipeline that {end} was enqueued.");
        family(text, MetricKind::Gauge, &name, &help);
        for (slug, ends) in &ends.pipelines {
            if let Some(ms) = ms_of(ends) {
                text.sample(&[("pipeline", slug.as_str())], ms as f64 / 1e3);
            }
        }
    };
    times("completed", |ends| ends.completed_ms);
    times("failed", |ends| ends.failed_ms);
    let help = "Pipelines beyond SVC_METRICS_PIPELINES, which have no metrics of their own.";
    gauge(text, "pipelines_omitted", help, ends.omitted);
}

fn ends(index: &dyn JobIndex, store: &dyn ObjectStore, most: usize) -> Result<PipelineEnds, String> {
    let (mut found, mut omitted) = (Vec::new(), 0);
    for slug in slugs(store, Bucket::Pipelines) {
        let slug = slug.map_err(|error| error.to_string())?;
        if found.len() < most { found.push(slug) } else { omitted += 1 }
    }
    let newest = index.newest_ends(&found).map_err(|error| error.to_string())?;
    Ok(PipelineEnds { pipelines: found.into_iter().zip(newest).collect(), omitted })
}

fn stores(api: &WorkerApi, text: &mut MetricsText) {
    gauge(text, "store_up", "Whether the object store responds.", u64::from(health::store_is_up(api)));
    let requests = api.store.request_counts();
    family(text, MetricKind::Counter, "store_requests_total", "Requests to the object store, by outcome.")
        .sample(&[("outcome", "ok")], requests.ok as f64)
        .sample(&[("outcome", "refused")], requests.refused as f64)
        .sample(&[("outcome", "failed")], requests.failed as f64);
}

fn machine(api: &WorkerApi, text: &mut MetricsText) {
    if let Some(bytes) = free_bytes(&api.scratch_dir) {
        gauge(text, "scratch_free_bytes", "Free space in the scratch folder.", bytes);
    }
}

fn gauge(text: &mut MetricsText, name: &str, help: &str, value: u64) {
    family(text, MetricKind::Gauge, name, help).sample(&[], value as f64);
}

fn counter(text: &mut MetricsText, name: &str, help: &str, value: u64) {
    family(text, MetricKind::Counter, name, help).sample(&[], value as f64);
}

fn family<'a>(text: &'a mut MetricsText, kind: MetricKind, name: &str, help: &str) -> &'a mut MetricsText {
    text.family(kind, &format!("{PREFIX}{name}"), help)
}
