//! Start and stop of a server.

use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lakemill::http::{GuardLimits, Router, Server, ServerOptions};

use super::http_support::*;

/// How long a stopping server still responds on idle connections.
const IDLE_DRAIN_MAX: Duration = Duration::from_secs(1);

fn running() -> Running {
    start(GuardLimits::default())
}

#[test]
fn taken_address_is_reported_with_advice() {
    let server = running();
    let options = ServerOptions::new(server.address, 1);
    let error = Server::start(options, Router::new(routes()), std::sync::Arc::clone(&server.seen)).err().unwrap();
    let text = error.to_string();
    assert!(text.contains(&format!("`{}`", server.address)) && text.contains("another PORT"), "{text}");
}

#[test]
fn stop_completes_a_running_request_and_accepts_no_other() {
    let mut server = running();
    let mut idle = server.connect();
    idle.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(idle.reply().status, 200);
    let mut slow = server.connect();
    slow.send("GET /health HT");
    let mut held = server.connect();
    held.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /echo/next HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("it is in work", || server.seen.held.load(Ordering::SeqCst) == 1);
    let stopping = server.server.take().unwrap();
    let stopping = std::thread::spawn(move || stopping.stop(TEST_TIMEOUT));
    wait_until("nothing listens", || TcpStream::connect(server.address).is_err());
    assert!(idle.is_closed() && slow.is_closed());
    server.seen.open();
    let reply = held.reply();
    assert_eq!((reply.text(), reply.closes()), ("let go", true));
    assert!(held.is_closed() && server.seen.handled().is_empty(), "what followed is not taken on");
    assert_eq!(stopping.join().unwrap(), 0);
}

#[test]
fn idle_connections_are_served_while_the_server_stops() {
    let mut server = running();
    let mut held = server.connect();
    held.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("it is in work", || server.seen.held.load(Ordering::SeqCst) == 1);
    let mut idle: Vec<_> = (0..8).map(|_| server.connect()).collect();
    let begun = Instant::now();
    let stopping = server.server.take().unwrap();
    let stopping = std::thread::spawn(move || stopping.stop(TEST_TIMEOUT));
    // Like a proxy that keeps connections: the response says that the connection closes.
    while !idle.is_empty() {
        idle.retain_mut(|client| match client.try_ask("GET /health HTTP/1.1\r\nHost: a\r\n\r\n") {
            Ok(reply) => {
                assert_eq!(reply.status, 200);
                !reply.closes()
            }
            Err(error) => {
                assert!(begun.elapsed() >= IDLE_DRAIN_MAX, "{error}");
                false
            }
        });
    }
    server.seen.open();
    assert_eq!(held.reply().text(), "let go");
    assert_eq!(stopping.join().unwrap(), 0);
}

#[test]
fn stop_completes_a_large_response_and_an_upload() {
    let mut server = running();
    let n = 20 << 20;
    let mut reader = server.connect();
    reader.send(format!("GET /give?n={n}&say={n} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let head = reader.head().unwrap();
    assert_eq!(head.status, 200);
    let mut writer = server.connect();
    writer.send("PUT /upload HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n");
    assert_eq!(writer.head().unwrap().status, 100);
    let stopping = server.server.take().unwrap();
    let stopping = std::thread::spawn(move || stopping.stop(TEST_TIMEOUT));
    wait_until("nothing listens", || TcpStream::connect(server.address).is_err());
    assert_eq!(reader.body(n).len(), n);
    writer.send("0123456789");
    assert_eq!(writer.reply().text(), "10");
    assert_eq!(stopping.join().unwrap(), 0);
}

#[test]
fn stop_cuts_connections_after_its_grace_period() {
    let mut server = running();
    let mut held = server.connect();
    held.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut uploading = server.connect();
    uploading.send("PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    wait_until("it is in work", || server.seen.held.load(Ordering::SeqCst) == 1);
    let left = server.server.take().unwrap().stop(Duration::from_millis(100));
    assert!(left <= 2, "{left}");
    assert!(held.try_reply().is_err() && TcpStream::connect(server.address).is_err());
    wait_until("the upload ended", || server.seen.uploads() == ["failed: the body ended after 4 bytes"]);
}

#[test]
fn port_can_be_reused_at_once() {
    let mut server = running();
    assert_ne!(server.address.port(), 0);
    // The server closes first, so that its side of the connection lingers in the system.
    let mut client = server.connect();
    client.send("GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.reply().status, 200);
    assert_eq!(server.server.take().unwrap().stop(TEST_TIMEOUT), 0);
    let again = start_with(ServerOptions::new(server.address, 1));
    assert_eq!(again.get("/health").status, 200);
}

#[test]
fn dropped_server_stops() {
    let server = running();
    let address = server.address;
    let mut idle = server.connect();
    drop(server);
    assert!(TcpStream::connect(address).is_err() && idle.is_closed());
}
