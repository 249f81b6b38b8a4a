//! A pipeline's run lock, held by a command.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use super::services::Services;
use crate::domain::name::Slug;
use crate::pipelines::lease::{Moment, RunLease};
use crate::ports::jobs::{PipelineLock, ReleaseOutcome};
use crate::ports::store::Lease;

const TTL: Duration = Duration::from_secs(60);
/// Renewals per TTL, so that one may fail.
const RENEWALS_PER_TTL: u32 = 4;

/// Runs `work` with the lock of a pipeline, so that no run is in progress. `work` writes with the lease, which a thread
/// renews.
///
/// # Errors
/// The lock is held, or the key-value store failed; those of `work`.
pub fn with_pipeline_lock<T>(
    services: &Services,
    slug: &Slug,
    work: impl FnOnce(&dyn Lease) -> Result<T, String>,
) -> Result<T, String> {
    let fence_floor = services.store.highest_fence(slug).map_err(|error| error.to_string())?;
    let since = Moment::now(&*services.clock);
    let lock = services.kv.lock_pipeline(slug, TTL, fence_floor).map_err(|error| error.to_string())?;
    let lock = lock.ok_or_else(|| {
        format!("the pipeline `{slug}` has a run in progress, or is being renamed or deleted; try again later")
    })?;
    let lease = RunLease::new(slug.clone(), lock.fence, TTL, Arc::clone(&services.clock), since);
    let (held, renewed) = (&lock, &lease);
    let done = thread::scope(|scope| {
        let (ended, has_ended) = bounded::<()>(0);
        let renewal = thread::Builder::new().name("lock-renewal".into());
        let renewal = renewal.spawn_scoped(scope, move || renew(services, held, renewed, &has_ended));
        renewal.map_err(|error| format!("starting a thread: {error}"))?;
        let done = work(&lease);
        drop(ended);
        done
    });
    match services.kv.release(&lock) {
        Ok(ReleaseOutcome::Released | ReleaseOutcome::Lost) => {}
        Err(error) => tracing::warn!(pipeline = slug.as_str(), %error, "lock not released; it expires"),
    }
    done
}

/// Renews the lock until the work ends. A lost lock stays lost: its lease fails all later writes.
fn renew(services: &Services, lock: &PipelineLock, lease: &RunLease, has_ended: &Receiver<()>) {
    while has_ended.recv_timeout(TTL / RENEWALS_PER_TTL) == Err(RecvTimeoutError::Timeout) {
        let since = Moment::now(&*services.clock);
        match services.kv.renew(lock, TTL) {
            Ok(ReleaseOutcome::Released) => lease.renewed(since),
            Ok(ReleaseOutcome::Lost) => lease.lose(),
            Err(error) => tracing::warn!(%error, "renewing the pipeline lock failed; retrying"),
        }
    }
}
