//! Limits of the HTTP server: connections, heads, framing, time. Raw sockets, one test per limit or case.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use lakemill::config::AddressRange;
use lakemill::http::{AllowedHosts, GuardLimits, ServerOptions};

use super::http_support::*;

use crate::support::children::Reaped as _;

const SMUGGLED: &str = "GET /echo/smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

fn running() -> Running {
    start(GuardLimits::default())
}

fn refused_and_closed(server: &Running, request: &str, status: u16) {
    let mut client = server.connect();
    client.send(request);
    let reply = client.reply();
    assert_eq!(reply.status, status, "{request:?} gave {}", reply.text());
    assert!(reply.closes() && client.is_closed(), "{request:?} left the connection open");
}

#[test]
fn default_limits_match_the_documentation() {
    let seconds = Duration::from_secs;
    let expected = GuardLimits {
        connections_max: 256,
        connections_per_address_max: 192,
        probe_connections_max: 16,
        silent_connections_max: 512,
        probe_head_time_max: seconds(2),
        head_bytes_max: 32_768,
        head_fields_max: 64,
        head_time_max: seconds(10),
        idle_time_max: seconds(30),
        body_stall_max: seconds(30),
        body_time_base: seconds(30),
        anonymous_body_time_max: seconds(5),
        anonymous_stall_max: seconds(1),
        body_rate_min: 65_536,
        write_stall_max: seconds(30),
        write_rate_min: 1_024,
        buffered_bytes_max: 67_108_864,
        requests_per_connection_max: 10_000,
        linger_time_max: seconds(2),
        linger_bytes_max: 16_777_216,
        lingering_max: 64,
        accept_pause: Duration::from_millis(100),
        handler_wait_max: seconds(5),
        handler_queue_max: 64,
        handler_silence_max: seconds(3_600),
    };
    assert_eq!(GuardLimits::default(), expected);
}

#[test]
fn other_hosts_are_rejected_except_for_probes_and_secrets() {
    let hosts = AllowedHosts::of(["lake.example.org"]);
    let server = start_with(ServerOptions { hosts, ..ServerOptions::new(loopback(), 2) });
    let ask = |line: &str, host: &str, field: &str| {
        server.ask(&format!("{line} HTTP/1.1\r\nHost: {host}\r\n{field}Content-Length: 0\r\n\r\n"))
    };
    for host in ["lake.example.org", "LAKE.example.org.:443", "localhost:3000", "127.0.0.1", "[::1]:1"] {
        assert_eq!(ask("GET /echo", host, "").status, 200, "{host}");
    }
    for line in
        ["GET /echo", "POST /echo", "GET /nothing", "PUT /health", "POST /token", "GET http://evil.example/echo"]
    {
        let reply = ask(line, "evil.example:3000", "");
        assert_eq!((reply.status, reply.json()["error"].as_str()), (421, Some("misdirected_request")), "{line}");
        let text = reply.text();
        assert!(text.contains("`evil.example") && text.contains("SVC_ALLOWED_HOSTS"), "{text}");
    }
    assert_eq!(ask("GET http://evil.example/echo", "lake.example.org", "").status, 421);
    assert_eq!(ask("GET /health", "evil.example", "").status, 200);
    assert_eq!(ask("POST /token", "evil.example", &format!("Authorization: Bearer {TOKEN}\r\n")).status, 200);
    assert_eq!(ask("POST /token", "evil.example", "Authorization: Bearer wrong\r\n").status, 421);
    assert_eq!(server.ask("GET /echo HTTP/1.0\r\n\r\n").status, 200, "no browser asks so");
}

#[test]
fn dripping_head_times_out() {
    let server = start(GuardLimits { head_time_max: Duration::from_millis(300), ..GuardLimits::default() });
    let mut client = server.connect();
    let mut head = "GET /health HTTP/1.1\r\nX: ".bytes().chain(std::iter::repeat(b'y'));
    let mut drip = client.stream.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        // Faster than the pause limit, slower than the total limit.
        while std::io::Write::write_all(&mut drip, &[head.next().unwrap()]).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let reply = client.reply();
    assert_eq!((reply.status, reply.closes()), (408, true));
    client.stream.shutdown(std::net::Shutdown::Both).unwrap();
    dripping.join().unwrap();
}

#[test]
fn idle_connections_are_closed_before_and_after_a_request() {
    let server = start(GuardLimits { idle_time_max: Duration::from_millis(200), ..GuardLimits::default() });
    assert!(server.connect().is_closed());
    let mut client = server.connect();
    client.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().status, 200);
    assert!(client.is_closed());
}

#[test]
fn head_length_is_limited() {
    let server = running();
    let head = |length: usize| {
        let (start, end) = ("GET /health HTTP/1.1\r\nHost: a\r\nX: ", "\r\n\r\n");
        format!("{start}{}{end}", "x".repeat(length - start.len() - end.len()))
    };
    assert_eq!(server.ask(&head(32_768)).status, 200);
    refused_and_closed(&server, &head(32_769), 431);
    // The server doesn't wait for more.
    let mut client = server.connect();
    client.send(format!("GET /{}", "x".repeat(40_000)));
    assert_eq!(client.reply().status, 431);
}

