//! Entries that other programs wrote.

use lakemill::domain::job::{JobId, JobMessage, JobStatus, ParsedEntry, WaitReason};
use lakemill::ports::jobs::{CancelOutcome, ClaimLimits};

use super::{ATTEMPTS_MAX, Fixture, IMMEDIATELY, TTL, message, running, slug};

pub fn foreign_job_is_visible_before_its_claim(f: &Fixture) {
    f.enqueue("other");
    f.backend.add_raw(&[(b"job_id", b"J-1"), (b"pipeline", b"trips"), (b"clean_run", b"TRUE"), (b"enqueued_at", b"5")]);
    let (pipeline, id) = (slug("trips"), JobId::parse("J-1").unwrap());
    let shown = f.open().active(&pipeline, 10).unwrap();
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].status, shown[0].attempt, shown[0].clean_run), (JobStatus::Queued, 0, true));
    assert_eq!((&shown[0].job_id, shown[0].enqueued_at.timestamp_millis()), (&id, 5));
    assert_eq!(f.kv.job(&pipeline, &id).unwrap().as_ref(), Some(&shown[0]));
    assert_eq!(f.kv.job(&slug("other"), &id).unwrap(), None);
    assert_eq!(f.places(), (2, 0, 0), "looking adds no entry");
    f.claim("a");
    let entry = f.claim("a");
    let asked = message(&entry);
    let start = running(f.start("a", &entry));
    assert_eq!((start.attempt, start.lost_starts, start.cancelled), (1, 0, false));
    let shown = f.kv.job(&pipeline, &id).unwrap().unwrap();
    assert_eq!(JobMessage { enqueued_at: asked.enqueued_at, ..shown.message() }, asked);
    assert!(shown.clean_run);
    assert_eq!((shown.attempt, shown.max_attempts), (1, ATTEMPTS_MAX));
    assert_eq!(f.kv.active(&pipeline, 10).unwrap(), [shown]);
    assert_eq!(f.kv.cancel(&pipeline, &id).unwrap(), CancelOutcome::Requested);
    f.end(&start.lease);
    assert_eq!(f.places(), (1, 1, 0));
    assert_eq!(f.kv.active(&pipeline, 10).unwrap(), []);
}

pub fn foreign_job_can_be_cancelled_before_its_claim(f: &Fixture) {
    f.backend.add_raw(&[(b"job_id", b"J-1"), (b"pipeline", b"trips")]);
    let id = JobId::parse("J-1").unwrap();
    assert_eq!(f.kv.cancel(&slug("other"), &id).unwrap(), CancelOutcome::NotActive);
    assert_eq!(f.kv.cancel(&slug("trips"), &id).unwrap(), CancelOutcome::Requested);
    assert!(f.run_next("a").cancelled);
}

pub fn unadopted_foreign_job_gets_its_record_at_start(f: &Fixture) {
    f.backend.add_raw(&[(b"job_id", b"J-1"), (b"pipeline", b"trips")]);
    let start = f.run_next("a");
    let shown = f.seen(&start.lease);
    assert_eq!((shown.attempt, shown.max_attempts), (1, ATTEMPTS_MAX));
    f.end(&start.lease);
    assert_eq!(f.places(), (0, 0, 0));
}

