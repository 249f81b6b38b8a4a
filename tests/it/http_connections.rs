//! Limits on connections: how many are open, and which are evicted.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering;
use std::time::Duration;

use lakemill::config::AddressRange;
use lakemill::http::{GuardLimits, ServerOptions};

use super::http_support::*;

#[test]
fn health_responds_despite_300_slow_clients() {
    let server = start(GuardLimits::default());
    let mut slow: Vec<Client> = Vec::new();
    for _ in 0..300 {
        let mut client = server.connect();
        client.send("GET /health HTTP/1.1\r\nHost:");
        slow.push(client);
    }
    for _ in 0..3 {
        assert_eq!(server.get("/health").text(), "well");
    }
    let metrics = server.metrics();
    wait_until("all were taken", || metrics.connections().accepted == 303);
    let counts = metrics.connections();
    assert!(counts.evicted >= 44 && counts.open <= 256 && counts.refused == 0, "{counts:?}");
    // The newest of the slow ones are still served.
    let last = slow.last_mut().unwrap();
    last.send(" a\r\n\r\n");
    assert_eq!(last.reply().text(), "well");
}

/// A server that doesn't count connections from loopback by address.
fn trusting(limits: GuardLimits) -> Running {
    let trusted_proxies = vec![AddressRange { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), prefix: 8 }];
    start_with(ServerOptions { limits, trusted_proxies, ..ServerOptions::new(loopback(), 8) })
}

/// The head of a request whose body is pending, with or without a credential.
fn head_of_body(authorized: bool) -> String {
    let (path, field) = match authorized {
        true => ("/token", format!("Authorization: Bearer {TOKEN}\r\n")),
        false => ("/echo", String::new()),
    };
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{field}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
}

/// Opens clients whose bodies are pending.
fn clients_with_pending_bodies(server: &Running, count: usize, authorized: bool) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..count).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(head_of_body(authorized));
        assert_eq!(client.head().unwrap().status, 100);
    }
    clients
}

#[test]
fn the_257th_connection_is_answered_503_and_closed() {
    let server = trusting(GuardLimits::default());
    let mut busy = clients_with_pending_bodies(&server, 256, true);
    let mut slow = server.connect();
    slow.send("G");
    for (path, status) in [("/echo", 503), ("/nothing", 404), ("/health", 200)] {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let reply = client.reply();
        assert_eq!(reply.status, status, "{path}");
        assert!(reply.closes() && client.is_closed(), "{path}");
    }
    let reply = slow.reply();
    assert_eq!((reply.status, reply.json()["error"].as_str()), (503, Some("overloaded")));
    assert!(reply.closes() && slow.is_closed());
    let alive = busy.last_mut().unwrap();
    alive.send("xx");
    assert_eq!(alive.reply().json()["length"], 2);
    drop(busy);
    let metrics = server.metrics();
    assert_eq!((metrics.connections().refused, metrics.connections().evicted), (2, 0));
    wait_until("there is room again", || metrics.connections().open < 200);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn health_responds_when_all_connections_and_handlers_are_taken() {
    let limits = GuardLimits { connections_max: 64, probe_connections_max: 2, ..GuardLimits::default() };
    let server = trusting(limits);
    let mut held: Vec<Client> = (0..64).map(|_| server.connect()).collect();
    for (nth, client) in held.iter_mut().enumerate() {
        let path = if nth % 2 == 0 { "/hold" } else { "/hold-light" };
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    wait_until("the handlers are busy", || server.seen.held.load(Ordering::SeqCst) == 8 + 4);
    // Silent connections are evicted for one with a request.
    let silent: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    for _ in 0..3 {
        assert_eq!(server.get("/health").text(), "well");
    }
    drop(silent);
    server.seen.open();
}

/// A client that gets no CPU time between connecting and sending.
#[test]
fn idle_clients_do_not_evict_a_slow_sender() {
    let limits = GuardLimits {
        connections_max: 8,
        connections_per_address_max: 6,
        silent_connections_max: 64,
        ..Default::default()
    };
    let server = start(limits);
    let metrics = server.metrics();
    let mut late: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    let mut others: Vec<Client> = (0..32).map(|_| server.connect()).collect();
    for client in &mut others {
        client.send("G");
    }
    wait_until("all were taken", || metrics.connections().accepted == 40);
    wait_until("those that sent something are within the limit", || metrics.connections().open <= 6);
    for client in &mut late {
        client.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.reply().status, 200);
    }
}

#[test]
fn silent_connections_are_limited() {
    let server = start(GuardLimits { silent_connections_max: 4, ..Default::default() });
    let metrics = server.metrics();
    let connect = |count: u64| {
        let client = server.connect();
        wait_until("it was taken", || metrics.connections().accepted == count);
        client
    };
    let mut other = Client::connect_from(Ipv4Addr::new(127, 0, 0, 2), server.address);
    wait_until("it was taken", || metrics.connections().accepted == 1);
    let mut clients: Vec<Client> = (2..=6).map(connect).collect();
    assert!(clients[0].is_closed() && clients[1].is_closed(), "the oldest of the address that has most");
    for client in std::iter::once(&mut other).chain(&mut clients[2..]) {
        client.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.reply().status, 200);
    }
    assert_eq!(metrics.connections().evicted, 2);
}

