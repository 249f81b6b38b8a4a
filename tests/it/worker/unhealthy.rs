//! Workers with a problem of their machine or credentials: they requeue jobs without charging an attempt, pause, and
//! recover.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lakemill::domain::job::{Job, JobStatus, RunErrorCode};
use rustix::process::Signal;
use serde_json::json;

use crate::support::disk::Disk;
use crate::support::http_client::get;
use crate::support::http_proxy::ProxyAction;
use crate::support::lake::Rng;
use crate::support::s3_server::s3s_fs;
use crate::support::site::{Kind, Service, Site, await_that};

const JOBS: usize = 100;
const PIPELINES: usize = 10;

fn paused(worker: &Service, dependency: &str) -> Option<String> {
    let ready = get(&worker.address(), "/readyz");
    let body = ready.json();
    let why = body["paused"][dependency].as_str().map(str::to_owned);
    assert!(why.is_none() || ready.status == 503 && body["claiming"] == false, "{}", ready.body);
    why
}

/// Jobs that each convert a file.
fn lay_out_jobs(site: &Site) -> Vec<Job> {
    for n in 0..PIPELINES {
        site.pipeline(&format!("p{n}"), &json!({}));
        site.put(&format!("p{n}"), "in/x.csv", "a,b\nx,1\n");
    }
    (0..JOBS).map(|n| site.enqueue_as(&format!("p{}", n % PIPELINES), true)).collect()
}

#[test]
fn worker_with_a_full_scratch_fails_no_job_and_recovers() {
    // Mounting may not be permitted.
    let Some(disk) = Disk::mount(64) else { return };
    let site = Site::new(Kind::Embedded);
    disk.fill();
    let scratch = disk.path().join("scratch").display().to_string();
    // One attempt per job: each counted attempt is a failed job.
    let unfit = site.worker_with(&[("SVC_SCRATCH_DIR", &scratch), ("MAX_ATTEMPTS", "1")]);
    let first = lay_out_jobs(&site);
    await_that("the worker to pause", || paused(&unfit, "scratch").is_some_and(|why| why.contains(&scratch)));
    let fit = site.worker_with(&[("MAX_ATTEMPTS", "1")]);
    for job in &first {
        let end = site.await_end(job);
        assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1), "{end:?}");
    }
    assert!(paused(&unfit, "scratch").is_some() && paused(&fit, "scratch").is_none());
    drop(fit);
    disk.make_room();
    await_that("the worker to be ready", || get(&unfit.address(), "/readyz").status == 200);
    assert_eq!(site.await_end(&site.enqueue_as("p0", true)).status, JobStatus::Completed);
}

/// A pipeline `large`, whose table has 13 MB that can't be compressed.
fn lay_out_large(site: &Site) {
    let mut rng = Rng::new(7);
    let mut csv = "a,b\n".to_owned();
    for n in 0..400_000 {
        writeln!(
            csv,
            "{:016x}{:016x}{:016x}{:016x},{n}",
            rng.next_u64(),
            rng.next_u64(),
            rng.next_u64(),
            rng.next_u64()
        )
        .unwrap();
    }
    site.pipeline("large", &json!({}));
    site.put("large", "in/x.csv", csv);
}

#[test]
fn job_larger_than_scratch_ends_as_disk_full() {
    let Some(disk) = Disk::mount(16) else { return };
    let site = Site::new(Kind::Embedded);
    let scratch = disk.path().join("scratch").display().to_string();
    lay_out_large(&site);
    site.pipeline("small", &json!({}));
    site.put("small", "in/x.csv", "a,b\nx,1\n");
    let worker = site.worker_with(&[("SVC_SCRATCH_DIR", &scratch), ("MAX_ATTEMPTS", "2")]);
    let end = site.await_end(&site.enqueue("large"));
    assert_eq!((end.status, end.attempt), (JobStatus::Failed, 2), "{end:?}");
    assert_eq!(end.error.unwrap().code, RunErrorCode::DiskFull);
    assert!(!worker.has_logged("claims paused"), "the worker is fit for others");
    assert_eq!(site.await_end(&site.enqueue("small")).status, JobStatus::Completed);
}

#[test]
fn job_larger_than_scratch_is_left_to_a_worker_with_room() {
    let Some(disk) = Disk::mount(16) else { return };
    let site = Site::new(Kind::Embedded);
    let scratch = disk.path().join("scratch").display().to_string();
    lay_out_large(&site);
    let mut unfit = site.worker_with(&[("SVC_SCRATCH_DIR", &scratch), ("MAX_ATTEMPTS", "2")]);
    let job = site.enqueue("large");
    unfit.await_log("left to other workers");
    unfit.signal(Signal::TERM);
    assert_eq!(unfit.await_exit(), Some(0));
    let _fit = site.worker_with(&[("MAX_ATTEMPTS", "2")]);
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 2), "{end:?}");
}

