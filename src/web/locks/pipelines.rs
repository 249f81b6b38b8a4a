//! Run locks of pipelines, held while one is created, renamed or deleted.
//!
//! Invariant: no run of these pipelines is active meanwhile, and each write carries its lock's lease, so that a process
//! that was suspended for too long writes nothing more. A thread renews the locks until the work ends.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use super::{Guard, Lock, Locks};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::pipelines::lease::{Moment, RunLease};
use crate::ports::jobs::{PipelineLock, ReleaseOutcome};
use crate::ports::store::{Lease, Precondition, WriteOptions};
use crate::web::failure::{from_kv, from_store};

/// Renewals per time to live, so that one may fail.
const RENEWALS_PER_TTL: u32 = 3;
/// Longest pause after a failed renewal.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A pipeline whose run lock is held.
pub struct LockedPipeline {
    hold: PipelineLock,
    lease: RunLease,
}

impl LockedPipeline {
    pub fn slug(&self) -> &Slug {
        &self.hold.pipeline
    }

    pub fn lease(&self) -> &dyn Lease {
        &self.lease
    }

    /// For all writes to this pipeline.
    pub fn options(&self) -> WriteOptions<'_> {
        WriteOptions::leased(&self.lease)
    }

    /// [`LockedPipeline::options`] for an object that must not exist yet.
    pub fn create(&self) -> WriteOptions<'_> {
        self.options().with(Precondition::IfNoneMatch)
    }

    /// Checks the lock before a step that carries no lease.
    ///
    /// # Errors
    /// `pipeline_busy` if the lock is lost.
    pub fn check(&self) -> Result<(), ApiError> {
        self.lease.remaining().map(drop).map_err(|_| busy(self.slug()))
    }
}

fn busy(slug: &Slug) -> ApiError {
    let message = format!("the pipeline `{slug}` has a run in progress, or is being renamed or deleted");
    ApiError::new(ErrorCode::PipelineBusy, message)
}

impl Locks {
    /// Runs `work` with the locks on `slugs`, in the order of `slugs`.
    ///
    /// # Errors
    /// `pipeline_busy` if a lock is held elsewhere; the errors of `work`.
    pub fn with_pipeline_locks<T>(
        &self,
        slugs: &[&Slug],
        work: impl FnOnce(&[LockedPipeline]) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let (mut guards, mut locked) = (Vec::new(), Vec::new());
        // All callers lock in one order, so that no two deadlock.
        let mut sorted = slugs.to_vec();
        sorted.sort_unstable();
        for slug in sorted {
            let (guard, pipeline) = self.lock_pipeline(slug)?;
            guards.push(guard);
            locked.push(pipeline);
        }
        locked.sort_by_key(|pipeline| slugs.iter().position(|slug| *slug == pipeline.slug()));
        let locked = &locked;
        std::thread::scope(|scope| {
            // Dropped when the work ends, by a panic too; then the renewing thread ends.
            let (ended, has_ended) = bounded::<()>(0);
            std::thread::Builder::new()
                .name("lock-renewal".into())
                .spawn_scoped(scope, move || self.renew(locked, &has_ended))
                .map_err(|error| ApiError::caused(ErrorCode::Overloaded, error))?;
            let done = work(locked);
            drop(ended);
            done
        })
    }

    fn lock_pipeline(&self, slug: &Slug) -> Result<(Guard<'_>, LockedPipeline), ApiError> {
        let fence_floor = self.store.highest_fence(slug).map_err(from_store)?;
        let since = Moment::now(&*self.clock);
        let hold = self
            .pipelines
            .lock_pipeline(slug, self.pipeline_ttl, fence_floor)
            .map_err(from_kv)?
            .ok_or_else(|| busy(slug))?;
        let lease = RunLease::new(slug.clone(), hold.fence, self.pipeline_ttl, Arc::clone(&self.clock), since);
        Ok((self.guard(Lock::Pipeline(hold.clone())), LockedPipeline { hold, lease }))
    }

    /// Renews locks until the work ends. A lost lock stays lost: its lease fails all later writes.
    fn renew(&self, locked: &[LockedPipeline], has_ended: &Receiver<()>) {
        let period = self.pipeline_ttl / RENEWALS_PER_TTL;
        let mut pause = period;
        while has_ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = period;
            for LockedPipeline { hold, lease } in locked {
                let since = Moment::now(&*self.clock);
                let pipeline = hold.pipeline.as_str();
                match self.pipelines.renew(hold, self.pipeline_ttl) {
                    Ok(ReleaseOutcome::Released) => lease.renewed(since),
                    Ok(ReleaseOutcome::Lost) => {
                        tracing::warn!(pipeline, "pipeline lock lost; no further writes");
                        lease.lose();
                    }
                    Err(error) => {
                        tracing::warn!(pipeline, %error, "renewing pipeline lock failed; retrying");
                        pause = period.min(RETRY_PAUSE_MAX);
                    }
                }
            }
        }
    }
}
