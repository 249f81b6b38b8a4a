//! Response bodies: framing, aborted ones, and clients that don't read.

use std::io::Read;
use std::time::Duration;

use lakemill::http::{GuardLimits, ServerOptions};

use super::http_support::*;

const LARGE: usize = 50 << 20;

fn running() -> Running {
    start(GuardLimits::default())
}

#[test]
fn body_of_known_length_is_never_chunked() {
    let server = running();
    let reply = server.get(&format!("/give?n={LARGE}&say={LARGE}"));
    assert_eq!(reply.header("content-length"), Some(LARGE.to_string().as_str()));
    assert_eq!((reply.header("transfer-encoding"), reply.body.len()), (None, LARGE));
    assert!(reply.body.iter().all(|b| *b == b'x'));
    assert_eq!(server.get("/give?n=0&say=0").header("content-length"), Some("0"));
}

#[test]
fn body_of_unknown_length_is_chunked_and_keeps_the_connection() {
    let server = running();
    let mut client = server.connect();
    for n in [0, 1, 100_000, 4 << 20] {
        client.send(format!("GET /give?n={n} HTTP/1.1\r\nHost: a\r\nTE: identity\r\n\r\n"));
        let reply = client.reply();
        assert_eq!((reply.header("transfer-encoding"), reply.header("content-length")), (Some("chunked"), None));
        assert_eq!(reply.body.len(), n);
    }
}

#[test]
fn http_1_0_gets_a_body_of_unknown_length_up_to_the_end_of_the_connection() {
    let server = running();
    let reply = server.ask("GET /give?n=100000 HTTP/1.0\r\n\r\n");
    assert_eq!((reply.header("transfer-encoding"), reply.header("content-length")), (None, None));
    assert_eq!((reply.closes(), reply.body.len()), (true, 100_000));
}

#[test]
fn incomplete_body_is_never_ended_as_complete() {
    let server = running();
    for target in [
        "/give?n=100000&say=200000",
        "/give?n=100000&say=200000&end=fail",
        "/give?n=100000&say=200000&end=panic",
        "/give?n=100000&end=fail",
        "/give?n=100000&end=panic",
        "/give?n=0&end=fail",
    ] {
        let mut client = server.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let reply = client.try_reply();
        assert!(reply.is_err(), "{target} gave {reply:?}");
    }
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn body_longer_than_declared_is_truncated() {
    let server = running();
    let mut client = server.connect();
    client.send("GET /give?n=100000&say=5 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().text(), "xxxxx");
    client.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().text(), "well");
}

#[test]
fn responses_without_body_have_no_length() {
    let server = running();
    let mut client = server.connect();
    for (target, status) in [("/odd/nothing", 204), ("/odd/unchanged", 304)] {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let reply = client.reply();
        assert_eq!(
            (reply.status, reply.header("content-length"), reply.header("transfer-encoding")),
            (status, None, None)
        );
    }
    client.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().text(), "well");
}

/// The only handler is free again although the previous client is still connected.
fn frees_its_handler(limits: GuardLimits, read: impl FnOnce(Client) -> Option<Client>) {
    let server = start_with(ServerOptions { limits, ..ServerOptions::new(loopback(), 1) });
    let mut client = server.connect();
    client.send(format!("GET /give?n={LARGE}&say={LARGE} HTTP/1.1\r\nHost: a\r\n\r\n"));
    wait_until("the handler is at work", || server.seen.handled().len() == 1);
    let _still_there = read(client);
    let mut other = server.connect();
    wait_until("the handler is free", || {
        other.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
        other.reply().status == 200
    });
}

#[test]
fn client_that_never_reads_times_out() {
    let limits = GuardLimits { write_stall_max: Duration::from_millis(300), ..GuardLimits::default() };
    frees_its_handler(limits, Some);
}

#[test]
fn client_that_reads_too_slowly_times_out() {
    let limits =
        GuardLimits { write_stall_max: Duration::from_millis(300), write_rate_min: 1 << 40, ..GuardLimits::default() };
    frees_its_handler(limits, |mut client| {
        let mut piece = [0; 4_096];
        while matches!(client.stream.read(&mut piece), Ok(read) if read > 0) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(client)
    });
}

#[test]
fn disconnected_client_frees_its_handler() {
    frees_its_handler(GuardLimits::default(), |mut client| {
        client.head().unwrap();
        None
    });
}
