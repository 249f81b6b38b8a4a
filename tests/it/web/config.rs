//! A pipeline's config: reads, conditional saves, and concurrent saves and renames.

use std::sync::Barrier;

use chrono::{TimeDelta, Utc};
use lakemill::domain::job::{Job, JobMessage, JobStatus};
use lakemill::domain::layout::config_key;
use lakemill::ports::jobs::{ClaimLimits, PipelineLock, StartOutcome, StartRequest};
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::{check_outages, on_both};
use crate::support::browser::{Browser, Reply};
use crate::support::http_proxy::ProxyAction;
use crate::support::program::mapping;
use crate::support::s3_server::s3s_fs;
use crate::support::site::{Kind, Service, Site, await_some, slug};

const PATH: &str = "/api/p/x/config";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const RACERS: usize = 32;

fn good() -> Value {
    json!({ "version": 1, "auto_run": false, "mappings": [mapping(&json!({}))] })
}

fn put_if(browser: &Browser, tag: &str, body: &str) -> Reply {
    browser.send("PUT", PATH, &[JSON, ("If-Match", tag)], body.as_bytes())
}

fn tag(reply: &Reply) -> String {
    reply.header("etag").expect("a tag").to_owned()
}

fn stored(site: &Site) -> Option<Vec<u8>> {
    site.read(Bucket::Pipelines, &config_key(&slug("x")))
}

fn hold(site: &Site) -> PipelineLock {
    let floor = site.store.highest_fence(&slug("x")).unwrap();
    site.kv.lock_pipeline(&slug("x"), std::time::Duration::from_secs(60), floor).unwrap().expect("the lock")
}

#[test]
fn config_is_returned_byte_for_byte_with_a_tag_per_version() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let first = "{\n\t\"zzz\": 1e400, \"version\": 1,  \"later\": {\"b\": [null, \"\\u00e9 é\"], \"a\": 1.10},\n\"mappings\": []}\r\n\n";
        let saved = browser.send("PUT", PATH, &[JSON], first.as_bytes()).ok();
        assert_eq!(saved.json()["ok"], false, "unknown fields are problems and are kept");
        let read = browser.get(PATH).ok();
        assert_eq!((read.text().as_str(), read.header("content-type")), (first, Some("application/json")));
        assert_eq!(tag(&read), tag(&saved));
        let head = browser.send("HEAD", PATH, &[], b"");
        assert_eq!((head.status, tag(&head), head.body.len()), (200, tag(&read), 0));
        let second = put_if(&browser, &tag(&read), &good().to_string()).ok();
        assert_ne!(tag(&second), tag(&read));
        let expected = json!({
            "ok": true, "problems": [], "expressions_checked": true, "impact": { "dashboards": [], "queries": [] }
        });
        assert_eq!(second.json(), expected);
        assert_eq!(tag(&browser.get(PATH)), tag(&second));
    });
}

#[test]
fn missing_config_differs_from_missing_pipeline() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        browser.get(PATH).refused(404, "pipeline_not_found");
        site.put("x", "a.csv", "a\n1\n");
        browser.get(PATH).refused(404, "pipeline_config_not_found");
        for condition in ["*", "\"abc\""] {
            put_if(&browser, condition, "{}").refused(412, "precondition_failed");
        }
        assert_eq!(stored(&site), None);
        browser.put(PATH, &good()).ok();
        assert_eq!(browser.get(PATH).ok().json(), good());
    });
}

