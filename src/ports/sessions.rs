//! Sessions and login throttling.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::kv::KvResult;
use crate::domain::login::LoginScopes;

/// A browser that is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub created_at: DateTime<Utc>,
    /// It ends then, whatever is done with it.
    pub ends_at: DateTime<Utc>,
}

/// Sessions by the SHA-256 of their token, in hex: the token itself is never stored.
pub trait Sessions: Send + Sync {
    /// Opens a session that ends after `idle` without a [`Sessions::touch`], after `max` at the latest.
    fn open(&self, token_sha256: &str, idle: Duration, max: Duration) -> KvResult<Session>;

    /// Prolongs the session to `idle` from now, or to a sixteenth less; `None` if there is none (any more).
    fn touch(&self, token_sha256: &str, idle: Duration) -> KvResult<Option<Session>>;

    /// Ends the session; nothing happens if there is none.
    fn close(&self, token_sha256: &str) -> KvResult<()>;
}

/// Whether a login may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may, and counts as failed until [`LoginThrottle::succeeded`].
    Try,
    /// Not before so long.
    Wait(Duration),
}

/// Slows down guessing, per [`LoginScopes`] of the client's address.
pub trait LoginThrottle: Send + Sync {
    /// Whether a login may be tried now. It may if no scope makes it wait; then it counts as failed in each. For an address
    /// that has logged in lately its own scope counts alone.
    fn admit(&self, client: &LoginScopes) -> KvResult<Admission>;

    /// Takes the login's failure back in the wider scopes, forgives the address all of its own, and remembers it for
    /// [`KNOWN_LOGIN_S`](crate::domain::login::KNOWN_LOGIN_S).
    fn succeeded(&self, client: &LoginScopes) -> KvResult<()>;
}
