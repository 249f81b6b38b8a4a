//! Pauses: no run of a paused pipeline starts, and nothing is lost meanwhile.

use lakemill::domain::job::{Job, JobStatus, WaitReason};
use lakemill::domain::pause::Pause;
use serde_json::json;

use super::on_both;
use crate::support::http_client::get;
use crate::support::site::{Service, Site, await_that, slug};

on_both!(
    paused_pipeline_starts_no_run_and_loses_nothing,
    worker_claims_nothing_while_all_pipelines_are_paused,
    drain_ends_while_what_is_left_is_paused,
);

fn pause(site: &Site, pipeline: Option<&str>) {
    let pause = Pause { since: chrono::Utc::now(), reason: "the warehouse moves".to_owned() };
    site.kv.pause(pipeline.map(slug).as_ref(), &pause).unwrap();
}

fn waits_for_pause(site: &Site, job: &Job) -> bool {
    site.seen(job).is_some_and(|job| job.reason == Some(WaitReason::Paused))
}

#[track_caller]
fn completed(site: &Site, job: &Job) {
    let end = site.await_end(job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1), "{end:?}");
}

/// Whether a ready worker says that all pipelines are paused.
fn is_ready_and_paused(worker: &Service) -> Option<bool> {
    let ready = get(&worker.address(), "/readyz");
    (ready.status == 200).then(|| ready.json()["all_paused"] == true)
}

fn paused_pipeline_starts_no_run_and_loses_nothing(site: Site) {
    site.automatic_pipeline("held");
    site.pipeline("free", &json!({}));
    for pipeline in ["held", "free"] {
        site.put(pipeline, "in/a.csv", "a,b\nx,1\n");
    }
    pause(&site, Some("held"));
    let _worker = site.worker();
    let job = site.enqueue("held");
    site.kv.extend_windows(&[slug("held")]).unwrap();
    await_that("the job to wait", || waits_for_pause(&site, &job));
    completed(&site, &site.enqueue("free"));
    assert!(site.kv.due_windows(10).unwrap().is_empty() && site.records("held").is_empty());
    assert!(site.kv.resume(Some(&slug("held"))).unwrap());
    completed(&site, &job);
    await_that("the run of the window", || site.records("held").len() == 2);
}

fn worker_claims_nothing_while_all_pipelines_are_paused(site: Site) {
    site.pipeline("p", &json!({}));
    site.put("p", "in/a.csv", "a,b\nx,1\n");
    let worker = site.worker();
    pause(&site, None);
    await_that("the worker to pause", || is_ready_and_paused(&worker) == Some(true));
    let job = site.enqueue("p");
    worker.await_log("all pipelines are paused; claims paused");
    let counts = site.kv.counts().unwrap();
    assert_eq!((counts.stream, counts.pending), (1, 0), "{counts:?}");
    assert!(site.kv.resume(None).unwrap());
    completed(&site, &job);
    await_that("the worker to resume", || is_ready_and_paused(&worker) == Some(false));
}

fn drain_ends_while_what_is_left_is_paused(site: Site) {
    site.automatic_pipeline("held");
    site.automatic_pipeline("free");
    for pipeline in ["held", "free"] {
        site.put(pipeline, "in/a.csv", "a,b\nx,1\n");
    }
    pause(&site, Some("held"));
    let (held, free) = (site.enqueue("held"), site.enqueue("free"));
    site.kv.extend_windows(&[slug("held"), slug("free")]).unwrap();
    let mut worker = site.one_shot("--drain", &[]);
    assert_eq!(worker.await_exit(), Some(0), "{}", worker.log());
    completed(&site, &free);
    assert!(waits_for_pause(&site, &held) && site.kv.window_due_at(&slug("held")).unwrap().is_some());
    pause(&site, None);
    let more = site.enqueue("free");
    let mut worker = site.one_shot("--drain", &[]);
    assert_eq!(worker.await_exit(), Some(0), "{}", worker.log());
    assert_eq!(site.seen(&more).unwrap().status, JobStatus::Queued);
}