#[test]
fn strict_save_requires_a_worker() {
    on_both(|kind| {
        let site = Site::new(kind);
        let strict = format!("{PATH}?strict=1");
        let columns = json!([{ "name": "a", "type": "string" }, { "name": "c", "type": "string", "expr": "upper(a)" }]);
        let config = json!({ "version": 1, "auto_run": false, "mappings": [mapping(&json!({ "columns": columns }))] });
        // Nothing listens there.
        let web = site.web();
        let browser = Browser::log_in(&web);
        browser.put(&strict, &config).refused(502, "worker_unavailable");
        browser.put(&format!("{strict}&dry_run=1"), &config).refused(502, "worker_unavailable");
        assert_eq!(stored(&site), None);
        // Problems that need no worker are reported first.
        let mut broken = config.clone();
        broken["mappings"][0]["table"] = json!("T");
        browser.put(&strict, &broken).refused(422, "invalid_config");
        // Without expressions the worker isn't needed.
        let before = browser.put(&strict, &good()).ok();
        browser.put(&strict, &config).refused(502, "worker_unavailable");
        assert_eq!(tag(&browser.get(PATH)), tag(&before));
        assert!(web.has_logged("is unreachable") && !web.log().contains("\"expressions_checked\":false"));
        // "Save anyway" is a save that isn't strict.
        assert_eq!(browser.put(PATH, &config).ok().json()["expressions_checked"], false);
        assert!(web.log().contains("config saved") && web.log().contains("\"expressions_checked\":false"));
        drop(web);
        let (_worker, web) = site.worker_and_web();
        assert_eq!(Browser::log_in(&web).put(&strict, &config).ok().json()["expressions_checked"], true);
    });
}

#[test]
fn deleted_pipeline_runs_again_with_a_new_config() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (_worker, web) = site.worker_and_web();
        site.put("x", "in/a.csv", "a,b\nx,1\n");
        site.kv.drop_pipeline(&slug("x")).unwrap();
        Browser::log_in(&web).put(PATH, &good()).ok();
        // A job that the deleted pipeline's tombstone would drop.
        let message = JobMessage::new(slug("x"), false, "manual", Utc::now() - TimeDelta::hours(1));
        let job = Job::queued(&message, 3);
        site.kv.enqueue(&job).unwrap();
        let ended = site.await_end(&job);
        assert!(ended.error.is_none(), "{ended:?}");
    });
}

#[test]
fn invalid_or_oversized_json_is_rejected() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let before = browser.put(PATH, &good()).ok();
        let long = format!("{{\"title\":\"{}\"}}", "x".repeat(4 << 20));
        for bad in
            [&b""[..], b"{", b"{}{}", b"// no\n{}", b"\xef\xbb\xbf{}", b"\xff\xfe{\0}\0", b"{\"a\":\"\xff\"}", b"NaN"]
        {
            let message = browser.send("PUT", PATH, &[JSON], bad).refused(400, "invalid_request");
            assert!(message.contains("not a config"), "{message}");
        }
        browser.send("PUT", PATH, &[JSON], long.as_bytes()).refused(413, "payload_too_large");
        browser.send("PUT", PATH, &[("Content-Type", "text/yaml")], b"{}").refused(415, "unsupported_media_type");
        for query in ["?strict=yes", "?strict=1&strict=1", "?dry_run=2"] {
            browser.put(&format!("{PATH}{query}"), &good()).refused(400, "invalid_request");
        }
        assert_eq!(tag(&browser.get(PATH)), tag(&before));
    });
}

#[test]
fn invalid_config_is_saved_unless_strict_or_dry_run() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let bad = json!({ "version": 1, "mappings": [{ "table": "T", "files": ["["], "columns": [] }] });
        let refused = browser.put(&format!("{PATH}?strict=1"), &bad);
        refused.refused(422, "invalid_config");
        let problems = refused.json()["problems"].clone();
        assert!(
            problems.as_array().unwrap().iter().any(|problem| problem["path"] == "/mappings/0/table"),
            "{problems}"
        );
        let dry = browser.put(&format!("{PATH}?dry_run=1"), &bad).ok();
        assert_eq!((&dry.json()["problems"], dry.header("etag")), (&problems, None));
        assert_eq!(stored(&site), None);
        let saved = browser.put(PATH, &bad).ok();
        assert_eq!((&saved.json()["ok"], &saved.json()["problems"]), (&json!(false), &problems));
        assert_eq!(
            (&saved.json()["impact"], &saved.json()["impact_unknown"]),
            (&json!(null), &json!("the config has problems"))
        );
        for odd in [json!(null), json!([]), json!("text"), json!(7), json!({ "version": 2 })] {
            let reply = browser.put(PATH, &odd).ok();
            assert_eq!(reply.json()["ok"], false, "{odd}");
            assert_eq!(browser.get(PATH).json(), odd);
        }
        let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
        browser.send("PUT", PATH, &[JSON], deep.as_bytes()).ok();
        assert_eq!(browser.get(PATH).text(), deep);
        browser.put(&format!("{PATH}?strict=true"), &good()).ok();
    });
}

