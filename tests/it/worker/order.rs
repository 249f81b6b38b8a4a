//! The order of jobs: manual ones first, a share for each pipeline, and runs requested by comparisons last.

use chrono::{DateTime, Utc};
use lakemill::domain::job::{Job, JobMessage, JobStatus, Stage};
use lakemill::ports::jobs::EnqueueOutcome;
use serde_json::json;

use super::on_both;
use crate::support::http_client::get;
use crate::support::site::{Site, await_that, slug};

on_both!(
    manual_job_starts_before_automatic_jobs_that_wait,
    jobs_of_a_busy_pipeline_wait_behind_those_of_others,
    automatic_jobs_leave_executors_for_manual_ones,
    runs_requested_by_a_comparison_wait_until_nothing_else_is_queued,
    requested_runs_outlive_the_worker_that_compared,
);

fn pipelines(site: &Site, names: &[String]) {
    for name in names {
        site.pipeline(name, &json!({}));
        site.put(name, "in/a.csv", "a,b\nx,1\n");
    }
}

fn enqueue_automatic(site: &Site, pipeline: &str) -> Job {
    let job = Job::queued(&JobMessage::new(slug(pipeline), false, "auto", Utc::now()), 3);
    assert_eq!(site.kv.enqueue(&job).unwrap(), EnqueueOutcome::Queued);
    job
}

/// The fences of ended jobs, which rise with the time of their start.
fn started(site: &Site, job: &Job) -> u64 {
    let end = site.await_end(job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1), "{end:?}");
    end.fence.unwrap()
}

fn ended_at(job: &Job) -> DateTime<Utc> {
    job.finished_at.unwrap()
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n:02}")).collect()
}

fn manual_job_starts_before_automatic_jobs_that_wait(site: Site) {
    let automatic = names("auto", 20);
    pipelines(&site, &automatic);
    pipelines(&site, &names("manual", 2));
    let automatic: Vec<Job> = automatic.iter().map(|name| enqueue_automatic(&site, name)).collect();
    let first = site.enqueue("manual00");
    let _worker = site.worker_with(&[("FAILPOINTS", "convert::piece=sleep(100)")]);
    let first = started(&site, &first);
    // Any number may have started since; one may have been claimed before the next job is queued.
    let second = site.enqueue("manual01");
    let queued = site.kv.job(&second.pipeline, &second.job_id).unwrap().unwrap().enqueued_at;
    let second = started(&site, &second);
    let starts: Vec<(u64, DateTime<Utc>)> =
        automatic.iter().map(|job| (started(&site, job), site.record(job).unwrap().started_at.unwrap())).collect();
    assert!(starts.iter().all(|(fence, _)| *fence > first), "{first}: {starts:?}");
    let between = starts.iter().filter(|(fence, at)| *fence < second && *at > queued).count();
    assert!(between <= 1, "{between} automatic jobs started before a manual one that was queued");
}

fn jobs_of_a_busy_pipeline_wait_behind_those_of_others(site: Site) {
    let others = names("p", 8);
    pipelines(&site, &others);
    pipelines(&site, &["busy".to_owned()]);
    let busy: Vec<Job> = (0..30).map(|_| enqueue_automatic(&site, "busy")).collect();
    let others: Vec<Job> = others.iter().map(|name| enqueue_automatic(&site, name)).collect();
    let slow = [("FAILPOINTS", "convert::piece=sleep(100)"), ("WORKER_CONCURRENCY", "2")];
    let worker = site.worker_with(&slow);
    let others: Vec<u64> = others.iter().map(|job| started(&site, job)).collect();
    let busy: Vec<u64> = busy.iter().map(|job| started(&site, job)).collect();
    let last = *others.iter().max().unwrap();
    let before = busy.iter().filter(|fence| **fence < last).count();
    assert!(before <= 2, "{before} of its jobs started before the last of the others");
    let mut sorted = busy.clone();
    sorted.sort_unstable();
    assert_eq!(busy, sorted, "its own jobs keep their order");
    // A job may be claimed in the moment before another of its pipeline starts; the rest take no executor.
    let deferred = worker.log().matches("another run of the pipeline is in progress").count();
    assert!(deferred <= 3, "{deferred} jobs took an executor only to find the pipeline busy");
}

