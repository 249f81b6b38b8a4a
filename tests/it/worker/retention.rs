//! Records of old jobs: a worker deletes them if its settings say so.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use lakemill::domain::job::{Job, JobId, JobMessage, RunError, RunErrorCode};
use lakemill::domain::layout::{job_record_key, job_rejects_key};
use lakemill::domain::limits::JOB_RECORDS_KEPT;
use lakemill::ports::job_index::EndedFilter;
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::json;
use uuid::{NoContext, Timestamp, Uuid};

use super::on_both;
use crate::support::site::{Site, await_that, slug};

on_both!(
    old_records_and_their_rejects_are_deleted,
    newest_records_stay_however_old_they_are,
    records_are_kept_by_default,
);

const OLD: usize = 25;

/// The record of a job that was enqueued then, with rejected rows.
fn record(site: &Site, pipeline: &str, at: DateTime<Utc>) -> JobId {
    let mut message = JobMessage::new(slug(pipeline), false, "manual", at);
    let time = Timestamp::from_unix(NoContext, u64::try_from(at.timestamp()).unwrap(), 0);
    message.job_id = JobId::parse(&Uuid::new_v7(time).to_string()).unwrap();
    let error = RunError::new(RunErrorCode::NoInput, "no source");
    let job = Job::queued(&message, 3).started("w", 1, 1, at).failed(error, at);
    let put = |key: &str, body: &[u8]| site.store.put(Bucket::Pipelines, key, body, &WriteOptions::default()).unwrap();
    put(&job_record_key(&job.pipeline, job.job_id.as_str()), &serde_json::to_vec(&job).unwrap());
    put(&job_rejects_key(&job.pipeline, job.job_id.as_str()), b"PAR1");
    job.job_id
}

/// Pipelines `many` and `few` with records of each of the last days.
fn lay_out(site: &Site) -> (Vec<JobId>, Vec<JobId>) {
    let at = |day: usize| Utc::now() - TimeDelta::days(i64::try_from(day).unwrap()) - TimeDelta::minutes(5);
    for pipeline in ["many", "few"] {
        site.configure(pipeline, &json!({ "version": 1, "auto_run": false, "mappings": [] }));
    }
    (
        (0..OLD).map(|day| record(site, "many", at(day))).collect(),
        (0..3).map(|n| record(site, "few", at(100 + n))).collect(),
    )
}

fn records(site: &Site, pipeline: &str) -> BTreeSet<String> {
    site.records(pipeline).into_iter().map(|job| job.job_id.to_string()).collect()
}

fn ids(jobs: &[JobId]) -> BTreeSet<String> {
    jobs.iter().map(ToString::to_string).collect()
}

fn indexed(site: &Site) -> usize {
    site.kv.ended(EndedFilter::default(), None, 1_000).unwrap().jobs.len()
}

fn old_records_and_their_rejects_are_deleted(site: Site) {
    let (many, few) = lay_out(&site);
    let worker = site.worker_with(&[("SVC_JOB_RECORDS_DAYS", "14")]);
    worker.await_log("old job records deleted");
    await_that("the index to shrink", || indexed(&site) == 14 + few.len());
    assert_eq!((records(&site, "many"), records(&site, "few")), (ids(&many[..14]), ids(&few)));
    let rejects = |id: &JobId| site.read(Bucket::Pipelines, &job_rejects_key(&slug("many"), id.as_str())).is_some();
    assert_eq!(many.iter().filter(|id| rejects(id)).count(), 14);
}

fn newest_records_stay_however_old_they_are(site: Site) {
    let (many, few) = lay_out(&site);
    let worker = site.worker_with(&[("SVC_JOB_RECORDS_DAYS", "1")]);
    worker.await_log("old job records deleted");
    assert_eq!((records(&site, "many"), records(&site, "few")), (ids(&many[..JOB_RECORDS_KEPT]), ids(&few)));
}

fn records_are_kept_by_default(site: Site) {
    let (many, few) = lay_out(&site);
    let _worker = site.worker();
    await_that("the index", || site.kv.is_built().unwrap());
    assert_eq!(indexed(&site), many.len() + few.len());
    assert_eq!((records(&site, "many"), records(&site, "few")), (ids(&many), ids(&few)));
}
