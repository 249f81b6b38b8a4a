//! Validation of configs by a worker, which never blocks a save.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::on_both;
use crate::support::browser::{Browser, Reply};
use crate::support::program::mapping;
use crate::support::s3_server::S3Server;
use crate::support::site::{Kind, Service, Site, WORKER_TOKEN};

const PATH: &str = "/api/p/x/validate";
const CONFIG: &str = "/api/p/x/config";

fn of(change: &Value) -> Value {
    json!({ "version": 1, "auto_run": false, "mappings": [mapping(change)] })
}

/// With an expression that is invalid SQL, which only a worker can detect.
fn config_with_invalid_expression() -> Value {
    of(&json!({ "where": "nope(b) > 0" }))
}

fn validate(browser: &Browser, body: &[u8]) -> Reply {
    browser.send("POST", PATH, &[], body)
}

/// Checks the log for a missing verdict of the worker, with the reason and without the token.
fn await_missing_verdict(web: &Service, part: &str) {
    web.await_log(part);
    assert!(!web.has_logged(WORKER_TOKEN));
}

#[test]
fn reader_warnings_come_with_verdicts_and_saves() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        let columns = json!([{ "name": "b", "type": "time" }]);
        let warned = of(&json!({ "columns": columns, "parquet": { "readers": ["spark-4.0"] } })).to_string();
        let verdict = validate(&browser, warned.as_bytes()).ok().json();
        assert_eq!((&verdict["ok"], &verdict["errors"]), (&json!(true), &Value::Null));
        assert_eq!(verdict["warnings"][0]["kind"], "reader");
        let saved = browser.send("PUT", &format!("{CONFIG}?strict=true"), &[], warned.as_bytes()).ok().json();
        assert_eq!((&saved["ok"], &saved["problems"]), (&json!(true), &json!([])));
        assert_eq!(saved["warnings"], verdict["warnings"]);
        assert_eq!(saved["warnings"][0]["path"], "/mappings/0/columns/0/type");
    });
}

#[test]
fn worker_validates_config_of_new_and_existing_pipelines() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        let good = of(&json!({ "where": "b > 0" })).to_string();
        assert_eq!(validate(&browser, good.as_bytes()).ok().text(), r#"{"ok":true}"#);
        let verdict = validate(&browser, config_with_invalid_expression().to_string().as_bytes()).ok().json();
        assert_eq!((&verdict["ok"], &verdict["errors"][0]["kind"]), (&json!(false), &json!("invalid_expression")));
        assert_eq!(verdict["errors"][0]["path"], "/mappings/0/where");
        for bad in [&b""[..], b"{", b"\xff"] {
            let verdict = validate(&browser, bad).ok().json();
            assert_eq!((&verdict["ok"], &verdict["errors"][0]["kind"]), (&json!(false), &json!("syntax")));
        }
        for mib in [4, 33] {
            let long = format!("{{\"title\":\"{}\"}}", "x".repeat(mib << 20));
            let verdict = validate(&browser, long.as_bytes()).ok().json();
            assert_eq!((&verdict["ok"], &verdict["errors"][0]["kind"]), (&json!(false), &json!("limit")));
        }
        for name in ["No", "%C3%A9", "a.b"] {
            let verdict = browser.send("POST", &format!("/api/p/{name}/validate"), &[], good.as_bytes()).ok().json();
            let errors = verdict["errors"].as_array().unwrap();
            assert_eq!((&verdict["ok"], errors.len(), &errors[0]["kind"]), (&json!(false), 1, &json!("invalid_value")));
            let verdict = browser.send("POST", &format!("/api/p/{name}/validate"), &[], b"{").ok().json();
            assert_eq!(verdict["errors"][1]["kind"], "syntax", "{verdict}");
        }
        for content_type in ["text/yaml", "multipart/form-data", "application/octet-stream", ";"] {
            let verdict = browser.send("POST", PATH, &[("Content-Type", content_type)], b"{}").ok().json();
            assert_eq!(verdict["ok"], false, "{content_type}");
        }
        browser.get(CONFIG).refused(404, "pipeline_not_found");
    });
}

