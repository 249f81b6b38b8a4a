//! The order of jobs: by the time they were enqueued, then by id.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};

use super::{Job, JobId};

/// A position in the order of jobs. Clients get and return it as text (`<ms>-<job id>`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobPosition {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub job_id: JobId,
}

/// A malformed [`JobPosition`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a cursor: expected `next` of the previous page")]
pub struct PositionError {
    pub found: String,
}

impl JobPosition {
    pub fn of(job: &Job) -> Self {
        Self::new(&job.job_id, job.enqueued_at)
    }

    /// The position of a job that was enqueued at a time; the time in a generated id counts instead.
    pub fn new(job_id: &JobId, enqueued_at: DateTime<Utc>) -> Self {
        Self::generated(job_id)
            .unwrap_or_else(|| Self { at_ms: enqueued_at.timestamp_millis(), job_id: job_id.clone() })
    }

    /// The position of a job with a generated id (UUIDv7), which contains its time; `None` for other ids.
    pub fn generated(job_id: &JobId) -> Option<Self> {
        let uuid = uuid::Uuid::try_parse(job_id.as_str()).ok().filter(|uuid| uuid.get_version_num() == 7)?;
        let (seconds, nanos) = uuid.get_timestamp()?.to_unix();
        let at_ms = i64::try_from(seconds).ok()?.checked_mul(1_000)?.checked_add(i64::from(nanos / 1_000_000))?;
        Some(Self { at_ms, job_id: job_id.clone() })
    }
}

impl fmt::Display for JobPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at_ms, self.job_id)
    }
}

impl FromStr for JobPosition {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let parts = text.split_once('-').and_then(|(at, id)| Some((at.parse().ok()?, JobId::parse(id).ok()?)));
        let (at_ms, job_id) = parts.ok_or_else(|| PositionError { found: crate::domain::text::clipped(text) })?;
        Ok(Self { at_ms, job_id })
    }
}
