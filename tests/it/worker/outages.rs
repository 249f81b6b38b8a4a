//! Outages of Redis and S3: accepted jobs are not lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lakemill::domain::job::{JobStatus, RunErrorCode, WaitReason};
use serde_json::json;

use super::{three_days, three_days_made};
use crate::support::http_client::{get, send};
use crate::support::http_proxy::{HttpProxy, ProxyAction};
use crate::support::redis_server::RedisServer;
use crate::support::s3_server::s3s_fs;
use crate::support::site::{Kind, Site, WEBHOOK_SECRET, await_some, await_that, slug};

const UNAVAILABLE: &[u8] = b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: 79\r\n\
    Connection: close\r\n\r\n<Error><Code>SlowDown</Code><Message>Please reduce your rate.</Message></Error>";

/// A proxy to S3 that answers 503 while the switch is on, and a site whose workers use it.
fn site_with_switch() -> (Site, Arc<AtomicBool>, HttpProxy) {
    let mut site = Site::new(Kind::Fleet);
    let down = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&down);
    let proxy = s3s_fs().behind(move |_| match switch.load(Ordering::SeqCst) {
        true => ProxyAction::Answer(UNAVAILABLE.to_vec()),
        false => ProxyAction::Forward,
    });
    site.set("OBJ_ENDPOINT_URL", &proxy.url());
    (site, down, proxy)
}

#[test]
fn canned_response_has_its_declared_length() {
    let text = std::str::from_utf8(UNAVAILABLE).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
}

#[test]
fn store_outage_uses_no_attempt_and_pauses_claims() {
    let (site, down, _proxy) = site_with_switch();
    three_days(&site);
    let worker = site.worker_with(&[("MAX_ATTEMPTS", "1")]);
    await_that("the worker to be ready", || get(&worker.address(), "/readyz").status == 200);
    down.store(true, Ordering::SeqCst);
    let job = site.enqueue("p");
    let waiting = await_some("the job to wait", || site.seen(&job).filter(|job| job.reason.is_some()));
    assert_eq!((waiting.status, waiting.reason, waiting.attempt), (JobStatus::Queued, Some(WaitReason::Retry), 0));
    let error = waiting.error.unwrap();
    assert_eq!(error.code, RunErrorCode::S3Error);
    assert!(error.message.contains("503") || error.message.contains("SlowDown"), "{error:?}");
    let ready = await_some("the outage to be seen", || {
        Some(get(&worker.address(), "/readyz")).filter(|ready| ready.json()["store"] == "failed")
    });
    assert_eq!((ready.status, &ready.json()["kv"]), (503, &json!("ok")));
    assert_eq!(ready.json()["claiming"], false);
    assert!(ready.json()["paused"]["store"].as_str().unwrap().contains("503"), "{}", ready.body);
    assert!(get(&worker.address(), "/metrics").body.contains("lakemill_claims_paused{dependency=\"store\"} 1\n"));
    assert_eq!(get(&worker.address(), "/health").status, 200);
    down.store(false, Ordering::SeqCst);
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1), "{end:?}");
    assert_eq!(site.warehouse("p"), three_days_made());
    await_that("the worker to be ready", || get(&worker.address(), "/readyz").status == 200);
    let metrics = get(&worker.address(), "/metrics").body;
    assert!(metrics.contains("lakemill_job_attempts_total{why=\"refunded\"} 1\n"), "{metrics}");
}

