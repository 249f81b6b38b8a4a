//! Data about jobs while they are active, and after their end.

use lakemill::domain::job::{JobStatus, Progress};
use lakemill::ports::jobs::{ClaimLimits, EnqueueOutcome, EntryId, HeartbeatReply, QueueCounts, ReleaseOutcome};

use super::{ATTEMPTS_MAX, Fixture, IDLE, IMMEDIATELY, TTL, completed, failure, seconds, slug};

pub fn finished_job_is_kept_for_an_hour(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    let end = f.seen(&start.lease).started("a", start.lease.fence, 1, f.now()).failed(failure(), f.now());
    assert_eq!(f.kv.finish(&start.lease, &end).unwrap(), ReleaseOutcome::Released);
    assert_eq!(f.kv.counts().unwrap(), QueueCounts::default());
    assert_eq!(f.kv.active(&job.pipeline, 10).unwrap(), []);
    f.advance(seconds(3_500));
    assert_eq!(f.shown(&job), Some(end));
    f.advance(seconds(200));
    assert_eq!(f.shown(&job), None);
    let hold = f.kv.lock_pipeline(&job.pipeline, TTL, 0).unwrap();
    assert!(hold.is_some(), "the lock was released");
}

pub fn job_finishes_once(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.end(&start.lease);
    let shown = f.shown(&job);
    f.is_lost(&start.lease);
    assert_eq!(f.shown(&job), shown);
}

pub fn active_job_is_not_enqueued_again(f: &Fixture) {
    let job = f.enqueue("trips");
    let again = |f: &Fixture| {
        let before = f.kv.counts().unwrap();
        assert_eq!(f.kv.enqueue(&job).unwrap(), EnqueueOutcome::AlreadyActive);
        assert_eq!(f.kv.counts().unwrap(), before);
    };
    again(f);
    let entry = f.claim("a");
    again(f);
    let start = super::running(f.start("a", &entry));
    again(f);
    assert_eq!(f.seen(&start.lease).attempt, 1);
    f.requeue(&start.lease, seconds(10));
    again(f);
    f.advance(seconds(12));
    f.kv.release_due(10).unwrap();
    let start = f.run_next("a");
    f.end(&start.lease);
    assert_eq!(f.kv.enqueue(&job).unwrap(), EnqueueOutcome::Queued, "it is not active any more");
    let shown = f.shown(&job).unwrap();
    assert_eq!((shown.status, shown.attempt), (JobStatus::Queued, 0));
    assert_eq!((f.run_next("a").attempt), 1);
}

pub fn running_job_shows_its_latest_record(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    let mut shown = f.seen(&start.lease).started("worker-1", start.lease.fence, 1, f.now());
    for rows in [1, 1 << 40, u64::MAX >> 11] {
        shown.progress = Some(Progress { rows_read: rows, files_total: 3, ..Progress::default() });
        assert_eq!(f.kv.update_record(&start.lease, &shown).unwrap(), HeartbeatReply::Held { cancelled: false });
        assert_eq!(f.open().job(&job.pipeline, &job.job_id).unwrap(), Some(shown.clone()));
    }
    assert_eq!(f.kv.active(&job.pipeline, 10).unwrap(), [shown]);
}

pub fn running_job_without_lock_shows_time_since_heartbeat(f: &Fixture) {
    let silence = |job: &lakemill::domain::job::Job| {
        let known = f.shown(job).unwrap();
        let listed = f.kv.active(&job.pipeline, 10).unwrap().into_iter().find(|one| one.job_id == job.job_id).unwrap();
        assert_eq!(known.silent_ms.is_some(), listed.silent_ms.is_some());
        (known.status, known.silent_ms)
    };
    let queued = f.enqueue("trips");
    assert_eq!(silence(&queued), (JobStatus::Queued, None));
    let start = f.run_next("a");
    let shown = f.seen(&start.lease).started("a", start.lease.fence, 1, f.now());
    assert_eq!(f.kv.update_record(&start.lease, &shown).unwrap(), HeartbeatReply::Held { cancelled: false });
    f.advance(TTL - seconds(10));
    assert_eq!(silence(&queued), (JobStatus::Running, None), "it holds its lock");
    assert_eq!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
    f.advance(TTL + seconds(10));
    let (status, silent) = silence(&queued);
    assert_eq!(status, JobStatus::Running);
    let silent = silent.expect("its lock is over");
    assert!((70_000..100_000).contains(&silent), "{silent} ms since its last heartbeat");
    assert!(f.kv.refund_attempt(&start.lease).unwrap());
    let (status, after) = silence(&queued);
    assert!(after >= Some(silent), "the worker that lost the lock refunded its attempt: {status:?}, {after:?}");
    // Another job of the pipeline has the lock meanwhile.
    let (other, other_start) = f.run("b", "trips");
    assert_eq!((silence(&other).1, silence(&queued).1.is_some()), (None, true));
    f.end(&other_start.lease);
    f.advance(IDLE);
    let entry = f.reclaim("c");
    let again = super::running(f.start("c", &entry));
    assert_eq!(silence(&queued), (JobStatus::Running, None), "another worker has taken it over");
    f.end(&again.lease);
    assert_eq!(f.shown(&queued).unwrap().silent_ms, None);
}