/// A kept connection could be evicted while its client sends the next request.
#[test]
fn connections_without_credentials_are_not_kept_when_most_are_taken() {
    let server = start(GuardLimits { connections_per_address_max: 4, ..Default::default() });
    let ask = |authorized: bool| {
        let (line, field) = match authorized {
            true => ("POST /token", format!("Authorization: Bearer {TOKEN}\r\n")),
            false => ("GET /echo", String::new()),
        };
        let mut client = server.connect();
        client.send(format!("{line} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n{field}\r\n"));
        let reply = client.reply();
        assert_eq!(reply.status, 200);
        (client, reply.closes())
    };
    let (_one, closes) = ask(false);
    assert!(!closes);
    let (mut known, closes) = ask(true);
    assert!(!closes);
    let (_three, closes) = ask(false);
    assert!(closes, "three of four are taken");
    // Connections with an incomplete head are evicted, regardless of their age.
    let mut slow: Vec<Client> = (0..16).map(|_| server.connect()).collect();
    slow.iter_mut().for_each(|client| client.send("G"));
    wait_until("some are evicted", || server.metrics().connections().evicted >= 10);
    known
        .send(format!("POST /token HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"));
    assert_eq!(known.reply().status, 200);
}

#[test]
fn slow_anonymous_bodies_are_evicted_and_authorized_ones_kept() {
    let server = trusting(GuardLimits::default());
    let mut known = clients_with_pending_bodies(&server, 6, true);
    let mut strangers = clients_with_pending_bodies(&server, 250, false);
    for _ in 0..10 {
        assert_eq!(server.get("/echo").status, 200);
    }
    let metrics = server.metrics();
    assert!(metrics.connections().evicted >= 1 && metrics.connections().refused == 0, "{:?}", metrics.connections());
    assert!(strangers[0].is_closed(), "the one that has waited longest");
    for client in &mut known {
        client.send("xx");
        assert_eq!(client.reply().json()["length"], 2);
    }
    let last = strangers.last_mut().unwrap();
    last.send("xx");
    assert_eq!(last.reply().json()["length"], 2, "the youngest is served");
}