#[test]
fn save_honours_its_precondition() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let first = tag(&browser.put(PATH, &json!({ "n": 1 })).ok());
        for other in
            ["\"\u{e9}\"", "\"0\"", &format!("\"{}\"", "x".repeat(8_000)), "\"a\", \"b\"", "\"*\"", "\"../../x\""]
        {
            put_if(&browser, other, "{}").refused(412, "precondition_failed");
        }
        for malformed in [
            "",
            "\"",
            "W/",
            &format!("{first};"),
            "**",
            "*, *",
            "\"\"",
            "\"a",
            "a\"b\"",
            "\"a\" \"b\"",
            "\"a\",",
            "'a'",
        ] {
            put_if(&browser, malformed, "{}").refused(400, "invalid_request");
        }
        // Several header fields are one list; none of them is ignored.
        let twice =
            |one: &str, two: &str| browser.send("PUT", PATH, &[JSON, ("If-Match", one), ("If-Match", two)], b"{}");
        twice(&first, "x y").refused(400, "invalid_request");
        // A proxy may make a tag weak, and a person may omit the quotes: it is the same tag.
        put_if(&browser, "W/\"0\"", "{}").refused(412, "precondition_failed");
        put_if(&browser, "0", "{}").refused(412, "precondition_failed");
        let weak = tag(&put_if(&browser, &format!("W/{first}"), r#"{"n":0}"#).ok());
        let first = tag(&put_if(&browser, weak.trim_matches('"'), r#"{"n":1}"#).ok());
        assert_eq!(browser.get(PATH).json(), json!({ "n": 1 }));
        let second = tag(&twice("\"x\"", &first).ok());
        put_if(&browser, &first, "{}").refused(412, "precondition_failed");
        put_if(&browser, &format!("\"x\" , {second}"), r#"{"n":3}"#).ok();
        put_if(&browser, "*", r#"{"n":4}"#).ok();
        let dry = browser.send("PUT", &format!("{PATH}?dry_run=1"), &[JSON, ("If-Match", &first)], b"{}");
        dry.refused(412, "precondition_failed");
        assert_eq!(browser.get(PATH).json(), json!({ "n": 4 }));
    });
}

#[test]
fn first_save_overwrites_nothing() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let put = |path: &str, conditions: &[(&str, &str)], body: &str| {
            browser.send("PUT", path, &[&[JSON], conditions].concat(), body.as_bytes())
        };
        let absent = ("If-None-Match", "*");
        for malformed in [&[("If-None-Match", "\"a\"")][..], &[("If-None-Match", "")], &[absent, absent]] {
            put(PATH, malformed, "{}").refused(400, "invalid_request");
        }
        put(PATH, &[absent, ("If-Match", "*")], "{}").refused(400, "invalid_request");
        put(&format!("{PATH}?dry_run=1"), &[absent], "{}").ok();
        assert_eq!(stored(&site), None);
        let first = tag(&put(PATH, &[absent], r#"{"n":1}"#).ok());
        put(PATH, &[absent], r#"{"n":2}"#).refused(412, "precondition_failed");
        put(&format!("{PATH}?dry_run=1"), &[absent], "{}").refused(412, "precondition_failed");
        assert_eq!((browser.get(PATH).json(), tag(&browser.get(PATH))), (json!({ "n": 1 }), first));
    });
}

#[test]
fn foreign_config_object_is_reported_and_replaceable() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let key = config_key(&slug("x"));
        let long = vec![b' '; (4 << 20) + 1];
        let raw = format!("{PATH}?raw=1");
        for (body, problem) in [(&b"{"[..], "syntax"), (b"", "syntax"), (b"\xff", "syntax"), (&long, "limit")] {
            site.store.put(Bucket::Pipelines, &key, body, &WriteOptions::default()).unwrap();
            let reply = browser.get(PATH);
            reply.refused(422, "invalid_config");
            assert_eq!(reply.json()["problems"][0]["kind"], problem);
            let shown = browser.get(&raw);
            match problem {
                "limit" => drop(shown.refused(422, "invalid_config")),
                _ => {
                    assert_eq!((shown.header("content-type"), &shown.body[..]), (Some("text/plain"), body));
                    assert_eq!(tag(&shown), tag(&reply));
                }
            }
            put_if(&browser, &tag(&reply), &good().to_string()).ok();
            browser.get(PATH).ok();
        }
    });
}

