//! Enforces preconditions of writes: by the store, or by a lock and a check where the store ignores them.
//!
//! The emulation keeps conditional writers of this program apart. A writer that sets no precondition, or another
//! program, can still write between its check and its write.

use std::io;
use std::time::{Duration, Instant};

use crate::ports::kv::KeyLocks;
use crate::ports::store::{Bucket, Precondition, StoreResult};
use crate::sync::Backoff;

use super::error::OperationContext;
use super::store::S3Store;

/// TTL of the lock on a key. One HEAD and one small request are sent under it.
const LOCK_TTL: Duration = Duration::from_secs(30);
/// Last part of a lock's TTL, in which no write may start.
const LOCK_MARGIN: Duration = Duration::from_secs(5);
/// Longest wait for another holder's lock: longer than the lock of a dead holder lasts.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(60);
const LOCK_PAUSE_MIN: Duration = Duration::from_millis(5);
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(200);

const _: () = assert!(LOCK_TTL.as_secs() < LOCK_WAIT_MAX.as_secs());
const _: () = assert!(LOCK_MARGIN.as_secs() < LOCK_TTL.as_secs());

/// The request that takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalRequest {
    Put,
    Complete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enforcement {
    /// There is no precondition.
    NotNeeded,
    /// The store enforces it.
    Native,
    /// [`S3Store::emulate_precondition`] enforces it.
    Emulated,
}

/// Holds the lock on a key, if the store was opened with locks.
pub(super) struct KeyLock<'a> {
    lock: Option<(&'a dyn KeyLocks, String, String)>,
    /// No write may start later.
    pub(super) deadline: Option<Instant>,
}

impl S3Store {
    pub(super) fn enforcement(
        &self,
        bucket: Bucket,
        precondition: &Precondition,
        request: FinalRequest,
    ) -> StoreResult<Enforcement> {
        if *precondition == Precondition::None {
            return Ok(Enforcement::NotNeeded);
        }
        let known = self.conditions(bucket)?;
        let native = match request {
            FinalRequest::Put => known.put,
            FinalRequest::Complete => known.complete,
        };
        Ok(if native { Enforcement::Native } else { Enforcement::Emulated })
    }

    /// Locks the key and checks the precondition, if it is to be emulated.
    pub(super) fn emulate_precondition(
        &self,
        enforcement: Enforcement,
        context: &OperationContext<'_>,
        precondition: &Precondition,
    ) -> StoreResult<KeyLock<'_>> {
        let locks = self.client.options.locks.as_ref().filter(|_| enforcement == Enforcement::Emulated);
        let lock = match locks {
            Some(locks) => acquire(&**locks, context)?,
            None => KeyLock { lock: None, deadline: None },
        };
        if enforcement != Enforcement::Emulated {
            return Ok(lock);
        }
        let found = self.head_object(context.bucket, context.key)?;
        let holds = match precondition {
            Precondition::None => true,
            Precondition::IfNoneMatch => found.is_none(),
            Precondition::IfMatch(tag) => found.is_some_and(|found| found.meta.etag.as_ref() == Some(tag)),
        };
        if holds { Ok(lock) } else { Err(context.precondition_failed()) }
    }
}

fn acquire<'a>(locks: &'a dyn KeyLocks, context: &OperationContext<'_>) -> StoreResult<KeyLock<'a>> {
    let (name, token) = (format!("{}/{}", context.name, context.key), uuid::Uuid::new_v4().to_string());
    let start = Instant::now();
    let mut backoff = Backoff::new(LOCK_PAUSE_MIN, LOCK_PAUSE_MAX);
    loop {
        // The TTL counts from before the request.
        let requested = Instant::now();
        match locks.try_lock(&name, &token, LOCK_TTL) {
            Ok(true) => {
                let deadline = Some(requested + (LOCK_TTL - LOCK_MARGIN));
                return Ok(KeyLock { lock: Some((locks, name, token)), deadline });
            }
            Ok(false) if start.elapsed() < LOCK_WAIT_MAX => std::thread::sleep(backoff.next_pause()),
            Ok(false) => {
                let text = format!("timed out waiting for the lock on the key (after {LOCK_WAIT_MAX:?})");
                return Err(context.transient(io::Error::new(io::ErrorKind::TimedOut, text)));
            }
            Err(error) => return Err(context.transient(io::Error::other(error))),
        }
    }
}

impl Drop for KeyLock<'_> {
    fn drop(&mut self) {
        if let Some((locks, name, token)) = &self.lock
            && let Err(error) = locks.unlock(name, token)
        {
            tracing::debug!(%error, "unlock failed; the lock expires");
        }
    }
}
