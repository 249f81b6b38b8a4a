//! One at a time, among all processes: for what a store's own preconditions can't keep apart, as a rule over several
//! objects.
//!
//! Invariant: the store starts no write of [`Exclusive::options`] once the lock may have run out, and one that has
//! started ends within it; a holder that dies holds others up for [`LOCK_TTL`] at most.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::Web;
use super::failure::from_kv;
use crate::http::{ApiError, ErrorCode};
use crate::ports::Kv;
use crate::ports::store::WriteOptions;
use crate::sync::Semaphore;

/// How long a lock is taken for.
const LOCK_TTL: Duration = Duration::from_secs(20);
/// The last part of it, in which no write may start.
const LOCK_MARGIN: Duration = Duration::from_secs(5);
/// The longest that another's lock is waited for: longer than a dead holder's lasts.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(25);
/// Requests of this process that wait for a lock: each takes a handler from all others.
const WAITERS_MAX: usize = 8;
/// When a client that found too many of them should come again.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// Between two tries.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

const _: () = assert!(LOCK_TTL.as_secs() < LOCK_WAIT_MAX.as_secs() && LOCK_MARGIN.as_secs() < LOCK_TTL.as_secs());

static WAITERS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(WAITERS_MAX));

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
    /// `kv_unavailable`; `overloaded` if others hold it for too long, or too many wait for locks.
    pub fn exclusive(&self, name: String) -> Result<Exclusive<'_>, ApiError> {
        let crowded = format!("{WAITERS_MAX} requests wait for locks already, and `{name}` is held");
        let lock = self.exclusive_or_crowded(name)?;
        lock.ok_or_else(|| ApiError::caused(ErrorCode::Overloaded, crowded).with_retry_after(RETRY_AFTER))
    }

    /// [`Web::exclusive`]; `None` if the lock is held and too many wait for locks.
    ///
    /// # Errors
    /// `kv_unavailable`; `overloaded` if others hold it for too long.
    pub fn exclusive_or_crowded(&self, name: String) -> Result<Option<Exclusive<'_>>, ApiError> {
        let token = uuid::Uuid::new_v4().to_string();
        if let Some(lock) = self.try_exclusive(&name, &token)? {
            return Ok(Some(lock));
        }
        let Some(_waiting) = WAITERS.try_acquire() else { return Ok(None) };
        let start = Instant::now();
        let mut pause = PAUSE_MIN;
        while start.elapsed() < LOCK_WAIT_MAX {
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
            if let Some(lock) = self.try_exclusive(&name, &token)? {
                return Ok(Some(lock));
            }
        }
        Err(ApiError::caused(ErrorCode::Overloaded, format!("the lock on `{name}` is held too long")))
    }

    fn try_exclusive(&self, name: &str, token: &str) -> Result<Option<Exclusive<'_>>, ApiError> {
        // The lock's time runs from before it is asked for.
        let until = Instant::now() + (LOCK_TTL - LOCK_MARGIN);
        let taken = self.kv.try_lock(name, token, LOCK_TTL).map_err(from_kv)?;
        let lock = || Exclusive { kv: &*self.kv, name: name.to_owned(), token: token.to_owned(), until };
        Ok(taken.then(lock))
    }
}

impl Exclusive<'_> {
    /// How everything is written that the lock keeps apart: not past its time.
    pub fn options(&self) -> WriteOptions<'static> {
        WriteOptions::default().deadline(self.until)
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
