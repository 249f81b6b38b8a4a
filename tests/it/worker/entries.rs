//! Stream entries of other programs, added with a plain `XADD`.

use lakemill::domain::job::{Job, JobMessage, JobStatus, RunErrorCode};
use redis::Value;

use super::{three_days, three_days_made};
use crate::support::site::{Kind, Site, await_that, job_id, slug};

pub(super) fn xadd(site: &Site, fields: &[&str]) {
    let mut words = vec!["XADD", "svc:jobs:stream", "*"];
    words.extend(fields);
    let _: Value = site.redis.as_ref().unwrap().ask(&words);
}

/// A job to wait for, by its id.
fn job(pipeline: &str, id: &str) -> Job {
    let mut message = JobMessage::new(slug(pipeline), false, "manual", chrono::Utc::now());
    message.job_id = job_id(id);
    Job::queued(&message, 3)
}

#[test]
fn three_workers_run_jobs_from_plain_xadd() {
    let site = Site::new(Kind::Fleet);
    three_days(&site);
    let _workers = [site.worker(), site.worker(), site.worker()];
    xadd(&site, &["job_id", "first", "pipeline", "p"]);
    let end = site.await_end(&job("p", "first"));
    assert_eq!((end.status, end.trigger.as_str(), end.clean_run), (JobStatus::Completed, "manual", false));
    assert_eq!(site.warehouse("p"), three_days_made());
    xadd(
        &site,
        &[
            "trigger",
            "nightly",
            "unknown",
            "field",
            "job_id",
            "second",
            "pipeline",
            "p",
            "prefix",
            "pipelines/p/",
            "clean_run",
            "TRUE",
            "enqueued_at",
            "1700000000000",
        ],
    );
    let end = site.await_end(&job("p", "second"));
    assert_eq!((end.status, end.trigger.as_str(), end.clean_run), (JobStatus::Completed, "nightly", true));
    assert_eq!(end.enqueued_at.timestamp_millis(), 1_700_000_000_000);
}

#[test]
fn entry_without_a_valid_pipeline_becomes_a_dead_letter() {
    let site = Site::new(Kind::Fleet);
    three_days(&site);
    let long = "x".repeat(70);
    for fields in [
        &["nothing", "of use"][..],
        &["job_id", "x"],
        &["pipeline", "p"],
        &["job_id", "../../etc/passwd", "pipeline", "p"],
        &["job_id", &long, "pipeline", "p"],
        &["job_id", "x", "pipeline", "../p"],
        &["job_id", "x", "pipeline", "P"],
        &["job_id", "", "pipeline", ""],
    ] {
        xadd(&site, fields);
    }
    xadd(&site, &["job_id", "good", "pipeline", "p"]);
    let _worker = site.worker();
    assert_eq!(site.await_end(&job("p", "good")).status, JobStatus::Completed);
    await_that("the dead to be counted", || site.kv.counts().unwrap().dead_letters == 8);
    let counts = site.kv.counts().unwrap();
    assert_eq!((counts.stream, counts.pending), (0, 0));
    assert_eq!(site.records("p").len(), 1);
}

#[test]
fn malformed_job_fails_with_a_record() {
    let site = Site::new(Kind::Fleet);
    three_days(&site);
    let _worker = site.worker();
    for (id, field, value, part) in [
        ("one", "clean_run", "perhaps", "found `perhaps`"),
        ("two", "prefix", "pipelines/other/", "found `pipelines/other/`"),
    ] {
        xadd(&site, &["job_id", id, "pipeline", "p", field, value]);
        let error = site.await_end(&job("p", id)).error.unwrap();
        assert_eq!(error.code, RunErrorCode::InvalidJob);
        assert!(error.message.contains(part), "{error:?}");
    }
    assert!(site.warehouse("p").is_empty());
}

#[test]
fn ended_job_id_is_acknowledged_without_a_run() {
    let site = Site::new(Kind::Fleet);
    three_days(&site);
    let worker = site.worker();
    xadd(&site, &["job_id", "twice", "pipeline", "p"]);
    let first = site.await_end(&job("p", "twice"));
    xadd(&site, &["job_id", "twice", "pipeline", "p", "clean_run", "true"]);
    await_that("the second to be acknowledged", || {
        worker.log().matches("job started").count() == 2 && site.kv.counts().unwrap().stream == 0
    });
    assert_eq!(site.record(&job("p", "twice")), Some(first));
}
