//! Conversions between the values of columns and of the ports.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::name::Slug;

use super::error::{StepError, StepResult};

pub(super) fn time(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// `by` after `ms`, capped at the latest representable time.
pub(super) fn after(ms: i64, by: Duration) -> i64 {
    ms.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX))
        .min(DateTime::<Utc>::MAX_UTC.timestamp_millis())
}

/// A count for SQL's LIMIT.
pub(super) fn sql_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn slug(name: &str) -> StepResult<Slug> {
    Slug::parse(name).map_err(|error| StepError::Malformed { expected: "a slug", found: error.found })
}
