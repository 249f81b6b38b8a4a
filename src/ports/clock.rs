//! The only way to tell the time.

use chrono::{DateTime, Utc};

/// Wall-clock time, so that tests can set it.
pub trait Clock: Send + Sync {
    fn now(&self) -> DateTime<Utc>;
}

/// RFC 3339 in UTC with milliseconds: the form in which times stand in records and manifests.
pub fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
