//! Request bodies: limits, framing, and clients that disconnect.

use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lakemill::http::{GuardLimits, ServerOptions};

use super::http_support::*;

fn running() -> Running {
    start(GuardLimits::default())
}

fn error_of(reply: &Reply) -> (u16, String) {
    (reply.status, reply.json()["error"].as_str().unwrap().to_owned())
}

fn payload_too_large() -> (u16, String) {
    (413, "payload_too_large".into())
}

#[test]
fn declared_length_above_the_limit_is_413_before_a_byte_is_read() {
    let server = running();
    for (path, length) in [("POST /echo", 2_001), ("POST /echo", 1_000_000_000_000_000_000), ("PUT /upload", u64::MAX)]
    {
        let mut client = server.connect();
        client.send(format!("{path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"));
        let reply = client.reply();
        assert_eq!(error_of(&reply), payload_too_large(), "{length}");
        assert!(reply.closes() && client.is_closed());
    }
    assert!(server.seen.uploads().is_empty());
}

#[test]
fn bodies_up_to_the_limit_are_whole() {
    let server = running();
    let body = "x".repeat(2_000);
    let mut client = server.connect();
    client.send(format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n{body}"));
    assert_eq!(client.reply().json()["length"], 2_000);
    let chunks = format!("7d0\r\n{body}\r\n0\r\n\r\n");
    client.send(format!("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"));
    assert_eq!(client.reply().json()["body"], body);
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n");
    assert_eq!(client.reply().json()["length"], 0);
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().json()["length"], 0);
}

#[test]
fn chunked_body_over_the_limit_is_rejected() {
    let server = running();
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n");
    client.send("x".repeat(2_001));
    let reply = client.reply();
    assert_eq!(error_of(&reply), payload_too_large());
    assert!(reply.closes());
    // The handler of a streamed body gets the error.
    let mut client = server.connect();
    client.send("PUT /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n");
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let piece = vec![b'x'; 1 << 20];
        while sender.write_all(&piece).is_ok() {}
    });
    let reply = client.reply();
    assert_eq!(error_of(&reply), payload_too_large());
    client.stream.shutdown(Shutdown::Both).unwrap();
    sending.join().unwrap();
    assert_eq!(server.seen.uploads(), [format!("failed: the body is larger than {STREAM_MAX} bytes")]);
}