pub fn adoption_skips_entries_that_are_not_jobs(f: &Fixture) {
    let huge = vec![b'x'; 1 << 20];
    for n in 0..450 {
        let (id, other) = (format!("J-{n}"), format!("other-{n}"));
        f.backend.add_raw(&[(b"job_id", other.as_bytes()), (b"pipeline", b"../etc")]);
        f.backend.add_raw(&[(b"job_id", id.as_bytes()), (b"pipeline", b"trips")]);
    }
    f.backend.add_raw(&[(b"job_id", b"a b"), (b"pipeline", b"trips"), (b"x", &huge)]);
    f.backend.add_raw(&[(b"pipeline", b"trips")]);
    f.backend.add_raw(&[(b"job_id", &huge), (b"pipeline", b"trips")]);
    // The prefix makes it a job that will fail; with several ids the first counts.
    f.backend.add_raw(&[(b"job_id", b"last"), (b"job_id", b"x"), (b"pipeline", b"trips"), (b"prefix", &huge)]);
    let active = f.kv.active(&slug("trips"), 1_000).unwrap();
    assert_eq!(active.len(), 451);
    assert!(active.iter().any(|job| job.job_id.as_str() == "last" && job.prefix == "pipelines/trips/"));
    assert_eq!(f.places(), (904, 0, 0));
}

pub fn second_entry_of_a_job_adds_no_job(f: &Fixture) {
    let job = f.enqueue("trips");
    let ours = job.job_id.as_str().as_bytes();
    f.backend.add_raw(&[(b"job_id", ours), (b"pipeline", b"trips"), (b"clean_run", b"1")]);
    f.backend.add_raw(&[(b"job_id", ours), (b"pipeline", b"other")]);
    for _ in 0..2 {
        f.backend.add_raw(&[(b"job_id", b"J-1"), (b"pipeline", b"trips")]);
    }
    let ids = |pipeline| -> Vec<String> {
        f.kv.active(&slug(pipeline), 10).unwrap().iter().map(|job| job.job_id.to_string()).collect()
    };
    assert_eq!(ids("trips").len(), 2);
    assert_eq!(ids("other"), [""; 0]);
    assert!(!f.shown(&job).unwrap().clean_run, "the record is the first entry's");
}

/// An entry that a worker claimed before any check, and whose worker died before the start.
pub fn claimed_foreign_job_is_visible_before_its_start(f: &Fixture) {
    f.backend.add_raw(&[(b"job_id", b"J-1"), (b"pipeline", b"trips")]);
    f.claim("dead");
    assert_eq!(f.kv.active(&slug("trips"), 10).unwrap().len(), 1);
    f.advance(super::IDLE + super::seconds(5));
    let entry = f.reclaim("b");
    let start = running(f.start("b", &entry));
    f.end(&start.lease);
    assert_eq!(f.kv.active(&slug("trips"), 10).unwrap(), [], "what has ended does not come back");
}

pub fn foreign_jobs_are_visible_after_data_loss(f: &Fixture) {
    f.backend.add_raw(&[(b"job_id", b"J-1"), (b"pipeline", b"trips")]);
    assert_eq!(f.kv.active(&slug("trips"), 10).unwrap().len(), 1);
    f.backend.lose_data();
    f.claims_nothing();
    f.backend.add_raw(&[(b"job_id", b"J-2"), (b"pipeline", b"trips")]);
    let active = f.kv.active(&slug("trips"), 10).unwrap();
    assert_eq!(active.iter().map(|job| job.job_id.as_str()).collect::<Vec<_>>(), ["J-2"]);
}

pub fn foreign_job_of_busy_pipeline_is_deferred_with_record(f: &Fixture) {
    let (_, first) = f.run("a", "trips");
    f.backend.add_raw(&[(b"job_id", b"J-1"), (b"pipeline", b"trips"), (b"prefix", b"pipelines/trips/2024/")]);
    f.claims_nothing();
    let shown = f.kv.job(&slug("trips"), &JobId::parse("J-1").unwrap()).unwrap().unwrap();
    assert_eq!((shown.status, shown.reason), (JobStatus::Queued, Some(WaitReason::PipelineBusy)));
    assert_eq!((shown.attempt, shown.max_attempts), (0, ATTEMPTS_MAX));
    f.end(&first.lease);
    f.kv.release_due(10).unwrap();
    let entry = f.claim("b");
    assert_eq!(message(&entry).prefix, "pipelines/trips/2024/", "it asks for the same as before");
    assert_eq!(running(f.start("b", &entry)).attempt, 1);
}

