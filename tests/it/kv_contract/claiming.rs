//! An entry goes to one consumer, and to another only after its idle time.

use std::collections::BTreeSet;
use std::time::Instant;

use lakemill::ports::jobs::{ClaimLimits, HeartbeatReply, StartOutcome};

use super::{Fixture, IDLE, IMMEDIATELY, TTL, message, running, seconds};

pub fn claimed_entry_has_all_message_fields(f: &Fixture) {
    let before = f.now();
    let job = f.enqueue("trips");
    let entry = f.claim("a");
    let expected: Vec<(String, String)> = job.message().fields().map(|(n, v)| (n.to_owned(), v)).into();
    assert_eq!(entry.fields, expected);
    assert_eq!(message(&entry).job_id, job.job_id);
    let apart = entry.received_at - before;
    assert!(apart.num_seconds().abs() < 60, "received {apart} after it was enqueued");
}

pub fn entry_is_claimed_by_one_consumer(f: &Fixture) {
    f.enqueue("trips");
    f.claim("a");
    assert_eq!(f.kv.claim("b", ClaimLimits::any(10), IMMEDIATELY).unwrap(), []);
    assert_eq!(f.open().claim("a", ClaimLimits::any(10), IMMEDIATELY).unwrap(), [], "not even to itself again");
    assert_eq!(f.places(), (1, 1, 0));
}

pub fn claim_respects_count_and_takes_oldest_first(f: &Fixture) {
    let jobs: Vec<_> = (0..5).map(|n| f.enqueue(&format!("p{n}")).job_id).collect();
    let mut claimed = Vec::new();
    for (count, expected) in [(2, 2), (2, 2), (9, 1), (9, 0)] {
        let entries = f.kv.claim("a", ClaimLimits::any(count), IMMEDIATELY).unwrap();
        assert_eq!(entries.len(), expected);
        claimed.extend(entries.iter().map(|entry| message(entry).job_id));
    }
    assert_eq!(claimed, jobs);
}

pub fn claim_without_entries_returns_after_its_wait(f: &Fixture) {
    let (began, wait) = (Instant::now(), std::time::Duration::from_millis(300));
    assert_eq!(f.kv.claim("a", ClaimLimits::any(1), wait).unwrap(), []);
    assert!(began.elapsed() >= wait, "it waited for {:?}", began.elapsed());
}

pub fn claim_wakes_when_another_handle_enqueues(f: &Fixture) {
    let (claimer, enqueuer) = (f.open(), f.open());
    // The consumer group exists, so the claim below blocks.
    f.claims_nothing();
    std::thread::scope(|scope| {
        let claimed = scope.spawn(|| claimer.claim("a", ClaimLimits::any(1), seconds(5)).unwrap());
        let job = f.job("trips");
        enqueuer.enqueue(&job).unwrap();
        let entries = claimed.join().unwrap();
        assert_eq!(entries.iter().map(|entry| message(entry).job_id).collect::<Vec<_>>(), [job.job_id]);
    });
}

pub fn claim_wakes_when_its_handle_releases_a_due_job(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.requeue(&start.lease, seconds(10));
    f.advance(seconds(12));
    std::thread::scope(|scope| {
        let claimed = scope.spawn(|| f.kv.claim("a", ClaimLimits::any(1), seconds(5)).unwrap());
        assert_eq!(f.kv.release_due(10).unwrap(), 1);
        let entries = claimed.join().unwrap();
        assert_eq!(entries.iter().map(|entry| message(entry).job_id).collect::<Vec<_>>(), [job.job_id]);
    });
}

pub fn only_idle_entries_are_reclaimed(f: &Fixture) {
    let job = f.enqueue("trips");
    f.enqueue("unclaimed");
    let entry = f.claim("a");
    assert_eq!(message(&entry).job_id, job.job_id);
    for _ in 0..2 {
        assert_eq!(f.kv.reclaim("b", 10, IDLE).unwrap(), []);
        f.advance(IDLE / 2 - seconds(5));
    }
    assert_eq!(f.kv.reclaim("b", 10, IDLE).unwrap(), []);
    f.advance(seconds(15));
    assert_eq!(f.reclaim("b"), entry, "the same entry, with all its content");
    assert_eq!(f.start("a", &entry), StartOutcome::NotClaimed);
    running(f.start("b", &entry));
}

