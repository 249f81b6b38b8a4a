//! Requeued and deferred jobs: when they become due, in which order, and their attempts.

use lakemill::domain::job::{AttemptCost, JobStatus, WaitReason};
use lakemill::ports::jobs::{CancelOutcome, ReleaseOutcome, Requeue};

use super::{Fixture, TTL, failure, message, seconds, slug};

pub fn requeued_job_is_due_after_its_delay(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.requeue(&start.lease, seconds(20));
    assert_eq!(f.places(), (0, 0, 1));
    f.advance(seconds(16));
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    f.claims_nothing();
    f.advance(seconds(6));
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    assert_eq!(f.places(), (1, 0, 0));
    let shown = f.shown(&job).unwrap();
    assert_eq!((shown.status, shown.not_before, shown.reason), (JobStatus::Queued, None, None));
    let entry = f.claim("b");
    assert_eq!(message(&entry), job.message(), "it asks for the same");
    assert!(matches!(f.start("b", &entry), lakemill::ports::jobs::StartOutcome::Running(again)
        if (again.attempt, again.lost_starts, again.cancelled) == (2, 0, false)));
}

pub fn waiting_job_shows_reason_and_due_time(f: &Fixture) {
    for (reason, delay) in [(WaitReason::Retry, 20), (WaitReason::SourceBeingWritten, 5)] {
        let (job, start) = f.run("a", "trips");
        let requeued = f.seen(&start.lease).waiting(reason, f.now() + chrono::TimeDelta::days(1), Some(failure()));
        let before = f.now();
        let wait = Requeue { job: &requeued, delay: seconds(delay), reason, cost: AttemptCost::One };
        assert_eq!(f.kv.requeue(&start.lease, &wait).unwrap(), ReleaseOutcome::Released);
        let after = f.now();
        let shown = f.shown(&job).unwrap();
        assert_eq!((shown.status, shown.reason, shown.attempt), (JobStatus::Queued, Some(reason), 1));
        let delay = chrono::TimeDelta::seconds(delay.cast_signed());
        let due = shown.not_before.unwrap();
        // Times are kept in whole milliseconds, rounded up or down.
        let rounding = chrono::TimeDelta::milliseconds(1);
        let (least, most) = (before + delay - rounding, after + delay + rounding);
        assert!(least <= due && due <= most, "{due} is not {delay} after {before}");
        assert_eq!(shown.error, Some(failure()));
        assert_eq!((shown.worker, shown.fence, shown.started_at, shown.progress), (None, None, None, None));
        assert_eq!((shown.enqueued_at, shown.max_attempts), (job.enqueued_at, job.max_attempts));
        f.kv.drop_pipeline(&job.pipeline).unwrap();
        f.kv.revive_pipeline(&job.pipeline).unwrap();
    }
}

pub fn free_attempt_is_refunded(f: &Fixture) {
    let mut start = f.run("a", "trips").1;
    for (cost, next) in [(AttemptCost::Zero, 1), (AttemptCost::Zero, 1), (AttemptCost::One, 2), (AttemptCost::Zero, 2)]
    {
        f.requeue_for(&start.lease, seconds(5), WaitReason::SourceBeingWritten, cost);
        f.advance(seconds(7));
        f.kv.release_due(10).unwrap();
        start = f.run_next("a");
        assert_eq!((start.attempt, start.lost_starts), (next, 0), "after {cost:?}");
        assert_eq!(f.seen(&start.lease).attempt, next);
    }
}

pub fn requeueing_releases_the_lock(f: &Fixture) {
    let (_, start) = f.run("a", "trips");
    f.requeue(&start.lease, seconds(20));
    f.is_lost(&start.lease);
    let (_, other) = f.run("b", "trips");
    f.end(&other.lease);
}

pub fn release_makes_the_oldest_deferred_job_due(f: &Fixture) {
    let first = f.run("a", "trips").1;
    let deferred: Vec<_> = (0..3).map(|_| f.defer("trips")).collect();
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    // By an end, by a requeue, by the release of a lease that is not a run's.
    f.end(&first.lease);
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    let second = f.run_next("a");
    assert_eq!(second.lease.job_id, deferred[0].job_id);
    f.requeue(&second.lease, seconds(3_000));
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    let third = f.run_next("b");
    assert_eq!(third.lease.job_id, deferred[1].job_id);
    f.requeue(&third.lease, seconds(3_000));
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    let hold = f.kv.lock_pipeline(&slug("trips"), TTL, 0).unwrap().unwrap();
    f.claims_nothing();
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    f.kv.release(&hold).unwrap();
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    assert_eq!(f.run_next("c").lease.job_id, deferred[2].job_id);
}

pub fn release_wakes_no_retries_or_other_pipelines(f: &Fixture) {
    let (_, retry) = f.run("a", "trips");
    f.requeue(&retry.lease, seconds(300));
    let (_, busy) = f.run("a", "other");
    f.defer("other");
    let (_, start) = f.run("a", "trips");
    f.end(&start.lease);
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    f.end(&busy.lease);
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
}

pub fn job_deferred_again_keeps_its_position(f: &Fixture) {
    let (_, start) = f.run("a", "trips");
    let first = f.defer("trips");
    f.advance(seconds(2));
    let second = f.defer("trips");
    f.kv.cancel(&first.pipeline, &first.job_id).unwrap();
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    f.advance(seconds(2));
    f.claims_nothing();
    f.end(&start.lease);
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    assert_eq!(f.run_next("b").lease.job_id, first.job_id, "{} came later", second.job_id);
}

pub fn due_jobs_are_released_longest_due_first(f: &Fixture) {
    let delays = [30, 10, 50, 20, 40];
    for (n, delay) in delays.iter().enumerate() {
        let (_, start) = f.run("a", &format!("p{n}"));
        f.requeue(&start.lease, seconds(*delay));
    }
    f.advance(seconds(25));
    assert_eq!(f.kv.release_due(10).unwrap(), 2);
    f.advance(seconds(40));
    assert_eq!(f.kv.release_due(2).unwrap(), 2);
    assert_eq!(f.kv.release_due(2).unwrap(), 1);
    assert_eq!(f.kv.release_due(2).unwrap(), 0);
    let order: Vec<String> = (0..5).map(|_| message(&f.claim("a")).pipeline.to_string()).collect();
    assert_eq!(order, ["p1", "p3", "p0", "p4", "p2"]);
}

pub fn job_requeued_while_publishing_can_be_cancelled(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.kv.begin_publishing(&start.lease).unwrap();
    assert_eq!(f.kv.cancel(&job.pipeline, &job.job_id).unwrap(), CancelOutcome::TooLate);
    f.requeue(&start.lease, seconds(10));
    assert_eq!(f.kv.cancel(&job.pipeline, &job.job_id).unwrap(), CancelOutcome::Requested);
}
