//! Metrics of the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::observability::{Histogram, MetricKind, MetricsText};

/// Upper bounds of the buckets of request durations, in seconds.
pub const DURATION_BOUNDS_S: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0];
/// Label of requests without a route.
const NO_ROUTE: &str = "none";

#[derive(Debug)]
struct RouteMetrics {
    /// 1xx to 5xx.
    classes: [AtomicU64; 5],
    durations: Histogram<{ DURATION_BOUNDS_S.len() }>,
}

/// Counters of one server; read at any time.
#[derive(Debug)]
pub struct HttpMetrics {
    /// Method and pattern of each route, then [`NO_ROUTE`].
    labels: Vec<(&'static str, &'static str)>,
    routes: Vec<RouteMetrics>,
    pub(super) accepted: AtomicU64,
    pub(super) open: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) accept_errors: AtomicU64,
}

/// A snapshot of the counters of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Accepted since the start.
    pub accepted: u64,
    /// Open now.
    pub open: u64,
    /// Answered 503 or 429 at a limit.
    pub refused: u64,
    /// Closed to make room for others.
    pub evicted: u64,
    /// Failures of `accept`.
    pub accept_errors: u64,
}

impl HttpMetrics {
    pub(super) fn new(mut labels: Vec<(&'static str, &'static str)>) -> Self {
        labels.push((NO_ROUTE, NO_ROUTE));
        let routes = labels
            .iter()
            .map(|_| RouteMetrics { classes: Default::default(), durations: Histogram::new(&DURATION_BOUNDS_S) });
        let routes = routes.collect();
        let [accepted, open, refused, evicted, accept_errors] = [const { AtomicU64::new(0) }; 5];
        Self { labels, routes, accepted, open, refused, evicted, accept_errors }
    }

    pub(super) fn count(&self, route: Option<usize>, status: u16, duration: Duration) {
        let last = self.routes.len() - 1;
        let route = &self.routes[route.unwrap_or(last).min(last)];
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        route.classes[class].fetch_add(1, Ordering::Relaxed);
        route.durations.observe(duration);
    }

    pub fn connections(&self) -> ConnectionCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ConnectionCounts {
            accepted: read(&self.accepted),
            open: read(&self.open),
            refused: read(&self.refused),
            evicted: read(&self.evicted),
            accept_errors: read(&self.accept_errors),
        }
    }

    /// Responses of a status class (2: 2xx) of the route of that method and pattern; `none` and `none` for requests
    /// without a route.
    pub fn requests(&self, method: &str, pattern: &str, class: usize) -> u64 {
        let rows = self.labels.iter().zip(&self.routes).filter(|(label, _)| **label == (method, pattern));
        let count = |route: &RouteMetrics| route.classes.get(class.wrapping_sub(1)).map(|c| c.load(Ordering::Relaxed));
        rows.filter_map(|(_, route)| count(route)).sum()
    }

    /// Writes all families, with `prefix` before each name. Omits routes without requests.
    pub fn write(&self, prefix: &str, text: &mut MetricsText) {
        let counts = self.connections();
        let gauges = [("http_connections_open", "Open client connections.", counts.open)];
        let counters = [
            ("http_connections_total", "Accepted client connections.", counts.accepted),
            ("http_connections_refused_total", "Connections refused because too many are open.", counts.refused),
            ("http_connections_evicted_total", "Slow connections closed to make room for others.", counts.evicted),
            ("http_accept_errors_total", "Failed attempts to accept a connection.", counts.accept_errors),
        ];
        for (name, help, value) in gauges {
            text.family(MetricKind::Gauge, &format!("{prefix}{name}"), help).sample(&[], value as f64);
        }
        for (name, help, value) in counters {
            text.family(MetricKind::Counter, &format!("{prefix}{name}"), help).sample(&[], value as f64);
        }
        self.write_routes(prefix, text);
    }

    fn write_routes(&self, prefix: &str, text: &mut MetricsText) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        text.family(MetricKind::Counter, &format!("{prefix}http_requests_total"), "Completed requests, by route.");
        let rows = || self.labels.iter().zip(&self.routes);
        for ((method, pattern), route) in rows() {
            for (at, class) in ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().enumerate() {
                let count = read(&route.classes[at]);
                if count > 0 {
                    let labels = [("method", *method), ("route", *pattern), ("status", class)];
                    text.sample(&labels, count as f64);
                }
            }
        }
        let name = format!("{prefix}http_request_duration_seconds");
        text.family(MetricKind::Histogram, &name, "Time from the complete head to the last byte of the response.");
        for ((method, pattern), route) in rows() {
            if route.durations.count() > 0 {
                route.durations.write(&[("method", *method), ("route", *pattern)], text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_and_class() {
        let metrics = HttpMetrics::new(vec![("GET", "/a"), ("PUT", "/a")]);
        metrics.count(Some(0), 204, Duration::from_millis(3));
        metrics.count(Some(0), 404, Duration::from_millis(50));
        metrics.count(None, 400, Duration::from_secs(1_000));
        assert_eq!([2, 4, 5].map(|class| metrics.requests("GET", "/a", class)), [1, 1, 0]);
        assert_eq!(metrics.requests("none", "none", 4), 1);
        let mut text = MetricsText::new();
        metrics.write("x_", &mut text);
        let text = text.finish();
        for line in [
            "x_http_connections_open 0\n",
            "x_http_requests_total{method=\"GET\",route=\"/a\",status=\"2xx\"} 1\n",
            "x_http_request_duration_seconds_bucket{method=\"GET\",route=\"/a\",le=\"0.1\"} 2\n",
            "x_http_request_duration_seconds_bucket{method=\"none\",route=\"none\",le=\"300\"} 0\n",
            "x_http_request_duration_seconds_count{method=\"none\",route=\"none\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("PUT"));
    }
}
