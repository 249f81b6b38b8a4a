//! `/metrics`, for Prometheus.

use super::Surface;
use crate::http::{ApiError, METRICS_CONTENT_TYPE, MetricKind, MetricsText, Request, Response};

/// Before every name.
const PREFIX: &str = "lakemill_";

#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
pub(super) fn metrics(surface: &Surface, _: &mut Request) -> Result<Response, ApiError> {
    let mut text = MetricsText::new();
    jobs(surface, &mut text);
    queue(surface, &mut text);
    process(&mut text);
    if let Some(http) = surface.http.get() {
        http.write(PREFIX, &mut text);
    }
    Ok(Response::bytes(200, METRICS_CONTENT_TYPE, text.finish().into_bytes()))
}

fn jobs(surface: &Surface, text: &mut MetricsText) {
    let counts = surface.state.counts();
    gauge(text, "jobs_in_flight", "Jobs that run in this process.", counts.in_flight);
    family(text, MetricKind::Counter, "jobs_total", "Jobs that ended here.")
        .sample(&[("status", "completed")], counts.completed as f64)
        .sample(&[("status", "failed")], counts.failed as f64);
    family(text, MetricKind::Counter, "job_attempts_total", "Attempts here that did not end their job, by why.")
        .sample(&[("why", "deferred")], counts.deferred as f64)
        .sample(&[("why", "retried")], counts.retried as f64)
        .sample(&[("why", "abandoned")], counts.abandoned as f64)
        .sample(&[("why", "lease_lost")], counts.lost as f64);
    counter(text, "dead_entries_total", "Entries of the stream that no pipeline could own.", counts.dead as f64);
    counter(text, "windows_fired_total", "Jobs made of batches of new files.", counts.fired as f64);
    family(text, MetricKind::Counter, "event_records_total", "Records of events that were posted.")
        .sample(&[("outcome", "accepted")], counts.events_accepted as f64)
        .sample(&[("outcome", "ignored")], counts.events_ignored as f64);
    counter(text, "run_seconds_total", "Time of all runs.", counts.run_ms as f64 / 1_000.0);
    counter(text, "rows_read_total", "Rows read from CSVs.", counts.rows_read as f64);
}

fn queue(surface: &Surface, text: &mut MetricsText) {
    let counts = surface.kv.counts();
    gauge(text, "kv_up", "Whether the key-value store answers.", u64::from(counts.is_ok()));
    match counts {
        Ok(counts) => {
            gauge(text, "queue_entries", "Entries in the stream, claimed ones included.", counts.stream);
            gauge(text, "queue_pending", "Entries that are claimed.", counts.pending);
            gauge(text, "queue_waiting", "Jobs that wait until they are due.", counts.waiting);
            gauge(text, "queue_windows", "Open debounce windows.", counts.windows);
            gauge(text, "queue_dead", "Dead entries that are kept.", counts.dead);
        }
        Err(error) => tracing::warn!(%error, "the key-value store can't be reached"),
    }
}

fn process(text: &mut MetricsText) {
    if let Some(bytes) = resident_bytes() {
        gauge(text, "process_resident_memory_bytes", "Resident memory of this process.", bytes);
    }
    family(text, MetricKind::Gauge, "build_info", "What runs.").sample(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1_024)
}

fn gauge(text: &mut MetricsText, name: &str, help: &str, value: u64) {
    family(text, MetricKind::Gauge, name, help).sample(&[], value as f64);
}

fn counter(text: &mut MetricsText, name: &str, help: &str, value: f64) {
    family(text, MetricKind::Counter, name, help).sample(&[], value);
}

fn family<'a>(text: &'a mut MetricsText, kind: MetricKind, name: &str, help: &str) -> &'a mut MetricsText {
    text.family(kind, &format!("{PREFIX}{name}"), help)
}
