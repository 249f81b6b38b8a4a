//! Writes metrics in Prometheus' text format.
//!
//! Invariant: every family has its HELP and TYPE once, before its samples; label values are escaped.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// `Content-Type` of the text.
pub const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

/// Builds the text: begin a [`family`](Self::family), then add its samples.
#[derive(Debug, Default)]
pub struct MetricsText {
    text: String,
    name: String,
}

impl MetricsText {
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a family. `name` is `[a-z_][a-z0-9_]*`; each family is begun once.
    pub fn family(&mut self, kind: MetricKind, name: &str, help: &str) -> &mut Self {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        name.clone_into(&mut self.name);
        self
    }

    /// Adds a sample of the family.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        let name = std::mem::take(&mut self.name);
        self.line(&name, labels, value);
        self.name = name;
        self
    }

    /// Adds a histogram: `counts[i]` values up to `bounds[i]` and above the previous bound, `counts[bounds.len()]` above all
    /// bounds. The text has cumulative counts.
    pub fn histogram(&mut self, labels: &[(&str, &str)], bounds: &[f64], counts: &[u64], sum: f64) -> &mut Self {
        let name = self.name.clone();
        let mut total = 0_u64;
        for (at, count) in counts.iter().enumerate() {
            total += count;
            let bound = bounds.get(at).map_or_else(|| "+Inf".to_owned(), |bound| number(*bound));
            let mut labels = labels.to_vec();
            labels.push(("le", &bound));
            self.line(&format!("{name}_bucket"), &labels, total as f64);
        }
        self.line(&format!("{name}_sum"), labels, sum);
        self.line(&format!("{name}_count"), labels, total as f64);
        self
    }

    pub fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{}{label}=\"{value}\"", if at == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.text, "{} {}", if labels.is_empty() { "" } else { "}" }, number(value));
    }
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf".into() } else { "-Inf".into() }
    } else {
        format!("{value}")
    }
}

/// Counts durations in buckets; lock-free.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    /// Upper bounds in seconds, ascending.
    bounds: &'static [f64; N],
    counts: [AtomicU64; N],
    /// Above all bounds.
    above: AtomicU64,
    micros: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    pub const fn new(bounds: &'static [f64; N]) -> Self {
        Self { bounds, counts: [const { AtomicU64::new(0) }; N], above: AtomicU64::new(0), micros: AtomicU64::new(0) }
    }

    pub fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = self.bounds.iter().position(|bound| seconds <= *bound);
        bucket.map_or(&self.above, |at| &self.counts[at]).fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.all().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Writes samples of the current family.
    pub fn write(&self, labels: &[(&str, &str)], text: &mut MetricsText) {
        let counts: Vec<u64> = self.all().map(|count| count.load(Ordering::Relaxed)).collect();
        let seconds = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        text.histogram(labels, self.bounds, &counts, seconds);
    }

    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        self.counts.iter().chain([&self.above])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_in_prometheus_format() {
        let mut text = MetricsText::new();
        text.family(MetricKind::Gauge, "a", "Help \\ of\ntwo lines").sample(&[], 1.5);
        text.family(MetricKind::Counter, "b_total", "B")
            .sample(&[("path", "/a\"b\\c\nd"), ("class", "2xx")], 3e9)
            .sample(&[("path", "/")], f64::INFINITY);
        text.family(MetricKind::Histogram, "c_seconds", "C").histogram(&[("r", "x")], &[0.1, 1.0], &[1, 0, 2], 7.25);
        assert_eq!(
            text.finish(),
            "# HELP a Help \\\\ of\\ntwo lines\n# TYPE a gauge\na 1.5\n\
             # HELP b_total B\n# TYPE b_total counter\n\
             b_total{path=\"/a\\\"b\\\\c\\nd\",class=\"2xx\"} 3000000000\nb_total{path=\"/\"} +Inf\n\
             # HELP c_seconds C\n# TYPE c_seconds histogram\n\
             c_seconds_bucket{r=\"x\",le=\"0.1\"} 1\nc_seconds_bucket{r=\"x\",le=\"1\"} 1\n\
             c_seconds_bucket{r=\"x\",le=\"+Inf\"} 3\nc_seconds_sum{r=\"x\"} 7.25\nc_seconds_count{r=\"x\"} 3\n"
        );
    }

    #[test]
    fn duration_is_counted_in_the_smallest_matching_bucket() {
        let histogram = Histogram::new(&[1.0, 5.0]);
        for ms in [0, 1_000, 1_001, 5_000, 60_000] {
            histogram.observe(Duration::from_millis(ms));
        }
        assert_eq!(histogram.count(), 5);
        let mut text = MetricsText::new();
        histogram.write(&[], text.family(MetricKind::Histogram, "x", "X"));
        let text = text.finish();
        for line in ["{le=\"1\"} 2", "{le=\"5\"} 4", "{le=\"+Inf\"} 5", "x_sum 67.001", "x_count 5"] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
