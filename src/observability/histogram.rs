//! Counts of durations by their length.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::text::MetricsText;

/// Durations, counted in buckets; read and written at any time.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    /// Upper bounds in seconds, rising.
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

    /// How many were observed.
    pub fn count(&self) -> u64 {
        self.all().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Writes it as samples of the family that was begun last.
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
    use super::super::text::MetricKind;
    use super::*;

    #[test]
    fn a_duration_is_counted_under_the_least_bound_that_holds_it() {
        let histogram = Histogram::new(&[1.0, 5.0]);
        for ms in [0, 1_000, 1_001, 5_000, 60_000] {
            histogram.observe(Duration::from_millis(ms));
        }
        assert_eq!(histogram.count(), 5);
        let mut text = MetricsText::new();
        histogram.write(&[], text.family(MetricKind::Histogram, "x", "X"));
        let told = text.finish();
        for line in ["{le=\"1\"} 2", "{le=\"5\"} 4", "{le=\"+Inf\"} 5", "x_sum 67.001", "x_count 5"] {
            assert!(told.contains(line), "{line} is not in\n{told}");
        }
    }
}
