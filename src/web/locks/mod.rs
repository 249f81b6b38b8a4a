//! Locks that hold across all processes of an installation.
//!
//! - [`Locks::named`]: serialises work that the store's preconditions can't, such as a rule over several objects.
//! - [`Locks::with_write_lock`]: keeps a small write to a pipeline's own objects apart from operations on the whole
//!   pipeline.
//! - [`Locks::with_pipeline_locks`]: holds the run locks of pipelines while one is created, renamed or deleted.
//!
//! Invariant: no write made with a lock's [`WriteOptions`] starts after the lock may have expired. A process that dies
//! blocks others until its locks expire.

mod pipelines;
mod writes;

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

pub use pipelines::LockedPipeline;

use super::failure::{RETRY_AFTER, from_kv};
use super::stores::Objects;
use crate::http::{ApiError, ErrorCode};
use crate::ports::jobs::{PipelineLock, PipelineLocks, ReleaseOutcome};
use crate::ports::kv::{KeyLocks, KvError};
use crate::ports::store::WriteOptions;
use crate::runtime::Clock;
use crate::sync::{Backoff, Semaphore};

/// Time to live of a named lock.
const NAMED_TTL: Duration = Duration::from_secs(20);
/// The last part of that time, in which no write may start.
const NAMED_MARGIN: Duration = Duration::from_secs(5);
/// Longest wait for a named lock: longer than a dead holder's lock lives.
const NAMED_WAIT_MAX: Duration = Duration::from_secs(25);
/// Requests of this process that wait for named locks: each occupies a handler.
const WAITERS_MAX: usize = 8;
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

const _: () = assert!(NAMED_TTL.as_secs() < NAMED_WAIT_MAX.as_secs() && NAMED_MARGIN.as_secs() < NAMED_TTL.as_secs());

static WAITERS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(WAITERS_MAX));

/// Locks that hold across all processes; see the module's documentation.
pub struct Locks {
    store: Objects,
    names: Arc<dyn KeyLocks>,
    pipelines: Arc<dyn PipelineLocks>,
    clock: Arc<dyn Clock>,
    /// Time to live of pipeline locks.
    pipeline_ttl: Duration,
}

/// A lock in the key-value store, released when dropped.
struct Guard<'a> {
    locks: &'a Locks,
    lock: Lock,
    released: bool,
}

enum Lock {
    Named { name: String, token: String },
    Pipeline(PipelineLock),
}

/// A held named lock.
pub struct NamedLock<'a> {
    _guard: Guard<'a>,
    until: Instant,
}

impl Locks {
    pub fn new(
        store: Objects,
        names: Arc<dyn KeyLocks>,
        pipelines: Arc<dyn PipelineLocks>,
        clock: Arc<dyn Clock>,
        pipeline_ttl: Duration,
    ) -> Self {
        Self { store, names, pipelines, clock, pipeline_ttl }
    }

    /// Waits for the lock on `name`.
    ///
    /// # Errors
    /// `kv_unavailable`; `overloaded` if the wait takes too long, or too many requests wait.
    pub fn named(&self, name: &str) -> Result<NamedLock<'_>, ApiError> {
        self.named_unless_contended(name)?.ok_or_else(|| {
            let cause = format!("lock `{name}` is held and {WAITERS_MAX} requests already wait for locks");
            ApiError::caused(ErrorCode::Overloaded, cause).with_retry_after(RETRY_AFTER)
        })
    }

    /// Like [`Locks::named`]; `None` if the lock is held and too many requests wait for locks.
    ///
    /// # Errors
    /// `kv_unavailable`; `overloaded` if the wait takes too long.
    pub fn named_unless_contended(&self, name: &str) -> Result<Option<NamedLock<'_>>, ApiError> {
        let token = uuid::Uuid::new_v4().to_string();
        let mut waiting = None;
        let outcome = wait_for(NAMED_WAIT_MAX, || {
            if let Some(lock) = self.try_named(name, &token)? {
                return Ok(Some(Some(lock)));
            }
            waiting = waiting.take().or_else(|| WAITERS.try_acquire());
            Ok(if waiting.is_none() { Some(None) } else { None })
        })?;
        outcome.ok_or_else(|| ApiError::caused(ErrorCode::Overloaded, format!("timed out waiting for lock `{name}`")))
    }

    fn try_named(&self, name: &str, token: &str) -> Result<Option<NamedLock<'_>>, ApiError> {
        // Counted from before the request: the lock can't expire earlier.
        let until = Instant::now() + (NAMED_TTL - NAMED_MARGIN);
        let acquired = self.names.try_lock(name, token, NAMED_TTL).map_err(from_kv)?;
        let lock = || Lock::Named { name: name.to_owned(), token: token.to_owned() };
        Ok(acquired.then(|| NamedLock { _guard: self.guard(lock()), until }))
    }

    fn guard(&self, lock: Lock) -> Guard<'_> {
        Guard { locks: self, lock, released: false }
    }
}

impl NamedLock<'_> {
    /// For all writes that the lock serialises: none starts after it may have expired.
    pub fn options(&self) -> WriteOptions<'static> {
        WriteOptions::default().deadline(self.until)
    }
}

impl Guard<'_> {
    fn release(&mut self) -> Result<ReleaseOutcome, KvError> {
        self.released = true;
        match &self.lock {
            Lock::Named { name, token } => self.locks.names.unlock(name, token).map(|()| ReleaseOutcome::Released),
            Lock::Pipeline(hold) => self.locks.pipelines.release(hold),
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        if let Err(error) = self.release() {
            let name = match &self.lock {
                Lock::Named { name, .. } => name,
                Lock::Pipeline(hold) => hold.pipeline.as_str(),
            };
            tracing::warn!(name, %error, "releasing lock failed; it will expire");
        }
    }
}

/// Repeats `attempt` until it returns something; `None` after `wait_max`.
fn wait_for<T>(
    wait_max: Duration,
    mut attempt: impl FnMut() -> Result<Option<T>, ApiError>,
) -> Result<Option<T>, ApiError> {
    let until = Instant::now() + wait_max;
    let mut backoff = Backoff::new(PAUSE_MIN, PAUSE_MAX);
    loop {
        if let Some(found) = attempt()? {
            return Ok(Some(found));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        std::thread::sleep(backoff.next_pause());
    }
}
