//! Several workers on one queue.

use std::collections::BTreeSet;

use lakemill::domain::job::JobStatus;
use lakemill::ports::store::{Bucket, list_all};
use rustix::process::Signal;
use serde_json::json;

use super::{on_both, pipeline_of_days, put_day, three_days, three_days_made};
use crate::support::site::{Site, await_that};

on_both!(
    many_jobs_among_three_workers_each_run_once,
    run_longer_than_the_reclaim_time_runs_once,
    paused_worker_with_expired_lock_writes_nothing,
);

fn many_jobs_among_three_workers_each_run_once(site: Site) {
    let names: Vec<String> = (0..20).map(|n| format!("p{n}")).collect();
    let mut jobs = Vec::new();
    for name in &names {
        site.pipeline(name, &json!({}));
        site.put(name, "in/x.csv", "a,b\nx,1\n");
        jobs.push(site.enqueue(name));
    }
    let workers = [site.worker(), site.worker(), site.worker()];
    let mut by = BTreeSet::new();
    for job in &jobs {
        let end = site.await_end(job);
        assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1));
        by.extend(end.worker);
    }
    let starts: usize = workers.iter().map(|w| w.log().matches("job started").count()).sum();
    assert_eq!(starts, jobs.len());
    assert!(by.len() > 1, "one worker did it all: {by:?}");
}

fn run_longer_than_the_reclaim_time_runs_once(mut site: Site) {
    three_days(&site);
    // Idle jobs are taken over after 5 s; the run takes three times as long.
    site.set("JOB_LOCK_TTL_MS", "4000").set("HEARTBEAT_MS", "800").set("SVC_RECLAIM_IDLE_MS", "5000");
    let job = site.enqueue("p");
    let slow = [("FAILPOINTS", "convert::piece=1*sleep(15000)->off")];
    let workers = [site.worker_with(&slow), site.worker_with(&slow), site.worker_with(&slow)];
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1));
    let starts: usize = workers.iter().map(|w| w.log().matches("job started").count()).sum();
    assert_eq!(starts, 1);
    assert_eq!(site.warehouse("p"), three_days_made());
}

fn paused_worker_with_expired_lock_writes_nothing(mut site: Site) {
    pipeline_of_days(&site);
    put_day(&site, 1);
    put_day(&site, 2);
    site.set("JOB_LOCK_TTL_MS", "4000").set("HEARTBEAT_MS", "800").set("SVC_RECLAIM_IDLE_MS", "5000");
    let first = site.worker();
    let days = site.enqueue("p");
    site.await_end(&days);
    drop(first);
    put_day(&site, 3);
    let job = site.enqueue("p");
    // It pauses itself in the middle of publishing, between the last check of its lock and the PUT. There is only this
    // file to write: a second thread could be paused while it holds a folder's short lock.
    let sleeper = site.worker_with(&[("FAILPOINTS", "publish::checked=1*return(stop)->off")]);
    await_that("it to stand still", || is_stopped(sleeper.pid()));
    let other = site.worker();
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 2));
    let before = everything(&site);
    sleeper.signal(Signal::CONT);
    sleeper.await_log("nothing more is written");
    // A late write of it would happen before it takes the next job.
    drop(other);
    let next = site.enqueue("p");
    site.await_end(&next);
    assert_eq!(site.warehouse("p"), three_days_made());
    let after = everything(&site);
    let changed: Vec<&String> =
        before.iter().filter(|(key, tag)| after.get(*key) != Some(tag)).map(|(key, _)| key).collect();
    assert!(changed.is_empty(), "{changed:?}");
    assert_eq!(site.record(&job), Some(end));
}

/// Every object of the pipeline in the warehouse and its record, with their versions.
fn everything(site: &Site) -> std::collections::BTreeMap<String, String> {
    let listed = list_all(&*site.store, Bucket::Warehouse, "pipelines/p/").unwrap();
    let describe = |o: lakemill::ports::store::ObjectMeta| (o.key, format!("{} {:?} {}", o.size, o.etag, o.modified));
    listed.into_iter().map(describe).collect()
}

/// Whether a process is stopped (SIGSTOP).
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}
