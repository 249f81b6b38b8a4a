//! How far this machine's clock runs ahead of the store's.
//!
//! Invariant: the figure is never less than the truth was at its samples, so that what is signed to expire by it
//! expires early rather than late.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

/// A sample counts for one to two windows.
const WINDOW: Duration = Duration::from_secs(60);

/// The least of the recent samples. Each is too great by the time that the answer took and by what `Date` leaves off
/// its second, so the least is the best.
#[derive(Default)]
pub(super) struct Skew(Mutex<Option<Samples>>);

struct Samples {
    /// Time since boot.
    window_start: Duration,
    before: Option<TimeDelta>,
    now: TimeDelta,
}

impl Skew {
    /// Notes an answer's `Date` header, received at `now`, which is `since_boot`.
    pub(super) fn note(&self, date: &str, now: DateTime<Utc>, since_boot: Duration) {
        let Some(date) = parse_date(date) else { return };
        let sample = now - date;
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *samples = Some(match samples.take() {
            Some(Samples { window_start, before, now }) if since_boot < window_start + WINDOW => {
                Samples { window_start, before, now: now.min(sample) }
            }
            Some(old) => Samples {
                window_start: since_boot,
                before: (since_boot < old.window_start + 2 * WINDOW).then_some(old.now),
                now: sample,
            },
            None => Samples { window_start: since_boot, before: None, now: sample },
        });
    }

    /// `None` before the first answer.
    pub(super) fn ahead(&self) -> Option<TimeDelta> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.as_ref().map(|samples| samples.before.map_or(samples.now, |before| before.min(samples.now)))
    }
}

/// `Sat, 21 Nov 2026 14:23:26 GMT`, whole seconds.
pub(super) fn parse_date(text: &str) -> Option<DateTime<Utc>> {
    let time = NaiveDateTime::parse_from_str(text.trim(), "%a, %d %b %Y %H:%M:%S GMT").ok()?;
    Some(time.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sat, 21 Nov 2026 14:23:26 GMT";

    fn at(ms: i64) -> DateTime<Utc> {
        parse_date(DATE).unwrap() + TimeDelta::milliseconds(ms)
    }

    #[test]
    fn the_least_recent_sample_counts() {
        let skew = Skew::default();
        assert_eq!(skew.ahead(), None);
        for (ms, second) in [(900, 1), (300, 2), (700, 3)] {
            skew.note(DATE, at(ms), Duration::from_secs(second));
        }
        assert_eq!(skew.ahead(), Some(TimeDelta::milliseconds(300)));
        skew.note("nonsense", at(0), Duration::from_secs(4));
        assert_eq!(skew.ahead(), Some(TimeDelta::milliseconds(300)));
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_after_two_windows() {
        let skew = Skew::default();
        skew.note(DATE, at(-5_000), Duration::from_secs(0));
        skew.note(DATE, at(7_000), Duration::from_secs(61));
        assert_eq!(skew.ahead(), Some(TimeDelta::seconds(-5)), "an old sample still counts");
        skew.note(DATE, at(8_000), Duration::from_secs(122));
        assert_eq!(skew.ahead(), Some(TimeDelta::seconds(7)));
        skew.note(DATE, at(9_000), Duration::from_secs(1_000));
        assert_eq!(skew.ahead(), Some(TimeDelta::seconds(9)));
    }
}
