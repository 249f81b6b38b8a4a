//! The time of the machine.

use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::time::{ClockId, clock_gettime};

use crate::ports::Clock;

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        #[cfg(feature = "failpoints")]
        if let Some(ahead_ms) = crate::ports::failpoint::number("clock::ahead_ms") {
            return Utc::now() + chrono::TimeDelta::milliseconds(ahead_ms);
        }
        Utc::now()
    }

    fn since_boot(&self) -> Duration {
        let at = clock_gettime(ClockId::Boottime);
        Duration::new(at.tv_sec.unsigned_abs(), u32::try_from(at.tv_nsec).unwrap_or(0))
    }
}