pub fn reclaiming_resets_the_idle_time(f: &Fixture) {
    f.enqueue("trips");
    f.claim("a");
    f.advance(IDLE + seconds(5));
    f.reclaim("b");
    f.advance(IDLE / 2);
    assert_eq!(f.kv.reclaim("c", 10, IDLE).unwrap(), []);
    f.advance(IDLE / 2 + seconds(5));
    f.reclaim("c");
}

pub fn reclaim_respects_count(f: &Fixture) {
    for n in 0..5 {
        f.enqueue(&format!("p{n}"));
    }
    assert_eq!(f.kv.claim("a", ClaimLimits::any(10), IMMEDIATELY).unwrap().len(), 5);
    f.advance(IDLE + seconds(5));
    let mut seen = BTreeSet::new();
    for (consumer, expected) in [("b", 2), ("c", 2), ("b", 1), ("c", 0)] {
        let entries = f.kv.reclaim(consumer, 2, IDLE).unwrap();
        assert_eq!(entries.len(), expected);
        seen.extend(entries.into_iter().map(|entry| entry.id));
    }
    assert_eq!(seen.len(), 5);
}

pub fn heartbeats_prevent_reclaiming(f: &Fixture) {
    let (_, start) = f.run("a", "trips");
    for _ in 0..8 {
        f.advance(seconds(45));
        assert_eq!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
        assert_eq!(f.kv.reclaim("b", 10, IDLE).unwrap(), []);
    }
    f.end(&start.lease);
}

pub fn reclaiming_costs_no_attempt(f: &Fixture) {
    let job = f.enqueue("trips");
    f.claim("a");
    for consumer in ["b", "c", "d"] {
        f.advance(IDLE + seconds(5));
        f.reclaim(consumer);
    }
    assert_eq!(f.shown(&job).unwrap().attempt, 0);
    let start = f.take_over("e");
    assert_eq!((start.attempt, start.lost_starts), (1, 0));
}

pub fn reclaim_acknowledges_deleted_entries(f: &Fixture) {
    f.enqueue("lost");
    f.claim("a");
    f.backend.trim_stream();
    let kept = f.enqueue("kept");
    f.claim("a");
    f.advance(IDLE + seconds(5));
    let entries = f.kv.reclaim("b", 10, IDLE).unwrap();
    assert_eq!(entries.iter().map(|entry| message(entry).job_id).collect::<Vec<_>>(), [kept.job_id]);
    assert_eq!(f.places(), (1, 1, 0));
}

pub fn removed_consumer_keeps_pending_entries(f: &Fixture) {
    f.kv.remove_consumer("never seen").unwrap();
    f.enqueue("trips");
    f.claim("a");
    f.kv.remove_consumer("a").unwrap();
    assert_eq!(f.places(), (1, 1, 0));
    f.advance(IDLE + seconds(5));
    let entry = f.reclaim("b");
    let start = running(f.start("b", &entry));
    f.kv.remove_consumer("b").unwrap();
    f.end(&start.lease);
    f.kv.remove_consumer("b").unwrap();
    f.kv.remove_consumer("a").unwrap();
    f.enqueue("trips");
    f.claim("a");
}

pub fn handles_see_each_others_writes_at_once(f: &Fixture) {
    let other = f.open();
    for _ in 0..20 {
        let job = f.enqueue("trips");
        assert_eq!(other.job(&job.pipeline, &job.job_id).unwrap().as_ref(), Some(&job));
        let entry = other.claim("a", ClaimLimits::any(1), IMMEDIATELY).unwrap().remove(0);
        assert_eq!(f.kv.counts().unwrap().pending, 1);
        let start = running(f.start("a", &entry));
        assert!(matches!(other.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { .. }));
        f.end(&start.lease);
        assert_eq!(other.counts().unwrap().stream, 0);
        assert!(other.active(&job.pipeline, 10).unwrap().is_empty());
    }
}
