//! A start takes the lock, increments the fence, and counts an attempt; a worker that lost the lock changes nothing.

use std::time::Duration;

use lakemill::domain::job::{JobStatus, WaitReason};
use lakemill::ports::jobs::{EntryId, HeartbeatReply, StartOutcome, StartRequest};

use super::{ATTEMPTS_MAX, Fixture, IDLE, TTL, message, running, seconds, slug, start, start_from};

pub fn start_takes_the_lock_and_counts_the_attempt(f: &Fixture) {
    let job = f.enqueue("trips");
    let entry = f.claim("a");
    let start = running(f.start("a", &entry));
    assert_eq!((start.attempt, start.lost_starts, start.cancelled), (1, 0, false));
    let lease = &start.lease;
    assert_eq!((&lease.job_id, &lease.pipeline), (&job.job_id, &job.pipeline));
    assert_eq!((&lease.entry, lease.consumer.as_str()), (&entry.id, "a"));
    assert!(!lease.token.is_empty() && lease.fence > 0);
    assert_eq!(f.kv.lock_pipeline(&job.pipeline, TTL, 0).unwrap(), None, "the lock is taken");
    let shown = f.shown(&job).unwrap();
    assert_eq!((shown.attempt, shown.max_attempts, shown.not_before), (1, ATTEMPTS_MAX, None));
    assert_eq!(f.places(), (1, 1, 0));
}

pub fn fences_increase_with_every_lock(f: &Fixture) {
    let mut last = 0;
    let mut tokens = std::collections::BTreeSet::new();
    let mut rises = |fence: u64, token: &str| {
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        assert!(tokens.insert(token.to_owned()), "a token is used once");
    };
    for _ in 0..3 {
        let (_, start) = f.run("a", "trips");
        rises(start.lease.fence, &start.lease.token);
        f.requeue(&start.lease, seconds(10));
        let hold = f.kv.lock_pipeline(&slug("trips"), TTL, 0).unwrap().unwrap();
        rises(hold.fence, &hold.token);
        f.kv.release(&hold).unwrap();
        f.advance(seconds(12));
        f.kv.release_due(10).unwrap();
        let start = f.run_next("a");
        rises(start.lease.fence, &start.lease.token);
        let start = f.take_over("b");
        rises(start.lease.fence, &start.lease.token);
        f.end(&start.lease);
    }
}

pub fn fence_is_above_the_floor_from_then_on(f: &Fixture) {
    // In the year 2100, in microseconds.
    let floor = 4_102_444_800_000_000;
    f.enqueue("trips");
    let entry = f.claim("a");
    let first = running(start_from(&*f.kv, "a", &entry.id, &message(&entry), TTL, floor));
    assert!(first.lease.fence > floor);
    f.end(&first.lease);
    let (_, second) = f.run("a", "trips");
    assert!(second.lease.fence > first.lease.fence);
    f.end(&second.lease);
    let third = f.kv.lock_pipeline(&slug("trips"), TTL, second.lease.fence + 1_000).unwrap().unwrap();
    assert!(third.fence > second.lease.fence + 1_000);
}

pub fn busy_pipeline_defers_the_job_without_an_attempt(f: &Fixture) {
    let (_, first) = f.run("a", "trips");
    let job = f.defer("trips");
    assert_eq!(f.places(), (1, 1, 1), "its entry is acknowledged and deleted");
    let shown = f.shown(&job).unwrap();
    assert_eq!((shown.status, shown.attempt, shown.reason), (JobStatus::Queued, 0, Some(WaitReason::PipelineBusy)));
    assert!(shown.not_before.is_some_and(|at| at > f.now()));
    assert_eq!(f.kv.active(&job.pipeline, 10).unwrap().len(), 2);
    f.end(&first.lease);
    f.kv.release_due(10).unwrap();
    let start = f.run_next("b");
    assert_eq!((&start.lease.job_id, start.attempt, start.lost_starts), (&job.job_id, 1, 0));
    let shown = f.shown(&job).unwrap();
    assert_eq!((shown.not_before, shown.reason), (None, None));
}

