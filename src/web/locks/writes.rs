//! The lock of a small write to a pipeline's own objects: its config, a dashboard, a saved query.
//!
//! An operation on the whole pipeline (create, rename, delete) holds the run lock. A concurrent write could be lost,
//! made under the old name after that was copied, or leave half a pipeline behind. So a write holds the run lock for a
//! moment if it is free. If a run holds it, the write needs no lock: no such operation can start during the run, and a
//! run reads its config once, at its start. Otherwise the write waits, and is refused after a while. A pipeline that an
//! interrupted operation left unfinished takes no writes until the operation is repeated.

use std::time::Duration;

use super::{Guard, Lock, Locks, wait_for};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::ports::jobs::{LockHolder, ReleaseOutcome};
use crate::ports::store::Bucket;
use crate::web::failure::{from_kv, from_store, pipeline_not_found};
use crate::web::pipelines::refuse_unfinished;

/// Time to live of the lock: longer than a small write takes, retries included.
const TTL: Duration = Duration::from_secs(30);
/// Longest wait for an operation on the pipeline, and for other writes.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Keeps operations on the whole pipeline from starting.
enum WriteLock<'a> {
    Acquired(Guard<'a>),
    /// The lock of a run, with its token.
    Run(String),
}

impl Locks {
    /// Runs `write`, one small write of the object `key` in the pipelines bucket. `check` runs before each attempt to
    /// acquire the lock, so that a request that has failed already doesn't wait.
    ///
    /// # Errors
    /// `pipeline_busy` if the pipeline is being created, renamed or deleted, or was left unfinished; the errors of
    /// `check` and `write`; `kv_unavailable`, `s3_error`.
    pub fn with_write_lock<T>(
        &self,
        slug: &Slug,
        key: &str,
        check: impl Fn() -> Result<(), ApiError>,
        write: impl FnOnce() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let lock = wait_for(WAIT_MAX, || {
            check()?;
            self.try_write_lock(slug)
        })?;
        let lock = lock.ok_or_else(|| busy(slug))?;
        refuse_unfinished(&self.store, slug)?;
        let written = write()?;
        // If the lock was lost, the object may have been written under a name that the pipeline no longer has.
        if self.end(lock, slug)? || self.is_present(slug, key)? { Ok(written) } else { Err(busy(slug)) }
    }

    /// [`Locks::with_write_lock`] for an object that only an existing pipeline can have.
    ///
    /// # Errors
    /// `pipeline_not_found`, and those of [`Locks::with_write_lock`].
    pub fn with_write_lock_of_existing<T>(
        &self,
        slug: &Slug,
        key: &str,
        write: impl FnOnce() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let write = || if self.store.exists(slug)? { write() } else { Err(pipeline_not_found(slug)) };
        self.with_write_lock(slug, key, || Ok(()), write)
    }

    /// `None` if an operation on the whole pipeline, or another write, holds the run lock.
    fn try_write_lock(&self, slug: &Slug) -> Result<Option<WriteLock<'_>>, ApiError> {
        let fence_floor = self.store.highest_fence(slug).map_err(from_store)?;
        match self.pipelines.lock_pipeline(slug, TTL, fence_floor).map_err(from_kv)? {
            Some(hold) => Ok(Some(WriteLock::Acquired(self.guard(Lock::Pipeline(hold))))),
            None => Ok(self.running(slug)?.map(WriteLock::Run)),
        }
    }

    /// Releases the lock; whether it was held until now.
    fn end(&self, lock: WriteLock<'_>, slug: &Slug) -> Result<bool, ApiError> {
        match lock {
            WriteLock::Acquired(mut guard) => Ok(guard.release().map_err(from_kv)? == ReleaseOutcome::Released),
            WriteLock::Run(token) => Ok(self.running(slug)?.as_ref() == Some(&token)),
        }
    }

    /// The token of the run that holds the lock. A job's state is not sufficient: it may be `running` after its lock
    /// has expired.
    fn running(&self, slug: &Slug) -> Result<Option<String>, ApiError> {
        match self.pipelines.lock_holder(slug).map_err(from_kv)? {
            Some(LockHolder::Run { token }) => Ok(Some(token)),
            Some(LockHolder::Other) | None => Ok(None),
        }
    }

    /// Whether an object is present although the lock under which it was written was lost.
    fn is_present(&self, slug: &Slug, key: &str) -> Result<bool, ApiError> {
        match self.try_write_lock(slug)? {
            Some(_lock) => Ok(self.store.head(Bucket::Pipelines, key).map_err(from_store)?.is_some()),
            None => Ok(false),
        }
    }
}

fn busy(slug: &Slug) -> ApiError {
    let message = format!("the pipeline `{slug}` is being renamed or deleted; retry in a moment");
    ApiError::new(ErrorCode::PipelineBusy, message)
}
