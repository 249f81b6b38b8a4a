//! The worker's HTTP API.

use serde_json::{Value, json};

use super::on_both;
use crate::support::http_client::{Answer, get, send};
use crate::support::site::{Kind, Site, WEBHOOK_SECRET, WORKER_TOKEN, await_that};

on_both!(health_reports_queue_and_jobs, malformed_events_are_rejected_without_effect);

fn health_reports_queue_and_jobs(site: Site) {
    site.pipeline("p", &json!({}));
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let worker = site.worker_with(&[("FAILPOINTS", "convert::piece=sleep(4000)")]);
    let at = worker.address();
    assert_eq!(get(&at, "/health").json(), json!({ "kv": "ok", "queue_depth": 0, "in_flight": 0 }));
    let jobs = [site.enqueue("p"), site.enqueue("p")];
    await_that("a job in flight", || get(&at, "/health").json()["in_flight"] == 1);
    assert!(get(&at, "/health").json()["queue_depth"].as_u64().unwrap() >= 1);
    for job in &jobs {
        site.await_end(job);
    }
    let idle = json!({ "kv": "ok", "queue_depth": 0, "in_flight": 0 });
    await_that("the worker to be idle", || get(&at, "/health").json() == idle);
    assert_eq!(get(&at, "/livez").status, 200);
    await_that("the worker to be ready", || get(&at, "/readyz").json()["ready"] == true);
    let metrics = get(&at, "/metrics");
    for line in ["lakemill_jobs_total{status=\"completed\"} 2\n", "lakemill_kv_up 1\n", "lakemill_queue_entries 0\n"] {
        assert!(metrics.body.contains(line), "{line} is not in\n{}", metrics.body);
    }
}

fn post_event(at: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    send(at, "POST", "/events/s3", headers, body)
}