#[test]
fn save_reports_expression_problems_if_a_worker_responds() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (mut worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        let config = config_with_invalid_expression();
        let saved = browser.put(CONFIG, &config).ok().json();
        assert_eq!((&saved["ok"], &saved["expressions_checked"]), (&json!(false), &json!(true)));
        assert_eq!(saved["problems"].as_array().unwrap().len(), 1, "{saved}");
        assert_eq!(saved["problems"][0]["path"], "/mappings/0/where");
        browser.put(&format!("{CONFIG}?strict=1"), &config).refused(422, "invalid_config");
        // Problems of both kinds, each once, in the order of the document.
        let mut both = of(&json!({ "where": "nope(b) > 0", "parquet": { "compression_level": 99 } }));
        both["later"] = json!(1);
        let saved = browser.put(CONFIG, &both).ok().json();
        let paths: Vec<&str> =
            saved["problems"].as_array().unwrap().iter().map(|problem| problem["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["/mappings/0/where", "/mappings/0/parquet/compression_level", "/later"]);
        validate(&browser, b"{}").ok();
        worker.kill();
        validate(&browser, b"{}").refused(502, "worker_unavailable");
        let saved = browser.put(CONFIG, &config).ok().json();
        assert_eq!((&saved["ok"], &saved["expressions_checked"]), (&json!(true), &json!(false)));
        let saved = browser.put(CONFIG, &of(&json!({}))).ok().json();
        assert_eq!(saved["expressions_checked"], true, "there are none");
    });
}

#[test]
fn worker_that_rejects_the_token_counts_as_unavailable() {
    let site = Site::new(Kind::Embedded);
    let worker = site.worker();
    let url = format!("http://{}/", worker.address());
    let web = site.web_with(&[("SVC_WORKER_URL", &url), ("SVC_WORKER_TOKEN", "another-token-than-the-workers")]);
    let browser = Browser::log_in(&web);
    let message = validate(&browser, b"{}").refused(502, "worker_unavailable");
    assert!(!message.contains("401") && !message.contains(&worker.address()), "{message}");
    await_missing_verdict(&web, "responded with status `401`");
    assert!(!web.has_logged("another-token"));
}

#[test]
fn unresponsive_worker_times_out() {
    let site = Site::new(Kind::Embedded);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let web = site.web_with(&[("SVC_WORKER_URL", &url)]);
    let browser = Browser::log_in(&web);
    std::thread::scope(|scope| {
        let validating = scope.spawn(|| validate(&browser, b"{}"));
        let saved = browser.put(CONFIG, &config_with_invalid_expression()).ok().json();
        assert_eq!((&saved["ok"], &saved["expressions_checked"]), (&json!(true), &json!(false)));
        validating.join().unwrap().refused(502, "worker_unavailable");
    });
    await_missing_verdict(&web, "timeout");
}

#[test]
fn response_of_a_foreign_server_is_not_a_verdict() {
    let site = Site::new(Kind::Embedded);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    let web = site.web_with(&[("SVC_WORKER_URL", &url)]);
    let browser = Browser::log_in(&web);
    // Not waited for: there may be none.
    std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let page = "<html>welcome</html>";
        let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}", page.len());
        let _ = stream.write_all(answer.as_bytes());
    });
    let message = validate(&browser, b"{}").refused(502, "worker_unavailable");
    assert!(!message.contains("html"), "{message}");
    await_missing_verdict(&web, "malformed verdict");
}

#[test]
fn worker_tls_uses_only_the_configured_authorities() {
    let site = Site::new(Kind::Embedded);
    let place = tempfile::tempdir().unwrap();
    // It is not a worker; its message is shown only over a trusted connection.
    let server = S3Server::with_tls(place.path());
    let url = format!("https://{}", server.address);
    let authorities = place.path().join("ca.pem").display().to_string();
    let web = site.web_with(&[("SVC_WORKER_URL", &url), ("SVC_CA_FILE", &authorities)]);
    validate(&Browser::log_in(&web), b"{}").refused(502, "worker_unavailable");
    await_missing_verdict(&web, "responded with status `");
    let web = site.web_with(&[("SVC_WORKER_URL", &url)]);
    validate(&Browser::log_in(&web), b"{}").refused(502, "worker_unavailable");
    await_missing_verdict(&web, "is unreachable");
    let key = place.path().join("server.key").display().to_string();
    let mut web = site.start("web", &[("SVC_CA_FILE", &key)]);
    assert_eq!(web.await_exit(), Some(1), "{}", web.log());
    assert!(web.has_logged("SVC_CA_FILE"), "{}", web.log());
}
