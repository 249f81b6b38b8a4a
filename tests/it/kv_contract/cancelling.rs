//! Cancel requests are one flag: its readers, and the time until which it can be set.

use lakemill::domain::job::{JobId, JobStatus};
use lakemill::ports::jobs::{CancelOutcome, HeartbeatReply, PublishReply};

use super::{Fixture, TTL, running, seconds, slug};

fn cancel(f: &Fixture, job: &lakemill::domain::job::Job) -> CancelOutcome {
    f.kv.cancel(&job.pipeline, &job.job_id).unwrap()
}

pub fn cancelled_queued_job_starts_as_cancelled(f: &Fixture) {
    let job = f.enqueue("trips");
    assert_eq!(cancel(f, &job), CancelOutcome::Requested);
    assert_eq!(cancel(f, &job), CancelOutcome::Requested, "once more");
    assert_eq!(f.shown(&job).unwrap().status, JobStatus::Queued, "no record is written by it");
    let entry = f.claim("a");
    assert_eq!(cancel(f, &job), CancelOutcome::Requested, "claimed");
    assert!(running(f.start("a", &entry)).cancelled);
    let other = f.run("a", "other").1;
    assert!(!other.cancelled);
}

pub fn cancelling_makes_a_retrying_job_due(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.requeue(&start.lease, seconds(3_000));
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    assert_eq!(cancel(f, &job), CancelOutcome::Requested);
    f.kv.release_due(10).unwrap();
    assert!(f.run_next("b").cancelled);
}

pub fn cancelling_makes_a_deferred_job_due(f: &Fixture) {
    let (_, first) = f.run("a", "trips");
    let job = f.defer("trips");
    let still = f.defer("trips");
    assert_eq!(cancel(f, &job), CancelOutcome::Requested);
    f.kv.release_due(10).unwrap();
    assert_eq!(f.places(), (2, 1, 1), "{} waits on", still.job_id);
    // The lock is held as before: only its holder may end the job.
    f.claims_nothing();
    f.end(&first.lease);
    f.kv.release_due(10).unwrap();
    let start = f.run_next("b");
    assert_eq!((&start.lease.job_id, start.cancelled), (&job.job_id, true));
}

pub fn heartbeat_reports_cancellation(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    assert_eq!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
    assert_eq!(cancel(f, &job), CancelOutcome::Requested);
    for _ in 0..2 {
        assert_eq!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: true });
    }
    assert_eq!(f.kv.begin_publishing(&start.lease).unwrap(), PublishReply::Cancelled);
    f.end(&start.lease);
}

pub fn publishing_job_cannot_be_cancelled(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    for _ in 0..2 {
        assert_eq!(f.kv.begin_publishing(&start.lease).unwrap(), PublishReply::Begun);
        assert_eq!(cancel(f, &job), CancelOutcome::TooLate);
    }
    assert_eq!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
    f.end(&start.lease);
    assert_eq!(cancel(f, &job), CancelOutcome::NotActive);
}

pub fn restarted_job_can_be_cancelled_after_its_publishing_died(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.kv.begin_publishing(&start.lease).unwrap();
    let again = f.take_over("b");
    assert!(!again.cancelled);
    assert_eq!(cancel(f, &job), CancelOutcome::Requested);
    assert_eq!(f.kv.begin_publishing(&again.lease).unwrap(), PublishReply::Cancelled);
}

pub fn cancellation_survives_worker_and_attempt(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    cancel(f, &job);
    f.requeue(&start.lease, seconds(10));
    f.advance(seconds(12));
    f.kv.release_due(10).unwrap();
    assert!(f.run_next("b").cancelled);
    assert!(f.take_over("c").cancelled);
}

pub fn only_active_jobs_of_the_pipeline_can_be_cancelled(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    assert_eq!(f.kv.cancel(&slug("other"), &job.job_id).unwrap(), CancelOutcome::NotActive);
    assert_eq!(f.kv.cancel(&job.pipeline, &JobId::parse("unknown").unwrap()).unwrap(), CancelOutcome::NotActive);
    assert_eq!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
    f.end(&start.lease);
    assert_eq!(cancel(f, &job), CancelOutcome::NotActive);
    // A later job with the same id isn't affected.
    f.kv.enqueue(&job).unwrap();
    assert!(!f.run_next("a").cancelled);
}
