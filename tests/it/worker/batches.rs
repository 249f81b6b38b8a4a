//! New files become jobs: one per batch.

use std::collections::BTreeMap;

use lakemill::domain::job::{Job, JobStatus};
use lakemill::ports::store::{Bucket, list_all};
use serde_json::{Value, json};

use super::on_both;
use crate::support::http_client::send;
use crate::support::http_proxy::ProxyAction;
use crate::support::s3_server::s3s_fs;
use crate::support::site::{Kind, Service, Site, WEBHOOK_SECRET, await_some, await_that, slug};

on_both!(
    events_of_several_files_become_one_job,
    pipeline_without_auto_run_gets_no_jobs,
    eight_killed_workers_create_one_job_per_batch,
);

/// An event notification from AWS.
fn envelope(site: &Site, keys: &[String]) -> String {
    let bucket = &site.env()["S3_BUCKET_LAKE"];
    let record = |key: &String| {
        json!({ "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
            "s3": { "bucket": { "name": bucket }, "object": { "key": key } } })
    };
    json!({ "Records": keys.iter().map(record).collect::<Vec<Value>>() }).to_string()
}

pub fn post(site: &Site, worker: &Service, keys: &[String]) {
    let bearer = format!("Bearer {WEBHOOK_SECRET}");
    let answer = send(&worker.address(), "POST", "/events/s3", &[("Authorization", &bearer)], &envelope(site, keys));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json(), json!({ "accepted": keys.len(), "ignored": 0 }));
}

fn events_of_several_files_become_one_job(site: Site) {
    site.automatic_pipeline("p");
    let worker = site.worker();
    for n in 0..5 {
        site.put("p", &format!("in/{n}.csv"), format!("a,b\nx,{n}\n"));
        post(&site, &worker, &[format!("pipelines/p/in/{n}.csv")]);
    }
    await_that("the job's end", || !site.records("p").is_empty());
    await_that("nothing to be left", || site.kv.counts().unwrap().windows == 0);
    let records = site.records("p");
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!((records[0].status, records[0].trigger.as_str()), (JobStatus::Completed, "auto"));
    assert_eq!(records[0].result.as_ref().unwrap().tables["t"].rows_written, 5);
}

fn pipeline_without_auto_run_gets_no_jobs(site: Site) {
    let config = json!({ "version": 1, "auto_run": false, "mappings": [crate::support::program::mapping(&json!({}))] });
    site.configure("p", &config);
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let worker = site.worker();
    post(&site, &worker, &["pipelines/p/in/x.csv".to_owned()]);
    assert_eq!(site.kv.counts().unwrap().windows, 1);
    await_that("the window to be closed", || site.kv.counts().unwrap().windows == 0);
    worker.await_log("auto_run");
    assert!(site.kv.active(&slug("p"), 10).unwrap().is_empty() && site.records("p").is_empty());
}

fn eight_killed_workers_create_one_job_per_batch(site: Site) {
    const PIPELINES: usize = 24;
    let names: Vec<String> = (0..PIPELINES).map(|n| format!("p{n}")).collect();
    for name in &names {
        site.automatic_pipeline(name);
        site.put(name, "in/x.csv", "a,b\nx,1\n");
    }
    site.kv.extend_windows(&names.iter().map(|name| slug(name)).collect::<Vec<_>>()).unwrap();
    let places = "worker::before_fire=10%return(kill);worker::fired=10%return(kill)";
    // A killed worker may have been running a job.
    let many = ("MAX_ATTEMPTS", "100");
    let deadly = [("FAILPOINTS", places), many];
    let mut workers: Vec<Service> = (0..8).map(|_| site.spawn(&deadly)).collect();
    let mut deaths = 0;
    await_that("every window to be fired", || {
        for worker in &mut workers {
            if !worker.is_alive() {
                deaths += 1;
                *worker = site.spawn(&deadly);
            }
        }
        site.kv.counts().unwrap().windows == 0
    });
    let _calm = site.worker_with(&[many]);
    await_that("every job's end", || site.kv.counts().unwrap().stream == 0 && site.kv.counts().unwrap().waiting == 0);
    assert!(deaths > 0, "nobody was killed");
    for name in &names {
        let records = site.records(name);
        assert!(records.iter().all(|job| job.trigger == "auto"), "{name}: {records:?}");
        assert!(records.iter().all(|job| job.status == JobStatus::Completed), "{name}: {records:?}");
        // A starting worker compares lake and tables, and may request one more run.
        assert!((1..=2).contains(&records.len()), "{name}: {records:?}");
    }
}

