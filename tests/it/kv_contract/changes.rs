//! Keys of events: stored with the window, handed to its job, deleted with the job.

use std::collections::BTreeSet;

use lakemill::domain::job::{ChangedKeys, Job, JobId, WaitReason};
use lakemill::domain::limits::{CHANGED_KEYS_BYTES_MAX, CHANGED_KEYS_MAX};
use lakemill::ports::jobs::{ReleaseOutcome, StartedJob};
use lakemill::ports::schedule::CloseReason;

use super::{Fixture, IDLE, failure, message, running, seconds, slug};

fn these(keys: &[&str]) -> ChangedKeys {
    keys.iter().copied().collect()
}

fn change(f: &Fixture, pipeline: &str, keys: &[&str]) {
    f.kv.record_changes(&[(slug(pipeline), these(keys))]).unwrap();
}

/// Lets the window become due and fires it.
fn fire(f: &Fixture, pipeline: &str) -> Job {
    f.advance(seconds(7));
    let job = f.job(pipeline);
    assert!(f.kv.fire_window(&job).unwrap());
    job
}

fn keys(f: &Fixture, job_id: &JobId) -> ChangedKeys {
    f.kv.changed_keys(job_id).unwrap()
}

fn fail(f: &Fixture, start: &StartedJob) {
    let job = f.seen(&start.lease).failed(failure(), f.now());
    assert_eq!(f.kv.finish(&start.lease, &job).unwrap(), ReleaseOutcome::Released);
}

/// Fires a window with one key and starts its job.
fn start_with(f: &Fixture, pipeline: &str, key: &str) -> StartedJob {
    change(f, pipeline, &[key]);
    let job = fire(f, pipeline);
    assert_eq!(keys(f, &job.job_id), these(&[key]));
    // Entries of earlier jobs come first.
    let entry = std::iter::repeat_with(|| f.claim("a")).find(|entry| message(entry).job_id == job.job_id).unwrap();
    running(f.start("a", &entry))
}

pub fn window_passes_its_keys_to_its_job(f: &Fixture) {
    change(f, "trips", &["in/b.csv", "a.csv"]);
    f.open()
        .record_changes(&[(slug("other"), these(&["x.csv"])), (slug("trips"), these(&["a.csv", "é c.csv"]))])
        .unwrap();
    let job = fire(f, "trips");
    assert_eq!(keys(f, &job.job_id), these(&["a.csv", "in/b.csv", "é c.csv"]));
    assert_eq!(f.open().changed_keys(&job.job_id).unwrap(), keys(f, &job.job_id), "another process reads them too");
    change(f, "trips", &["later.csv"]);
    assert_eq!(keys(f, &fire(f, "trips").job_id), these(&["later.csv"]), "a window begins without keys");
    assert_eq!(keys(f, &fire(f, "other").job_id), these(&["x.csv"]));
}

pub fn event_without_keys_means_all_keys(f: &Fixture) {
    for order in [[true, false, true], [false, true, true], [true, true, false]] {
        for with_keys in order {
            match with_keys {
                true => change(f, "trips", &["a.csv"]),
                false => drop(f.kv.extend_windows(&[slug("trips")]).unwrap()),
            }
        }
        assert_eq!(keys(f, &fire(f, "trips").job_id), ChangedKeys::All, "{order:?}");
    }
    start_with(f, "other", "a.csv");
    assert_eq!(keys(f, &f.job("trips").job_id), ChangedKeys::All, "a job without a window");
    assert_eq!(keys(f, &f.enqueue("other").job_id), ChangedKeys::All);
}

