//! The only way to tell the time.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Tells the time, so that tests can set it.
pub trait Clock: Send + Sync {
    /// Wall-clock time: may be set forward and back.
    fn now(&self) -> DateTime<Utc>;

    /// Time since the machine booted: never goes back, and goes on while the machine or the process is suspended.
    fn since_boot(&self) -> Duration;
}

/// RFC 3339 in UTC with milliseconds: the form in which times stand in records and manifests.
pub fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
