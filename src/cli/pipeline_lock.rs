//! A pipeline's run lock, held by a command: in the key-value store, or in the object store of `lakemill run`.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::serve::process_name;
use super::services::Services;
use crate::domain::name::Slug;
use crate::engine::run::LocalLease;
use crate::pipelines::lease::{Moment, RunLease};
use crate::pipelines::object_lock::{Acquired, LockRequest, ObjectLock, OtherRun};
use crate::ports::ObjectStore;
use crate::ports::jobs::ReleaseOutcome;
use crate::ports::store::{Lease, StoreError};
use crate::runtime::failpoint;

/// Interval of checks of another run's lock.
const LOCK_POLL: Duration = Duration::from_secs(2);
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
    let ttl = failpoint::millis("pipeline_lock::ttl_ms").unwrap_or(TTL);
    let lock = services.kv.lock_pipeline(slug, ttl, fence_floor).map_err(|error| error.to_string())?;
    let lock = lock.ok_or_else(|| {
        format!("the pipeline `{slug}` has a run in progress, or is being renamed or deleted; try again later")
    })?;
    let lease = RunLease::new(slug.clone(), lock.fence, ttl, Arc::clone(&services.clock), since);
    let renew = || {
        let since = Moment::now(&*services.clock);
        match services.kv.renew(&lock, ttl) {
            Ok(ReleaseOutcome::Released) => lease.renewed(since),
            Ok(ReleaseOutcome::Lost) => lease.lose(),
            Err(error) => tracing::warn!(%error, "renewing the pipeline lock failed; retrying"),
        }
    };
    let done = while_renewed(ttl, &renew, || work(&lease)).and_then(|done| done);
    match services.kv.release(&lock) {
        Ok(ReleaseOutcome::Released | ReleaseOutcome::Lost) => {}
        Err(error) => tracing::warn!(pipeline = slug.as_str(), %error, "lock not released; it expires"),
    }
    done
}

/// Reports the run that holds the lock, and decides whether to keep waiting.
pub type Waiting<'a> = &'a dyn Fn(&OtherRun) -> Result<(), String>;

/// Runs `work` with the lock of a pipeline in an object store, for a run without a key-value store. If another run holds
/// it, waits until that ends, renews it, or turns out to be dead; `waiting` is asked meanwhile.
///
/// # Errors
/// Another run is in progress, the store doesn't enforce conditional writes, or it failed; those of `work`.
pub fn with_object_lock<T>(
    store: &dyn ObjectStore,
    slug: &Slug,
    waiting: Waiting<'_>,
    work: impl FnOnce(&dyn Lease) -> Result<T, String>,
) -> Result<T, String> {
    let failed = |error: StoreError| error.to_string();
    if !store.capabilities().map_err(failed)?.conditional_writes {
        return Err(
            "the store does not enforce conditional writes (If-Match, If-None-Match), which keep two runs apart: \
                    run a worker, which has its locks in Redis, or write to a folder"
                .to_owned(),
        );
    }
    let clock = Services::clock();
    let ttl = failpoint::millis("run_lock::ttl_ms").unwrap_or(TTL);
    let fence_floor = LocalLease::next(store, slug, &*clock).map_err(|error| error.to_string())?.fence();
    let request = LockRequest { slug, ttl, fence_floor, holder: &process_name() };
    let mut first: Option<OtherRun> = None;
    let lock = loop {
        match ObjectLock::acquire(store, Arc::clone(&clock), &request).map_err(failed)? {
            Acquired::Held(lock) => break lock,
            Acquired::Busy(other) => {
                if first.as_ref().is_some_and(|first| other.is_newer_than(first)) {
                    let OtherRun { holder, since, .. } = other;
                    return Err(format!("it is being written by another run, of `{holder}` since {since}"));
                }
                waiting(&other)?;
                thread::sleep(other.expires_in.min(LOCK_POLL));
                first.get_or_insert(other);
            }
        }
    };
    let renew = || match lock.renew() {
        Ok(ReleaseOutcome::Released) => {}
        Ok(ReleaseOutcome::Lost) => tracing::warn!("output lock lost; no further writes"),
        Err(error) => tracing::warn!(%error, "renewing the lock of the output failed; retrying"),
    };
    let done = while_renewed(ttl, &renew, || work(lock.lease())).and_then(|done| done);
    if let Err(error) = lock.release() {
        tracing::warn!(%error, "lock of the output not released; it expires");
    }
    done
}

/// Calls `renew` several times in each `ttl` until `work` ends. A lost lock stays lost: its lease fails all later writes.
fn while_renewed<T>(ttl: Duration, renew: &(dyn Fn() + Sync), work: impl FnOnce() -> T) -> Result<T, String> {
    thread::scope(|scope| {
        let (ended, has_ended) = bounded::<()>(0);
        let renewal = thread::Builder::new().name("lock-renewal".into());
        let renewal = renewal.spawn_scoped(scope, move || {
            while has_ended.recv_timeout(ttl / RENEWALS_PER_TTL) == Err(RecvTimeoutError::Timeout) {
                renew();
            }
        });
        renewal.map_err(|error| format!("starting a thread: {error}"))?;
        let done = work();
        drop(ended);
        Ok(done)
    })
}
