//! Lost jobs are requeued, and a store that lost its data is not initialized.

use std::collections::BTreeSet;

use lakemill::ports::jobs::ClaimLimits;
use lakemill::ports::schedule::Cursor;

use super::{Fixture, IDLE, IMMEDIATELY, TTL, message, running, seconds};

/// Checks all active jobs; returns how many were requeued.
fn restore(f: &Fixture) -> usize {
    let (mut cursor, mut all) = (Cursor::default(), 0);
    for _ in 0..1_000 {
        let (restored, next) = f.kv.requeue_lost(&cursor).unwrap();
        all += restored;
        match next {
            Some(next) => cursor = next,
            None => return all,
        }
    }
    panic!("the walk has no end");
}

pub fn nothing_is_requeued_while_nothing_is_lost(f: &Fixture) {
    assert_eq!(restore(f), 0, "in an empty store");
    let (_, start) = f.run("a", "one");
    f.requeue(&start.lease, seconds(300));
    f.run("a", "two");
    f.defer("two");
    f.enqueue("three");
    f.claim("a");
    f.enqueue("four");
    let (_, ended) = {
        f.claim("b");
        f.run("a", "five")
    };
    f.end(&ended.lease);
    let before = f.kv.counts().unwrap();
    assert_eq!(restore(f), 0);
    assert_eq!(f.kv.counts().unwrap(), before);
}

pub fn jobs_with_lost_entries_are_requeued(f: &Fixture) {
    let mut jobs: BTreeSet<_> = (0..30).map(|n| f.enqueue(&format!("p{n}")).job_id).collect();
    assert_eq!(f.kv.claim("a", ClaimLimits::any(10), IMMEDIATELY).unwrap().len(), 10);
    f.backend.trim_stream();
    f.advance(IDLE + seconds(5));
    assert_eq!(f.kv.reclaim("b", 100, IDLE).unwrap(), []);
    assert_eq!(restore(f), 30);
    assert_eq!(restore(f), 0, "they are there now");
    assert_eq!(f.places(), (30, 0, 0));
    for entry in f.kv.claim("b", ClaimLimits::any(100), IMMEDIATELY).unwrap() {
        assert!(jobs.remove(&message(&entry).job_id));
        let start = running(f.start("b", &entry));
        assert_eq!((start.attempt, start.lost_starts), (1, 0));
        f.end(&start.lease);
    }
    assert!(jobs.is_empty());
}

pub fn crashed_job_with_lost_entry_is_requeued(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.backend.trim_stream();
    f.advance(IDLE + seconds(5));
    f.is_lost(&start.lease);
    f.kv.reclaim("b", 10, IDLE).unwrap();
    assert_eq!(restore(f), 1);
    let again = f.run_next("b");
    assert_eq!((&again.lease.job_id, again.attempt, again.lost_starts), (&job.job_id, 2, 1));
}

pub fn running_job_with_lost_entry_finishes(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.backend.trim_stream();
    assert!(matches!(f.kv.heartbeat(&start.lease, TTL).unwrap(), lakemill::ports::jobs::HeartbeatReply::Held { .. }));
    f.end(&start.lease);
    assert!(f.shown(&job).unwrap().status.is_terminal());
    assert_eq!(restore(f), 0);
    assert_eq!(f.places(), (0, 0, 0));
}

pub fn scan_for_lost_jobs_covers_many_jobs(f: &Fixture) {
    for n in 0..350 {
        let mut job = f.job(&format!("p{}", n % 7));
        job.enqueued_at = f.now();
        f.kv.enqueue(&job).unwrap();
    }
    f.backend.trim_stream();
    assert_eq!(restore(f), 350);
    assert_eq!(f.places(), (350, 0, 0));
}

pub fn new_store_is_not_initialized_until_marked(f: &Fixture) {
    let other = f.open();
    assert!(!f.kv.is_initialized().unwrap());
    f.claims_nothing();
    assert!(!f.kv.is_initialized().unwrap(), "claiming tells it nothing");
    f.kv.mark_initialized().unwrap();
    f.kv.mark_initialized().unwrap();
    assert!(f.kv.is_initialized().unwrap() && other.is_initialized().unwrap() && f.open().is_initialized().unwrap());
    f.enqueue("trips");
    f.claim("a");
    assert!(f.kv.is_initialized().unwrap());
}

pub fn store_that_lost_its_data_is_not_initialized_and_works(f: &Fixture) {
    let other = f.open();
    f.kv.mark_initialized().unwrap();
    let (old, start) = f.run("a", "trips");
    f.enqueue("queued");
    f.backend.lose_data();
    assert!(!f.kv.is_initialized().unwrap() && !other.is_initialized().unwrap());
    f.claims_nothing();
    assert_eq!(other.claim("a", ClaimLimits::any(1), IMMEDIATELY).unwrap(), []);
    f.is_lost(&start.lease);
    assert_eq!(f.shown(&old), None);
    assert!(!f.kv.is_initialized().unwrap());
    other.mark_initialized().unwrap();
    assert!(f.kv.is_initialized().unwrap());
    let (job, start) = f.run("b", "trips");
    assert_eq!(other.job(&job.pipeline, &job.job_id).unwrap().map(|job| job.attempt), Some(1));
    f.end(&start.lease);
    assert_eq!(f.places(), (0, 0, 0));
}