#[test]
fn route_without_body_rejects_bodies() {
    let server = running();
    for framing in ["Content-Length: 1\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"] {
        let mut client = server.connect();
        client.send(format!("GET /echo HTTP/1.1\r\nHost: a\r\n{framing}"));
        let reply = client.reply();
        assert_eq!(error_of(&reply), payload_too_large(), "{framing:?}");
    }
    let mut client = server.connect();
    client.send("GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
    let reply = client.reply();
    assert_eq!(error_of(&reply), payload_too_large());
    assert!(reply.closes() && client.is_closed());
    let mut client = server.connect();
    for framing in
        ["Content-Length: 0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Content-Length: 2\r\n\r\n{}"]
    {
        client.send(format!("GET /echo HTTP/1.1\r\nHost: a\r\n{framing}"));
        assert_eq!(client.reply().status, 200, "{framing:?}");
    }
}

#[test]
fn large_upload_is_streamed_and_keeps_the_connection() {
    let server = running();
    let mut client = server.connect();
    let piece = vec![b'x'; 1 << 20];
    client.send(format!("PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: {STREAM_MAX}\r\n\r\n"));
    (0..20).for_each(|_| client.send(&piece));
    assert_eq!(client.reply().text(), STREAM_MAX.to_string());
    client.send("PUT /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..5 {
        client.send("100000\r\n");
        client.send(&piece);
        client.send("\r\n");
    }
    client.send("0\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().text(), (5 << 20).to_string());
    assert_eq!(client.reply().text(), "well");
    assert_eq!(server.seen.uploads(), ["whole 20971520", "whole 5242880"]);
}

#[test]
fn disconnect_during_a_body_is_an_error_in_the_handler() {
    let server = running();
    for (at, body) in [
        "Content-Length: 100000\r\n\r\n12345678",
        "Transfer-Encoding: chunked\r\n\r\n10\r\n12345678",
        "Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n",
        "Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n0\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        let mut client = server.connect();
        client.send(format!("PUT /upload HTTP/1.1\r\nHost: a\r\n{body}"));
        drop(client);
        wait_until("the handler was notified", || server.seen.uploads().len() == at + 1);
    }
    let broke_off = "failed: the body ended after 8 bytes";
    assert_eq!(server.seen.uploads(), [broke_off; 4]);
    // A small body never reaches a handler.
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n12345678");
    client.finish_sending();
    assert_eq!(client.reply().status, 400);
    assert!(server.seen.handled().is_empty());
}

#[test]
fn malformed_chunks_end_the_connection() {
    let server = running();
    for chunks in ["x\r\n", "5\r\nhello0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", "-1\r\n", "5\nhello\r\n0\r\n\r\n"] {
        for path in ["POST /echo", "PUT /upload"] {
            let mut client = server.connect();
            client.send(format!("{path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"));
            let reply = client.reply();
            assert_eq!(error_of(&reply), (400, "invalid_request".into()), "{path} {chunks:?}");
            assert!(reply.closes() && client.is_closed());
        }
    }
}

#[test]
fn malformed_trailers_end_the_connection() {
    let server = running();
    for trailer in ["no colon", "GET /echo/smuggled HTTP/1.1", ": nameless", "A : b", "A: b\r\n folded"] {
        for path in ["POST /echo", "PUT /upload"] {
            let mut client = server.connect();
            let body = format!("5\r\nhello\r\n0\r\n{trailer}\r\n\r\n");
            client.send(format!("{path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}"));
            let reply = client.reply();
            assert_eq!(error_of(&reply), (400, "invalid_request".into()), "{path} {trailer:?}");
            assert!(reply.closes() && client.is_closed());
        }
    }
    assert!(server.seen.handled().is_empty());
}

#[test]
fn stalled_body_times_out() {
    let server = start(GuardLimits { body_stall_max: Duration::from_millis(200), ..GuardLimits::default() });
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
    let reply = client.reply();
    assert_eq!((reply.status, reply.closes()), (408, true));
    let mut client = server.connect();
    client.send("PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
    assert_eq!(client.reply().status, 400);
    assert_eq!(server.seen.uploads(), ["failed: the body was sent too slowly"]);
}

#[test]
fn dripping_body_times_out_by_its_size() {
    let limits = GuardLimits { body_time_base: Duration::from_millis(300), ..GuardLimits::default() };
    let server = start(limits);
    let mut client = server.connect();
    client.send("PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n");
    let mut drip = client.stream.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        while drip.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert_eq!(client.reply().status, 400);
    client.stream.shutdown(Shutdown::Both).unwrap();
    dripping.join().unwrap();
    assert_eq!(server.seen.uploads(), ["failed: the body was sent too slowly"]);
}

#[test]
fn unread_body_does_not_block_the_handler() {
    let server = start_with(ServerOptions::new(loopback(), 1));
    for _ in 0..3 {
        let mut client = server.connect();
        client.send(format!("PUT /at-once HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", 10 << 20));
        client.send(vec![b'x'; 10 << 20]);
        let reply = client.reply();
        assert_eq!((reply.text(), reply.closes()), ("not read", true));
        assert_eq!(server.get("/echo").status, 200, "the only handler is free");
    }
    // Not even one whose body never arrives.
    let mut client = server.connect();
    client.send(format!("PUT /at-once HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", 10 << 20));
    assert_eq!(client.reply().text(), "not read");
    assert!(client.is_closed());
    assert_eq!(server.get("/echo").status, 200);
}

#[test]
fn memory_of_all_bodies_is_limited() {
    let server = start(GuardLimits { buffered_bytes_max: 200_000, ..GuardLimits::default() });
    let head = format!(
        "POST /token HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nExpect: 100-continue\r\n\
         Content-Length: 120000\r\n\r\n"
    );
    let mut first = server.connect();
    first.send(&head);
    assert_eq!(first.head().unwrap().status, 100, "it has its share");
    let reply = server.ask(&head);
    assert_eq!((reply.status, reply.header("retry-after"), reply.closes()), (503, Some("1"), true));
    first.send("x".repeat(120_000));
    assert_eq!(first.reply().json()["length"], 120_000);
    let mut third = server.connect();
    third.send(&head);
    third.send("x".repeat(120_000));
    let first_reply = third.reply();
    // Sent at once: the body may be sent after `100 Continue` or before.
    let reply = if first_reply.status == 100 { third.reply() } else { first_reply };
    assert_eq!(reply.status, 200, "the share came back");
}

#[test]
fn reserved_routes_run_when_all_handlers_are_busy() {
    let limits = GuardLimits { handler_wait_max: Duration::from_millis(100), ..GuardLimits::default() };
    let server = start_with(ServerOptions { limits, ..ServerOptions::new(loopback(), 1) });
    let mut held = server.connect();
    held.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the handler is busy", || server.seen.held.load(Ordering::SeqCst) == 1);
    let mut client = server.connect();
    client.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    let reply = client.reply();
    assert_eq!(error_of(&reply), (503, "overloaded".into()));
    assert_eq!((reply.header("retry-after"), reply.closes()), (Some("1"), false));
    client.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().text(), "well");
    client.send("PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    let reply = client.reply();
    assert_eq!((reply.status, reply.closes()), (503, true), "its body was not read");
    server.seen.open();
    assert_eq!(held.reply().text(), "let go");
    assert_eq!(server.get("/echo").status, 200);
}

#[test]
fn queue_for_handlers_is_limited() {
    let limits = GuardLimits { handler_queue_max: 1, ..GuardLimits::default() };
    let server = start_with(ServerOptions { limits, ..ServerOptions::new(loopback(), 1) });
    let mut held = server.connect();
    held.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the handler is busy", || server.seen.held.load(Ordering::SeqCst) == 1);
    let mut clients: Vec<Client> = (0..2).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"));
    let metrics = server.metrics();
    wait_until("one is refused at once", || metrics.requests("GET", "/echo", 5) == 1);
    server.seen.open();
    let mut statuses: Vec<u16> = clients.iter_mut().map(|client| client.reply().status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 503]);
}
