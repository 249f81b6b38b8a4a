//! Stopping of workers.

use lakemill::domain::job::{Job, JobStatus, WaitReason};
use rustix::process::Signal;

use super::{cpu_seconds_of_children, endless_expression, on_both, three_days};
use crate::support::site::{Site, await_some, await_that};

on_both!(
    idle_worker_stops_immediately_with_status_0,
    stopping_worker_finishes_its_job_and_claims_no_other,
    second_signal_requeues_the_job_without_an_attempt,
    second_signal_ends_an_expression,
    jobs_beyond_the_drain_limit_are_requeued_without_an_attempt,
    hanging_job_does_not_block_a_stop_past_the_drain_limit,
);

fn idle_worker_stops_immediately_with_status_0(site: Site) {
    for signal in [Signal::TERM, Signal::INT] {
        let mut worker = site.worker();
        worker.signal(signal);
        assert_eq!(worker.await_exit(), Some(0), "{}", worker.log());
    }
    let scratch: Vec<_> = std::fs::read_dir(site.home().join("scratch")).unwrap().collect();
    assert!(scratch.is_empty(), "{scratch:?}");
}

fn stopping_worker_finishes_its_job_and_claims_no_other(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let mut worker = site.worker_with(&[("FAILPOINTS", "convert::piece=1*sleep(3000)->off")]);
    worker.await_log("job started");
    worker.signal(Signal::TERM);
    worker.await_log("stop signal; draining");
    let next = site.enqueue("p");
    assert_eq!(worker.await_exit(), Some(0), "{}", worker.log());
    assert_eq!(site.record(&job).unwrap().status, JobStatus::Completed);
    assert!(site.record(&next).is_none());
    let _other = site.worker();
    assert_eq!(site.await_end(&next).attempt, 1);
}

fn second_signal_requeues_the_job_without_an_attempt(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let mut worker = site.worker_with(&[("FAILPOINTS", "convert::piece=sleep(1000)")]);
    worker.await_log("job started");
    worker.signal(Signal::TERM);
    worker.await_log("stop signal; draining");
    worker.signal(Signal::TERM);
    assert_eq!(worker.await_exit(), Some(0), "{}", worker.log());
    is_requeued_without_using_an_attempt(&site, &job);
}

fn second_signal_ends_an_expression(site: Site) {
    endless_expression(&site);
    let mut worker = site.worker();
    let job = site.enqueue("p");
    await_that("the evaluation", || cpu_seconds_of_children(worker.pid()) >= 2);
    worker.signal(Signal::TERM);
    worker.await_log("stop signal; draining");
    worker.signal(Signal::TERM);
    assert_eq!(worker.await_exit(), Some(0), "{}", worker.log());
    let waiting = site.seen(&job).unwrap();
    assert!(waiting.status == JobStatus::Queued && worker.has_logged("job requeued"), "{waiting:?}");
}

fn jobs_beyond_the_drain_limit_are_requeued_without_an_attempt(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let more = [("FAILPOINTS", "convert::piece=sleep(4000)"), ("SVC_DRAIN_SECONDS", "1")];
    let mut worker = site.worker_with(&more);
    worker.await_log("job started");
    worker.signal(Signal::TERM);
    assert_eq!(worker.await_exit(), Some(0), "{}", worker.log());
    assert!(worker.has_logged("SVC_DRAIN_SECONDS over"), "{}", worker.log());
    is_requeued_without_using_an_attempt(&site, &job);
}

fn hanging_job_does_not_block_a_stop_past_the_drain_limit(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    // Like a store that doesn't respond.
    let more = [("FAILPOINTS", "convert::piece=sleep(600000)"), ("SVC_DRAIN_SECONDS", "1")];
    let mut worker = site.worker_with(&more);
    worker.await_log("job started");
    worker.signal(Signal::TERM);
    assert_eq!(worker.await_exit(), Some(130), "{}", worker.log());
    worker.await_log("not interrupted in time");
    let _next = site.worker();
    assert_eq!(site.await_end(&job).status, JobStatus::Completed);
}

/// The job waits, and the next worker's attempt is its first.
fn is_requeued_without_using_an_attempt(site: &Site, job: &Job) {
    let waiting = await_some("the job to be back", || site.seen(job));
    assert_eq!((waiting.status, waiting.reason), (JobStatus::Queued, Some(WaitReason::Retry)), "{waiting:?}");
    let _other = site.worker();
    let end = site.await_end(job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1));
    await_that("nothing to be left", || site.kv.counts().unwrap().stream == 0);
}
