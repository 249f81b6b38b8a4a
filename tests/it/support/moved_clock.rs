//! The system's clock with an offset set by tests.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use lakemill::runtime::Clock;
use lakemill::runtime::SystemClock;

#[derive(Debug, Default)]
pub struct MovedClock {
    ahead_ms: AtomicI64,
    /// Subtracted from the offset of the wall clock.
    set_back_ms: AtomicI64,
    /// Wall time and time since boot, if time passes only by [`advance`](Self::advance).
    stopped: OnceLock<(DateTime<Utc>, Duration)>,
}

impl MovedClock {
    pub fn advance(&self, by: Duration) {
        self.ahead_ms.fetch_add(millis(by), Ordering::SeqCst);
    }

    /// Only the wall clock.
    pub fn set_back(&self, by: Duration) {
        self.set_back_ms.fetch_add(millis(by), Ordering::SeqCst);
    }

    /// Stops the clock.
    pub fn stop(&self) {
        self.stopped.get_or_init(|| (SystemClock.now(), SystemClock.since_boot()));
    }

    fn real_time(&self) -> (DateTime<Utc>, Duration) {
        self.stopped.get().copied().unwrap_or_else(|| (SystemClock.now(), SystemClock.since_boot()))
    }
}

impl Clock for MovedClock {
    fn now(&self) -> DateTime<Utc> {
        let ahead = self.ahead_ms.load(Ordering::SeqCst) - self.set_back_ms.load(Ordering::SeqCst);
        self.real_time().0 + TimeDelta::milliseconds(ahead)
    }

    fn since_boot(&self) -> Duration {
        self.real_time().1 + Duration::from_millis(self.ahead_ms.load(Ordering::SeqCst).unsigned_abs())
    }
}

fn millis(by: Duration) -> i64 {
    i64::try_from(by.as_millis()).unwrap()
}
