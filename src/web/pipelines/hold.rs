//! The run locks of pipelines while somebody makes, moves or deletes them.
//!
//! Invariant: while the work is on no run of these pipelines is; a write of the work carries the lease of its lock, so
//! that a process that was asleep for too long writes nothing any more.
//! A thread renews the locks as long as the work lasts; they are released when it is over, whatever it came to. A process
//! that is killed leaves them to end by themselves, after `JOB_LOCK_TTL_MS`.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::pipelines::lease::{Moment, RunLease};
use crate::ports::jobs::{PipelineLock, ReleaseOutcome};
use crate::ports::store::{Lease, Precondition, WriteOptions};
use crate::web::Web;
use crate::web::failure::{from_kv, from_store};

/// A lock is renewed this many times in its life, so that one try may fail.
const RENEWALS_PER_TTL: u32 = 3;
/// Pause after a renewal that failed, at most.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The lock on one pipeline.
pub(super) struct Held {
    hold: PipelineLock,
    lease: RunLease,
}

impl Held {
    pub(super) fn slug(&self) -> &Slug {
        &self.hold.pipeline
    }

    /// How whatever is written for this pipeline is guarded.
    pub(super) fn options(&self) -> WriteOptions<'_> {
        WriteOptions::leased(&self.lease)
    }

    /// [`Held::options`] for an object that isn't there yet.
    pub(super) fn create(&self) -> WriteOptions<'_> {
        self.options().with(Precondition::IfNoneMatch)
    }

    /// Asked before a step that no store checks.
    ///
    /// # Errors
    /// `pipeline_busy` if the lock is lost.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        self.lease.remaining().map(drop).map_err(|_| busy(self.slug()))
    }
}

fn busy(slug: &Slug) -> ApiError {
    ApiError::new(ErrorCode::PipelineBusy, format!("a run of `{slug}` is on, or it is being moved or deleted"))
}

/// The locks that are held; released when dropped.
struct Locks<'a> {
    web: &'a Web,
    held: Vec<Held>,
}

impl Locks<'_> {
    fn take(&mut self, slug: &Slug) -> Result<(), ApiError> {
        let web = self.web;
        let fence_floor = web.store.highest_fence(slug).map_err(from_store)?;
        let since = Moment::now(&*web.clock);
        let hold = web.kv.lock_pipeline(slug, web.lock_ttl, fence_floor).map_err(from_kv)?.ok_or_else(|| busy(slug))?;
        let lease = RunLease::new(slug.clone(), hold.fence, web.lock_ttl, Arc::clone(&web.clock), since);
        self.held.push(Held { hold, lease });
        Ok(())
    }
}

impl Drop for Locks<'_> {
    fn drop(&mut self) {
        for Held { hold, .. } in self.held.drain(..) {
            match self.web.kv.release(&hold) {
                Ok(ReleaseOutcome::Released | ReleaseOutcome::Lost) => {}
                Err(error) => {
                    tracing::warn!(pipeline = %hold.pipeline, %error, "the lock could not be released; it ends by itself");
                }
            }
        }
    }
}

/// Does `work` with the locks on `slugs` held, in their order.
///
/// # Errors
/// `pipeline_busy` if a lock is someone else's; what `work` says.
pub(super) fn holding<T>(
    web: &Web,
    slugs: &[&Slug],
    work: impl FnOnce(&[Held]) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let mut locks = Locks { web, held: Vec::with_capacity(slugs.len()) };
    // In one order for all, so that no two wait for each other's second lock.
    let mut sorted = slugs.to_vec();
    sorted.sort_unstable();
    for slug in sorted {
        locks.take(slug)?;
    }
    locks.held.sort_by_key(|held| slugs.iter().position(|slug| *slug == held.slug()));
    let held = &locks.held;
    std::thread::scope(|scope| {
        // Dropped when the work is over, also by a panic: the keeper ends.
        let (over, bell) = bounded::<()>(0);
        std::thread::Builder::new()
            .name("lock-keeper".into())
            .spawn_scoped(scope, move || keep(web, held, &bell))
            .map_err(|error| ApiError::caused(ErrorCode::Overloaded, error))?;
        let done = work(held);
        drop(over);
        done
    })
}

/// Renews the locks until the work is over. A lock that is lost stays lost: its lease says so to every later write.
fn keep(web: &Web, held: &[Held], bell: &Receiver<()>) {
    let every = web.lock_ttl / RENEWALS_PER_TTL;
    let mut wait = every;
    while bell.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = every;
        for Held { hold, lease } in held {
            let since = Moment::now(&*web.clock);
            let pipeline = hold.pipeline.as_str();
            match web.kv.renew(hold, web.lock_ttl) {
                Ok(ReleaseOutcome::Released) => lease.renewed(since),
                Ok(ReleaseOutcome::Lost) => {
                    tracing::warn!(pipeline, "the lock is over or someone else's; nothing more is written");
                    lease.lose();
                }
                Err(error) => {
                    tracing::warn!(pipeline, %error, "a lock could not be renewed; trying again");
                    wait = every.min(PAUSE_MAX);
                }
            }
        }
    }
}