pub fn deferred_job_is_due_a_second_after_the_lock_expires(f: &Fixture) {
    let job = f.enqueue("trips");
    let entry = f.claim("b");
    f.kv.lock_pipeline(&job.pipeline, seconds(10), 0).unwrap().unwrap();
    let StartOutcome::Deferred { until } = f.start("b", &entry) else { panic!("the pipeline is busy") };
    let left = until - f.now();
    assert!(left.num_milliseconds() <= 11_000 && left.num_milliseconds() > 5_000, "due in {left}");
    f.advance(seconds(7));
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    f.advance(seconds(5));
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    assert_eq!(f.run_next("b").lease.job_id, job.job_id);
}

pub fn deferred_job_is_due_within_thirty_seconds(f: &Fixture) {
    f.enqueue("trips");
    let entry = f.claim("a");
    running(start(&*f.kv, "a", &entry, seconds(600)));
    f.defer("trips");
    f.advance(seconds(26));
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    f.advance(seconds(5));
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
}

pub fn job_running_elsewhere_is_unchanged(f: &Fixture) {
    f.enqueue("trips");
    let entry = f.claim("a");
    let first = running(start(&*f.kv, "a", &entry, IDLE * 4));
    f.advance(IDLE + seconds(5));
    assert_eq!(f.reclaim("b"), entry);
    assert_eq!(f.start("b", &entry), StartOutcome::RunningElsewhere);
    assert_eq!(f.places(), (1, 1, 0), "the entry stays");
    assert_eq!(f.seen(&first.lease).attempt, 1, "no attempt is counted");
    assert_eq!(f.kv.heartbeat(&first.lease, IDLE * 4).unwrap(), HeartbeatReply::Held { cancelled: false });
    assert_eq!(f.start("b", &entry), StartOutcome::NotClaimed, "the heartbeat took the entry back");
    f.end(&first.lease);
    assert_eq!(f.places(), (0, 0, 0));
}

pub fn entry_of_another_consumer_does_not_start(f: &Fixture) {
    let job = f.enqueue("trips");
    let entry = f.claim("a");
    assert_eq!(f.start("b", &entry), StartOutcome::NotClaimed);
    let hold = f.kv.lock_pipeline(&job.pipeline, TTL, 0).unwrap().expect("no lock was taken");
    f.kv.release(&hold).unwrap();
    assert_eq!(f.shown(&job).unwrap(), job);
    let start = running(f.start("a", &entry));
    f.end(&start.lease);
    assert_eq!(f.start("a", &entry), StartOutcome::NotClaimed, "the entry was acknowledged");
    let unknown = EntryId("1-1".to_owned());
    assert_eq!(start_from(&*f.kv, "a", &unknown, &job.message(), TTL, 0), StartOutcome::NotClaimed);
}

pub fn lost_starts_are_counted(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    assert_eq!((start.attempt, start.lost_starts), (1, 0));
    let start = f.take_over("b");
    assert_eq!((start.attempt, start.lost_starts), (2, 1));
    let start = f.take_over("c");
    assert_eq!((start.attempt, start.lost_starts), (3, 2));
    f.requeue(&start.lease, seconds(10));
    f.advance(seconds(12));
    f.kv.release_due(10).unwrap();
    let start = f.run_next("d");
    assert_eq!((start.attempt, start.lost_starts), (4, 2), "the end of the third was recorded");
    assert_eq!(f.shown(&job).unwrap().attempt, 4);
}

