//! Who is logged in, and who tries too often.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::kv::KvResult;

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

/// Slows down guessing, per client address. After 5 failures an address waits, from 15 s on, twice as long after each
/// further one, at most 15 min; an hour without a failure forgives all.
pub trait LoginThrottle: Send + Sync {
    fn admit(&self, address: &str) -> KvResult<Admission>;

    /// Forgives the address.
    fn succeeded(&self, address: &str) -> KvResult<()>;
}

/// How long an address waits after its nth failure in a row; `None`: not at all.
pub fn login_wait(failures: u32) -> Option<Duration> {
    use crate::domain::limits::{LOGIN_FAILURES_FREE, LOGIN_WAIT_S, LOGIN_WAIT_S_MAX};
    let beyond = failures.checked_sub(LOGIN_FAILURES_FREE)?;
    Some(Duration::from_secs((LOGIN_WAIT_S << beyond.min(16)).min(LOGIN_WAIT_S_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_begin_after_five_failures_double_and_end_at_fifteen_minutes() {
        let seconds = |failures| login_wait(failures).map(|wait| wait.as_secs());
        assert_eq!((seconds(0), seconds(4)), (None, None));
        assert_eq!((seconds(5), seconds(6), seconds(10)), (Some(15), Some(30), Some(480)));
        assert_eq!((seconds(11), seconds(u32::MAX)), (Some(900), Some(900)));
    }
}
