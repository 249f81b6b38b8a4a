//! Clients without credentials: the resources they can hold, the routes they can call, and the hosts they can use.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::{Attack, connect, during_attack};
use crate::support::browser::Browser;
use crate::support::http_client::{get, send, try_send};
use crate::support::redis_server::RedisServer;
use crate::support::site::{Kind, Service, Site, TEST_TIMEOUT, WEBHOOK_SECRET, await_that};

/// Concurrent slow clients: more than the connection limit of a service.
const SLOW: usize = 300;
/// Failed probes that a supervisor tolerates; Kubernetes' default.
const PROBES_MAX: usize = 3;

/// Clients that send a complete head and then their body byte by byte. A client that is disconnected reconnects.
fn dribble(address: &str, head: &str, attack: &Attack) {
    let open = || {
        let mut stream = connect(address)?;
        stream.write_all(head.as_bytes()).ok()?;
        Some(stream)
    };
    let mut clients: Vec<Option<TcpStream>> = (0..SLOW).map(|_| open()).collect();
    while attack.continues() {
        for client in &mut clients {
            if client.as_mut().is_none_or(|stream| stream.write_all(b" ").is_err()) {
                *client = open();
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn answers(address: &str, path: &str) {
    let tries = (0..PROBES_MAX).map_while(|_| match try_send(address, "GET", path, &[], "") {
        Ok(answer) if answer.status == 200 => None,
        other => Some(other),
    });
    let missed: Vec<_> = tries.collect();
    assert!(missed.len() < PROBES_MAX, "{path} does not answer: {missed:?}");
}

#[test]
fn dripping_login_bodies_block_no_other_login() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let address = web.address();
    let head = format!("POST /api/auth/login HTTP/1.1\r\nHost: {address}\r\nContent-Length: 16000\r\n\r\n{{");
    during_attack(
        |attack| dribble(&address, &head, attack),
        |attack| {
            await_that("the connections to be taken", || open_connections(&web) >= 150);
            for _ in 0..5 {
                answers(&address, "/livez");
                answers(&address, "/readyz");
                let browser = Browser::log_in(&web);
                assert_eq!(browser.get("/api/pipelines").ok().json(), json!([]));
            }
            assert!(attack.is_running());
        },
    );
}

fn open_connections(web: &Service) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", web.pid())).unwrap().count()
}

/// The status of a request from another site's page after DNS rebinding to the service.
fn rebound(address: &str, line: &str, fields: &str, body: &str) -> String {
    let port = address.rsplit(':').next().unwrap();
    let fields =
        format!("Host: evil.example:{port}\r\n{fields}Content-Length: {}\r\nConnection: close\r\n", body.len());
    let mut stream = connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(format!("{line} HTTP/1.1\r\n{fields}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.get(9..12).unwrap_or("none").to_owned()
}

#[test]
fn dns_rebinding_reads_nothing_and_uses_no_login_attempts() {
    let site = Site::new(Kind::Embedded);
    let (worker, web) = site.worker_and_web();
    let own = format!("Origin: http://evil.example:{}\r\nSec-Fetch-Site: same-origin\r\n", web.address());
    for path in ["/", "/metrics", "/session", "/api/pipelines", "/api/openapi.json", "/nothing", "/assets/x.js"] {
        assert_eq!(rebound(&web.address(), &format!("GET {path}"), &own, ""), "421", "{path}");
    }
    let wrong = json!({ "password": "wrong horse" }).to_string();
    for _ in 0..8 {
        assert_eq!(rebound(&web.address(), "POST /api/auth/login", &own, &wrong), "421");
    }
    Browser::log_in(&web);
    assert_eq!(rebound(&worker.address(), "GET /metrics", "", ""), "421");
    await_that("both to be ready", || {
        [&web, &worker].iter().all(|service| get(&service.address(), "/readyz").status == 200)
    });
    // Stores and probes use host names that the service doesn't know.
    let secret = format!("Authorization: Bearer {WEBHOOK_SECRET}\r\n");
    for (address, line, fields, body, status) in [
        (web.address(), "GET /livez", "", "", "200"),
        (web.address(), "GET /readyz", "", "", "200"),
        (worker.address(), "GET /", "", "", "200"),
        (worker.address(), "HEAD /", "", "", "200"),
        (worker.address(), "GET /health", "", "", "200"),
        (worker.address(), "GET /readyz", "", "", "200"),
        (worker.address(), "POST /events/s3", secret.as_str(), "{\"Records\":[]}", "200"),
        (worker.address(), "POST /events/s3", "", "{\"Records\":[]}", "401"),
        (worker.address(), "POST /config/validate", "", "{}", "401"),
    ] {
        assert_eq!(rebound(&address, line, fields, body), status, "{line} {fields}");
    }
}

#[test]
fn configured_host_names_are_accepted() {
    let site = Site::new(Kind::Embedded);
    let names = [("SVC_PUBLIC_URL", "https://lake.example.org:8443"), ("SVC_ALLOWED_HOSTS", "lake.internal, Other")];
    let web = site.web_with(&names);
    for (host, status) in
        [("lake.example.org", 200), ("Lake.Internal:3000", 200), ("other.", 200), ("another.example", 421)]
    {
        let answer = send(&web.address(), "GET", "/session", &[("Host", host)], "");
        assert_eq!(answer.status, status, "{host}: {}", answer.body);
    }
    let refused = site.start("web", &[("SVC_ALLOWED_HOSTS", "https://lake.example.org")]);
    refused.await_log("SVC_ALLOWED_HOSTS");
}

#[test]
fn metrics_behind_a_local_proxy_need_the_token() {
    let site = Site::new(Kind::Embedded);
    let token = ("SVC_METRICS_TOKEN", "token-of-the-metrics-in-tests");
    let status =
        |service: &Service, fields: &[(&str, &str)]| send(&service.address(), "GET", "/metrics", fields, "").status;
    // A proxy that adds no header and passes `Host` on.
    let web = site.web_with(&[("SVC_ALLOWED_HOSTS", "lake.example.org")]);
    assert_eq!((status(&web, &[]), status(&web, &[("Host", "lake.example.org")])), (200, 401));
    // A proxy that sets its own `Host` is known by the settings alone.
    for setting in [("SVC_PUBLIC_URL", "https://lake.example.org"), ("SVC_TRUSTED_PROXIES", "127.0.0.1")] {
        let web = site.web_with(&[setting]);
        assert_eq!(status(&web, &[]), 401, "{setting:?}");
        let web = site.web_with(&[setting, token]);
        let bearer = format!("Bearer {}", token.1);
        assert_eq!((status(&web, &[]), status(&web, &[("Authorization", &bearer)])), (401, 200), "{setting:?}");
    }
    let worker = site.worker_with(&[("SVC_TRUSTED_PROXIES", "127.0.0.1")]);
    assert_eq!(status(&worker, &[]), 401);
}

/// Longest wait of a probe: the service responds within 2 s, and a Redis client times out after 5 s at the earliest.
const PROBE_WAIT: Duration = Duration::from_secs(4);

/// The status of a probe's response, which must arrive in time.
fn probe(address: &str, path: &str) -> Option<String> {
    let mut stream = connect(address)?;
    stream.set_read_timeout(Some(PROBE_WAIT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.get(9..12).map(str::to_owned)
}

#[test]
fn health_is_unavailable_at_once_while_the_queue_hangs() {
    let site = Site::fleet(RedisServer::durable());
    let (worker, web) = site.worker_and_web();
    let probes = [(worker.address(), "/health"), (worker.address(), "/readyz"), (web.address(), "/readyz")];
    let all = |status: &str| probes.iter().all(|(at, path)| probe(at, path).as_deref() == Some(status));
    await_that("all to be well", || all("200"));
    let paused = site.redis.as_ref().unwrap().pause();
    // Results of just before the outage are still served from the cache.
    await_that("the outage to be noticed", || all("503"));
    // Many concurrent probes get a response as well.
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..60)
            .map(|n| {
                let (address, path) = &probes[n % probes.len()];
                scope.spawn(move || probe(address, path))
            })
            .collect();
        for asked in asking {
            assert_eq!(asked.join().unwrap().as_deref(), Some("503"));
        }
    });
    for service in [&worker, &web] {
        assert_eq!(probe(&service.address(), "/livez").as_deref(), Some("200"));
    }
    drop(paused);
    await_that("all to be well again", || all("200"));
}

/// Every file below the folder; folders themselves are left out.
fn files_below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn leftovers_of_killed_services_are_removed_at_the_next_start() {
    let site = Site::new(Kind::Embedded);
    let cache = site.home().join("cache");
    let setting = [("SVC_CACHE_DIR", cache.to_str().unwrap())];
    let (mut worker, mut web, living) = (site.worker(), site.web_with(&setting), site.worker());
    // An upload in progress when the service is killed.
    let browser = Browser::log_in(&web);
    let cookie = browser.cookie.clone().unwrap();
    let mut upload = connect(&browser.address).unwrap();
    let target = "/api/lake?key=kept";
    let fields = format!("Host: {}\r\nCookie: {cookie}\r\nContent-Length: 10000000", browser.address);
    write!(upload, "PUT {target} HTTP/1.1\r\n{fields}\r\n\r\n{}", "x".repeat(1 << 20)).unwrap();
    await_that("the upload to be held", || files_below(&cache.join("uploads")).iter().any(|path| path.is_file()));
    let temporary = || {
        let names = std::fs::read_dir(site.home().join("tmp")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| !name.to_str().unwrap().ends_with(".lock")).count()
    };
    let (scratch, queries) = (site.home().join("scratch"), cache.join("queries"));
    let folders = |at: &std::path::Path| {
        std::fs::read_dir(at).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()).count()
    };
    assert_eq!((temporary(), folders(&scratch)), (1, 2));
    worker.kill();
    web.kill();
    assert_eq!((temporary(), folders(&scratch)), (1, 2), "left behind");
    let (_worker, _web) = (site.worker(), site.web_with(&setting));
    assert_eq!((temporary(), folders(&scratch)), (1, 2), "the living worker's, and those of the new services");
    assert_eq!(files_below(&cache.join("uploads")), Vec::<std::path::PathBuf>::new());
    assert_eq!(folders(&queries), 1);
    drop(living);
}
