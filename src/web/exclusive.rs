//! One at a time, among all processes: for what a store's own preconditions can't keep apart, as a rule over several
//! objects.
//!
//! Invariant: nothing is written under a lock that may have run out; a holder that dies holds others up for
//! [`LOCK_TTL`] at most.

use std::time::{Duration, Instant};

use super::Web;
use super::failure::from_kv;
use crate::http::{ApiError, ErrorCode};
use crate::ports::Kv;

/// How long a lock is taken for.
const LOCK_TTL: Duration = Duration::from_secs(20);
/// The last part of it, in which no write may start.
const LOCK_MARGIN: Duration = Duration::from_secs(5);
/// The longest that another's lock is waited for: longer than a dead holder's lasts.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(25);
/// Between two tries.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

const _: () = assert!(LOCK_TTL.as_secs() < LOCK_WAIT_MAX.as_secs() && LOCK_MARGIN.as_secs() < LOCK_TTL.as_secs());

/// A lock, given back when dropped.
pub struct Exclusive<'a> {
    kv: &'a dyn Kv,
    name: String,
    token: String,
    until: Instant,
}

impl Web {
    /// Waits for the lock on `name`.
    ///
    /// # Errors
    /// `kv_unavailable`; `overloaded` if others hold it for too long.
    pub fn exclusive(&self, name: String) -> Result<Exclusive<'_>, ApiError> {
        let token = uuid::Uuid::new_v4().to_string();
        let start = Instant::now();
        let mut pause = PAUSE_MIN;
        loop {
            // The lock's time runs from before it is asked for.
            let until = Instant::now() + (LOCK_TTL - LOCK_MARGIN);
            if self.kv.try_lock(&name, &token, LOCK_TTL).map_err(from_kv)? {
                return Ok(Exclusive { kv: &*self.kv, name, token, until });
            }
            if start.elapsed() > LOCK_WAIT_MAX {
                return Err(ApiError::caused(ErrorCode::Overloaded, format!("the lock on `{name}` is held too long")));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

impl Exclusive<'_> {
    /// Asked just before a write.
    ///
    /// # Errors
    /// `overloaded` if the lock may run out before it is done.
    pub fn check(&self) -> Result<(), ApiError> {
        if Instant::now() < self.until {
            return Ok(());
        }
        Err(ApiError::caused(ErrorCode::Overloaded, format!("the lock on `{}` lasted too short", self.name)))
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        // It runs out by itself.
        if let Err(error) = self.kv.unlock(&self.name, &self.token) {
            tracing::debug!(%error, name = self.name, "a lock could not be given back");
        }
    }
}
