//! The keys of events reach the job.

use std::time::Duration;

use lakemill::domain::job::{ChangedKeys, Job, JobStatus};
use lakemill::ports::jobs::PipelineLock;
use lakemill::ports::store::{Bucket, WriteOptions};

use super::batches::post;
use super::on_both;
use crate::support::site::{Kind, Service, Site, await_some, await_that, slug};

on_both!(
    keys_of_events_reach_the_job_and_are_deleted_with_it,
    cancelled_job_makes_the_next_one_check_all_keys,
    workers_that_die_while_they_fire_lose_no_keys,
);

fn these(keys: &[&str]) -> ChangedKeys {
    keys.iter().copied().collect()
}

/// A worker that no longer reconciles, and a pipeline after one run.
fn worker_without_reconciliation(site: &Site) -> Service {
    site.automatic_pipeline("p");
    site.put("p", "in/0.csv", "a,b\nx,0\n");
    let worker = site.worker();
    post(site, &worker, &["pipelines/p/in/0.csv".to_owned()]);
    await_that("the first run", || !site.records("p").is_empty());
    await_that("the comparison of a new store", || site.kv.is_initialized().unwrap());
    await_that("nothing to be left", || is_quiet(site));
    worker
}

fn is_quiet(site: &Site) -> bool {
    let counts = site.kv.counts().unwrap();
    counts.requested == 0 && counts.windows == 0 && counts.stream == 0 && counts.waiting == 0
}

fn hold(site: &Site) -> PipelineLock {
    let lock = || site.kv.lock_pipeline(&slug("p"), Duration::from_secs(60), 0).unwrap();
    await_some("the lock", lock)
}

/// The jobs of the pipeline, once there are `count`.
fn jobs(site: &Site, count: usize) -> Vec<Job> {
    await_some("the jobs", || Some(site.kv.active(&slug("p"), 10).unwrap()).filter(|jobs| jobs.len() == count))
}

fn keys_of_events_reach_the_job_and_are_deleted_with_it(site: Site) {
    let worker = worker_without_reconciliation(&site);
    let runs = site.records("p").len();
    let lock = hold(&site);
    for n in ["1", "a+b"] {
        site.put("p", &format!("in/{}.csv", n.replace('+', " ")), "a,b\nx,1\n");
        post(&site, &worker, &[format!("pipelines%2Fp%2Fin%2F{n}.csv")]);
    }
    let first = jobs(&site, 1).remove(0);
    assert_eq!(site.kv.changed_keys(&first.job_id).unwrap(), these(&["in/1.csv", "in/a b.csv"]));
    // The pipeline is locked, and its events become another job.
    site.put("p", "in/2.csv", "a,b\nx,2\n");
    post(&site, &worker, &["pipelines/p/in/2.csv".to_owned()]);
    let second = jobs(&site, 2).into_iter().find(|job| job.job_id != first.job_id).unwrap();
    assert_eq!(site.kv.changed_keys(&second.job_id).unwrap(), these(&["in/2.csv"]));
    site.kv.release(&lock).unwrap();
    await_that("both ends", || site.records("p").len() == runs + 2);
    assert!(site.records("p").iter().all(|job| job.status == JobStatus::Completed));
    for job in [first, second] {
        await_that("its keys to go", || site.kv.changed_keys(&job.job_id).unwrap() == ChangedKeys::All);
    }
    worker.await_log("run checks the keys of its events");
}

fn cancelled_job_makes_the_next_one_check_all_keys(site: Site) {
    let worker = worker_without_reconciliation(&site);
    let lock = hold(&site);
    post(&site, &worker, &["pipelines/p/in/1.csv".to_owned()]);
    let first = jobs(&site, 1).remove(0);
    site.kv.cancel(&first.pipeline, &first.job_id).unwrap();
    post(&site, &worker, &["pipelines/p/in/2.csv".to_owned()]);
    let waiting = jobs(&site, 2).into_iter().find(|job| job.job_id != first.job_id).unwrap();
    assert_eq!(site.kv.changed_keys(&waiting.job_id).unwrap(), these(&["in/2.csv"]));
    site.kv.release(&lock).unwrap();
    await_that("both ends", || is_quiet(&site));
    worker.await_log("run compares the whole lake");
}

fn workers_that_die_while_they_fire_lose_no_keys(site: Site) {
    site.automatic_pipeline("p");
    site.kv.record_changes(&[(slug("p"), these(&["in/1.csv", "in/2.csv"]))]).unwrap();
    for place in ["worker::before_fire", "worker::fired"] {
        assert_eq!(site.kv.counts().unwrap().windows, 1, "{place}");
        let mut worker =
            site.spawn(&[("FAILPOINTS", &format!("{place}=return(kill)")), ("SVC_RECONCILE_SECONDS", "0")]);
        assert_eq!(worker.await_exit(), None, "{place}");
    }
    let job = jobs(&site, 1).remove(0);
    assert_eq!(site.kv.changed_keys(&job.job_id).unwrap(), these(&["in/1.csv", "in/2.csv"]));
}

#[test]
fn files_of_a_folder_that_appear_and_vanish_reach_the_job() {
    let site = Site::new(Kind::Embedded);
    let _worker = worker_without_reconciliation(&site);
    let runs = site.records("p").len();
    let lock = hold(&site);
    site.put("p", "in/1.csv", "a,b\nx,1\n");
    let key = "pipelines/p/in/0.csv".to_owned();
    site.store.delete(Bucket::Lake, &[key], &WriteOptions::default()).unwrap();
    let job = jobs(&site, 1).remove(0);
    assert_eq!(site.kv.changed_keys(&job.job_id).unwrap(), these(&["in/0.csv", "in/1.csv"]));
    site.kv.release(&lock).unwrap();
    await_that("the run", || site.records("p").len() == runs + 1);
}

#[test]
fn manual_run_checks_all_keys() {
    let site = Site::new(Kind::Embedded);
    let worker = worker_without_reconciliation(&site);
    let before = worker.log().matches("run checks the keys").count();
    site.await_end(&site.enqueue("p"));
    assert_eq!(worker.log().matches("run checks the keys").count(), before);
}
