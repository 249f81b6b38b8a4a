//! The order in which entries are claimed.

use lakemill::domain::job::{JobId, JobStatus};
use lakemill::domain::limits::MANUAL_PREFERRED_MAX;
use lakemill::ports::jobs::{ClaimLimits, StartOutcome};

use super::{Fixture, IDLE, IMMEDIATELY, TTL, message, running, seconds, slug};

/// Claims entries one at a time until there are none; returns their pipelines.
fn claim_all(f: &Fixture) -> Vec<String> {
    let mut pipelines = Vec::new();
    while let [entry] = f.kv.claim("a", ClaimLimits::any(1), IMMEDIATELY).unwrap().as_slice() {
        pipelines.push(message(entry).pipeline.to_string());
    }
    pipelines
}

pub fn manual_jobs_are_claimed_before_older_automatic_ones(f: &Fixture) {
    for (trigger, pipeline) in [("auto", "a1"), ("auto", "a2"), ("manual", "m1"), ("dry_run", "d1"), ("nightly", "n1")]
    {
        f.enqueue_by(trigger, pipeline);
    }
    assert_eq!(claim_all(f), ["m1", "d1", "n1", "a1", "a2"]);
    // Within one claim, too.
    f.enqueue_by("auto", "a3");
    f.enqueue("m2");
    let entries = f.kv.claim("a", ClaimLimits::any(9), IMMEDIATELY).unwrap();
    assert_eq!(entries.iter().map(|entry| message(entry).pipeline.to_string()).collect::<Vec<_>>(), ["m2", "a3"]);
}

pub fn one_of_five_claimed_jobs_is_automatic_while_both_kinds_wait(f: &Fixture) {
    for n in 0..3 {
        f.enqueue_by("auto", &format!("a{n}"));
    }
    for n in 0..9 {
        f.enqueue(&format!("m{n}"));
    }
    let order = ["m0", "m1", "m2", "m3", "a0", "m4", "m5", "m6", "m7", "a1", "m8", "a2"];
    assert_eq!((claim_all(f), MANUAL_PREFERRED_MAX), (order.map(str::to_owned).to_vec(), 4));
    // Automatic jobs that came later wait for all.
    for n in 0..9 {
        f.enqueue(&format!("m{n}"));
    }
    f.enqueue_by("auto", "a0");
    assert_eq!(claim_all(f).iter().position(|pipeline| pipeline == "a0"), Some(9));
}