pub fn outcome_of_unfinished_job_is_reset(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    let end = completed(&f.seen(&start.lease), f.now());
    assert_eq!(f.kv.update_record(&start.lease, &end).unwrap(), HeartbeatReply::Held { cancelled: false });
    assert_eq!(f.shown(&job).unwrap().status, JobStatus::Completed);
    assert_eq!(f.kv.active(&job.pipeline, 10).unwrap().len(), 1, "it is active until its end");
    // Its worker dies. The next one finds the pipeline locked, then runs it.
    f.advance(IDLE + seconds(5));
    let entry = f.reclaim("b");
    let hold = f.kv.lock_pipeline(&job.pipeline, TTL, 0).unwrap().unwrap();
    f.start("b", &entry);
    let shown = f.shown(&job).unwrap();
    assert_eq!((shown.status, shown.finished_at), (JobStatus::Queued, None));
    assert!(shown.not_before.is_some());
    f.kv.release(&hold).unwrap();
    f.kv.release_due(10).unwrap();
    let start = f.run_next("c");
    assert_eq!((start.attempt, start.lost_starts), (2, 1));
    let shown = f.shown(&job).unwrap();
    assert!(!shown.status.is_terminal() && shown.finished_at.is_none() && shown.result.is_none(), "{shown:?}");
    f.end(&start.lease);
}

pub fn active_jobs_are_listed_oldest_first(f: &Fixture) {
    let mut jobs = Vec::new();
    for n in [3, 1, 2] {
        let mut job = f.job("trips");
        job.enqueued_at = f.now() - chrono::TimeDelta::minutes(n);
        f.kv.enqueue(&job).unwrap();
        jobs.push(job);
    }
    f.enqueue("other");
    let ids =
        |limit| -> Vec<_> { f.kv.active(&slug("trips"), limit).unwrap().into_iter().map(|job| job.job_id).collect() };
    let expected = [jobs[0].job_id.clone(), jobs[2].job_id.clone(), jobs[1].job_id.clone()];
    assert_eq!(ids(10), expected);
    assert_eq!(ids(2), expected[..2]);
    let start = f.run_next("a");
    assert_eq!(ids(10), expected, "running");
    f.requeue(&start.lease, seconds(10));
    assert_eq!(ids(10), expected, "waiting");
    f.claim("a");
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    let start = f.run_next("a");
    f.end(&start.lease);
    assert_eq!(ids(10).len(), 2, "ended");
    assert_eq!(f.kv.active(&slug("nothing"), 10).unwrap(), []);
}

pub fn job_is_visible_to_its_pipeline_only(f: &Fixture) {
    let job = f.enqueue("trips");
    assert_eq!(f.kv.job(&slug("other"), &job.job_id).unwrap(), None);
    let start = f.run_next("a");
    f.end(&start.lease);
    assert_eq!(f.kv.job(&slug("other"), &job.job_id).unwrap(), None);
    assert!(f.shown(&job).is_some());
}

pub fn counts_follow_each_step(f: &Fixture) {
    let counts =
        |stream, pending, waiting| QueueCounts { stream, pending, waiting, requested: 0, windows: 0, dead_letters: 0 };
    assert_eq!(f.kv.counts().unwrap(), counts(0, 0, 0));
    f.enqueue("one");
    f.enqueue("two");
    assert_eq!(f.kv.counts().unwrap(), counts(2, 0, 0));
    let entries = f.kv.claim("a", ClaimLimits::any(2), IMMEDIATELY).unwrap();
    assert_eq!(f.kv.counts().unwrap(), counts(2, 2, 0));
    let start = super::running(f.start("a", &entries[0]));
    f.requeue(&start.lease, seconds(10));
    assert_eq!(f.kv.counts().unwrap(), counts(1, 1, 1));
    f.advance(seconds(12));
    f.kv.release_due(10).unwrap();
    assert_eq!(f.kv.counts().unwrap(), counts(2, 1, 0));
    f.kv.extend_windows(&[slug("one"), slug("three")]).unwrap();
    assert_eq!(f.kv.counts().unwrap(), QueueCounts { windows: 2, ..counts(2, 1, 0) });
}

