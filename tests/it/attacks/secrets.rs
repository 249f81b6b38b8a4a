//! Secrets with recognizable values: they must not appear in any log, metric, response, record or object.

use lakemill::adapters::password::PasswordHash;
use lakemill::ports::store::{Bucket, list_all};
use rustix::process::Signal;
use serde_json::json;

use super::many_partitions;
use crate::support::browser::Browser;
use crate::support::http_client::{get, send, try_send};
use crate::support::program::{call, lakemill};
use crate::support::redis_server::RedisServer;
use crate::support::s3_server::{ACCESS_KEY, SECRET_KEY};
use crate::support::site::{PASSWORD, Service, Site, await_that};

const KV_PASSWORD: &str = "canary-of-the-queue-5d1f";
const WORKER_TOKEN: &str = "canary-of-the-worker-token-77aa";
const WEBHOOK_SECRET: &str = "canary-of-the-webhook-19c3";
const METRICS_TOKEN: &str = "canary-of-the-metrics-e402";
const WRONG_PASSWORD: &str = "canary-of-a-wrong-password-b0b1";

/// Named secrets that must not be found. Presigned URLs contain a signature, which acts as a key until it expires.
fn canaries(session: &str, hash: &str) -> Vec<(&'static str, String)> {
    let texts = [
        ("the secret key", SECRET_KEY),
        ("the queue's password", KV_PASSWORD),
        ("the worker's token", WORKER_TOKEN),
        ("the webhook's secret", WEBHOOK_SECRET),
        ("the token of metrics", METRICS_TOKEN),
        ("the password", PASSWORD),
        ("what was typed as a password", WRONG_PASSWORD),
        ("the password's hash", hash),
        ("a session", session),
        ("a signature", "X-Amz-Signature="),
        ("a signature's key", "X-Amz-Credential="),
        ("a signed header", "AWS4-HMAC-SHA256 "),
    ];
    texts.map(|(name, text)| (name, text.to_owned())).to_vec()
}

/// Responses, each with its origin.
#[derive(Default)]
struct Responses(Vec<(String, Vec<u8>)>);

impl Responses {
    fn add(&mut self, by: impl Into<String>, text: impl Into<Vec<u8>>) {
        self.0.push((by.into(), text.into()));
    }

