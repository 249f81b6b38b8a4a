//! Cancelled jobs.

use lakemill::domain::job::{JobStatus, RunErrorCode};
use lakemill::ports::jobs::CancelOutcome;

use super::{cpu_seconds_of_children, endless_expression, on_both, three_days, three_days_made};
use crate::support::site::{Site, TEST_TIMEOUT, await_some, await_that, slug};

on_both!(
    cancelled_queued_job_never_runs,
    cancelled_deferred_job_ends_although_the_pipeline_is_locked,
    cancelled_running_job_publishes_nothing,
    publishing_job_runs_to_its_end_despite_a_cancellation,
    expression_ends_when_its_job_is_cancelled,
);

fn cancel(site: &Site, job: &lakemill::domain::job::Job) -> CancelOutcome {
    site.kv.cancel(&job.pipeline, &job.job_id).unwrap()
}

fn cancelled_queued_job_never_runs(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    assert_eq!(cancel(&site, &job), CancelOutcome::Requested);
    let _worker = site.worker();
    let end = site.await_end(&job);
    assert_eq!((end.status, end.error.unwrap().code), (JobStatus::Failed, RunErrorCode::Cancelled));
    assert!(site.warehouse("p").is_empty());
    assert_eq!(cancel(&site, &job), CancelOutcome::NotActive);
}

fn cancelled_deferred_job_ends_although_the_pipeline_is_locked(site: Site) {
    three_days(&site);
    let hold = site.kv.lock_pipeline(&slug("p"), TEST_TIMEOUT, 0).unwrap().unwrap();
    let job = site.enqueue("p");
    let _worker = site.worker();
    await_that("the job to wait", || site.seen(&job).is_some_and(|job| job.reason.is_some()));
    assert_eq!(cancel(&site, &job), CancelOutcome::Requested);
    site.kv.release(&hold).unwrap();
    let end = site.await_end(&job);
    assert_eq!(end.error.unwrap().code, RunErrorCode::Cancelled);
    assert!(site.warehouse("p").is_empty());
}

fn cancelled_running_job_publishes_nothing(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let worker = site.worker_with(&[("FAILPOINTS", "convert::piece=sleep(2000)")]);
    worker.await_log("job started");
    assert_eq!(cancel(&site, &job), CancelOutcome::Requested);
    let end = site.await_end(&job);
    assert_eq!((end.status, end.error.unwrap().code), (JobStatus::Failed, RunErrorCode::Cancelled));
    assert!(site.warehouse("p").is_empty());
}

fn expression_ends_when_its_job_is_cancelled(site: Site) {
    endless_expression(&site);
    let worker = site.worker();
    let job = site.enqueue("p");
    await_that("the evaluation", || cpu_seconds_of_children(worker.pid()) >= 2);
    assert_eq!(cancel(&site, &job), CancelOutcome::Requested);
    let error = site.await_end(&job).error.unwrap();
    assert_eq!(error.code, RunErrorCode::Cancelled, "{error:?}");
    await_that("the end of its process", || cpu_seconds_of_children(worker.pid()) < 2);
}

fn publishing_job_runs_to_its_end_despite_a_cancellation(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let _worker = site.worker_with(&[("FAILPOINTS", "publish::between_puts=sleep(1500)")]);
    await_some("the first file", || (!site.warehouse("p").is_empty()).then_some(()));
    assert_eq!(cancel(&site, &job), CancelOutcome::TooLate);
    assert_eq!(site.await_end(&job).status, JobStatus::Completed);
    assert_eq!(site.warehouse("p"), three_days_made());
}