/// Events that real stores sent, with replaced bucket and key.
#[test]
fn notifications_of_real_stores_start_runs() {
    let site = Site::new(Kind::Fleet);
    let worker = site.worker();
    let captures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/webhooks");
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for store in ["minio", "rustfs", "ceph-radosgw"] {
        let name = store.replace('-', "_");
        site.automatic_pipeline(&name);
        site.put(&name, "in/a b+c%.csv", "a,b\nx,1\n");
        let text = std::fs::read_to_string(captures.join(format!("{store}.jsonl"))).unwrap();
        for line in text.lines() {
            let post: Value = serde_json::from_str(line).unwrap();
            let body = post["body"].as_str().unwrap();
            let body = body
                .replace("hookb", &site.env()["S3_BUCKET_LAKE"])
                .replace("my%20pipe", &name)
                .replace("my+pipe", &name)
                .replace("my pipe", &name);
            let mut headers: Vec<(&str, &str)> = vec![("X-Svc-Webhook-Secret", WEBHOOK_SECRET)];
            let sent = post["headers"].as_array().unwrap();
            let pair = |h: &'static str| sent.iter().find(|p| p[0].as_str().unwrap().eq_ignore_ascii_case(h));
            if let Some(found) = pair("content-type") {
                headers.push(("Content-Type", found[1].as_str().unwrap()));
            }
            let method = post["method"].as_str().unwrap();
            let answer = send(&worker.address(), method, post["path"].as_str().unwrap(), &headers, &body);
            assert_eq!(answer.status, 200, "{store}: {line}");
            if method == "POST" {
                *counts.entry(name.clone()).or_default() += answer.json()["accepted"].as_u64().unwrap();
            }
        }
    }
    for (name, accepted) in counts {
        assert!(accepted > 0, "{name}");
        let record = await_some("the job", || site.records(&name).pop());
        assert_eq!((record.status, record.trigger.as_str()), (JobStatus::Completed, "auto"), "{record:?}");
    }
    let sns = std::fs::read_to_string(captures.join("sns-envelope.jsonl")).unwrap();
    let post: Value = serde_json::from_str(sns.lines().next().unwrap()).unwrap();
    let headers = [("X-Svc-Webhook-Secret", WEBHOOK_SECRET)];
    let answer = send(&worker.address(), "POST", "/events/s3", &headers, post["body"].as_str().unwrap());
    assert_eq!((answer.status, answer.json()["error"].as_str()), (400, Some("invalid_event")));
    assert!(answer.json()["message"].as_str().unwrap().contains("SNS"), "{answer:?}");
}

/// A file in the embedded store's folder is sufficient.
#[test]
fn file_in_the_lake_folder_becomes_a_job() {
    let site = Site::new(Kind::Embedded);
    site.automatic_pipeline("p");
    let _worker = site.worker();
    let folder = site.home().join("objects/lake/pipelines/p/in");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("x.csv"), "a,b\nx,1\ny,2\n").unwrap();
    let completed =
        |job: &Job| job.status == JobStatus::Completed && job.result.as_ref().unwrap().tables["t"].rows_written == 2;
    await_that("the job", || site.records("p").iter().any(completed));
    assert!(!list_all(&*site.store, Bucket::Warehouse, "pipelines/p/t/").unwrap().is_empty());
}

/// The order doesn't matter: an invalid config is reported even if it is the last one.
#[test]
fn invalid_config_added_after_files_is_reported_once() {
    let site = Site::new(Kind::Embedded);
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    site.configure("p", &json!({ "version": 1, "mappings": [{ "table": "T", "files": ["*.csv"], "columns": [] }] }));
    let worker = site.worker_with(&[("SVC_RECONCILE_SECONDS", "10")]);
    await_that("the job", || !site.records("p").is_empty());
    let records = site.records("p");
    assert_eq!(records[0].error.as_ref().unwrap().code, lakemill::domain::job::RunErrorCode::InvalidConfig);
    worker.await_log("run requested to report it");
    site.automatic_pipeline("p");
    await_that("the job of the mended config", || {
        site.records("p").iter().any(|job| job.status == JobStatus::Completed)
    });
    assert_eq!(site.records("p").len(), 2, "{:?}", site.records("p"));
}

/// A store that blocks on one pipeline's config for as long as the test wants.
#[test]
fn store_hanging_for_one_pipeline_delays_no_other_window() {
    let mut site = Site::new(Kind::Fleet);
    let (release, hung) = std::sync::mpsc::channel::<()>();
    let hung = std::sync::Mutex::new(hung);
    let proxy = s3s_fs().behind(move |passing| {
        if passing.target.contains("/pipelines/stuck/pipeline.json") {
            // Ends when the test drops the other end, also by a panic.
            let _ = hung.lock().unwrap().recv_timeout(std::time::Duration::from_secs(120));
        }
        ProxyAction::Forward
    });
    let names = ["stuck", "p0", "p1", "p2"];
    for name in names {
        site.automatic_pipeline(name);
        site.put(name, "in/x.csv", "a,b\nx,1\n");
        // So that `stuck` is due first.
        site.kv.extend_windows(&[slug(name)]).unwrap();
    }
    site.set("OBJ_ENDPOINT_URL", &proxy.url());
    let _worker = site.worker();
    for name in &names[1..] {
        await_that("the job of another pipeline", || !site.records(name).is_empty());
    }
    assert!(site.kv.window_due_at(&slug("stuck")).unwrap().is_some(), "its window waits for the config");
    assert!(site.kv.active(&slug("stuck"), 10).unwrap().is_empty() && site.records("stuck").is_empty());
    drop(release);
    await_that("the job of the pipeline whose config came late", || !site.records("stuck").is_empty());
}
