//! Outcomes of jobs.

use lakemill::domain::job::{JobStatus, RunErrorCode, WaitReason};
use lakemill::ports::jobs::ReleaseOutcome;
use serde_json::json;

use super::{on_both, three_days, three_days_made};
use crate::support::site::{Site, TEST_TIMEOUT, await_some, await_that, slug};

on_both!(
    job_completes_with_the_same_tables_on_all_backends,
    second_run_has_nothing_to_do,
    rows_of_removed_sources_are_removed,
    invalid_config_fails_the_job_immediately,
    missing_config_fails_the_job_immediately,
    missing_sources_fail_the_job_immediately,
    rejects_beyond_the_limit_fail_the_run_and_keep_the_rows,
    transient_failure_is_retried_after_a_pause,
    persistent_failure_ends_after_the_last_attempt,
    job_of_a_locked_pipeline_waits_without_an_attempt,
    two_jobs_of_a_pipeline_run_one_after_the_other,
    jobs_of_several_pipelines_run_concurrently,
);

fn job_completes_with_the_same_tables_on_all_backends(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let worker = site.worker();
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt, end.max_attempts), (JobStatus::Completed, 1, 3), "{end:?}");
    assert_eq!((end.trigger.as_str(), end.prefix.as_str()), ("manual", "pipelines/p/"));
    let result = end.result.unwrap();
    let table = &result.tables["t"];
    assert_eq!((table.rows_written, table.partitions_written, table.sources_read), (150, 3, 3));
    let progress = end.progress.unwrap();
    assert_eq!((progress.files_done, progress.rows_read, progress.partitions_written), (3, 150, 3));
    assert!(end.started_at <= end.finished_at && end.duration_ms.is_some() && end.fence.is_some());
    assert_eq!(site.warehouse("p"), three_days_made());
    let live = site.seen(&job).unwrap();
    assert_eq!(live.status, JobStatus::Completed, "the live record shows the end for an hour");
    assert!(
        worker.log().lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()),
        "{}",
        worker.log()
    );
}

fn second_run_has_nothing_to_do(site: Site) {
    three_days(&site);
    let _worker = site.worker();
    site.await_end(&site.enqueue("p"));
    let before = site.warehouse("p");
    let end = site.await_end(&site.enqueue("p"));
    let table = &end.result.unwrap().tables["t"];
    assert_eq!((table.sources_read, table.partitions_written, table.partitions_unchanged), (0, 0, 3));
    assert_eq!(site.warehouse("p"), before);
}

fn rows_of_removed_sources_are_removed(site: Site) {
    three_days(&site);
    let _worker = site.worker();
    site.await_end(&site.enqueue("p"));
    let source = "pipelines/p/in/2.csv".to_owned();
    let options = lakemill::ports::store::WriteOptions::default();
    site.store.delete(lakemill::ports::store::Bucket::Lake, &[source], &options).unwrap();
    let kept = site.await_end(&site.enqueue("p"));
    assert_eq!(kept.result.unwrap().tables["t"].partitions_deleted, 1);
    assert_eq!(site.warehouse("p").len(), 2);
    let clean = site.await_end(&site.enqueue_as("p", true));
    assert!(clean.clean_run && clean.status == JobStatus::Completed);
    assert_eq!(site.warehouse("p").len(), 2);
}

fn invalid_config_fails_the_job_immediately(site: Site) {
    site.configure("p", &json!({ "version": 1, "mappings": [{ "table": "T!", "files": ["*.csv"], "colums": [] }] }));
    let job = site.enqueue("p");
    let _worker = site.worker();
    let end = site.await_end(&job);
    let error = end.error.unwrap();
    assert_eq!((end.status, end.attempt, error.code), (JobStatus::Failed, 1, RunErrorCode::InvalidConfig));
    assert!(error.detail.as_ref().unwrap().contains("/mappings/0/colums"), "{error:?}");
    assert!(error.path.unwrap().starts_with("/mappings/0"));
}

fn missing_config_fails_the_job_immediately(site: Site) {
    site.put("nothing-here", "in/a.csv", "a\n");
    let job = site.enqueue("nothing-here");
    let _worker = site.worker();
    let end = site.await_end(&job);
    assert_eq!((end.attempt, end.error.unwrap().code), (1, RunErrorCode::PipelineConfigNotFound));
}

