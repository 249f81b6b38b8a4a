//! Deleting or renaming a pipeline drops its jobs, and they don't come back.

use lakemill::ports::jobs::{ClaimLimits, HeartbeatReply, StartOutcome};

use super::{Fixture, IDLE, IMMEDIATELY, TTL, running, seconds, slug};

/// The pipeline has no jobs, windows or keys left, and its lock is free.
fn is_empty(f: &Fixture) {
    let counts = f.kv.counts().unwrap();
    assert_eq!((counts.stream, counts.pending, counts.waiting, counts.windows), (0, 0, 0, 0));
    assert_eq!(f.kv.active(&slug("trips"), 10).unwrap(), []);
    let hold = f.kv.lock_pipeline(&slug("trips"), TTL, 0).unwrap().expect("the lock is free");
    f.kv.release(&hold).unwrap();
}

pub fn dropping_deletes_window_and_queued_and_waiting_jobs(f: &Fixture) {
    let (waiting, start) = f.run("a", "trips");
    f.requeue(&start.lease, seconds(10));
    let hold = f.kv.lock_pipeline(&slug("trips"), TTL, 0).unwrap().unwrap();
    let deferred = f.defer("trips");
    let queued = f.enqueue("trips");
    f.kv.extend_windows(&[slug("trips")]).unwrap();
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    f.kv.release(&hold).unwrap();
    is_empty(f);
    for job in [waiting, deferred, queued] {
        assert_eq!(f.shown(&job), None);
    }
    f.advance(IDLE);
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    assert_eq!(f.kv.due_windows(10).unwrap(), []);
    f.claims_nothing();
}

pub fn claimed_job_of_dropped_pipeline_does_not_start(f: &Fixture) {
    let job = f.enqueue("trips");
    let entry = f.claim("a");
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    let started = f.start("a", &entry);
    assert!(matches!(started, StartOutcome::NotClaimed | StartOutcome::Dropped), "{started:?}");
    assert_eq!(f.shown(&job), None);
    is_empty(f);
}

pub fn foreign_job_older_than_tombstone_is_dropped_without_record(f: &Fixture) {
    let before = (f.now() - chrono::TimeDelta::hours(1)).to_rfc3339();
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    f.backend.add_raw(&[(b"job_id", b"J"), (b"pipeline", b"trips"), (b"enqueued_at", before.as_bytes())]);
    assert_eq!(f.kv.active(&slug("trips"), 10).unwrap(), []);
    let entry = f.claim("a");
    assert_eq!(f.start("a", &entry), StartOutcome::Dropped);
    is_empty(f);
    assert_eq!(f.kv.job(&slug("trips"), &super::message(&entry).job_id).unwrap(), None);
}

pub fn unadopted_foreign_jobs_are_dropped_with_their_pipeline(f: &Fixture) {
    let later = (f.now() + chrono::TimeDelta::hours(1)).to_rfc3339();
    f.backend.add_raw(&[(b"job_id", b"J-1"), (b"pipeline", b"trips")]);
    f.backend.add_raw(&[(b"job_id", b"J-2"), (b"pipeline", b"trips"), (b"enqueued_at", later.as_bytes())]);
    f.backend.add_raw(&[(b"job_id", b"J-3"), (b"pipeline", b"other")]);
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    assert_eq!(f.places(), (1, 0, 0));
    assert_eq!(super::message(&f.claim("a")).job_id.as_str(), "J-3");
}

pub fn running_job_survives_drop_but_does_not_restart(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    assert!(
        matches!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { .. }),
        "it may be told to stop"
    );
    assert!(f.shown(&job).is_some());
    f.end(&start.lease);
    is_empty(f);
}

pub fn crashed_job_is_dropped_with_its_pipeline(f: &Fixture) {
    let mut job = f.job("trips");
    job.enqueued_at = f.now() - chrono::TimeDelta::hours(1);
    f.kv.enqueue(&job).unwrap();
    f.run_next("a");
    f.advance(IDLE + seconds(5));
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    for entry in f.kv.reclaim("b", 10, IDLE).unwrap() {
        let started = f.start("b", &entry);
        assert!(matches!(started, StartOutcome::NotClaimed | StartOutcome::Dropped), "{started:?}");
    }
    assert_eq!(f.shown(&job), None);
    is_empty(f);
}

pub fn jobs_enqueued_after_the_drop_run(f: &Fixture) {
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    let mut job = f.job("trips");
    job.enqueued_at = f.now() + chrono::TimeDelta::seconds(1);
    f.kv.enqueue(&job).unwrap();
    let start = f.run_next("a");
    assert_eq!(start.lease.job_id, job.job_id);
}

pub fn revived_pipeline_runs_old_jobs_again(f: &Fixture) {
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    f.kv.revive_pipeline(&slug("trips")).unwrap();
    f.kv.revive_pipeline(&slug("never-dropped")).unwrap();
    let before = (f.now() - chrono::TimeDelta::hours(1)).to_rfc3339();
    f.backend.add_raw(&[(b"job_id", b"J"), (b"pipeline", b"trips"), (b"enqueued_at", before.as_bytes())]);
    let entry = f.claim("a");
    running(f.start("a", &entry));
}

pub fn tombstone_lasts_a_day(f: &Fixture) {
    let before = (f.now() - chrono::TimeDelta::hours(48)).to_rfc3339();
    let old = |id: &[u8]| {
        f.backend.add_raw(&[(b"job_id", id), (b"pipeline", b"trips"), (b"enqueued_at", before.as_bytes())]);
        let entry = f.claim("a");
        f.start("a", &entry)
    };
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    f.advance(seconds(23 * 3_600));
    assert_eq!(old(b"J-1"), StartOutcome::Dropped);
    f.advance(seconds(2 * 3_600));
    running(old(b"J-2"));
}

pub fn dropping_leaves_other_pipelines_and_fences(f: &Fixture) {
    let (other, start) = f.run("a", "other");
    let queued = f.enqueue("other");
    f.kv.extend_windows(&[slug("other")]).unwrap();
    let hold = f.kv.lock_pipeline(&slug("trips"), TTL, 1 << 60).unwrap().unwrap();
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    f.kv.release(&hold).unwrap();
    f.kv.revive_pipeline(&slug("trips")).unwrap();
    assert!(f.kv.lock_pipeline(&slug("trips"), TTL, 0).unwrap().unwrap().fence > hold.fence, "fences outlive the drop");
    assert!(f.shown(&other).is_some() && f.shown(&queued).is_some());
    assert_eq!(f.kv.counts().unwrap().windows, 1);
    assert_eq!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
    f.end(&start.lease);
    assert_eq!(f.kv.claim("a", ClaimLimits::any(10), IMMEDIATELY).unwrap().len(), 1);
}
