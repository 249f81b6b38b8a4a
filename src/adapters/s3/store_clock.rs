//! Estimates the store's clock from the dates of its responses.
//!
//! Invariant: the estimate is never ahead of the store's clock, so that signatures expire early rather than late. It
//! advances with the time since boot: setting this machine's clock changes nothing.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use parking_lot::Mutex;

/// A sample is used for one to two windows.
const WINDOW: Duration = Duration::from_secs(60);
/// Stores accept dates that are off by less.
const HARMLESS_SKEW: TimeDelta = TimeDelta::seconds(30);

/// The maximum of the recent samples. Each is too low by the time of the response and by the truncation of `Date` to
/// seconds, so the maximum is the best.
#[derive(Default)]
pub(super) struct StoreClock(Mutex<Option<Samples>>);

/// Each sample is the store's time when this machine booted.
struct Samples {
    /// Time since boot.
    window_start: Duration,
    before: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
    latest: DateTime<Utc>,
}

impl Samples {
    fn first(at: Duration, sample: DateTime<Utc>) -> Self {
        Self { window_start: at, before: None, now: sample, latest: sample }
    }

    fn best(&self) -> DateTime<Utc> {
        self.before.map_or(self.now, |before| before.max(self.now))
    }
}

impl StoreClock {
    /// Adds a sample: a response's `Date` header, received at `since_boot`.
    pub(super) fn sample(&self, date: &str, since_boot: Duration) {
        let Some(sample) = parse_date(date).and_then(|date| date.checked_sub_signed(delta(since_boot))) else { return };
        let mut samples = self.0.lock();
        *samples = Some(match samples.take() {
            Some(old) if since_boot < old.window_start + WINDOW => {
                Samples { now: old.now.max(sample), latest: sample, ..old }
            }
            Some(old) => {
                let before = (since_boot < old.window_start + 2 * WINDOW).then_some(old.now);
                Samples { before, ..Samples::first(since_boot, sample) }
            }
            None => Samples::first(since_boot, sample),
        });
    }

    /// The store's time at `since_boot`; `None` before the first response.
    pub(super) fn time(&self, since_boot: Duration) -> Option<DateTime<Utc>> {
        let samples = self.0.lock();
        samples.as_ref().and_then(|samples| samples.best().checked_add_signed(delta(since_boot)))
    }

    /// Called when the store rejected a request dated `dated` at `since_boot`: whether the date of its response differs by
    /// more than [`HARMLESS_SKEW`]. If so, that sample replaces all others.
    pub(super) fn corrects(&self, dated: DateTime<Utc>, since_boot: Duration) -> bool {
        let mut samples = self.0.lock();
        let Some(Samples { latest, .. }) = *samples else { return false };
        let is_far = (latest + delta(since_boot) - dated).abs() > HARMLESS_SKEW;
        if is_far {
            *samples = Some(Samples::first(since_boot, latest));
        }
        is_far
    }
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or_default()
}

/// `Sat, 21 Nov 2026 14:23:26 GMT`, whole seconds.
pub(super) fn parse_date(text: &str) -> Option<DateTime<Utc>> {
    let time = NaiveDateTime::parse_from_str(text.trim(), "%a, %d %b %Y %H:%M:%S GMT").ok()?;
    Some(time.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `seconds` after a fixed date.
    fn at(seconds: i64) -> DateTime<Utc> {
        parse_date("Sat, 21 Nov 2026 14:00:00 GMT").unwrap() + TimeDelta::seconds(seconds)
    }

    fn note(clock: &StoreClock, date: i64, boot_ms: u64) {
        let text = at(date).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        clock.sample(&text, Duration::from_millis(boot_ms));
    }

    fn time(clock: &StoreClock, boot_ms: u64) -> Option<i64> {
        clock.time(Duration::from_millis(boot_ms)).map(|time| (time - at(0)).num_milliseconds())
    }

    #[test]
    fn estimate_is_the_maximum_of_the_samples() {
        let clock = StoreClock::default();
        assert_eq!(time(&clock, 1_000), None);
        note(&clock, 100, 1_900);
        note(&clock, 101, 2_300);
        note(&clock, 102, 3_700);
        assert_eq!(time(&clock, 5_000), Some(103_700));
        clock.sample("nonsense", Duration::from_secs(4));
        assert_eq!(time(&clock, 5_000), Some(103_700));
    }

    #[test]
    fn estimate_follows_a_clock_set_back_within_two_windows() {
        let clock = StoreClock::default();
        note(&clock, 100, 0);
        note(&clock, 61 + 88, 61_000);
        assert_eq!(time(&clock, 61_000), Some(161_000), "an old sample still counts");
        note(&clock, 122 + 88, 122_000);
        assert_eq!(time(&clock, 122_000), Some(210_000));
        note(&clock, 1_000 + 80, 1_000_000);
        assert_eq!(time(&clock, 1_000_000), Some(1_080_000));
    }

    #[test]
    fn rejection_with_another_date_corrects_the_estimate_at_once() {
        let clock = StoreClock::default();
        assert!(!clock.corrects(at(0), Duration::ZERO));
        note(&clock, 100, 0);
        note(&clock, 40, 1_000);
        assert!(!clock.corrects(at(29), Duration::from_secs(1)), "that is near");
        assert_eq!(time(&clock, 1_000), Some(101_000));
        assert!(clock.corrects(at(101), Duration::from_secs(1)));
        assert_eq!(time(&clock, 1_000), Some(40_000));
    }
}