fn missing_sources_fail_the_job_immediately(site: Site) {
    site.pipeline("p", &json!({}));
    let job = site.enqueue("p");
    let _worker = site.worker();
    let end = site.await_end(&job);
    assert_eq!((end.attempt, end.error.unwrap().code), (1, RunErrorCode::NoInput));
}

fn rejects_beyond_the_limit_fail_the_run_and_keep_the_rows(site: Site) {
    site.pipeline("p", &json!({ "rejects": { "max_rows": 0, "max_ratio": 0.0 } }));
    site.put("p", "in/x.csv", "a,b\nx,1\ny,two\n");
    let job = site.enqueue("p");
    let _worker = site.worker();
    let end = site.await_end(&job);
    assert_eq!((end.attempt, end.error.unwrap().code), (1, RunErrorCode::TooManyRejects));
    let rejects = format!("pipelines/p/jobs/{}.rejected.parquet", job.job_id);
    assert!(site.read(lakemill::ports::store::Bucket::Pipelines, &rejects).is_some());
    assert!(site.warehouse("p").is_empty());
}

fn transient_failure_is_retried_after_a_pause(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let worker = site.worker_with(&[("FAILPOINTS", "publish::between_puts=1*panic->off")]);
    let waiting = await_some("the job to wait", || site.seen(&job).filter(|job| job.reason.is_some()));
    assert_eq!((waiting.status, waiting.reason, waiting.attempt), (JobStatus::Queued, Some(WaitReason::Retry), 1));
    assert_eq!(waiting.error.unwrap().code, RunErrorCode::Panicked);
    let pause = waiting.not_before.unwrap() - chrono::Utc::now();
    assert!(pause.num_milliseconds() < 2_500, "{pause}");
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt, end.error), (JobStatus::Completed, 2, None));
    assert_eq!(site.warehouse("p"), three_days_made());
    assert_eq!(site.records("p").len(), 1);
    drop(worker);
}

fn persistent_failure_ends_after_the_last_attempt(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let _worker = site.worker_with(&[("FAILPOINTS", "publish::between_puts=panic"), ("MAX_ATTEMPTS", "2")]);
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt, end.max_attempts), (JobStatus::Failed, 2, 2));
    assert_eq!(end.error.unwrap().code, RunErrorCode::Panicked);
}

fn job_of_a_locked_pipeline_waits_without_an_attempt(site: Site) {
    three_days(&site);
    let hold = site.kv.lock_pipeline(&slug("p"), TEST_TIMEOUT, 0).unwrap().unwrap();
    let job = site.enqueue("p");
    let _worker = site.worker();
    let waiting = await_some("the job to wait", || site.seen(&job).filter(|job| job.reason.is_some()));
    assert_eq!((waiting.status, waiting.reason), (JobStatus::Queued, Some(WaitReason::PipelineBusy)));
    assert_eq!(site.kv.release(&hold).unwrap(), ReleaseOutcome::Released);
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1));
    assert!(end.fence.unwrap() > hold.fence);
}

fn two_jobs_of_a_pipeline_run_one_after_the_other(site: Site) {
    three_days(&site);
    let jobs = [site.enqueue("p"), site.enqueue("p"), site.enqueue("p")];
    let slow = [("FAILPOINTS", "convert::piece=1*sleep(1500)"), ("WORKER_CONCURRENCY", "2")];
    let (_one, _two) = (site.worker_with(&slow), site.worker_with(&slow));
    let mut ends = jobs.map(|job| site.await_end(&job));
    assert!(ends.iter().all(|end| end.status == JobStatus::Completed && end.attempt == 1), "{ends:?}");
    ends.sort_by_key(|end| end.fence);
    for pair in ends.windows(2) {
        assert!(pair[0].finished_at <= pair[1].started_at, "{ends:?}");
    }
}

fn jobs_of_several_pipelines_run_concurrently(site: Site) {
    let names = ["a", "b"];
    for name in names {
        site.pipeline(name, &json!({}));
        site.put(name, "in/x.csv", "a,b\nx,1\n");
    }
    let jobs = names.map(|name| site.enqueue(name));
    let worker = site.worker_with(&[("FAILPOINTS", "convert::piece=sleep(3000)"), ("WORKER_CONCURRENCY", "2")]);
    await_that("both to run", || worker.log().matches("job started").count() == 2);
    assert!(jobs.iter().all(|job| site.record(job).is_none()), "one waited for the other");
    for job in &jobs {
        assert_eq!(site.await_end(job).status, JobStatus::Completed);
    }
}