#[test]
fn worker_rejected_by_the_store_leaves_jobs_to_others() {
    let mut site = Site::new(Kind::Fleet);
    site.pipeline("p", &json!({}));
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let refused = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&refused);
    let forbidden = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 41\r\nConnection: close\r\n\r\n<Error><Code>AccessDenied</Code></Error>\r\n";
    // Like a policy that allows reading the lake and the configs, but not writing the warehouse.
    let proxy = s3s_fs().behind(move |passing| {
        let write = passing.method == "PUT" || passing.method == "DELETE";
        match switch.load(Ordering::SeqCst) && write && passing.target.contains("-warehouse/") {
            true => ProxyAction::Answer(forbidden.to_vec()),
            false => ProxyAction::Forward,
        }
    });
    let direct = site.env()["OBJ_ENDPOINT_URL"].clone();
    site.set("OBJ_ENDPOINT_URL", &proxy.url());
    let unfit = site.worker();
    await_that("its probes to pass", || get(&unfit.address(), "/readyz").status == 200);
    site.await_end(&site.enqueue_as("p", true));
    refused.store(true, Ordering::SeqCst);
    site.put("p", "in/y.csv", "a,b\ny,2\n");
    let job = site.enqueue_as("p", true);
    await_that("the worker to pause", || paused(&unfit, "store").is_some_and(|why| why.contains("denied")));
    site.set("OBJ_ENDPOINT_URL", &direct);
    let fit = site.worker();
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1), "{end:?}");
    drop(fit);
    refused.store(false, Ordering::SeqCst);
    site.put("p", "in/z.csv", "a,b\nz,3\n");
    assert_eq!(site.await_end(&site.enqueue_as("p", true)).status, JobStatus::Completed);
}

#[test]
fn worker_without_descriptors_uses_no_attempts_and_recovers() {
    let site = Site::new(Kind::Fleet);
    site.pipeline("p", &json!({}));
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let worker = site.worker_with(&[("MAX_ATTEMPTS", "1")]);
    await_that("its probes to pass", || get(&worker.address(), "/readyz").status == 200);
    // No more memory than it uses.
    worker.limit_files(Some(3));
    let job = site.enqueue_as("p", true);
    worker.await_log("claims paused until it passes");
    worker.limit_files(None);
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1), "{end:?}");
}

#[test]
fn redis_that_rejects_writes_makes_workers_and_web_services_unready() {
    let site = Site::new(Kind::Fleet);
    site.pipeline("p", &json!({}));
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let redis = site.redis.as_ref().unwrap();
    let (worker, web) = (site.worker(), site.web());
    let (at, web) = (worker.address(), web.address());
    let closed = crate::support::redis_server::free_port().to_string();
    let kinds: [(&[&str], &[&str], &str, &str); 4] = [
        (&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"], "OOM", "raise `maxmemory`"),
        // A replica without primary: it keeps its data, and is read-only.
        (&["REPLICAOF", "127.0.0.1", &closed], &["REPLICAOF", "NO", "ONE"], "READONLY", "point it at the primary"),
        (
            &["CONFIG", "SET", "min-replicas-to-write", "1"],
            &["CONFIG", "SET", "min-replicas-to-write", "0"],
            "NOREPLICAS",
            "start the replicas",
        ),
        (&["ACL", "SETUSER", "default", "-xadd"], &["ACL", "SETUSER", "default", "+xadd"], "", "`ACL SETUSER"),
    ];
    for (refuse, mend, code, advice) in kinds {
        await_that("the worker to be ready", || get(&at, "/readyz").status == 200);
        redis.ask::<()>(refuse);
        await_that(code, || {
            let ready = get(&at, "/readyz");
            ready.status == 503 && ready.json()["kv"] == "refuses writes"
        });
        await_that("the web service not to be ready", || {
            let ready = get(&web, "/readyz");
            ready.status == 503 && ready.json()["kv"] == json!(false)
        });
        let health = get(&at, "/health");
        assert_eq!((health.status, &health.json()["kv"]), (200, &json!("ok")), "it can be reached: {code}");
        await_that("the metric", || get(&at, "/metrics").body.contains("lakemill_kv_writable 0\n"));
        assert!(get(&at, "/metrics").body.contains("lakemill_kv_up 1\n"), "{code}");
        let found = crate::cli_doctor::doctor(&site, &[]);
        found.has("problem key-value store", &["rejects writes", code, advice]);
        redis.ask::<()>(mend);
        await_that("the web service to be ready again", || get(&web, "/readyz").status == 200);
        await_that("the worker to be ready again", || get(&at, "/readyz").status == 200);
        assert!(get(&at, "/metrics").body.contains("lakemill_kv_writable "));
    }
    assert_eq!(site.await_end(&site.enqueue("p")).status, JobStatus::Completed);
}