/// With one attempt per job, each counted attempt is a failed job.
#[test]
fn store_outages_under_steady_flow_fail_no_job() {
    let (site, down, _proxy) = site_with_switch();
    let names: Vec<String> = (0..4).map(|n| format!("p{n}")).collect();
    for name in &names {
        site.pipeline(name, &json!({}));
        site.put(name, "in/first.csv", "a,b\nx,0\n");
    }
    let worker = site.worker_with(&[("MAX_ATTEMPTS", "1"), ("WORKER_CONCURRENCY", "3")]);
    let times = |text: &str| worker.log().matches(text).count();
    let mut jobs = Vec::new();
    for outage in 1..=3 {
        let mut flow = || {
            for name in &names {
                site.put(name, &format!("in/{}.csv", jobs.len()), format!("a,b\nx,{}\n", jobs.len()));
                jobs.push(site.enqueue_as(name, true));
            }
        };
        flow();
        await_that("jobs to run", || site.kv.counts().unwrap().pending > 0);
        down.store(true, Ordering::SeqCst);
        flow();
        await_that("the outage to be noticed", || times("probe failed; claims paused") >= outage);
        flow();
        await_that("nothing to be claimed", || site.kv.counts().unwrap().pending == 0);
        assert!(site.kv.counts().unwrap().stream > 0, "what came meanwhile waits in the queue");
        down.store(false, Ordering::SeqCst);
        flow();
        await_that("claims to go on", || times("claims resumed") >= outage);
    }
    for job in &jobs {
        let end = site.await_end(job);
        assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1), "{end:?}");
    }
    for name in &names {
        let records = site.records(name);
        let last = records.iter().max_by_key(|job| job.fence).unwrap();
        assert_eq!(last.result.as_ref().unwrap().tables["t"].rows_written, 13, "{last:?}");
    }
}

/// A proxy to S3 that answers 503 to requests for the pipeline's lake objects while the switch is on.
fn site_refusing_one_pipeline(pipeline: &str) -> (Site, Arc<AtomicBool>, HttpProxy) {
    let mut site = Site::new(Kind::Fleet);
    let down = Arc::new(AtomicBool::new(true));
    let (switch, part) = (Arc::clone(&down), format!("-lake/pipelines/{pipeline}/"));
    let proxy = s3s_fs().behind(move |passing| match switch.load(Ordering::SeqCst) && passing.target.contains(&part) {
        true => ProxyAction::Answer(UNAVAILABLE.to_vec()),
        false => ProxyAction::Forward,
    });
    site.set("OBJ_ENDPOINT_URL", &proxy.url());
    (site, down, proxy)
}

#[test]
fn job_that_fails_while_the_store_serves_others_uses_attempts() {
    let (site, _down, _proxy) = site_refusing_one_pipeline("poison");
    for name in ["poison", "p"] {
        site.pipeline(name, &json!({}));
        site.put(name, "in/x.csv", "a,b\nx,1\n");
    }
    let worker = site.worker_with(&[("MAX_ATTEMPTS", "2")]);
    let (poison, other) = (site.enqueue("poison"), site.enqueue("p"));
    let end = site.await_end(&poison);
    assert_eq!((end.status, end.attempt), (JobStatus::Failed, 2), "{end:?}");
    assert_eq!(end.error.unwrap().code, RunErrorCode::S3Error);
    assert_eq!(site.await_end(&other).status, JobStatus::Completed);
    assert!(!worker.has_logged("claims paused"), "one job is no reason to pause");
}

#[test]
fn table_left_stale_by_an_s3_error_is_updated_automatically() {
    let (site, down, _proxy) = site_refusing_one_pipeline("p");
    site.automatic_pipeline("p");
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let _worker = site.worker_with(&[("MAX_ATTEMPTS", "1")]);
    let end = site.await_end(&site.enqueue("p"));
    assert_eq!(end.error.unwrap().code, RunErrorCode::S3Error);
    down.store(false, Ordering::SeqCst);
    let completed = || site.records("p").into_iter().find(|job| job.status == JobStatus::Completed);
    let mended = await_some("a run that nobody asked for", completed);
    assert_eq!((mended.trigger.as_str(), mended.result.unwrap().tables["t"].rows_written), ("auto", 1));
}

/// The worker that saw the failure has ended when the store recovers.
#[test]
fn table_left_stale_by_an_s3_error_is_updated_by_another_worker() {
    let (site, down, _proxy) = site_refusing_one_pipeline("p");
    site.automatic_pipeline("p");
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let mut first = site.worker_with(&[("MAX_ATTEMPTS", "1")]);
    await_that("it to have compared the lake", || site.kv.is_initialized().unwrap());
    let end = site.await_end(&site.enqueue("p"));
    assert_eq!(end.error.unwrap().code, RunErrorCode::S3Error);
    first.signal(rustix::process::Signal::TERM);
    first.await_exit();
    // It leaves a recheck, or the window that it has opened for that.
    let completed = || site.records("p").into_iter().find(|job| job.status == JobStatus::Completed);
    assert!(completed().is_none(), "the first worker has updated the table");
    down.store(false, Ordering::SeqCst);
    let _other = site.worker();
    let mended = await_some("a run that nobody asked for", completed);
    assert_eq!((mended.trigger.as_str(), mended.result.unwrap().tables["t"].rows_written), ("auto", 1));
}