#[test]
fn invalid_slugs_are_rejected() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let good = good().to_string();
        for odd in [
            "X",
            "_x",
            "x.y",
            "%2e%2e",
            "%252e%252e",
            "..%2fx",
            "x%2f..%2fy",
            "x%00",
            "%C3%A9",
            "%EF%BC%8E%EF%BC%8E",
            "x%5c",
            "x%20",
            &"x".repeat(64),
        ] {
            for (method, path) in [("GET", "config"), ("PUT", "config"), ("POST", "infer?key=a")] {
                let body: &[u8] = if path == "config" && method == "GET" || path.starts_with("infer") {
                    b""
                } else {
                    good.as_bytes()
                };
                let reply = browser.send(method, &format!("/api/p/{odd}/{path}"), &[JSON], body);
                let code = reply.json()["error"].as_str().unwrap().to_owned();
                let result = (reply.status, code.as_str());
                assert!(
                    matches!(result, (400, "invalid_slug" | "invalid_request") | (404, "not_found")),
                    "{method} {odd}/{path}: {}",
                    reply.text()
                );
            }
        }
        assert!(site.store.list(Bucket::Pipelines, "", None, None, 10).unwrap().objects.is_empty());
    });
}

/// Two processes race with the same tag, and before that for the first save: one save succeeds, and its body is stored.
fn race(site: &Site) {
    let webs = [site.web(), site.web()];
    let browser = Browser::log_in(&webs[0]);
    site.store.delete(Bucket::Pipelines, &[config_key(&slug("x"))], &WriteOptions::default()).unwrap();
    let first = race_under(&webs, &browser, ("If-None-Match", "*"));
    race_under(&webs, &browser, ("If-Match", &first));
}

/// Returns the winner's tag.
fn race_under(webs: &[Service; 2], browser: &Browser, condition: (&str, &str)) -> String {
    let barrier = Barrier::new(RACERS);
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let start = |racer: usize| {
            let barrier = &barrier;
            let address = webs[racer % 2].address();
            scope.spawn(move || {
                let browser = Browser { address, ..browser.clone() };
                barrier.wait();
                let body = json!({ "racer": racer, "after": condition.1 }).to_string();
                browser.send("PUT", PATH, &[JSON, condition], body.as_bytes())
            })
        };
        let racers: Vec<_> = (0..RACERS).map(start).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let winners: Vec<usize> = (0..RACERS).filter(|racer| replies[*racer].status == 200).collect();
    assert_eq!(winners.len(), 1, "{:?}", replies.iter().map(|reply| reply.status).collect::<Vec<_>>());
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        reply.refused(412, "precondition_failed");
    }
    let read = browser.get(PATH).ok();
    let expected = json!({ "racer": winners[0], "after": condition.1 });
    assert_eq!((read.json(), tag(&read)), (expected, tag(&replies[winners[0]])));
    tag(&read)
}

#[test]
fn one_of_concurrent_saves_with_a_precondition_succeeds() {
    on_both(|kind| race(&Site::new(kind)));
}

#[test]
fn one_of_concurrent_saves_succeeds_without_store_preconditions() {
    let mut site = Site::new(Kind::Fleet);
    let proxy = s3s_fs().behind(|passing| {
        passing.drop_header("if-match");
        passing.drop_header("if-none-match");
        ProxyAction::Forward
    });
    site.set("OBJ_ENDPOINT_URL", &proxy.url());
    race(&site);
    // During a run, which holds its lock, only the precondition restricts saves.
    let job = site.enqueue("x");
    let _started = start(&site, &job);
    race(&site);
}

/// Starts a job like a worker.
fn start(site: &Site, job: &Job) -> StartOutcome {
    start_for(site, job, std::time::Duration::from_secs(60))
}

