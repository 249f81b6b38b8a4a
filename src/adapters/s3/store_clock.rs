//! The store's clock, as its answers tell it.
//!
//! Invariant: the time told is never later than the store's own was, so that what is dated by it expires early rather
//! than late. It is carried on by the time since boot: setting this machine's clock changes nothing.

use parking_lot::Mutex;
use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

/// A sample counts for one to two windows.
const WINDOW: Duration = Duration::from_secs(60);
/// How far off a date may be without a signature being refused for it.
const HARMLESS: TimeDelta = TimeDelta::seconds(30);

/// The greatest of the recent samples. Each is too small by the time that the answer took and by what `Date` leaves
/// off its second, so the greatest is the best.
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
    /// Notes an answer's `Date` header, received at `since_boot`.
    pub(super) fn note(&self, date: &str, since_boot: Duration) {
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

    /// The store's time at `since_boot`; `None` before the first answer.
    pub(super) fn time(&self, since_boot: Duration) -> Option<DateTime<Utc>> {
        let samples = self.0.lock();
        samples.as_ref().and_then(|samples| samples.best().checked_add_signed(delta(since_boot)))
    }

    /// After the store has refused what was dated `dated` at `since_boot`: whether its latest answer tells a time that
    /// is far from that. Then that time alone counts from now on.
    pub(super) fn corrects(&self, dated: DateTime<Utc>, since_boot: Duration) -> bool {
        let mut samples = self.0.lock();
        let Some(Samples { latest, .. }) = *samples else { return false };
        let is_far = (latest + delta(since_boot) - dated).abs() > HARMLESS;
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

    /// `seconds` after a certain one.
    fn at(seconds: i64) -> DateTime<Utc> {
        parse_date("Sat, 21 Nov 2026 14:00:00 GMT").unwrap() + TimeDelta::seconds(seconds)
    }

    fn note(clock: &StoreClock, date: i64, boot_ms: u64) {
        let text = at(date).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        clock.note(&text, Duration::from_millis(boot_ms));
    }

    fn time(clock: &StoreClock, boot_ms: u64) -> Option<i64> {
        clock.time(Duration::from_millis(boot_ms)).map(|time| (time - at(0)).num_milliseconds())
    }

    #[test]
    fn the_latest_that_the_store_can_be_is_taken_for_its_time() {
        let clock = StoreClock::default();
        assert_eq!(time(&clock, 1_000), None);
        note(&clock, 100, 1_900);
        note(&clock, 101, 2_300);
        note(&clock, 102, 3_700);
        assert_eq!(time(&clock, 5_000), Some(103_700));
        clock.note("nonsense", Duration::from_secs(4));
        assert_eq!(time(&clock, 5_000), Some(103_700));
    }

    #[test]
    fn a_store_whose_clock_was_set_back_is_followed_after_two_windows() {
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
    fn a_refusal_that_tells_another_time_corrects_it_at_once() {
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
