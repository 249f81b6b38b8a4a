//! Raw sockets against the listeners of a busy worker and a busy web service.

use std::io::{Read, Write};
use std::time::Duration;

use super::{
    Attack, CallOnDrop, Count, POOLED, connect, descriptors, during_attack, many_partitions, resident_bytes,
    response_to, runs_continue,
};
use crate::support::browser::Browser;
use crate::support::http_client::try_send;
use crate::support::site::{Kind, Service, Site, WEBHOOK_SECRET, await_that};

/// Concurrent slow clients.
const SLOW: usize = 500;
/// Consecutive failed probes after which a supervisor restarts a service; Kubernetes' default.
const PROBES_MAX: usize = 3;
/// Allowed memory growth of a service in bytes: a run's 64 MiB, and the guard's allowance for clients.
const GROWTH_MAX: u64 = 192 << 20;

/// Requests whose end two parsers could place differently, or with an impossible length. None may be executed beyond
/// its head, and none may cause a second response.
fn malformed_requests() -> Vec<Vec<u8>> {
    let within = "GET /livez HTTP/1.1\r\nHost: a\r\nX-Request-Id: smuggled\r\n\r\n";
    let post = |fields: &str, body: &str| {
        let auth = format!("Authorization: Bearer {WEBHOOK_SECRET}\r\n");
        format!("POST /events/s3 HTTP/1.1\r\nHost: a\r\n{auth}{fields}\r\n{body}").into_bytes()
    };
    let mut all: Vec<Vec<u8>> = [
        ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", format!("0\r\n\r\n{within}")),
        ("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", format!("0\r\n\r\n{within}")),
        ("Content-Length: 4\r\nContent-Length: 60\r\n", format!("null{within}")),
        ("Content-Length: 4, 60\r\n", format!("null{within}")),
        ("Content-Length: +4\r\n", format!("null{within}")),
        ("Content-Length: 0x4\r\n", format!("null{within}")),
        ("Content-Length: -1\r\n", within.to_owned()),
        ("Content-Length: 18446744073709551615\r\n", within.to_owned()),
        ("Content-Length: 99999999999999999999999999\r\n", within.to_owned()),
        ("Content-Length : 4\r\n", format!("null{within}")),
        ("Transfer-Encoding: chunked, identity\r\n", format!("0\r\n\r\n{within}")),
        ("Transfer-Encoding: xchunked\r\n", format!("0\r\n\r\n{within}")),
        ("Transfer-Encoding:\x0bchunked\r\n", format!("0\r\n\r\n{within}")),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", format!("0\r\n\r\n{within}")),
        ("Transfer-Encoding: chunked\r\n", format!("ffffffffffffffff\r\n{within}")),
        ("Transfer-Encoding: chunked\r\n", format!("4;a=\"\r\nnull\r\n0\r\n\r\n{within}\"")),
        ("Transfer-Encoding: chunked\r\n", format!("-1\r\n{within}")),
        ("Transfer-Encoding: chunked\r\n", format!("4\nnull\n0\n\n{within}")),
        (" Content-Length: 4\r\n", format!("null{within}")),
        ("X: a\r\n Transfer-Encoding: chunked\r\n", format!("0\r\n\r\n{within}")),
        ("X: a\rTransfer-Encoding: chunked\r\n", format!("0\r\n\r\n{within}")),
        ("X\0: a\r\n", within.to_owned()),
    ]
    .iter()
    .map(|(fields, body)| post(fields, body))
    .collect();
    all.push(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n{within}", "a".repeat(1 << 20)).into_bytes());
    all.push(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n{within}", "a".repeat(1 << 20)).into_bytes());
    all.push(format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n{within}", "X: a\r\n".repeat(10_000)).into_bytes());
    all.push(b"GET / HTTP/2.0\r\nHost: a\r\n\r\n".to_vec());
    all.push(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec());
    all.push(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec());
    all.push(vec![0; 1 << 20]);
    all
}

/// Clients that send a head byte by byte and never finish; a client that is disconnected reconnects.
fn drip(address: &str, attack: &Attack, sent: &Count) {
    let mut clients: Vec<_> = (0..SLOW).map(|_| connect(address)).collect();
    while attack.continues() {
        for client in &mut clients {
            let alive = client.as_mut().is_some_and(|stream| stream.write_all(b"G").is_ok());
            if alive {
                sent.one();
            } else {
                *client = connect(address);
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Floods of pipelined requests on one connection; the client reads responses after sending all, or never.
fn flood(address: &str, attack: &Attack, sent: &Count) {
    let many = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2_000);
    while attack.continues() {
        let Some(mut stream) = connect(address) else { continue };
        let _ = stream.write_all(many.as_bytes());
        if sent.get().is_multiple_of(2) {
            let _ = stream.take(1 << 20).read_to_end(&mut Vec::new());
        }
        sent.one();
    }
}

/// Uploads that announce a body and stop in the middle; each keeps its connection until it is closed.
fn stall(address: &str, attack: &Attack, sent: &Count) {
    let head = format!(
        "POST /events/s3 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {WEBHOOK_SECRET}\r\nContent-Length: 100000\r\n\r\n{{"
    );
    let mut held = Vec::new();
    while attack.continues() {
        if held.len() < 40
            && let Some(mut stream) = connect(address)
            && stream.write_all(head.as_bytes()).is_ok()
        {
            held.push(stream);
            sent.one();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send_malformed(address: &str, attack: &Attack, sent: &Count) {
    while attack.continues() {
        for request in malformed_requests() {
            let answer = response_to(address, &request);
            assert!(!answer.contains("smuggled"), "{:?}\n{answer}", String::from_utf8_lossy(&request));
            assert!(!answer.contains("HTTP/1.1 2"), "{:?}\n{answer}", String::from_utf8_lossy(&request));
            sent.one();
        }
    }
}

/// Probes health like a supervisor, on a new connection each time. A probe may fail: a client that got no CPU time
/// between connecting and sending may have been evicted for hundreds of others.
fn probe_health(address: &str, attack: &Attack, sent: &Count) {
    while attack.continues() {
        let mut missed = Vec::new();
        let responded = (0..PROBES_MAX).any(|_| match try_send(address, "GET", "/livez", &[], "") {
            Ok(answer) if answer.status == 200 => true,
            other => {
                missed.push(other);
                false
            }
        });
        assert!(responded, "no health response: {missed:?}");
        sent.one();
    }
}

fn run_all_attacks(service: &Service, attack: &Attack) {
    let address = &service.address();
    let ways: [fn(&str, &Attack, &Count); 5] = [drip, flood, stall, send_malformed, probe_health];
    let counts: [Count; 5] = Default::default();
    std::thread::scope(|scope| {
        let _end = CallOnDrop(|| attack.end());
        let threads: Vec<_> =
            ways.iter().zip(&counts).map(|(way, count)| scope.spawn(move || way(address, attack, count))).collect();
        // A failing attack stops the others, so that the test reports it immediately.
        while attack.continues() {
            if threads.iter().any(std::thread::ScopedJoinHandle::is_finished) {
                attack.end();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let done: Vec<u64> = counts.iter().map(Count::get).collect();
    assert!(done.iter().all(|count| *count > 0), "each way was tried: {done:?}");
}

fn runs_are_unaffected(kind: Kind) {
    let site = Site::new(kind);
    many_partitions(&site);
    let worker = site.worker();
    site.await_end(&site.enqueue_as("p", true));
    let (made, held, memory) = (site.warehouse("p"), descriptors(worker.pid()), resident_bytes(worker.pid()));
    let ended = runs_continue(&site, |attack| run_all_attacks(&worker, attack));
    assert_eq!(site.warehouse("p"), made, "after {} runs", ended.len());
    let starts = worker.log().lines().filter(|line| line.contains("job started")).count();
    assert_eq!(starts, ended.len() + 1, "each job was started once");
    for trouble in ["lease was lost", "panicked"] {
        assert!(!worker.has_logged(trouble), "{trouble}");
    }
    let grown = resident_bytes(worker.pid()).saturating_sub(memory);
    assert!(grown < GROWTH_MAX, "grew by {grown} bytes");
    await_that("the clients' descriptors to be given back", || descriptors(worker.pid()) <= held + POOLED);
}

#[test]
fn runs_survive_attacks_on_the_listener_of_a_fleet_worker() {
    runs_are_unaffected(Kind::Fleet);
}

#[test]
fn runs_survive_attacks_on_the_listener_of_a_folder_worker() {
    runs_are_unaffected(Kind::Embedded);
}

#[test]
fn web_service_responds_during_attacks_on_its_listener() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let (held, memory) = (descriptors(web.pid()), resident_bytes(web.pid()));
    during_attack(
        |attack| run_all_attacks(&web, attack),
        |_| {
            for _ in 0..5 {
                let browser = Browser::log_in(&web);
                assert_eq!(browser.get("/api/pipelines").ok().json(), serde_json::json!([]));
            }
        },
    );
    let grown = resident_bytes(web.pid()).saturating_sub(memory);
    assert!(grown < GROWTH_MAX, "grew by {grown} bytes");
    await_that("the clients' descriptors to be given back", || descriptors(web.pid()) <= held + POOLED);
}
