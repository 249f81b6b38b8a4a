//! Ids in the logs connect an event to its window, to the job of the window, and to its record, and back.

use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::http_client::send;
use crate::support::site::{Kind, Service, Site, WEBHOOK_SECRET, await_some, await_that};

/// The lines of a service in which a field has that value.
fn grep(service: &Service, field: &str, value: &str) -> Vec<Value> {
    let lines = service.log();
    let parsed = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}")));
    parsed.filter(|line| line[field] == value).collect()
}

fn text(line: &Value, field: &str) -> String {
    line[field].as_str().unwrap_or_else(|| panic!("no `{field}` in {line}")).to_owned()
}

/// The only window in a request's log lines.
fn window(service: &Service, request_id: &str) -> String {
    let lines = grep(service, "request_id", request_id);
    let named: Vec<String> =
        lines.iter().filter(|line| line["window"].is_string()).map(|line| text(line, "window")).collect();
    assert_eq!(named.len(), 1, "{lines:#?}");
    named[0].clone()
}

fn event(site: &Site, key: &str) -> String {
    json!({ "Records": [{ "eventName": "s3:ObjectCreated:Put", "s3": {
        "bucket": { "name": site.env()["S3_BUCKET_LAKE"] }, "object": { "key": key } } }] })
    .to_string()
}

#[test]
fn log_ids_link_an_event_to_window_job_and_record() {
    for kind in [Kind::Embedded, Kind::Fleet] {
        let site = Site::new(kind);
        site.automatic_pipeline("p");
        // At `info` level only a window's first event logs the window.
        let worker = site.worker_with(&[("SVC_LOG", "debug")]);
        site.put("p", "in/x.csv", "a,b\nx,1\n");
        let post = |request_id: &str| {
            let headers = [("X-Svc-Webhook-Secret", WEBHOOK_SECRET), ("X-Request-Id", request_id)];
            send(&worker.address(), "POST", "/events/s3", &headers, &event(&site, "pipelines/p/in/x.csv")).status
        };
        assert_eq!([post("event-1"), post("event-2")], [200, 200]);
        let window = window(&worker, "event-1");
        assert_eq!(self::window(&worker, "event-2"), window, "both extended the same");
        let queued = await_some("the window's job", || {
            grep(&worker, "window", &window).into_iter().find(|line| line["job_id"].is_string())
        });
        let job_id = text(&queued, "job_id");
        await_that("its end", || grep(&worker, "job_id", &job_id).iter().any(|l| l["event"] == "job completed"));
        let records = site.records("p");
        assert!(records.len() == 1 && records[0].job_id.as_str() == job_id, "{records:?}");
        // And back: from the record's id to the window, and to the requests.
        let of_job = grep(&worker, "job_id", records[0].job_id.as_str());
        let back: Vec<&Value> = of_job.iter().filter(|line| line["window"] == window.as_str()).collect();
        assert_eq!(back.len(), 1, "{of_job:#?}");
        let requests: Vec<Value> = grep(&worker, "window", &window);
        for request in ["event-1", "event-2"] {
            assert!(requests.iter().any(|line| line["request_id"] == request), "{requests:#?}");
        }
        for name in ["job started", "job completed"] {
            let line = of_job.iter().find(|line| line["event"] == name).unwrap();
            assert_eq!((&line["pipeline"], &line["attempt"]), (&json!("p"), &json!(1)), "{line}");
            assert_eq!(line["fence"].as_u64(), records[0].fence, "{line}");
            assert!(line["ts"].is_string() && line["level"] == "info", "{line}");
        }
    }
}

#[test]
fn log_ids_link_an_upload_to_window_and_job() {
    let site = Site::new(Kind::Fleet);
    site.automatic_pipeline("p");
    let (worker, web) = site.worker_and_web();
    let browser = Browser::log_in(&web);
    let headers = [("X-Request-Id", "upload-1"), ("Content-Type", "text/csv")];
    browser.send("PUT", "/api/lake?key=pipelines%2Fp%2Fin%2Fx.csv", &headers, b"a,b\nx,1\n").ok();
    let window = window(&web, "upload-1");
    let queued = await_some("the window's job", || {
        grep(&worker, "window", &window).into_iter().find(|line| line["job_id"].is_string())
    });
    let of_upload = grep(&web, "request_id", "upload-1");
    assert!(of_upload.iter().any(|line| line["event"] == "file uploaded"), "{of_upload:#?}");
    await_that("its record", || site.records("p").iter().any(|job| job.job_id.as_str() == text(&queued, "job_id")));
}

#[test]
fn log_lines_of_a_failed_attempt_have_its_ids() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("p", &json!({ "rejects": { "max_rows": 0, "max_ratio": 0.0 } }));
    site.put("p", "in/x.csv", "a,b\nx,bad\n");
    let worker = site.worker();
    let job = site.enqueue("p");
    let end = site.await_end(&job);
    worker.await_log("job failed");
    let lines = grep(&worker, "job_id", job.job_id.as_str());
    let failed = lines.iter().find(|line| line["event"] == "job failed").unwrap();
    assert_eq!((failed["code"].as_str(), failed["fence"].as_u64()), (Some("too_many_rejects"), end.fence));
    assert!(lines.iter().all(|line| line["pipeline"] == "p"), "{lines:#?}");
}
