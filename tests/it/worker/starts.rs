//! Workers that can't start, or that must not take jobs yet.

use std::net::TcpListener;

use lakemill::domain::job::{JobStatus, RunErrorCode, WaitReason};
use lakemill::ports::store::Bucket;
use serde_json::json;

use super::{on_both, three_days, three_days_made};
use crate::support::http_client::get;
use crate::support::http_proxy::ProxyAction;
use crate::support::s3_server::s3s_fs;
use crate::support::site::{Kind, Site, await_some, await_that};

on_both!(worker_claims_no_more_jobs_than_it_runs, port_in_use_is_reported_and_no_job_is_claimed);

fn worker_claims_no_more_jobs_than_it_runs(site: Site) {
    let names: Vec<String> = (0..6).map(|n| format!("p{n}")).collect();
    for name in &names {
        site.pipeline(name, &json!({}));
        site.put(name, "in/x.csv", "a,b\nx,1\n");
    }
    let jobs: Vec<_> = names.iter().map(|name| site.enqueue(name)).collect();
    let _worker = site.worker_with(&[("FAILPOINTS", "convert::piece=sleep(1000)"), ("WORKER_CONCURRENCY", "2")]);
    let mut most = 0;
    await_that("every job's end", || {
        let counts = site.kv.counts().unwrap();
        most = most.max(counts.pending);
        counts.stream == 0
    });
    assert_eq!(most, 2);
    assert!(jobs.iter().all(|job| site.await_end(job).status == JobStatus::Completed));
}

fn port_in_use_is_reported_and_no_job_is_claimed(site: Site) {
    site.enqueue("p");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut worker = site.spawn(&[("PORT", &port)]);
    assert_eq!(worker.await_exit(), Some(1));
    assert!(worker.log().contains(&format!("127.0.0.1:{port}")), "{}", worker.log());
    assert_eq!(site.kv.counts().unwrap().pending, 0);
}

#[test]
fn all_missing_variables_are_reported_with_status_78() {
    let site = Site::new(Kind::Embedded);
    let mut worker = site.spawn(&[("SVC_WEBHOOK_SECRET", ""), ("KV_URL", ""), ("MAX_ATTEMPTS", "none")]);
    assert_eq!(worker.await_exit(), Some(78));
    for part in ["SVC_WEBHOOK_SECRET", "KV_URL", "MAX_ATTEMPTS", "found `none`"] {
        assert!(worker.log().contains(part), "{part} is not in\n{}", worker.log());
    }
}

#[test]
fn scratch_folder_that_cannot_be_created_is_reported() {
    let site = Site::new(Kind::Embedded);
    let file = site.home().join("file");
    std::fs::write(&file, "").unwrap();
    let mut worker = site.spawn(&[("SVC_SCRATCH_DIR", &file.join("scratch").display().to_string())]);
    assert_eq!(worker.await_exit(), Some(1));
    assert!(worker.log().contains("SVC_SCRATCH_DIR"), "{}", worker.log());
}

#[test]
fn worker_with_a_wrong_key_claims_no_jobs() {
    let site = Site::new(Kind::Fleet);
    three_days(&site);
    for wrong in [("OBJ_SECRET_ACCESS_KEY", "wrong"), ("S3_BUCKET_PIPELINES", "mistyped")] {
        let unfit = site.worker_with(&[wrong]);
        unfit.await_log("claims paused until it passes");
        assert_eq!(get(&unfit.address(), "/readyz").status, 503);
        let job = site.enqueue("p");
        let _fit = site.worker();
        assert_eq!(site.await_end(&job).status, JobStatus::Completed, "{wrong:?}");
        assert!(!unfit.has_logged("job started"));
    }
    assert_eq!(site.warehouse("p"), three_days_made());
}

#[test]
fn rejected_record_keeps_the_job_in_the_queue() {
    let mut site = Site::new(Kind::Fleet);
    three_days(&site);
    let forbidden = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 41\r\nConnection: close\r\n\r\n<Error><Code>AccessDenied</Code></Error>\r\n";
    let proxy = s3s_fs().behind(move |passing| {
        let record = passing.target.contains("/jobs/") && passing.method != "GET" && passing.method != "HEAD";
        if record { ProxyAction::Answer(forbidden.to_vec()) } else { ProxyAction::Forward }
    });
    let direct = site.env()["OBJ_ENDPOINT_URL"].clone();
    site.set("OBJ_ENDPOINT_URL", &proxy.url());
    let job = site.enqueue("p");
    let worker = site.worker();
    worker.await_log("record rejected by the store");
    let waiting = await_some("the job to wait", || site.seen(&job).filter(|job| job.reason.is_some()));
    assert_eq!((waiting.status, waiting.reason, waiting.attempt), (JobStatus::Queued, Some(WaitReason::Retry), 0));
    assert_eq!(waiting.error.unwrap().code, RunErrorCode::AccessDenied);
    assert!(site.record(&job).is_none() && site.read(Bucket::Warehouse, "pipelines/p/x").is_none());
    drop(worker);
    site.set("OBJ_ENDPOINT_URL", &direct);
    // Without waiting a full minute.
    site.kv.cancel(&job.pipeline, &job.job_id).unwrap();
    let _mended = site.worker();
    assert_eq!(site.await_end(&job).error.unwrap().code, RunErrorCode::Cancelled);
}
