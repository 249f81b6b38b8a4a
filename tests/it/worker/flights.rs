//! The sample pipeline in a full installation: three workers on Redis and S3, with concurrent requests; the same bytes
//! as embedded.

use lakemill::domain::job::{Job, JobMessage, JobStatus};
use lakemill::domain::layout::config_key;
use lakemill::domain::sample::FLIGHTS;
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::json;

use crate::support::http_client::send;
use crate::support::site::{Kind, Site, WEBHOOK_SECRET, await_some, job_id, slug};

fn lay_out(site: &Site, automatic: bool) {
    let mut config: serde_json::Value = serde_json::from_str(FLIGHTS.config).unwrap();
    config["auto_run"] = json!(automatic);
    let body = serde_json::to_vec(&config).unwrap();
    site.store.put(Bucket::Pipelines, &config_key(&slug("flights")), &body, &WriteOptions::default()).unwrap();
    for (name, content) in FLIGHTS.files {
        site.put("flights", name, content);
    }
}

#[test]
fn flights_have_the_same_bytes_on_all_backends() {
    let embedded = Site::new(Kind::Embedded);
    lay_out(&embedded, false);
    let one = embedded.worker();
    let job = embedded.enqueue("flights");

    let asked = Site::new(Kind::Fleet);
    lay_out(&asked, false);
    let three = [asked.worker(), asked.worker(), asked.worker()];
    let entry = [
        "XADD",
        "svc:jobs:stream",
        "*",
        "job_id",
        "from-outside",
        "pipeline",
        "flights",
        "prefix",
        "",
        "clean_run",
        "false",
        "trigger",
        "manual",
        "enqueued_at",
        "2026-11-21T12:00:00Z",
    ];
    let _: redis::Value = asked.redis.as_ref().unwrap().ask(&entry);

    let end = embedded.await_end(&job);
    assert_eq!(end.status, JobStatus::Completed, "{end:?}");
    let flights = &end.result.unwrap().tables["flights"];
    assert_eq!((flights.rows_written, flights.rows_rejected, flights.partitions_written), (336_776, 0, 365));
    let wanted = embedded.warehouse("flights");
    drop(one);

    let mut message = JobMessage::new(slug("flights"), false, "manual", chrono::Utc::now());
    message.job_id = job_id("from-outside");
    let end = asked.await_end(&Job::queued(&message, 3));
    assert_eq!((end.status, end.attempt), (JobStatus::Completed, 1), "{end:?}");
    assert!(asked.warehouse("flights") == wanted, "the bytes differ");
    drop((three, asked));

    let notified = Site::new(Kind::Fleet);
    lay_out(&notified, true);
    let three = [notified.worker(), notified.worker(), notified.worker()];
    let bucket = &notified.env()["S3_BUCKET_LAKE"];
    for ((name, _), worker) in FLIGHTS.files.iter().zip(three.iter().cycle()) {
        let key = format!("pipelines%2Fflights%2F{}", name.replace('/', "%2F"));
        let event = json!({ "EventName": "s3:ObjectCreated:Put", "Records": [{ "eventSource": "minio:s3",
            "eventName": "s3:ObjectCreated:Put", "s3": { "bucket": { "name": bucket }, "object": { "key": key } } }] });
        let headers = [("Authorization", WEBHOOK_SECRET)];
        let answer = send(&worker.address(), "POST", "/events/s3", &headers, &event.to_string());
        assert_eq!(answer.json(), json!({ "accepted": 1, "ignored": 0 }));
    }
    let end = await_some("the automatic run", || notified.records("flights").pop());
    assert_eq!((end.status, end.trigger.as_str()), (JobStatus::Completed, "auto"), "{end:?}");
    assert!(notified.warehouse("flights") == wanted, "the bytes differ");
    assert_eq!(notified.records("flights").len(), 1);
}
