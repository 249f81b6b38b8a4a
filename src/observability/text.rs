//! A writer of Prometheus' text format.
//!
//! Invariant: every family has its HELP and TYPE once, before its samples; label values are escaped.

use std::fmt::Write as _;

/// `Content-Type` of the text.
pub const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a family's samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

/// The text as it grows. Begin a [`family`](Self::family), then give its samples.
#[derive(Debug, Default)]
pub struct MetricsText {
    text: String,
    name: String,
}

impl MetricsText {
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a family of samples. `name` is `[a-z_][a-z0-9_]*`; each family is begun once.
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

    /// A sample of the family.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        let name = std::mem::take(&mut self.name);
        self.line(&name, labels, value);
        self.name = name;
        self
    }

    /// A histogram of the family: `counts[i]` values at most `bounds[i]` and above the bound before it, then in
    /// `counts[bounds.len()]` those above all bounds. (The text adds them up, as the format wants it.)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_prometheus_reads() {
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
}