#[test]
fn head_fields_are_limited_to_64() {
    let server = running();
    let head = |fields: usize| format!("GET /health HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(fields - 1));
    assert_eq!(server.ask(&head(64)).status, 200);
    refused_and_closed(&server, &head(65), 431);
}

#[test]
fn ambiguous_body_length_closes_the_connection() {
    let server = running();
    let post = |fields: &str| format!("POST /echo HTTP/1.1\r\nHost: a\r\n{fields}\r\n{SMUGGLED}");
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Content-Length: 0\r\nContent-Length: 0\r\n",
        "Content-Length: 0\r\nContent-Length: 41\r\n",
        "Content-Length: 0, 0\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 5;a\r\n",
        "Content-Length: \r\n",
        "Content-Length : 5\r\n",
        " Content-Length: 5\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
    ] {
        refused_and_closed(&server, &post(fields), 400);
    }
    refused_and_closed(&server, "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
    assert_eq!(server.seen.handled(), Vec::<String>::new());
}

#[test]
fn malformed_head_closes_the_connection() {
    let server = running();
    let host = "Host: a\r\n\r\n";
    for head in [
        format!("GET /health\r\n{host}"),
        format!("GET  /health HTTP/1.1\r\n{host}"),
        format!("GET /health HTTP/1.1 \r\n{host}"),
        format!("GET /hea lth HTTP/1.1\r\n{host}"),
        format!("G\u{e9}T /health HTTP/1.1\r\n{host}"),
        format!("GET /h\u{e9} HTTP/1.1\r\n{host}"),
        format!("GET health HTTP/1.1\r\n{host}"),
        format!("GET /health http/1.1\r\n{host}"),
        format!("GET /health HTTP/1.1\n{host}"),
        "GET /health HTTP/1.1\r\nHost: a\n\n".into(),
        "GET /health HTTP/1.1\r\nHost: a\rX: b\r\n\r\n".into(),
        "GET /health HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n".into(),
        "GET /health HTTP/1.1\r\nHost: a\r\nX: \x1b[31m\r\n\r\n".into(),
        "GET /health HTTP/1.1\r\nHost: a\r\nX: b\r\n folded\r\n\r\n".into(),
        "GET /health HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n".into(),
        "GET /health HTTP/1.1\r\nHost: a\r\n: nameless\r\n\r\n".into(),
        "GET /health HTTP/1.1\r\n\r\n".into(),
        "GET /health HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n".into(),
        "GET /health HTTP/1.1\r\nHost: a b\r\n\r\n".into(),
        "GET /health HTTP/1.1\r\nHost:\r\n\r\n".into(),
        format!("CONNECT a:80 HTTP/1.1\r\n{host}"),
        "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03".into(),
    ] {
        refused_and_closed(&server, &head, 400);
    }
    for version in ["HTTP/2.0", "HTTP/3.0", "HTTP/1.2", "HTTP/0.9"] {
        refused_and_closed(&server, &format!("GET /health {version}\r\n{host}"), 505);
    }
    refused_and_closed(&server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
}

#[test]
fn empty_lines_before_a_request_are_skipped() {
    let server = running();
    assert_eq!(server.ask("\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
}

#[test]
fn request_inside_a_body_is_never_executed() {
    let server = running();
    let length = SMUGGLED.len();
    let with_length = |line: &str| format!("{line} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{SMUGGLED}");
    // Read as a body.
    let mut client = server.connect();
    client.send(with_length("POST /echo"));
    assert_eq!(client.reply().json()["body"], SMUGGLED);
    let chunked = format!("Transfer-Encoding: chunked\r\n\r\n{length:x};a=b\r\n{SMUGGLED}\r\n0\r\nX: y\r\n\r\n");
    client.send(format!("POST /echo HTTP/1.1\r\nHost: a\r\n{chunked}"));
    assert_eq!(client.reply().json()["body"], SMUGGLED);
    // Not read: the connection ends.
    for line in ["POST /nothing", "PUT /health", "GET /health", "POST /token", "PUT /at-once", "GET /closed/x"] {
        let mut client = server.connect();
        client.send(with_length(line));
        let reply = client.reply();
        assert!(reply.closes() && client.is_closed(), "{line} gave {}", reply.status);
    }
    let handled = server.seen.handled();
    assert!(!handled.iter().any(|line| line.contains("smuggled")), "{handled:?}");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = running();
    let mut client = server.connect();
    let mut text = String::new();
    for at in 0..50 {
        text += &format!("GET /echo/{at} HTTP/1.1\r\nHost: a\r\nX-Request-Id: g{at}\r\n\r\n");
        let body = format!("body {at}");
        text += &format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    }
    client.send(text);
    for at in 0..50 {
        let reply = client.reply();
        assert_eq!(reply.json()["a"], at.to_string());
        assert_eq!(reply.header("x-request-id"), Some(format!("g{at}").as_str()));
        assert_eq!(client.reply().json()["body"], format!("body {at}"));
    }
    client.send("GET /echo/half HTTP/1.1\r\nHo");
    client.send("st: a\r\n\r\nGET");
    assert_eq!(client.reply().json()["a"], "half");
    client.send(" /echo/whole HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().json()["a"], "whole");
}

#[test]
fn requests_per_connection_are_limited() {
    let server = start(GuardLimits { requests_per_connection_max: 3, ..GuardLimits::default() });
    let mut client = server.connect();
    for last in [false, false, true] {
        client.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.reply().closes(), last);
    }
    assert!(client.is_closed());
}

#[test]
fn connections_end_when_the_client_says_so_and_after_http_1_0() {
    let server = running();
    for request in [
        "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Close\r\n\r\n",
        "GET /health HTTP/1.0\r\n\r\n",
        "GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ] {
        let mut client = server.connect();
        client.send(request);
        let reply = client.reply();
        assert_eq!((reply.text(), reply.closes()), ("well", true));
        assert!(client.is_closed());
    }
}

#[test]
fn half_closed_client_gets_its_response() {
    let server = running();
    let mut client = server.connect();
    client.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    client.finish_sending();
    assert_eq!(client.reply().text(), "well");
    assert!(client.is_closed());
}

#[test]
fn continue_is_sent_after_authorization() {
    let server = running();
    let mut client = server.connect();
    for path in ["POST /echo", "PUT /upload"] {
        client.send(format!("{path} HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n"));
        assert_eq!(client.head().unwrap().status, 100);
        client.send("hello");
        assert_eq!(client.reply().status, 200);
    }
    // A client that sends the body at once gets no `100 Continue`.
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.reply().status, 200);
    let ask =
        |line: &str| format!("{line} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n");
    for (line, status) in [("POST /echo", 413), ("POST /token", 401), ("POST /nothing", 404), ("PUT /at-once", 200)] {
        refused_and_closed(&server, &ask(line), status);
    }
    refused_and_closed(&server, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: magic\r\nContent-Length: 5\r\n\r\n", 417);
}

#[test]
fn clients_cannot_forge_the_peer() {
    let server = running();
    let mut client = server.connect();
    client.send("GET /echo HTTP/1.1\r\nHost: a\r\nX-Lakemill-Peer: 10.0.0.1:1\r\nx-lakemill-peer: 10.0.0.2:2\r\n");
    client.send("X-Forwarded-For: 10.0.0.3\r\nX-LAKEMILL-TICKET: 0\r\n\r\n");
    let value = client.reply().json();
    let own = client.stream.local_addr().unwrap().to_string();
    assert_eq!((&value["peers"], &value["peer"]), (&serde_json::json!([own]), &serde_json::json!(own)));
    assert_eq!(value["client"], "127.0.0.1");
}

#[test]
fn trusted_proxies_name_the_client() {
    let own = AddressRange { address: IpAddr::V4(Ipv4Addr::LOCALHOST), prefix: 32 };
    let server = start_with(ServerOptions { trusted_proxies: vec![own], ..ServerOptions::new(loopback(), 2) });
    let reply = server.ask("GET /echo HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.9, 203.0.113.7\r\n\r\n");
    assert_eq!(reply.json()["client"], "203.0.113.7");
}

#[test]
fn server_listens_on_ipv4_and_ipv6() {
    let any = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0));
    if std::net::TcpListener::bind(any).is_err() {
        return;
    }
    let server = start_with(ServerOptions::new(any, 2));
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, server.address.port()));
    let mut client = Client::connect(v4);
    client.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().json()["client"], "127.0.0.1", "not an IPv6 form of it");
}