    fn contain_none_of(&self, canaries: &[(&'static str, String)]) {
        for (by, text) in &self.0 {
            for (name, canary) in canaries {
                let found = memchr::memmem::find(text, canary.as_bytes());
                let around = found.map(|at| {
                    String::from_utf8_lossy(&text[at.saturating_sub(200)..(at + 40).min(text.len())]).into_owned()
                });
                assert_eq!(around, None, "{name} is exposed by {by}");
            }
        }
    }
}

/// A fleet in which every secret is a canary, at the most verbose log level.
fn site_of_canaries() -> Site {
    let password = format!(">{KV_PASSWORD}");
    let user = ["--user", "canary", "on", &password, "~*", "&*", "+@all"];
    let mut site =
        Site::fleet(RedisServer::with(&[&["--appendonly", "yes", "--appendfsync", "always"][..], &user].concat()));
    let port = site.redis.as_ref().unwrap().port();
    let url = format!("redis://canary:{KV_PASSWORD}@127.0.0.1:{port}/0");
    for (name, value) in [
        ("KV_URL", url.as_str()),
        ("SVC_WORKER_TOKEN", WORKER_TOKEN),
        ("SVC_WEBHOOK_SECRET", WEBHOOK_SECRET),
        ("SVC_METRICS_TOKEN", METRICS_TOKEN),
        ("SVC_LOG", "trace"),
    ] {
        site.set(name, value);
    }
    site
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// Accepted and rejected requests with secrets in every place that can hold one.
fn request_worker(worker: &Service, response_to: &mut Responses) {
    let address = &worker.address();
    let event = json!({ "Records": [{ "eventName": "s3:ObjectCreated:Put", "eventSource": "minio:s3",
        "s3": { "bucket": { "name": "b" }, "object": { "key": "pipelines%2Fp%2Fa.csv" } } }] })
    .to_string();
    for token in [WEBHOOK_SECRET, WORKER_TOKEN, WRONG_PASSWORD] {
        for (path, body) in
            [("/events/s3", event.as_str()), ("/events/s3", "{"), ("/config/validate", "{"), ("/config/validate", "[]")]
        {
            let answer = send(address, "POST", path, &[("Authorization", &bearer(token))], body);
            response_to.add(format!("the worker's {path}"), answer.body);
        }
        let in_query = format!("/events/s3?token={token}");
        response_to.add("the worker, asked by query", send(address, "POST", &in_query, &[], &event).body);
        response_to.add(
            "the worker's metrics",
            send(address, "GET", "/metrics", &[("Authorization", &bearer(token))], "").body,
        );
    }
    let answer = send(address, "GET", "/metrics", &[("Authorization", &bearer(METRICS_TOKEN))], "");
    assert!(answer.body.contains("lakemill_jobs_total"), "{answer:?}");
    response_to.add("the worker's metrics", answer.body);
    for path in ["/health", "/livez", "/readyz", "/nowhere"] {
        response_to.add(format!("the worker's {path}"), get(address, path).body);
    }
}

fn request_web(browser: &Browser, response_to: &mut Responses) {
    let mut note = |what: &str, reply: crate::support::browser::Reply| {
        response_to.add(format!("the web service's {what}"), reply.body)
    };
    note("login", browser.post("/api/auth/login", &json!({ "password": WRONG_PASSWORD })));
    note(
        "login",
        browser.send("POST", "/api/auth/login", &[("Content-Type", "application/json")], WRONG_PASSWORD.as_bytes()),
    );
    for path in [
        "/api/about",
        "/api/auth/session",
        "/api/settings",
        "/api/pipelines?details=1",
        "/api/p/p/config",
        "/api/p/p/jobs",
        "/api/p/p/tables",
        "/api/p/p/tables/t/rows",
        "/api/lake?prefix=pipelines/p/",
        "/readyz",
        "/openapi.json",
        "/api/p/q/config",
    ] {
        note(path, browser.get(path));
    }
    for sql in
        ["SELECT count(*) FROM t", "SELECT getenv('KV_URL')", "SELECT * FROM read_text('/proc/self/environ')", "SELEC"]
    {
        note(sql, browser.post("/api/p/p/query", &json!({ "sql": sql })));
    }
    note("checks", browser.put("/api/p/p/config", &json!({ "version": 1, "mappings": [] })));
    let metrics = browser.send("GET", "/metrics", &[("Authorization", &bearer(METRICS_TOKEN))], b"");
    note("metrics", metrics);
}

/// Checks that other users of the machine see no secrets of our processes, and that SQL children have none in their
/// environment.
fn check_processes(services: &[&Service], response_to: &mut Responses) {
    for service in services {
        let pid = service.pid();
        response_to.add("a command line", std::fs::read(format!("/proc/{pid}/cmdline")).unwrap());
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for child in children.split_whitespace() {
            for part in ["cmdline", "environ"] {
                // The process may have ended since.
                if let Ok(text) = std::fs::read(format!("/proc/{child}/{part}")) {
                    response_to.add(format!("a child's {part}"), text);
                }
            }
        }
    }
}

fn check_stores(site: &Site, response_to: &mut Responses) {
    for bucket in Bucket::ALL {
        for object in list_all(&*site.store, bucket, "").unwrap() {
            response_to.add(format!("{bucket}:{}", object.key), site.read(bucket, &object.key).unwrap());
            response_to.add("a key", object.key);
        }
    }
    let redis = site.redis.as_ref().unwrap();
    for key in redis.ask::<Vec<String>>(&["KEYS", "*"]) {
        // A value of any type, with its text.
        let held: Vec<u8> = redis.ask(&["DUMP", &key]);
        response_to.add(format!("the queue's {key}"), held);
        response_to.add("a key of the queue", key);
    }
}

#[test]
fn secrets_never_appear_in_logs_metrics_responses_or_objects() {
    let mut response_to = Responses::default();
    let site = site_of_canaries();
    many_partitions(&site);
    let worker = site.worker();
    let web = site.web_with(&[("SVC_WORKER_URL", &format!("http://{}", worker.address()))]);
    let browser = Browser::log_in(&web);
    let cookie = browser.cookie.clone().unwrap();
    let session = cookie.split_once('=').unwrap().1.to_owned();
    site.await_end(&site.enqueue("p"));

    request_worker(&worker, &mut response_to);
    request_web(&browser, &mut response_to);
    check_processes(&[&worker, &web], &mut response_to);

    // While a store is unavailable, everything that uses it reports that.
    let job = site.enqueue_as("p", true);
    site.break_store();
    request_web(&browser, &mut response_to);
    response_to.add("the worker, not ready", get(&worker.address(), "/readyz").body);
    await_that("a run that can't reach the store", || worker.has_logged("attempt failed"));
    site.restore_store();
    site.break_kv();
    request_web(&browser, &mut response_to);
    for path in ["/health", "/readyz", "/metrics"] {
        let headers = [("Authorization", bearer(METRICS_TOKEN))];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        if let Ok(answer) = try_send(&worker.address(), "GET", path, &headers, "") {
            response_to.add("the worker without its queue", answer.body);
        }
    }
    site.restore_kv();
    site.await_end(&job);

    for args in [&["doctor"][..], &["doctor", "--json"], &["jobs", "p"], &["jobs", "p", "--json"], &["webhook", "show"]]
    {
        let ran = call(lakemill().args(args).envs(site.env()).env("SVC_SCRATCH_DIR", site.home().join("scratch")));
        response_to.add(format!("{args:?}"), format!("{}\n{}", ran.stdout, ran.stderr));
    }
    // A malformed credential is not repeated either.
    let malformed = format!("redis://canary:{KV_PASSWORD}@:not a port/0");
    let ran = call(lakemill().arg("worker").envs(site.env()).env("KV_URL", malformed));
    assert_eq!(ran.status, 78, "{ran:?}");
    response_to.add("a start that is refused", format!("{}\n{}", ran.stdout, ran.stderr));

    check_stores(&site, &mut response_to);
    for service in [&worker, &web] {
        service.signal(Signal::TERM);
    }
    for mut service in [worker, web] {
        assert_eq!(service.await_exit(), Some(0));
        response_to.add(format!("the log of process {}", service.pid()), service.log());
    }

    let hash = site.password_hash();
    assert!(PasswordHash::of(PASSWORD).is_ok() && hash.starts_with("$argon2id$"));
    response_to.contain_none_of(&canaries(&session, hash));
    // The search itself must find a planted secret.
    response_to.add("a control", format!("a line with {ACCESS_KEY} and {SECRET_KEY}"));
    assert!(std::panic::catch_unwind(|| response_to.contain_none_of(&canaries(&session, hash))).is_err());
}
