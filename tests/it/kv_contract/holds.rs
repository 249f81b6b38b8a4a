//! The run lock of a pipeline, held for operations other than runs.

use std::time::Duration;

use lakemill::ports::jobs::{LockHolder, PipelineLock, ReleaseOutcome, StartOutcome};

use super::{Fixture, TTL, seconds, slug};

fn lock(f: &Fixture) -> Option<PipelineLock> {
    f.kv.lock_pipeline(&slug("trips"), TTL, 0).unwrap()
}

pub fn lock_excludes_other_locks_until_it_expires(f: &Fixture) {
    let lease = lock(f).unwrap();
    assert_eq!((lease.pipeline.as_str(), lock(f)), ("trips", None));
    let job = f.defer("trips");
    assert!(f.kv.lock_pipeline(&slug("other"), TTL, 0).unwrap().is_some(), "another pipeline's lock is free");
    assert_eq!(f.kv.release(&lease).unwrap(), ReleaseOutcome::Released);
    f.kv.release_due(10).unwrap();
    assert_eq!(f.run_next("a").lease.job_id, job.job_id);
}

pub fn run_excludes_pipeline_locks(f: &Fixture) {
    let (_, start) = f.run("a", "trips");
    assert_eq!(lock(f), None);
    f.end(&start.lease);
    assert!(lock(f).is_some());
}

pub fn lock_lasts_its_ttl_after_the_last_renewal(f: &Fixture) {
    let lease = lock(f).unwrap();
    for _ in 0..3 {
        f.advance(seconds(45));
        assert_eq!(f.kv.renew(&lease, TTL).unwrap(), ReleaseOutcome::Released);
    }
    assert_eq!(f.kv.renew(&lease, Duration::from_secs(20)).unwrap(), ReleaseOutcome::Released);
    f.advance(seconds(25));
    assert_eq!(f.kv.renew(&lease, TTL).unwrap(), ReleaseOutcome::Lost);
    assert_eq!(f.kv.release(&lease).unwrap(), ReleaseOutcome::Lost);
    assert!(lock(f).unwrap().fence > lease.fence);
}

pub fn lost_lock_changes_nothing(f: &Fixture) {
    let old = lock(f).unwrap();
    f.advance(TTL + seconds(5));
    let (_, start) = f.run("a", "trips");
    assert!(start.lease.fence > old.fence);
    assert_eq!(f.kv.renew(&old, TTL).unwrap(), ReleaseOutcome::Lost);
    assert_eq!(f.kv.release(&old).unwrap(), ReleaseOutcome::Lost);
    assert_eq!(lock(f), None, "the run has the lock as before");
    let anonymous = PipelineLock { token: "guessed".to_owned(), ..old };
    assert_eq!(f.kv.release(&anonymous).unwrap(), ReleaseOutcome::Lost);
    f.end(&start.lease);
}

pub fn lock_is_released_once(f: &Fixture) {
    let lease = lock(f).unwrap();
    assert_eq!(f.kv.release(&lease).unwrap(), ReleaseOutcome::Released);
    assert_eq!(f.kv.release(&lease).unwrap(), ReleaseOutcome::Lost);
    let again = lock(f).unwrap();
    assert_eq!(f.kv.release(&lease).unwrap(), ReleaseOutcome::Lost);
    assert_eq!(f.kv.release(&again).unwrap(), ReleaseOutcome::Released);
}

pub fn expired_lock_defers_nothing(f: &Fixture) {
    lock(f).unwrap();
    f.advance(TTL + seconds(5));
    f.enqueue("trips");
    let entry = f.claim("a");
    assert!(matches!(f.start("a", &entry), StartOutcome::Running(_)));
}

pub fn lock_holder_is_reported_until_expiry(f: &Fixture) {
    let holder = || f.kv.lock_holder(&slug("trips")).unwrap();
    assert_eq!(holder(), None);
    let lease = lock(f).unwrap();
    assert_eq!((holder(), f.kv.lock_holder(&slug("other")).unwrap()), (Some(LockHolder::Other), None));
    assert_eq!(f.kv.release(&lease).unwrap(), ReleaseOutcome::Released);
    let (_, first) = f.run("a", "trips");
    let of_first = holder();
    assert!(matches!(of_first, Some(LockHolder::Run { .. })), "{of_first:?}");
    assert_eq!(f.kv.renew(&lease, TTL).unwrap(), ReleaseOutcome::Lost);
    assert_eq!(holder(), of_first);
    f.advance(TTL + seconds(5));
    assert_eq!(holder(), None, "its job still shows as running");
    let (_, second) = f.run("b", "trips");
    let for_second = holder();
    assert!(matches!(for_second, Some(LockHolder::Run { .. })) && for_second != of_first, "{first:?}, {for_second:?}");
    f.end(&second.lease);
    assert_eq!(holder(), None);
}
