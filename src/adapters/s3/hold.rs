//! How a precondition is held: by the store, or by a lock and a look where the store ignores it.
//!
//! The stand-in keeps our own conditional writers apart; a writer that sets no condition, or is no Lakemill, can still
//! come between its look and its write.

use std::io;
use std::time::{Duration, Instant};

use crate::ports::kv::KeyLocks;
use crate::ports::store::{Bucket, Precondition, StoreResult};

use super::S3Store;
use super::error::Place;

/// How long a lock on a key is taken for. What is done under it is one HEAD and one small request.
const LOCK_TTL: Duration = Duration::from_secs(30);
/// The last part of a lock in which no write may start.
const LOCK_MARGIN: Duration = Duration::from_secs(5);
/// The longest that another's lock is waited for: longer than a dead holder's lasts.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(60);
/// Between two tries to take a lock.
const LOCK_PAUSE_MIN: Duration = Duration::from_millis(5);
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(200);

const _: () = assert!(LOCK_TTL.as_secs() < LOCK_WAIT_MAX.as_secs());
const _: () = assert!(LOCK_MARGIN.as_secs() < LOCK_TTL.as_secs());

/// The request that takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Put,
    Complete,
}

/// Who holds a precondition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// There is none.
    Nobody,
    Store,
    /// [`S3Store::stand_in`] does, just before the step.
    StandIn,
}

/// While it lives, the key is ours if the store has locks.
pub(super) struct Held<'a> {
    lock: Option<(&'a dyn KeyLocks, String, String)>,
    /// No write may start later.
    pub(super) until: Option<Instant>,
}

impl S3Store {
    pub(super) fn holder(&self, bucket: Bucket, when: &Precondition, step: Step) -> StoreResult<Holder> {
        match when {
            Precondition::None => Ok(Holder::Nobody),
            Precondition::IfMatch(_) | Precondition::IfAbsent => {
                let known = self.conditions(bucket)?;
                let holds = match step {
                    Step::Put => known.put,
                    Step::Complete => known.complete,
                };
                Ok(if holds { Holder::Store } else { Holder::StandIn })
            }
        }
    }

    /// Takes the lock on the key, and compares what is there.
    pub(super) fn stand_in(&self, place: &Place<'_>, when: &Precondition) -> StoreResult<Held<'_>> {
        let held = match &self.client.options.locks {
            Some(locks) => lock(&**locks, place)?,
            None => Held { lock: None, until: None },
        };
        let found = self.look(place.bucket, place.key)?;
        let holds = match when {
            Precondition::None => true,
            Precondition::IfAbsent => found.is_none(),
            Precondition::IfMatch(tag) => found.is_some_and(|found| found.meta.etag.as_ref() == Some(tag)),
        };
        if holds { Ok(held) } else { Err(place.precondition_failed()) }
    }
}

fn lock<'a>(locks: &'a dyn KeyLocks, place: &Place<'_>) -> StoreResult<Held<'a>> {
    let (name, token) = (format!("{}/{}", place.name, place.key), uuid::Uuid::new_v4().to_string());
    let start = Instant::now();
    let mut pause = LOCK_PAUSE_MIN;
    loop {
        // The lock's time runs from before it is asked for.
        let asked = Instant::now();
        match locks.try_lock(&name, &token, LOCK_TTL) {
            Ok(true) => {
                let until = Some(asked + (LOCK_TTL - LOCK_MARGIN));
                return Ok(Held { lock: Some((locks, name, token)), until });
            }
            Ok(false) if start.elapsed() < LOCK_WAIT_MAX => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LOCK_PAUSE_MAX);
            }
            Ok(false) => {
                let text = format!("timed out waiting for the lock on the key (after {LOCK_WAIT_MAX:?})");
                return Err(place.transient(io::Error::new(io::ErrorKind::TimedOut, text)));
            }
            Err(error) => return Err(place.transient(io::Error::other(error))),
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some((locks, name, token)) = &self.lock {
            // It runs out by itself.
            if let Err(error) = locks.unlock(name, token) {
                tracing::debug!(%error, "a lock on a key could not be given back");
            }
        }
    }
}