#[test]
fn record_is_written_once_the_store_recovers() {
    let (site, down, _proxy) = site_with_switch();
    site.pipeline("p", &json!({}));
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let job = site.enqueue("p");
    // Pauses right before the end, where the store becomes unavailable.
    let worker = site.worker_with(&[("FAILPOINTS", "worker::before_record=1*return(stop)->off")]);
    await_that("it to stand still", || super::sharing::is_stopped(worker.pid()));
    down.store(true, Ordering::SeqCst);
    worker.signal(rustix::process::Signal::CONT);
    let shown = await_some("the outcome", || site.seen(&job).filter(|job| job.status.is_terminal()));
    assert_eq!((shown.status, site.record(&job)), (JobStatus::Completed, None));
    worker.await_log("writing the record of a job");
    down.store(false, Ordering::SeqCst);
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1));
}

#[test]
fn worker_waits_for_store_and_queue_at_its_start() {
    let (site, down, _proxy) = site_with_switch();
    three_days(&site);
    let redis = site.redis.as_ref().unwrap();
    let job = site.enqueue("p");
    down.store(true, Ordering::SeqCst);
    redis.stop();
    let worker = site.worker_with(&[("MAX_ATTEMPTS", "10")]);
    let health = get(&worker.address(), "/health");
    assert_eq!((health.status, &health.json()["kv"]), (503, &json!("unreachable")));
    redis.start_again();
    await_that("the queue to be reached", || get(&worker.address(), "/health").status == 200);
    down.store(false, Ordering::SeqCst);
    assert_eq!(site.await_end(&job).status, JobStatus::Completed);
    assert_eq!(site.warehouse("p"), three_days_made());
}

#[test]
fn redis_restarted_with_its_data_loses_no_job() {
    let site = Site::new(Kind::Fleet);
    let redis = site.redis.as_ref().unwrap();
    let mut jobs = Vec::new();
    for name in ["a", "b", "c"] {
        site.pipeline(name, &json!({}));
        site.put(name, "in/x.csv", "a,b\nx,1\n");
        jobs.push(site.enqueue(name));
    }
    let worker = site.worker_with(&[("FAILPOINTS", "convert::piece=1*sleep(4000)->off")]);
    worker.await_log("job started");
    redis.kill();
    await_that("the outage to be noticed", || get(&worker.address(), "/health").status == 503);
    redis.start_again();
    for job in &jobs {
        assert_eq!(site.await_end(job).status, JobStatus::Completed);
    }
    let counts = site.kv.counts().unwrap();
    assert_eq!((counts.stream, counts.pending, counts.waiting), (0, 0, 0));
    for name in ["a", "b", "c"] {
        assert_eq!(site.records(name).len(), 1);
    }
}

#[test]
fn redis_without_its_data_is_rebuilt_from_the_lake() {
    let site = Site::new(Kind::Fleet);
    let redis = site.redis.as_ref().unwrap();
    site.automatic_pipeline("p");
    site.put("p", "in/1.csv", "a,b\nx,1\n");
    site.automatic_pipeline("done");
    site.put("done", "in/x.csv", "a,b\nx,1\n");
    let worker = site.worker();
    site.await_end(&site.enqueue("done"));
    // An event was accepted, and its window is lost with the data.
    site.kv.extend_windows(&[slug("p")]).unwrap();
    redis.kill();
    redis.start_empty();
    await_that("a job of the lost window", || site.records("p").iter().any(|job| job.trigger == "auto"));
    assert_eq!(site.records("p")[0].result.as_ref().unwrap().tables["t"].rows_written, 1);
    worker.await_log("lost its data; comparing all pipelines");
    assert_eq!(site.records("done").len(), 1, "what was as it should be is left alone");
}

