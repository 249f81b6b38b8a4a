//! Killed workers: another finishes the job, with one record and the right tables.

use lakemill::domain::job::{JobStatus, RunErrorCode};

use super::{on_both, three_days, three_days_made};
use crate::support::site::{Site, await_that};

on_both!(
    killed_after_the_claim,
    killed_after_the_start,
    killed_while_it_reads,
    killed_while_it_converts,
    killed_between_two_files,
    killed_before_the_deletes_of_a_clean_run,
    killed_between_record_and_acknowledgement,
    job_that_crashes_workers_fails_as_worker_lost,
    last_attempt_of_a_job_runs_exclusively,
);

fn killed_after_the_claim(site: Site) {
    // Without a start there is no attempt.
    dies_at(&site, "worker::claimed", 1, false);
}

fn killed_after_the_start(site: Site) {
    dies_at(&site, "worker::started", 2, false);
}

fn killed_while_it_reads(site: Site) {
    dies_at(&site, "convert::fetch", 2, false);
}

fn killed_while_it_converts(site: Site) {
    dies_at(&site, "convert::piece", 2, false);
}

fn killed_between_two_files(site: Site) {
    dies_at(&site, "publish::between_puts", 2, false);
}

fn killed_before_the_deletes_of_a_clean_run(site: Site) {
    dies_at(&site, "commit::after_root", 2, true);
}

fn killed_between_record_and_acknowledgement(site: Site) {
    // The other worker finds the record, with the first attempt.
    dies_at(&site, "worker::recorded", 1, false);
}

fn dies_at(site: &Site, place: &str, attempt: u32, clean: bool) {
    three_days(site);
    if clean {
        // A file that only a clean run deletes.
        let _before = site.worker();
        site.put("p", "in/9.csv", "day,n\n2024-01-09,9\n");
        site.await_end(&site.enqueue("p"));
        let options = lakemill::ports::store::WriteOptions::default();
        let gone = ["pipelines/p/in/9.csv".to_owned()];
        site.store.delete(lakemill::ports::store::Bucket::Lake, &gone, &options).unwrap();
    }
    let earlier = site.records("p").len();
    let job = site.enqueue_as("p", clean);
    let mut dying = site.spawn(&[("FAILPOINTS", &format!("{place}=return(kill)"))]);
    assert_eq!(dying.await_exit(), None, "it was to be killed at {place}:\n{}", dying.log());
    let _other = site.worker();
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, attempt), "{end:?}");
    assert_eq!(site.records("p").len(), earlier + 1);
    assert_eq!(site.warehouse("p"), three_days_made());
    let counts = site.kv.counts().unwrap();
    assert_eq!((counts.stream, counts.pending, counts.waiting), (0, 0, 0));
}

fn job_that_crashes_workers_fails_as_worker_lost(site: Site) {
    three_days(&site);
    let job = site.enqueue("p");
    let deadly = [("FAILPOINTS", "convert::piece=return(kill)"), ("MAX_ATTEMPTS", "2")];
    for _ in 0..2 {
        let mut dying = site.spawn(&deadly);
        assert_eq!(dying.await_exit(), None, "{}", dying.log());
    }
    // It must not run the job: it would crash on it.
    let mut third = site.worker_with(&deadly);
    let end = site.await_end(&job);
    let error = end.error.unwrap();
    assert_eq!((end.status, error.code), (JobStatus::Failed, RunErrorCode::WorkerLost));
    assert!(error.message.contains("2 times"), "{error:?}");
    assert!(third.is_alive());
}

fn last_attempt_of_a_job_runs_exclusively(site: Site) {
    three_days(&site);
    site.configure(
        "q",
        &serde_json::json!({ "version": 1, "mappings": [crate::support::program::mapping(&serde_json::json!({}))] }),
    );
    site.put("q", "in/x.csv", "a,b\nx,1\n");
    let poison = site.enqueue("p");
    let mut dying = site.spawn(&[("FAILPOINTS", "convert::piece=return(kill)")]);
    assert_eq!(dying.await_exit(), None, "{}", dying.log());
    // Another job runs when the last start of the first is due.
    let other = site.enqueue("q");
    let slow =
        [("FAILPOINTS", "convert::piece=1*sleep(9000)->off"), ("WORKER_CONCURRENCY", "2"), ("MAX_ATTEMPTS", "2")];
    let worker = site.worker_with(&slow);
    await_that("both to be started", || worker.log().matches("job started").count() == 2);
    let (poison, other) = (site.await_end(&poison), site.await_end(&other));
    assert_eq!((poison.status, poison.attempt, other.status), (JobStatus::Completed, 2, JobStatus::Completed));
    let log = worker.log();
    let ended = |id: &str| log.lines().position(|line| line.contains("job completed") && line.contains(id)).unwrap();
    assert!(ended(other.job_id.as_str()) < ended(poison.job_id.as_str()), "they ran side by side:\n{log}");
}