pub fn takeover_raises_the_fence_and_stops_the_old_holder(f: &Fixture) {
    let (job, old) = f.run("a", "trips");
    let new = f.take_over("b");
    assert_eq!(new.lease.job_id, job.job_id);
    assert!(new.lease.fence > old.lease.fence && new.lease.token != old.lease.token);
    f.is_lost(&old.lease);
    assert_eq!(f.kv.heartbeat(&new.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
    f.end(&new.lease);
    f.is_lost(&old.lease);
    f.is_lost(&new.lease);
    let (_, other) = f.run("c", "trips");
    f.is_lost(&old.lease);
    f.end(&other.lease);
}

pub fn expired_lock_is_lost_even_if_free(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.advance(TTL + seconds(1));
    f.is_lost(&start.lease);
    let hold = f.kv.lock_pipeline(&job.pipeline, TTL, 0).unwrap().expect("the lock is free");
    f.is_lost(&start.lease);
    f.kv.release(&hold).unwrap();
    f.is_lost(&start.lease);
}

pub fn heartbeats_extend_the_lock_from_now(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    for _ in 0..3 {
        f.advance(seconds(45));
        assert_eq!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
        assert_eq!(f.kv.lock_pipeline(&job.pipeline, TTL, 0).unwrap(), None);
    }
    assert!(matches!(f.kv.heartbeat(&start.lease, Duration::from_secs(20)).unwrap(), HeartbeatReply::Held { .. }));
    f.advance(seconds(25));
    f.is_lost(&start.lease);
}

pub fn pipelines_run_concurrently(f: &Fixture) {
    let (_, one) = f.run("a", "one");
    let (_, two) = f.run("a", "two");
    let (_, three) = f.run("b", "three");
    f.end(&two.lease);
    for start in [&one, &three] {
        assert_eq!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
    }
    assert_eq!(f.places(), (2, 2, 0));
}

pub fn second_entry_of_a_running_job_does_not_run(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    let fields = job.message().fields();
    let raw: Vec<(&[u8], &[u8])> = fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
    f.backend.add_raw(&raw);
    let second = f.claim("b");
    assert_eq!(f.start("b", &second), StartOutcome::RunningElsewhere);
    f.end(&start.lease);
    // The next worker takes the lock, finds the terminal record, and acknowledges the entry.
    let again = running(f.start("b", &second));
    f.is_lost(&start.lease);
    f.end(&again.lease);
    assert_eq!(f.places(), (0, 0, 0));
    assert!(f.kv.active(&job.pipeline, 10).unwrap().is_empty());
}

pub fn second_entry_of_a_waiting_job_starts_it(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.requeue(&start.lease, seconds(10));
    let fields = job.message().fields();
    let raw: Vec<(&[u8], &[u8])> = fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
    f.backend.add_raw(&raw);
    let start = f.run_next("b");
    assert_eq!((&start.lease.job_id, start.attempt), (&job.job_id, 2));
    assert_eq!(f.places(), (1, 1, 0));
    f.end(&start.lease);
    f.advance(seconds(12));
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    assert_eq!(f.places(), (0, 0, 0));
}

pub fn start_repeated_after_a_lost_reply_counts_once(f: &Fixture) {
    f.enqueue("trips");
    let entry = f.claim("a");
    let message = message(&entry);
    let request = StartRequest {
        entry: &entry.id,
        consumer: "a",
        message: &message,
        token: "the-same",
        lock_ttl: TTL,
        fence_floor: 0,
        attempts_max: ATTEMPTS_MAX,
    };
    let first = running(f.kv.start(&request).unwrap());
    f.advance(seconds(5));
    assert_eq!(running(f.kv.start(&request).unwrap()), first);
    assert_eq!((first.attempt, first.lost_starts), (1, 0));
    let another = StartRequest { token: "another", ..request };
    assert_eq!(f.kv.start(&another).unwrap(), StartOutcome::RunningElsewhere);
    f.end(&first.lease);
    assert_eq!(f.kv.start(&request).unwrap(), StartOutcome::NotClaimed, "its hold is over");
}

pub fn lost_attempt_is_refunded_unless_restarted(f: &Fixture) {
    let (_, first) = f.run("a", "trips");
    f.advance(TTL + seconds(1));
    assert!(f.kv.refund_attempt(&first.lease).unwrap());
    assert!(!f.kv.refund_attempt(&first.lease).unwrap(), "once");
    let second = f.take_over("b");
    assert_eq!((second.attempt, second.lost_starts), (1, 0));
    assert!(!f.kv.refund_attempt(&first.lease).unwrap(), "it is another's attempt now");
    let third = f.take_over("c");
    assert_eq!((third.attempt, third.lost_starts), (2, 1));
    f.end(&third.lease);
    assert!(!f.kv.refund_attempt(&third.lease).unwrap());
}