#[test]
fn second_loss_of_redis_data_is_recovered_as_well() {
    let site = Site::new(Kind::Fleet);
    let redis = site.redis.as_ref().unwrap();
    site.automatic_pipeline("p");
    site.put("p", "in/1.csv", "a,b\nx,1\n");
    let worker = site.worker();
    let asked = || worker.log().matches("tables don't match the lake").count();
    for times in 1..=2 {
        redis.kill();
        redis.start_empty();
        await_that("a run to be asked for", || asked() == times);
        // Long before the window is due, and before the worker checks again.
        await_that("it to remember", || site.kv.is_initialized().unwrap_or_default());
        assert_eq!(site.records("p").len(), 0);
    }
    await_that("the job", || !site.records("p").is_empty());
}

#[test]
fn empty_queue_without_pipelines_reports_no_loss() {
    let site = Site::fleet(RedisServer::durable());
    let worker = site.worker();
    worker.await_log("key-value store is empty; no pipelines yet");
    await_that("it to remember", || site.kv.is_initialized().unwrap());
}

#[test]
fn run_without_its_queue_stops_and_is_repeated() {
    let site = Site::new(Kind::Fleet);
    let redis = site.redis.as_ref().unwrap();
    three_days(&site);
    let job = site.enqueue("p");
    let worker = site.worker_with(&[("FAILPOINTS", "convert::piece=1*sleep(5000)->off")]);
    worker.await_log("job started");
    {
        let _paused = redis.pause();
        worker.await_log("lease lost");
    }
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1), "the attempt was given back");
    assert_eq!(site.warehouse("p"), three_days_made());
    assert_eq!(site.records("p").len(), 1);
}

#[test]
fn events_are_rejected_while_redis_is_unavailable() {
    let site = Site::new(Kind::Fleet);
    let worker = site.worker();
    let bucket = &site.env()["S3_BUCKET_LAKE"];
    let event = json!({ "Records": [{ "eventName": "s3:ObjectCreated:Put",
        "s3": { "bucket": { "name": bucket }, "object": { "key": "pipelines/p/x.csv" } } }] })
    .to_string();
    let redis = site.redis.as_ref().unwrap();
    redis.stop();
    let headers = [("X-Svc-Webhook-Secret", WEBHOOK_SECRET)];
    let answer = send(&worker.address(), "POST", "/events/s3", &headers, &event);
    assert_eq!((answer.status, &answer.json()["error"]), (503, &json!("kv_unavailable")));
    redis.start_again();
    await_that("the event to be taken", || {
        send(&worker.address(), "POST", "/events/s3", &headers, &event).status == 200
    });
    assert_eq!(site.kv.counts().unwrap().windows, 1);
}

#[test]
fn run_that_cannot_confirm_its_lock_is_repeated_without_using_an_attempt() {
    let site = Site::new(Kind::Fleet);
    let redis = site.redis.as_ref().unwrap();
    three_days(&site);
    let job = site.enqueue("p");
    let worker =
        site.worker_with(&[("FAILPOINTS", "worker::before_record=1*return(stop)->off"), ("MAX_ATTEMPTS", "1")]);
    await_that("it to stand still", || super::sharing::is_stopped(worker.pid()));
    {
        let _paused = redis.pause();
        worker.signal(rustix::process::Signal::CONT);
        worker.await_log("the lease was lost");
    }
    let end = site.await_end(&job);
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1), "{end:?}");
    assert_eq!(site.warehouse("p"), three_days_made());
}

#[test]
fn worker_stops_while_redis_and_s3_are_unavailable() {
    let (mut site, down, _proxy) = site_with_switch();
    three_days(&site);
    site.set("SVC_RECLAIM_IDLE_MS", "6000");
    let redis = site.redis.as_ref().unwrap();
    let mut worker = site.worker();
    down.store(true, Ordering::SeqCst);
    redis.stop();
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.await_exit(), Some(0), "{}", worker.log());
}