/// Counts in a separate process, since other tests open and close descriptors concurrently.
#[test]
fn malformed_connections_leak_no_descriptors() {
    let program = std::env::current_exe().unwrap();
    let alone = "http_guard::malformed_connections_in_a_process_of_their_own";
    let output = std::process::Command::new(program).args(["--exact", alone, "--ignored"]).output_reaped().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
#[ignore = "run in a process of its own, by the test above"]
fn malformed_connections_in_a_process_of_their_own() {
    let limits = GuardLimits {
        idle_time_max: Duration::from_millis(100),
        head_time_max: Duration::from_millis(100),
        body_stall_max: Duration::from_millis(100),
        linger_time_max: Duration::from_millis(200),
        write_stall_max: Duration::from_millis(200),
        ..GuardLimits::default()
    };
    let server = start(limits);
    assert_eq!(server.get("/health").status, 200);
    let metrics = server.metrics();
    wait_until("the first connection ended", || metrics.connections().open == 0);
    let before = descriptors();
    let odd = [
        "",
        "GET /health HT",
        "GET /health HTTP/2.0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /odd/panic HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /give?n=50000000 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /give?n=1000&end=panic HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000000000\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
        "PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
        "PUT /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "PUT /at-once HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\nhalf",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "\0\0\0",
    ];
    for at in 0..500 {
        let mut client = server.connect();
        client.send(odd[at % odd.len()]);
        if at % 2 == 0 {
            let _ = client.head();
        }
    }
    wait_until("the descriptors are back", || metrics.connections().open == 0 && descriptors() <= before);
    assert_eq!(server.get("/health").status, 200);
}
