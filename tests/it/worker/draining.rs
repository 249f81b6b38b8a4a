//! Workers that end once nothing is left to do: `--drain` and `--once`.

use lakemill::domain::job::{Job, JobStatus, RunErrorCode};
use lakemill::ports::jobs::CancelOutcome;
use lakemill::ports::store::{Bucket, WriteOptions};
use rustix::process::Signal;
use serde_json::json;

use super::entries::xadd;
use super::{on_both, three_days};
use crate::support::notification_sinks::WebhookSink;
use crate::support::redis_server::RedisServer;
use crate::support::site::{Kind, Service, Site, slug};

on_both!(
    drain_runs_queued_jobs_and_open_windows,
    drain_skips_the_comparison_and_once_compares_all_pipelines,
    failed_job_is_reported_once_by_the_exit_status,
    cancelled_job_is_not_a_failure,
    stop_signal_ends_a_drain_after_its_job_with_a_distinct_exit_status,
    one_shot_worker_runs_the_job_of_a_dead_worker,
    one_shot_worker_does_not_wait_for_the_job_of_a_live_worker,
    pipeline_that_cannot_be_compared_is_a_failure,
);

/// Waits for the end of a worker that started with `--drain` or `--once`.
#[track_caller]
fn assert_exits_with(mut worker: Service, status: i32) -> String {
    assert_eq!(worker.await_exit(), Some(status), "{}", worker.log());
    worker.log()
}

#[track_caller]
fn nothing_is_left(site: &Site) {
    let counts = site.kv.counts().unwrap();
    assert_eq!((counts.stream, counts.pending, counts.waiting, counts.windows), (0, 0, 0, 0), "{counts:?}");
    assert_eq!(counts.requested, 0);
}

#[track_caller]
fn completed(site: &Site, job: &Job) {
    assert_eq!(site.record(job).map(|job| job.status), Some(JobStatus::Completed));
}

fn strict_pipeline(site: &Site, name: &str) {
    site.pipeline(name, &json!({ "rejects": { "max_ratio": 0.0 } }));
    site.put(name, "in/a.csv", "a,b\nx,none\n");
}

fn drain_runs_queued_jobs_and_open_windows(site: Site) {
    three_days(&site);
    let jobs = [site.enqueue("p"), site.enqueue("p"), site.enqueue_as("p", true)];
    site.automatic_pipeline("events");
    site.put("events", "in/a.csv", "a,b\nx,1\n");
    site.kv.extend_windows(&[slug("events")]).unwrap();
    let log = assert_exits_with(site.one_shot("--drain", &[]), 0);
    assert!(log.contains("nothing left to do; worker ends") && log.contains("worker stopped"), "{log}");
    jobs.iter().for_each(|job| completed(&site, job));
    assert_eq!(site.records("events").iter().map(|job| job.status).collect::<Vec<_>>(), [JobStatus::Completed]);
    nothing_is_left(&site);
    assert_exits_with(site.one_shot("--drain", &[]), 0);
}

fn drain_skips_the_comparison_and_once_compares_all_pipelines(site: Site) {
    site.automatic_pipeline("changed");
    site.put("changed", "in/a.csv", "a,b\nx,1\n");
    site.pipeline("manual", &json!({}));
    site.put("manual", "in/a.csv", "a,b\nx,1\n");
    assert_exits_with(site.one_shot("--drain", &[]), 0);
    assert_eq!(site.records("changed"), []);
    // Whether or not others compare at intervals.
    for (round, more) in [&[][..], &[("SVC_RECONCILE_SECONDS", "0")]].into_iter().enumerate() {
        assert_exits_with(site.one_shot("--once", more), 0);
        assert_eq!(site.records("changed").len(), round + 1);
        nothing_is_left(&site);
        assert_exits_with(site.one_shot("--once", more), 0);
        assert_eq!(site.records("changed").len(), round + 1, "no change, no run");
        site.put("changed", &format!("in/{round}.csv"), "a,b\ny,2\n");
    }
    assert!(site.records("changed").iter().all(|job| job.status == JobStatus::Completed));
    assert_eq!(site.records("manual"), [], "it runs on request only");
}

fn failed_job_is_reported_once_by_the_exit_status(site: Site) {
    three_days(&site);
    strict_pipeline(&site, "bad");
    let (bad, good) = (site.enqueue("bad"), site.enqueue("p"));
    let log = assert_exits_with(site.one_shot("--drain", &[]), 1);
    assert!(log.contains("\"completed\":1,\"failed\":1"), "{log}");
    assert_eq!(site.record(&bad).unwrap().error.unwrap().code, RunErrorCode::TooManyRejects);
    completed(&site, &good);
    nothing_is_left(&site);
    assert_exits_with(site.one_shot("--drain", &[]), 0);
}