fn malformed_events_are_rejected_without_effect(site: Site) {
    let worker = site.worker();
    let at = worker.address();
    let bucket = site.env()["S3_BUCKET_LAKE"].clone();
    let good = json!({ "Records": [{ "eventName": "s3:ObjectCreated:Put",
        "s3": { "bucket": { "name": bucket }, "object": { "key": "pipelines/p/x.csv" } } }] })
    .to_string();
    for headers in [
        &[][..],
        &[("X-Svc-Webhook-Secret", "wrong")],
        &[("Authorization", "Bearer wrong")],
        &[("Authorization", "Basic eDp5")],
        &[("Authorization", WORKER_TOKEN)],
    ] {
        let answer = post_event(&at, headers, &good);
        assert_eq!((answer.status, answer.json()["error"].as_str()), (401, Some("unauthorized")), "{headers:?}");
    }
    let secret = [("X-Svc-Webhook-Secret", WEBHOOK_SECRET)];
    for body in ["", "{", "[]", "{}", "null", "\"Records\"", r#"{"Records":7}"#] {
        let answer = post_event(&at, &secret, body);
        assert_eq!((answer.status, answer.json()["error"].as_str()), (400, Some("invalid_event")), "{body}");
    }
    let huge = format!(r#"{{"Records":[],"x":"{}"}}"#, "x".repeat(2 << 20));
    assert_eq!(post_event(&at, &secret, &huge).status, 413);
    assert_eq!(site.kv.counts().unwrap().windows, 0);
    let ignored = good.replace(&bucket, "another");
    assert_eq!(post_event(&at, &secret, &ignored).json(), json!({ "accepted": 0, "ignored": 1 }));
    assert_eq!(site.kv.counts().unwrap().windows, 0);
    for headers in [
        &secret[..],
        &[("Authorization", WEBHOOK_SECRET)],
        &[("Authorization", &format!("Bearer {WEBHOOK_SECRET}"))],
        &[("X-Svc-Webhook-Secret", WEBHOOK_SECRET), ("Content-Type", "text/plain")],
    ] {
        assert_eq!(post_event(&at, headers, &good).json(), json!({ "accepted": 1, "ignored": 0 }), "{headers:?}");
    }
    assert_eq!(site.kv.counts().unwrap().windows, 1, "the same event again and again is one window");
}

#[test]
fn rejected_events_are_counted_and_logged_at_a_bounded_rate() {
    let site = Site::new(Kind::Embedded);
    let worker = site.worker();
    let at = worker.address();
    for _ in 0..1_000 {
        assert_eq!(post_event(&at, &[("Authorization", "Bearer wrong")], "{}").status, 401);
    }
    assert_eq!(post_event(&at, &[], "{}").status, 401);
    assert_eq!(post_event(&at, &[("X-Svc-Webhook-Secret", WEBHOOK_SECRET)], "{}").status, 400);
    let metrics = get(&at, "/metrics").body;
    for (reason, count) in [("wrong_secret", 1_000), ("no_secret", 1), ("invalid_body", 1), ("kv_unavailable", 0)] {
        let line = format!("lakemill_events_refused_total{{reason=\"{reason}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
    assert!(metrics.contains("lakemill_events_refused_age_seconds "));
    // One line per minute, however long this takes on a busy machine.
    let log = worker.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("event rejected")).collect();
    let of_wrong = lines.iter().filter(|line| line.contains("wrong_secret")).count();
    assert!(lines.len() < 20 && of_wrong >= 1, "{lines:#?}");
    assert!(lines.iter().all(|line| line.contains("\"client\":\"127.0.0.1\"")), "{lines:#?}");
}

#[test]
fn window_is_logged_once_however_many_events_extend_it() {
    let site = Site::new(Kind::Embedded);
    let worker = site.worker();
    let bucket = site.env()["S3_BUCKET_LAKE"].clone();
    let event = json!({ "Records": [{ "eventName": "s3:ObjectCreated:Put",
        "s3": { "bucket": { "name": bucket }, "object": { "key": "pipelines/p/x.csv" } } }] })
    .to_string();
    for _ in 0..100 {
        assert_eq!(post_event(&worker.address(), &[("Authorization", WEBHOOK_SECRET)], &event).status, 200);
    }
    let log = worker.log();
    let windows: std::collections::BTreeSet<String> = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|line| line["window"].as_str().map(str::to_owned))
        .collect();
    assert!(!windows.is_empty());
    assert_eq!(log.matches("debounce window opened").count(), windows.len(), "{windows:?}");
}

#[test]
fn root_needs_no_credentials() {
    let site = Site::new(Kind::Embedded);
    let worker = site.worker();
    for method in ["GET", "HEAD"] {
        let answer = send(&worker.address(), method, "/", &[], "");
        assert_eq!((answer.status, answer.body.is_empty()), (200, method == "HEAD"));
    }
    assert_eq!(get(&worker.address(), "/nothing").status, 404);
    assert_eq!(send(&worker.address(), "DELETE", "/health", &[], "").status, 405);
}

#[test]
fn validation_always_answers_200_with_every_problem() {
    let site = Site::new(Kind::Embedded);
    let worker = site.worker();
    let at = worker.address();
    let bearer = format!("Bearer {WORKER_TOKEN}");
    let validate = |body: &str| send(&at, "POST", "/config/validate", &[("Authorization", &bearer)], body);
    let good = json!({ "version": 1, "mappings": [crate::support::program::mapping(&json!({}))] });
    assert_eq!(validate(&good.to_string()), Answer { status: 200, body: r#"{"ok":true}"#.into() });
    let bad = json!({ "version": 1, "mappings": [{ "table": "T", "files": ["["], "columns": [
        { "name": "a", "type": "int" }, { "name": "b", "expr": "nope(1)", "type": "int64" }] }] });
    let answer = validate(&bad.to_string());
    assert_eq!((answer.status, &answer.json()["ok"]), (200, &json!(false)));
    let problems = answer.json()["errors"].as_array().unwrap().clone();
    let paths: Vec<&str> = problems.iter().map(|e| e["path"].as_str().unwrap()).collect();
    for path in ["/mappings/0/table", "/mappings/0/files/0", "/mappings/0/columns/0/type"] {
        assert!(paths.contains(&path), "{problems:?}");
    }
    assert!(problems.iter().all(|e| e["kind"].is_string() && e["message"].is_string()));
    for (body, kind) in [("{", "syntax"), ("", "syntax"), ("[1,", "syntax")] {
        let answer = validate(body);
        let first: &Value = &answer.json()["errors"][0];
        assert_eq!((answer.status, &first["kind"], &first["path"]), (200, &json!(kind), &json!("")), "{body}");
    }
    for mib in [5, 33] {
        let long = format!(r#"{{"title":"{}"}}"#, "x".repeat(mib << 20));
        let answer = validate(&long);
        let first: &Value = &answer.json()["errors"][0];
        assert_eq!((answer.status, &first["kind"]), (200, &json!("limit")));
        assert!(first["message"].as_str().unwrap().ends_with(&format!("found {}", long.len())), "{first}");
    }
    for headers in [&[][..], &[("Authorization", "Bearer wrong")], &[("Authorization", WORKER_TOKEN)]] {
        assert_eq!(send(&at, "POST", "/config/validate", headers, "{}").status, 401);
    }
}