fn start_for(site: &Site, job: &Job, lock_ttl: std::time::Duration) -> StartOutcome {
    let entries = site.kv.claim("somebody", ClaimLimits::any(10), std::time::Duration::from_secs(5)).unwrap();
    let message = JobMessage::new(job.pipeline.clone(), false, "manual", job.enqueued_at);
    let message = JobMessage { job_id: job.job_id.clone(), ..message };
    let request = StartRequest {
        entry: &entries[0].id,
        consumer: "somebody",
        message: &message,
        token: "a-token-of-this-test",
        lock_ttl,
        fence_floor: site.store.highest_fence(&job.pipeline).unwrap(),
        attempts_max: 3,
    };
    let started = site.kv.start(&request).unwrap();
    assert!(matches!(started, StartOutcome::Running(_)), "{started:?}");
    started
}

#[test]
fn save_proceeds_during_a_run_and_waits_for_a_rename() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let first = browser.put(PATH, &good()).ok();
        let held = hold(&site);
        browser.send("PUT", PATH, &[JSON], b"{}").refused(409, "pipeline_busy");
        // A save whose precondition fails needn't wait.
        put_if(&browser, "\"other\"", "{}").refused(412, "precondition_failed");
        // Other pipelines aren't locked, and reads aren't either.
        browser.put("/api/p/y/config", &good()).ok();
        browser.send("PUT", &format!("{PATH}?dry_run=1"), &[JSON], b"{}").ok();
        assert_eq!(tag(&browser.get(PATH)), tag(&first));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| browser.send("PUT", PATH, &[JSON], b"{\"n\":1}"));
            site.kv.release(&held).unwrap();
            waiting.join().unwrap().ok();
        });
        drop(hold(&site));
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let job = site.enqueue("x");
        let _started = start(&site, &job);
        browser.put(PATH, &good()).ok();
        assert_eq!(browser.get(PATH).json(), good());
    });
}

#[test]
fn job_of_a_dead_worker_does_not_replace_the_write_lock() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let first = browser.put(PATH, &good()).ok();
        let job = site.enqueue("x");
        let _started = start_for(&site, &job, std::time::Duration::from_millis(50));
        // Its lock has expired, and the pipeline is renamed.
        let floor = site.store.highest_fence(&slug("x")).unwrap();
        let ttl = std::time::Duration::from_secs(60);
        let _held = await_some("the end of its lock", || site.kv.lock_pipeline(&slug("x"), ttl, floor).unwrap());
        assert_eq!(site.seen(&job).unwrap().status, JobStatus::Running);
        browser.send("PUT", PATH, &[JSON], b"{}").refused(409, "pipeline_busy");
        assert_eq!(tag(&browser.get(PATH)), tag(&first));
    });
}

#[test]
fn config_routes_fail_while_a_store_is_unavailable() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        browser.put(PATH, &good()).ok();
        site.put("x", "in/a.csv", "a,b\nx,1\n");
        let (other, preview) = (json!({ "n": 1 }).to_string(), json!({ "config": good() }).to_string());
        let wishes = [
            ("GET", PATH, ""),
            ("PUT", PATH, other.as_str()),
            ("GET", "/api/p/x/config/versions", ""),
            ("GET", "/api/p/x/config/versions/1", ""),
            ("POST", "/api/p/x/infer?key=pipelines/x/in/a.csv", ""),
            ("POST", "/api/p/x/preview", preview.as_str()),
        ];
        check_outages(&site, &browser, &wishes);
        assert_eq!(browser.get(PATH).ok().json(), good());
    });
}

#[test]
fn store_failure_is_reported_without_internals() {
    let site = Site::new(Kind::Fleet);
    let proxy = s3s_fs().behind(|_| ProxyAction::Close);
    for (name, value, code) in [
        ("S3_BUCKET_PIPELINES", "no-such-bucket", "bucket_not_found"),
        ("OBJ_ENDPOINT_URL", proxy.url().as_str(), "s3_error"),
    ] {
        let web = site.web_with(&[(name, value)]);
        let browser = Browser::log_in(&web);
        let message = browser.get(PATH).refused(502, code);
        assert!(!message.contains("no-such-bucket") && !message.contains(&proxy.url()), "{message}");
        browser.put(PATH, &good()).refused(502, code);
    }
}