pub fn fields_are_returned_unchanged(f: &Fixture) {
    f.backend.add_raw(&[(b"z", b"1"), (b"a", b""), (b"z", b"2"), (b"", b"no name"), ("é\n\"".as_bytes(), b"\0\x01'")]);
    let fields = f.claim("a").fields;
    let expected =
        [("z", "1"), ("a", ""), ("z", "2"), ("", "no name"), ("é\n\"", "\0\u{1}'")].map(|(n, v)| (n.into(), v.into()));
    assert_eq!(fields, expected);
}

pub fn invalid_utf8_in_fields_is_replaced(f: &Fixture) {
    f.backend.add_raw(&[(b"job_id", b"\xff\xfe"), (b"na\xc3", b"x")]);
    let entry = f.claim("a");
    assert_eq!(entry.fields[0].0, "job_id");
    assert!(entry.fields[0].1.contains('\u{fffd}') && entry.fields[1].0.contains('\u{fffd}'), "{entry:?}");
    assert_eq!(entry.fields[1].1, "x");
    f.kv.dead_letter(&entry, "no job id").unwrap();
    assert_eq!(f.backend.dead().len(), 1);
}

pub fn huge_entries_are_returned_whole(f: &Fixture) {
    let huge = vec![b'x'; 4 << 20];
    let names: Vec<String> = (0..1_000).map(|n| format!("field {n}")).collect();
    let mut fields: Vec<(&[u8], &[u8])> = vec![(b"job_id", b"J"), (b"pipeline", b"trips"), (b"prefix", &huge)];
    fields.extend(names.iter().map(|name| (name.as_bytes(), b"value".as_slice())));
    f.backend.add_raw(&fields);
    let entry = f.claim("a");
    assert_eq!((entry.fields.len(), entry.fields[2].1.len()), (1_003, huge.len()));
    let parsed = JobMessage::parse(entry.fields.iter().map(|(n, v)| (n.as_str(), v.as_str())), entry.received_at);
    assert!(matches!(parsed, ParsedEntry::Refused(..)), "the prefix is too long");
    let start = running(f.start("a", &entry));
    f.end(&start.lease);
    assert_eq!(f.kv.lock_pipeline(&slug("trips"), TTL, 0).unwrap().map(|hold| hold.pipeline), Some(slug("trips")));
}

pub fn valid_and_invalid_entries_are_claimed(f: &Fixture) {
    f.backend.add_raw(&[(b"x", b"")]);
    let job = f.enqueue("trips");
    f.backend.add_raw(&[(b"pipeline", b"../../etc"), (b"job_id", b"j")]);
    let entries = f.kv.claim("a", ClaimLimits::any(10), IMMEDIATELY).unwrap();
    assert_eq!(entries.len(), 3);
    assert_eq!(message(&entries[1]).job_id, job.job_id);
    f.kv.dead_letter(&entries[0], "one").unwrap();
    f.kv.dead_letter(&entries[2], "two").unwrap();
    let start = running(f.start("a", &entries[1]));
    f.end(&start.lease);
    assert_eq!((f.places(), f.kv.counts().unwrap().dead_letters), ((0, 0, 0), 2));
}

pub fn reused_job_id_does_not_affect_other_pipelines_job(f: &Fixture) {
    let (job, start) = f.run("a", "trips");
    f.backend.add_raw(&[(b"job_id", job.job_id.as_str().as_bytes()), (b"pipeline", b"other")]);
    let entry = f.claim("b");
    let before = f.shown(&job);
    f.start("b", &entry);
    assert_eq!(f.shown(&job), before);
    assert!(matches!(f.kv.heartbeat(&start.lease, TTL).unwrap(), lakemill::ports::jobs::HeartbeatReply::Held { .. }));
    f.end(&start.lease);
    assert_eq!(f.shown(&job).unwrap().status, JobStatus::Completed);
}