pub fn keys_of_a_window_are_bounded(f: &Fixture) {
    let many: Vec<String> = (0..CHANGED_KEYS_MAX).map(|n| format!("{n}.csv")).collect();
    for some in many.chunks(999) {
        change(f, "trips", &some.iter().map(String::as_str).collect::<Vec<_>>());
    }
    change(f, "trips", &["7.csv", "4095.csv"]);
    let ChangedKeys::Only(kept) = keys(f, &fire(f, "trips").job_id) else { panic!("they are few enough") };
    assert_eq!(kept, many.iter().cloned().collect());
    let all: Vec<&str> = many.iter().map(String::as_str).collect();
    change(f, "trips", &all);
    change(f, "trips", &["one-more.csv"]);
    change(f, "trips", &["ignored.csv"]);
    assert_eq!(keys(f, &fire(f, "trips").job_id), ChangedKeys::All);
    change(f, "trips", &[&all[..], &["one-more.csv"]].concat());
    assert_eq!(keys(f, &fire(f, "trips").job_id), ChangedKeys::All, "in one event");
    let long: Vec<String> = (0..CHANGED_KEYS_BYTES_MAX / 1_000).map(|n| format!("{n:01000}")).collect();
    for some in long.chunks(100) {
        change(f, "trips", &some.iter().map(String::as_str).collect::<Vec<_>>());
    }
    change(f, "other", &["a.csv"]);
    assert!(matches!(keys(f, &fire(f, "trips").job_id), ChangedKeys::Only(kept) if kept.len() == long.len()));
    change(f, "trips", &long.iter().map(String::as_str).collect::<Vec<_>>());
    change(f, "trips", &["x".repeat(1_000).as_str()]);
    assert_eq!(keys(f, &fire(f, "trips").job_id), ChangedKeys::All);
    assert_eq!(keys(f, &fire(f, "other").job_id), these(&["a.csv"]), "each pipeline for itself");
}

pub fn retries_and_takeovers_keep_the_keys(f: &Fixture) {
    let start = start_with(f, "trips", "a.csv");
    let job_id = start.lease.job_id.clone();
    f.requeue(&start.lease, seconds(1));
    assert_eq!(keys(f, &job_id), these(&["a.csv"]));
    f.advance(seconds(3));
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    let again = f.run_next("b");
    assert_eq!(keys(f, &job_id), these(&["a.csv"]));
    let taken = f.take_over("c");
    assert_eq!((&again.lease.job_id, &taken.lease.job_id), (&job_id, &job_id));
    assert_eq!(keys(f, &job_id), these(&["a.csv"]));
    f.end(&taken.lease);
    assert_eq!((keys(f, &job_id), f.backend.change_sets()), (ChangedKeys::All, 0), "nothing is left");
}

pub fn completed_job_leaves_no_keys(f: &Fixture) {
    let start = start_with(f, "trips", "a.csv");
    f.end(&start.lease);
    assert_eq!((keys(f, &start.lease.job_id), f.backend.change_sets()), (ChangedKeys::All, 0));
    start_with(f, "trips", "b.csv");
}

pub fn window_collects_while_its_pipeline_runs(f: &Fixture) {
    let first = start_with(f, "trips", "a.csv");
    change(f, "trips", &["b.csv"]);
    let second = fire(f, "trips");
    f.claims_nothing();
    change(f, "trips", &["c.csv"]);
    f.end(&first.lease);
    assert_eq!(f.kv.release_due(10).unwrap(), 1);
    let start = f.run_next("b");
    assert_eq!((&start.lease.job_id, keys(f, &second.job_id)), (&second.job_id, these(&["b.csv"])));
    f.end(&start.lease);
    assert_eq!(keys(f, &fire(f, "trips").job_id), these(&["c.csv"]));
}

pub fn failed_job_makes_later_ones_check_all_keys(f: &Fixture) {
    let first = start_with(f, "trips", "a.csv");
    change(f, "trips", &["b.csv"]);
    let waiting = fire(f, "trips");
    change(f, "trips", &["c.csv"]);
    change(f, "other", &["x.csv"]);
    fail(f, &first);
    assert_eq!(keys(f, &waiting.job_id), ChangedKeys::All, "it runs next");
    assert_eq!(keys(f, &fire(f, "trips").job_id), ChangedKeys::All);
    assert_eq!(keys(f, &fire(f, "other").job_id), these(&["x.csv"]));

    let start = start_with(f, "alone", "a.csv");
    fail(f, &start);
    change(f, "alone", &["b.csv"]);
    assert_eq!(keys(f, &fire(f, "alone").job_id), ChangedKeys::All, "a window that opens later");
    change(f, "alone", &["c.csv"]);
    assert_eq!(keys(f, &fire(f, "alone").job_id), these(&["c.csv"]), "once");
}

