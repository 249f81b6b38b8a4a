//! Sessions and login throttling.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::kv_error::KvResult;
use crate::domain::login::LoginScopes;

/// A login session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub created_at: DateTime<Utc>,
    /// The latest end, regardless of activity.
    pub ends_at: DateTime<Utc>,
}

/// Sessions by the hex SHA-256 of their token; the token itself is never stored.
pub trait Sessions: Send + Sync {
    /// Opens a session that ends `idle` after the last [`Sessions::touch`], and after `max` at the latest.
    fn open(&self, token_sha256: &str, idle: Duration, max: Duration) -> KvResult<Session>;

    /// Extends the session to `idle` from now, or up to a sixteenth less; `None` if it doesn't exist or has ended.
    fn touch(&self, token_sha256: &str, idle: Duration) -> KvResult<Option<Session>>;

    /// Ends the session, if it exists.
    fn close(&self, token_sha256: &str) -> KvResult<()>;
}

/// Whether a login attempt is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Allowed; counts as failed until [`LoginThrottle::record_success`].
    Allowed,
    /// Not before this time has passed.
    Wait(Duration),
}

/// Throttles password guessing, per [`LoginScopes`] of the client's address.
pub trait LoginThrottle: Send + Sync {
    /// Allows an attempt unless a scope is throttled, and counts it as failed in every scope. For an address that has
    /// logged in recently, only its own scope is checked.
    fn admit(&self, client: &LoginScopes) -> KvResult<Admission>;

    /// Undoes the failure in the wider scopes, clears all failures of the address, and remembers it for
    /// [`KNOWN_LOGIN_S`](crate::domain::login::KNOWN_LOGIN_S).
    fn record_success(&self, client: &LoginScopes) -> KvResult<()>;
}