fn cancelled_job_is_not_a_failure(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    assert_eq!(site.kv.cancel(&job.pipeline, &job.job_id).unwrap(), CancelOutcome::Requested);
    assert_exits_with(site.one_shot("--drain", &[]), 0);
    assert_eq!(site.record(&job).unwrap().error.unwrap().code, RunErrorCode::Cancelled);
}

#[test]
fn entry_that_is_no_job_is_a_failure() {
    let site = Site::new(Kind::Fleet);
    xadd(&site, &["job_id", "x", "pipeline", "../p"]);
    assert_exits_with(site.one_shot("--drain", &[]), 1);
    assert_eq!(site.kv.counts().unwrap().dead_letters, 1);
}

fn stop_signal_ends_a_drain_after_its_job_with_a_distinct_exit_status(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let worker = site.one_shot("--drain", &[("FAILPOINTS", "convert::piece=1*sleep(3000)->off")]);
    worker.await_log("job started");
    let next = site.enqueue("p");
    worker.signal(Signal::TERM);
    let log = assert_exits_with(worker, 75);
    assert!(log.contains("stopped by a signal before everything was done; start it again"), "{log}");
    completed(&site, &job);
    assert!(site.record(&next).is_none());
    assert_exits_with(site.one_shot("--drain", &[]), 0);
    completed(&site, &next);
    nothing_is_left(&site);
}

fn one_shot_worker_runs_the_job_of_a_dead_worker(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let mut dead = site.one_shot("--drain", &[("FAILPOINTS", "worker::started=return(kill)")]);
    assert_eq!(dead.await_exit(), None);
    assert_exits_with(site.one_shot("--drain", &[]), 0);
    completed(&site, &job);
    nothing_is_left(&site);
}

fn one_shot_worker_does_not_wait_for_the_job_of_a_live_worker(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let busy = site.worker_with(&[("FAILPOINTS", "convert::piece=sleep(600000)"), ("SVC_DRAIN_SECONDS", "0")]);
    busy.await_log("job started");
    assert_exits_with(site.one_shot("--drain", &[]), 0);
    assert!(site.record(&job).is_none());
    assert_eq!(site.kv.counts().unwrap().pending, 1, "it still runs");
}

fn pipeline_that_cannot_be_compared_is_a_failure(site: Site) {
    site.automatic_pipeline("newer");
    site.put("newer", "in/a.csv", "a,b\nx,1\n");
    site.automatic_pipeline("other");
    site.put("other", "in/a.csv", "a,b\nx,1\n");
    let root = json!({ "version": 1_000_000 }).to_string();
    let key = "pipelines/newer/manifests/t.json";
    site.store.put(Bucket::Pipelines, key, root.as_bytes(), &WriteOptions::default()).unwrap();
    let log = assert_exits_with(site.one_shot("--once", &[]), 1);
    assert!(log.contains("comparing the lake failed; pipeline skipped"), "{log}");
    assert_eq!(site.records("other").len(), 1);
}

#[test]
fn unavailable_store_is_waited_for() {
    let site = Site::new(Kind::Fleet);
    three_days(&site);
    let job = site.enqueue("p");
    site.break_store();
    let worker = site.one_shot("--drain", &[]);
    worker.await_log("probe failed");
    site.restore_store();
    assert_exits_with(worker, 0);
    completed(&site, &job);
}

#[test]
fn one_shot_worker_recovers_from_data_loss_of_the_queue() {
    let site = Site::fleet(RedisServer::durable());
    site.automatic_pipeline("p");
    site.put("p", "in/a.csv", "a,b\nx,1\n");
    assert_exits_with(site.one_shot("--drain", &[]), 0);
    assert_eq!(site.records("p").len(), 1);
    nothing_is_left(&site);
}

#[test]
fn failure_is_notified_before_the_job_ends() {
    let sink = WebhookSink::start();
    let mut site = Site::new(Kind::Fleet);
    site.set("SVC_NOTIFY_URL", &format!("http://{}/hook", sink.address()))
        .set("SVC_NOTIFY_SECRET", "key of the signatures in tests");
    strict_pipeline(&site, "bad");
    site.enqueue("bad");
    assert_exits_with(site.one_shot("--drain", &[]), 1);
    assert_eq!(sink.events("run_failed").len(), 1);
}

#[test]
fn invalid_environment_and_arguments_have_distinct_exit_statuses() {
    let mut site = Site::new(Kind::Embedded);
    site.set("OBJ_REGION", "");
    assert_exits_with(site.one_shot("--drain", &[]), 78);
    assert_exits_with(site.one_shot("--drained", &[]), 2);
}