pub fn job_lost_with_a_closed_window_is_enqueued_unless_its_pipeline_is_gone(f: &Fixture) {
    for (reason, expected) in
        [(CloseReason::AutoRunOff, ChangedKeys::All), (CloseReason::PipelineGone, these(&["b.csv"]))]
    {
        change(f, "trips", &["a.csv"]);
        f.advance(seconds(7));
        assert!(f.kv.close_window(&slug("trips"), reason).unwrap());
        change(f, "trips", &["b.csv"]);
        assert_eq!(keys(f, &fire(f, "trips").job_id), expected, "{reason:?}");
    }
}

pub fn dropped_pipeline_leaves_no_keys(f: &Fixture) {
    let start = start_with(f, "trips", "a.csv");
    f.requeue_for(&start.lease, seconds(60), WaitReason::Retry, lakemill::domain::job::AttemptCost::One);
    change(f, "trips", &["b.csv"]);
    let queued = fire(f, "trips");
    change(f, "trips", &["c.csv"]);
    assert_eq!(f.backend.change_sets(), 3);
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    assert_eq!((keys(f, &queued.job_id), f.backend.change_sets()), (ChangedKeys::All, 0));

    let running = start_with(f, "later", "a.csv");
    f.kv.drop_pipeline(&slug("later")).unwrap();
    fail(f, &running);
    assert_eq!(f.backend.change_sets(), 0, "a run that ends after its pipeline");

    f.kv.revive_pipeline(&slug("trips")).unwrap();
    change(f, "trips", &["d.csv"]);
    assert_eq!(keys(f, &fire(f, "trips").job_id), ChangedKeys::All);
}

pub fn window_of_an_older_version_checks_all_keys(f: &Fixture) {
    f.backend.extend_without_keys("trips");
    assert_eq!(keys(f, &fire(f, "trips").job_id), ChangedKeys::All);
    f.backend.extend_without_keys("trips");
    change(f, "trips", &["a.csv"]);
    assert_eq!(keys(f, &fire(f, "trips").job_id), ChangedKeys::All);
}

pub fn lost_data_means_all_keys(f: &Fixture) {
    change(f, "trips", &["a.csv"]);
    let job = fire(f, "trips");
    f.backend.lose_data();
    assert_eq!(keys(f, &job.job_id), ChangedKeys::All);
    change(f, "trips", &["b.csv"]);
    assert_eq!(keys(f, &fire(f, "trips").job_id), these(&["b.csv"]));
}

pub fn waiting_too_long_costs_the_keys_at_most(f: &Fixture) {
    change(f, "trips", &["a.csv"]);
    let job = fire(f, "trips");
    f.advance(seconds(6 * 86_400));
    assert_eq!(keys(f, &job.job_id), these(&["a.csv"]));
    f.advance(IDLE);
    let start = running(f.start("a", &f.claim("a")));
    assert_eq!(start.lease.job_id, job.job_id);
    f.end(&start.lease);
    assert_eq!(f.backend.change_sets(), 0);
}

/// Threads add keys while others fire: each key reaches exactly one job.
pub fn keys_racing_with_fires_reach_a_job(f: &Fixture) {
    const THREADS: usize = 64;
    const EACH: usize = 5;
    change(f, "trips", &["first.csv"]);
    f.advance(seconds(7));
    let fired = super::racing::race(f, THREADS, |n, kv| {
        let mut fired = Vec::new();
        for m in 0..EACH {
            let key = format!("{n}-{m}.csv");
            kv.record_changes(&[(slug("trips"), these(&[&key]))]).unwrap();
            let job = f.job("trips");
            if kv.fire_window(&job).unwrap() {
                fired.push(job.job_id);
            }
            if n == 0 {
                f.advance(seconds(40));
            }
        }
        fired
    });
    let mut jobs: Vec<JobId> = fired.into_iter().flatten().collect();
    f.advance(seconds(40));
    let last = f.job("trips");
    if f.kv.fire_window(&last).unwrap() {
        jobs.push(last.job_id);
    }
    let mut found = BTreeSet::new();
    for job in &jobs {
        let ChangedKeys::Only(keys) = keys(f, job) else { panic!("nothing was lost") };
        for key in keys {
            assert!(found.insert(key.clone()), "`{key}` is in one window");
        }
    }
    assert_eq!(found.len(), THREADS * EACH + 1);
    assert_eq!(f.backend.change_sets(), jobs.len());
}