#[test]
fn anonymous_body_has_a_fixed_time_limit() {
    let limits = GuardLimits { anonymous_body_time_max: Duration::from_millis(300), ..GuardLimits::default() };
    let server = start(limits);
    let field = format!("Authorization: Bearer {TOKEN}\r\n");
    let mut known = server.connect();
    known.send(format!("POST /token HTTP/1.1\r\nHost: a\r\n{field}Content-Length: 2000\r\n\r\n"));
    for (path, status) in [("POST /echo", 408), ("PUT /upload", 400)] {
        let mut client = server.connect();
        client.send(format!("{path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n"));
        let mut drip = client.stream.try_clone().unwrap();
        let dripping = std::thread::spawn(move || {
            // Well above the minimum rate of uploads, if it had arrived at once.
            while std::io::Write::write_all(&mut drip, b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let reply = client.reply();
        assert_eq!((reply.status, reply.closes()), (status, true), "{path}");
        client.stream.shutdown(std::net::Shutdown::Both).unwrap();
        dripping.join().unwrap();
    }
    known.send("x".repeat(2_000));
    assert_eq!(known.reply().json()["length"], 2_000);
}

#[test]
fn connections_per_address_are_limited() {
    let limits = GuardLimits { connections_per_address_max: 3, ..GuardLimits::default() };
    let server = start(limits.clone());
    let other = || Client::connect_from(Ipv4Addr::new(127, 0, 0, 2), server.address);
    let mut busy = clients_with_pending_bodies(&server, 3, true);
    let mut refused = server.connect();
    refused.send("G");
    let reply = refused.reply();
    assert_eq!((reply.status, reply.closes()), (429, true));
    assert!(reply.text().contains("from this address"), "{}", reply.text());
    let mut client = other();
    client.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().status, 200, "another address has its own");
    // The waiting one of its own connections is evicted.
    let mut first = busy.remove(0);
    first.send("xx");
    assert_eq!(first.reply().status, 200);
    wait_until("it waits for its next request, and goes", || server.get("/echo").status == 200);
    assert!(first.is_closed());

    let server = trusting(limits);
    let forwarded = |client: &str| format!("X-Forwarded-For: {client}\r\n");
    let ask = |client: &str| server.ask(&format!("GET /echo HTTP/1.1\r\nHost: a\r\n{}\r\n", forwarded(client)));
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = server.connect();
        client.send(head_of_body(true).replace("Host", &format!("{}Host", forwarded("203.0.113.7"))));
        assert_eq!(client.head().unwrap().status, 100);
        held.push(client);
    }
    let reply = ask("203.0.113.7");
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("1")));
    assert_eq!(ask("203.0.113.8").status, 200, "the proxy itself has no share");
    drop(held);
    wait_until("they are gone", || ask("203.0.113.7").status == 200);
}

#[test]
fn slow_anonymous_readers_are_evicted_for_others() {
    let limits = GuardLimits { anonymous_stall_max: Duration::from_millis(100), ..GuardLimits::default() };
    let server = start_with(ServerOptions { limits, ..ServerOptions::new(loopback(), 2) });
    let mut readers: Vec<Client> = (0..2).map(|_| server.connect()).collect();
    readers.iter_mut().for_each(|client| client.send("GET /give?n=100000000 HTTP/1.1\r\nHost: a\r\n\r\n"));
    wait_until("both are at work", || server.seen.handled().len() == 2);
    readers.iter_mut().for_each(|client| assert_eq!(client.head().unwrap().status, 200));
    wait_until("they hold up their handlers", || server.get("/echo").status == 200);
    assert!(server.metrics().connections().evicted >= 1);
}

#[test]
fn oldest_connection_without_a_head_is_evicted() {
    let server = start(GuardLimits { connections_max: 3, ..GuardLimits::default() });
    let metrics = server.metrics();
    let mut clients = Vec::new();
    for taken in 1..=3 {
        let mut client = server.connect();
        client.send(if taken == 1 { "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n" } else { "GET /health HTTP/1.1\r\n" });
        wait_until("it was taken", || metrics.connections().accepted == taken);
        if taken == 1 {
            wait_until("it is in work", || server.seen.held.load(Ordering::SeqCst) == 1);
        }
        clients.push(client);
    }
    assert_eq!(server.get("/health").status, 200);
    let [held, oldest, younger] = &mut clients[..] else { unreachable!() };
    assert!(oldest.is_closed(), "the oldest without a head");
    younger.send("Host: a\r\n\r\n");
    assert_eq!(younger.reply().status, 200);
    server.seen.open();
    assert_eq!(held.reply().text(), "let go", "one in work is never evicted");
    assert_eq!(metrics.connections().evicted, 1);
}