fn automatic_jobs_leave_executors_for_manual_ones(site: Site) {
    pipelines(&site, &names("auto", 2));
    pipelines(&site, &["manual".to_owned()]);
    let automatic: Vec<Job> = names("auto", 2).iter().map(|name| enqueue_automatic(&site, name)).collect();
    let worker = site.worker_with(&[
        ("FAILPOINTS", "convert::piece=1*sleep(9000)->off"),
        ("WORKER_CONCURRENCY", "2"),
        ("SVC_MANUAL_EXECUTORS", "1"),
    ]);
    await_that("the first automatic job to convert its file", || {
        let progress = site.seen(&automatic[0]).and_then(|job| job.progress);
        progress.is_some_and(|progress| progress.stage == Stage::Converting)
    });
    let manual = site.await_end(&site.enqueue("manual"));
    let [first, second] = [&automatic[0], &automatic[1]].map(|job| site.await_end(job));
    assert!(ended_at(&manual) < ended_at(&first), "it did not wait: {manual:?}");
    assert!(second.started_at.unwrap() >= ended_at(&first), "one automatic job at a time: {second:?}");
    drop(worker);
}

/// Pipelines whose tables don't match their CSVs.
fn stale(site: &Site, count: usize) -> Vec<String> {
    let names = names("stale", count);
    for name in &names {
        site.automatic_pipeline(name);
        site.put(name, "in/a.csv", "a,b\nx,1\n");
    }
    names
}

fn runs_requested_by_a_comparison_wait_until_nothing_else_is_queued(site: Site) {
    let stale = stale(&site, 12);
    pipelines(&site, &["fresh".to_owned()]);
    let worker = site.worker_with(&[("FAILPOINTS", "convert::piece=sleep(300)")]);
    await_that("the comparison", || site.kv.counts().unwrap().requested >= 4);
    let metrics = get(&worker.address(), "/metrics");
    assert!(metrics.body.contains("\nlakemill_queue_requested "), "{}", metrics.body);
    await_that("the first requested run", || stale.iter().any(|name| !site.records(name).is_empty()));
    let fresh: Vec<Job> = (0..3).map(|_| enqueue_automatic(&site, "fresh")).collect();
    let mut queued = 0;
    await_that("all requested runs", || {
        let counts = site.kv.counts().unwrap();
        queued = queued.max(counts.stream + counts.waiting);
        stale.iter().all(|name| site.records(name).len() == 1)
    });
    assert!(queued <= fresh.len() as u64 + 2, "{queued} jobs were queued at a time");
    let fresh = fresh.iter().map(|job| started(&site, job)).max().unwrap();
    let later = stale.iter().filter(|name| site.records(name)[0].fence.unwrap() > fresh).count();
    assert!(later >= 1, "some requested runs started after the jobs of new files");
    let runs = stale.iter().map(|name| site.records(name)[0].clone());
    assert!(runs.into_iter().all(|job| job.trigger == "auto" && job.status == JobStatus::Completed));
    worker.await_log("enqueueing runs requested by comparisons");
    worker.await_log("no runs requested by comparisons are left");
    assert_eq!(site.kv.counts().unwrap().requested, 0);
}

fn requested_runs_outlive_the_worker_that_compared(site: Site) {
    let stale = stale(&site, 8);
    let mut worker = site.worker_with(&[("FAILPOINTS", "convert::piece=sleep(300)")]);
    await_that("the comparison of all", || {
        let is_known = |name: &String| {
            let name = slug(name);
            site.kv.is_run_requested(&name).unwrap()
                || !site.kv.active(&name, 1).unwrap().is_empty()
                || !site.records(name.as_str()).is_empty()
        };
        site.kv.counts().unwrap().requested >= 2 && stale.iter().all(is_known)
    });
    worker.kill();
    // It compares nothing itself.
    let more = [("SVC_RECONCILE_SECONDS", "0"), ("SVC_RECLAIM_IDLE_MS", "6000"), ("JOB_LOCK_TTL_MS", "3000")];
    let _worker = site.worker_with(&more);
    await_that("the runs", || stale.iter().all(|name| site.records(name).len() == 1));
}
