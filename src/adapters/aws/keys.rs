//! Keys that sign requests, and the error if there are none.

use chrono::{DateTime, TimeDelta, Utc};

use crate::config::Secret;

/// Keys are renewed once less than this is left of their life.
const RENEWED_BEFORE_END: TimeDelta = TimeDelta::minutes(5);

/// Keys that sign a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKeys {
    pub id: Secret,
    pub secret: Secret,
    /// Sent with each request that temporary keys sign.
    pub session_token: Option<Secret>,
    /// When they end; `None`: never.
    pub end: Option<DateTime<Utc>>,
}

impl SigningKeys {
    pub(super) fn has_ended(&self, now: DateTime<Utc>) -> bool {
        self.end.is_some_and(|end| end <= now)
    }

    pub(super) fn expires_soon(&self, now: DateTime<Utc>) -> bool {
        self.end.is_some_and(|end| end - RENEWED_BEFORE_END <= now)
    }
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
#[error("no AWS credentials: {from}: {reason}")]
pub struct CredentialsError {
    /// The provider that was tried.
    from: String,
    reason: String,
}

impl CredentialsError {
    pub(super) fn new(from: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { from: from.into(), reason: reason.into() }
    }
}