pub fn oldest_due_job_shows_its_delay(f: &Fixture) {
    let oldest = || f.kv.oldest_due().unwrap();
    assert_eq!(oldest(), None);
    f.enqueue("trips");
    assert!(oldest().is_some_and(|age| age < seconds(60)), "queued: {:?}", oldest());
    let start = f.run_next("a");
    assert!(oldest().is_some_and(|age| age < seconds(60)), "running: {:?}", oldest());
    f.requeue(&start.lease, seconds(100));
    assert_eq!(oldest(), None, "what waits until it is due is not late");
    f.advance(seconds(130));
    assert!(oldest().is_some_and(|age| age >= seconds(20) && age < seconds(90)), "due: {:?}", oldest());
    f.kv.release_due(10).unwrap();
    let start = f.run_next("a");
    f.end(&start.lease);
    assert_eq!(oldest(), None);
}

pub fn dead_letter_keeps_its_reason(f: &Fixture) {
    f.backend.add_raw(&[(b"job_id", b"not one"), (b"colour", b"red")]);
    f.backend.add_raw(&[(b"colour", b"blue")]);
    let first = f.claim("a");
    let second = f.claim("a");
    f.kv.dead_letter(&first, "`not one` is not a job id").unwrap();
    // By another process than the one it is pending for.
    f.open().dead_letter(&second, "the field `job_id` is missing").unwrap();
    // Once more, by a process that had reclaimed it meanwhile.
    f.kv.dead_letter(&first, "again").unwrap();
    let dead = f.backend.dead();
    assert_eq!(dead.len(), 2, "{dead:?}");
    for (text, parts) in dead.iter().zip([["`not one` is not a job id", "red"], ["`job_id` is missing", "blue"]]) {
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    assert_eq!(f.kv.counts().unwrap(), QueueCounts { dead_letters: 2, ..QueueCounts::default() });
    f.advance(IDLE + seconds(5));
    assert_eq!(f.kv.reclaim("b", 10, IDLE).unwrap(), []);
    let unknown = lakemill::ports::jobs::Entry { id: EntryId("7-7".to_owned()), ..first };
    f.kv.dead_letter(&unknown, "it never was").unwrap();
    assert_eq!(f.kv.counts().unwrap().dead_letters, 2);
}

pub fn ping_succeeds(f: &Fixture) {
    f.kv.ping().unwrap();
    let report = f.kv.report().unwrap();
    assert!(report.server.contains(char::is_numeric), "`{}` names a version", report.server);
}

pub fn queued_job_shows_current_maximum_attempts(f: &Fixture) {
    assert_eq!(f.kv.attempts_max().unwrap(), None);
    let early = f.enqueue("early");
    assert_eq!(f.shown(&early).unwrap().max_attempts, ATTEMPTS_MAX, "no worker has said anything");
    let other = f.open();
    other.set_attempts_max(7).unwrap();
    assert_eq!(f.kv.attempts_max().unwrap(), Some(7));
    let late = f.enqueue("trips");
    f.backend.add_raw(&[(b"job_id", b"J"), (b"pipeline", b"trips"), (b"enqueued_at", b"1")]);
    let shown = |pipeline: &str| -> Vec<u32> {
        f.kv.active(&slug(pipeline), 10).unwrap().iter().map(|job| job.max_attempts).collect()
    };
    assert_eq!((shown("early"), shown("trips")), (vec![7], vec![7, 7]));
    assert_eq!(f.shown(&late).unwrap().max_attempts, 7);
    let start = f.run_next("a");
    assert_eq!(shown("early"), [ATTEMPTS_MAX], "it runs on a worker that has another setting");
    f.requeue(&start.lease, seconds(10));
    other.set_attempts_max(5).unwrap();
    assert_eq!((shown("early"), shown("trips")), (vec![5], vec![5, 5]));
}