pub fn claim_respects_its_limit_of_automatic_jobs(f: &Fixture) {
    for n in 0..4 {
        f.enqueue_by("auto", &format!("a{n}"));
    }
    let claim = |entries, automatic| {
        let limits = ClaimLimits { entries, automatic };
        let entries = f.kv.claim("a", limits, IMMEDIATELY).unwrap();
        entries.iter().map(|entry| message(entry).pipeline.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(claim(3, 0), [""; 0]);
    f.enqueue("m0");
    assert_eq!(claim(3, 1), ["m0", "a0"]);
    assert_eq!(claim(3, 0), [""; 0]);
    assert_eq!(f.places(), (5, 2, 0));
    assert_eq!(claim(2, 2), ["a1", "a2"]);
}

pub fn manual_job_is_claimed_before_thousands_of_automatic_ones(f: &Fixture) {
    for n in 0..2_500 {
        let (id, pipeline) = (format!("J-{n}"), format!("p{n}"));
        let fields = [("job_id", id.as_str()), ("pipeline", &pipeline), ("trigger", "auto")];
        f.backend.add_raw(&fields.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    }
    f.enqueue("manual");
    assert_eq!(message(&f.claim("a")).pipeline.as_str(), "manual");
    assert_eq!(message(&f.claim("a")).pipeline.as_str(), "p0");
    assert_eq!(f.kv.claim("a", ClaimLimits::any(1_000), IMMEDIATELY).unwrap().len(), 1_000);
    assert_eq!(f.places(), (2_501, 1_002, 0));
}

pub fn kind_of_a_foreign_entry_is_its_trigger(f: &Fixture) {
    f.backend.add_raw(&[(b"job_id", b"J-1"), (b"pipeline", b"p1"), (b"trigger", b"auto")]);
    f.backend.add_raw(&[(b"job_id", b"J-2"), (b"pipeline", b"p2")]);
    f.backend.add_raw(&[(b"job_id", b"J-3"), (b"pipeline", b"p3"), (b"trigger", b"\"auto\"")]);
    f.backend.add_raw(&[(b"nonsense", b"auto")]);
    f.backend.add_raw(&[(b"job_id", b"J-4"), (b"pipeline", b"p4"), (b"trigger", b"manual")]);
    let entries = f.kv.claim("a", ClaimLimits::any(9), IMMEDIATELY).unwrap();
    let ids: Vec<&str> = entries.iter().map(|entry| entry.fields[0].1.as_str()).collect();
    // The fourth one in a row that is preferred to `J-1` is the last.
    assert_eq!(ids, ["J-2", "J-3", "auto", "J-4", "J-1"]);
}

pub fn queued_jobs_are_neither_pending_nor_reclaimed(f: &Fixture) {
    let other = f.enqueue_by("auto", "p1");
    f.enqueue("p2");
    f.enqueue("p3");
    f.claim("a");
    assert_eq!(f.places(), (3, 1, 0), "the claim read all of them");
    let shown = f.shown(&other).unwrap();
    assert_eq!((shown.status, shown.reason, shown.silent_ms), (JobStatus::Queued, None, None));
    f.advance(IDLE + seconds(5));
    assert_eq!(message(&f.reclaim("b")).pipeline.as_str(), "p2");
    assert_eq!(f.kv.reclaim("b", 10, IDLE).unwrap(), []);
    assert_eq!(f.places(), (3, 1, 0));
    assert_eq!(claim_all(f), ["p3", "p1"]);
}

pub fn queued_jobs_of_a_locked_pipeline_are_deferred_by_a_claim(f: &Fixture) {
    let hold = f.kv.lock_pipeline(&slug("trips"), TTL, 0).unwrap().unwrap();
    let jobs = [f.defer_by("auto", "trips"), f.defer("trips")];
    assert_eq!(f.places(), (0, 0, 2));
    for job in &jobs {
        let shown = f.shown(job).unwrap();
        assert_eq!((shown.status, shown.attempt, shown.max_attempts), (JobStatus::Queued, 0, job.max_attempts));
        let wait = shown.not_before.unwrap() - f.now();
        assert!(wait.num_seconds() > 20 && wait.num_seconds() <= 30, "{wait}");
    }
    f.advance(seconds(26));
    assert_eq!(f.kv.release_due(10).unwrap(), 0);
    f.advance(seconds(6));
    assert_eq!(f.kv.release_due(10).unwrap(), 2);
    f.claims_nothing();
    assert_eq!(f.places(), (0, 0, 2));
    f.kv.release(&hold).unwrap();
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    assert_eq!(f.run_next("a").lease.job_id, jobs[1].job_id);
}

pub fn claim_that_defers_a_job_takes_the_next_one(f: &Fixture) {
    let hold = f.kv.lock_pipeline(&slug("busy"), TTL, 0).unwrap().unwrap();
    for _ in 0..150 {
        f.enqueue_by("auto", "busy");
    }
    f.enqueue_by("auto", "free");
    assert_eq!(message(&f.claim("a")).pipeline.as_str(), "free");
    assert_eq!(f.places(), (1, 1, 150));
    f.kv.release(&hold).unwrap();
}

pub fn claim_takes_one_job_of_a_pipeline(f: &Fixture) {
    for (trigger, pipeline) in [("auto", "p1"), ("auto", "p1"), ("manual", "p1"), ("auto", "p2"), ("manual", "p3")] {
        f.enqueue_by(trigger, pipeline);
    }
    let claim = || {
        let entries = f.kv.claim("a", ClaimLimits::any(9), IMMEDIATELY).unwrap();
        let found = entries.iter().map(|entry| (message(entry).pipeline.to_string(), message(entry).is_automatic()));
        found.collect::<Vec<_>>()
    };
    let found = |pipeline: &str, automatic| (pipeline.to_owned(), automatic);
    assert_eq!(claim(), [found("p1", false), found("p3", false), found("p2", true)]);
    assert_eq!(claim(), [found("p1", true)], "nothing is started yet");
    assert_eq!(f.places(), (5, 4, 0));
}

pub fn jobs_of_a_started_pipeline_are_behind_those_of_others(f: &Fixture) {
    for trigger in ["auto", "manual"] {
        let busy: Vec<JobId> = (0..200).map(|_| f.enqueue_by(trigger, "busy").job_id).collect();
        let others: Vec<String> = (0..20).map(|n| format!("p{n:02}")).collect();
        for other in &others {
            f.enqueue_by(trigger, other);
        }
        let mut order = Vec::new();
        let mut started = Vec::new();
        let mut runs = Vec::new();
        while started.len() < 220 {
            // Two executors, each busy until the other has started the next job.
            while runs.len() < 2 {
                f.kv.release_due(1_000).unwrap();
                let Some(entry) = f.kv.claim("a", ClaimLimits::any(1), IMMEDIATELY).unwrap().pop() else { break };
                let run = running(f.start("a", &entry));
                order.push(run.lease.pipeline.to_string());
                started.push(run.lease.job_id.clone());
                runs.push(run);
            }
            f.end(&runs.remove(0).lease);
        }
        runs.iter().for_each(|run| f.end(&run.lease));
        assert_eq!(order[0], "busy");
        let last = order.iter().position(|pipeline| *pipeline == others[19]).unwrap();
        assert!(last <= 21, "{trigger}: {:?}", &order[..=last]);
        let of_busy: Vec<JobId> = started.into_iter().filter(|job| busy.contains(job)).collect();
        assert_eq!(of_busy, busy, "{trigger}: its own jobs keep their order");
        assert_eq!(f.places(), (0, 0, 0));
    }
}

pub fn deferred_manual_job_is_due_before_older_automatic_ones(f: &Fixture) {
    let (_, first) = f.run("a", "trips");
    let automatic = f.defer_by("auto", "trips");
    let manual = f.defer("trips");
    f.end(&first.lease);
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    let second = f.run_next("a");
    assert_eq!(second.lease.job_id, manual.job_id);
    f.end(&second.lease);
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    assert_eq!(f.run_next("a").lease.job_id, automatic.job_id);
}

pub fn cancelled_automatic_job_is_claimed_like_a_manual_one(f: &Fixture) {
    let jobs: Vec<_> = (0..4).map(|n| f.enqueue_by("auto", &format!("p{n}"))).collect();
    f.kv.cancel(&jobs[3].pipeline, &jobs[3].job_id).unwrap();
    assert_eq!(message(&f.claim("a")).job_id, jobs[3].job_id, "cancelled before the first claim");
    f.kv.cancel(&jobs[2].pipeline, &jobs[2].job_id).unwrap();
    let entry = f.claim("a");
    assert_eq!(message(&entry).job_id, jobs[2].job_id, "cancelled after it");
    assert!(running(f.start("a", &entry)).cancelled);
    assert_eq!(claim_all(f), ["p0", "p1"]);
}

pub fn lost_entries_of_queued_jobs_are_skipped_and_requeued(f: &Fixture) {
    let (one, two) = (f.enqueue("one"), f.enqueue_by("auto", "two"));
    f.enqueue("claimed");
    f.claim("a");
    f.backend.trim_stream();
    f.enqueue("three");
    let entry = f.claim("a");
    assert_eq!(message(&entry).pipeline.as_str(), "three");
    assert!(matches!(f.start("a", &entry), StartOutcome::Running(_)));
    let mut cursor = Some(lakemill::ports::schedule::Cursor::default());
    while let Some(at) = cursor {
        cursor = f.kv.requeue_lost(&at).unwrap().1;
    }
    let mut again: Vec<JobId> = (0..3).map(|_| message(&f.claim("b")).job_id).collect();
    again.retain(|job| [&one.job_id, &two.job_id].contains(&job));
    assert_eq!(again.len(), 2);
}
