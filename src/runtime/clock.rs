//! Wall-clock and boot time. Nothing else reads either.

use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::time::{ClockId, clock_gettime};

/// Reads the time; tests set it.
pub trait Clock: Send + Sync {
    /// Wall-clock time. It can be set forward and back.
    fn now(&self) -> DateTime<Utc>;

    /// Time since the machine booted. It never goes back, and counts while the machine or the process is suspended.
    fn since_boot(&self) -> Duration;
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        #[cfg(feature = "failpoints")]
        if let Some(ahead_ms) = super::failpoint::number("clock::ahead_ms") {
            return Utc::now() + chrono::TimeDelta::milliseconds(ahead_ms);
        }
        Utc::now()
    }

    fn since_boot(&self) -> Duration {
        let at = clock_gettime(ClockId::Boottime);
        Duration::new(at.tv_sec.unsigned_abs(), u32::try_from(at.tv_nsec).unwrap_or(0))
    }
}

/// Formats a time as RFC 3339 in UTC with milliseconds, the format of records and manifests.
pub fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
