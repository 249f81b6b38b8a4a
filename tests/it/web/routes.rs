//! Rules for every route.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use lakemill::http::Method;
use lakemill::web::{Credential, Endpoint, Web, endpoints, openapi};

use crate::support::browser::Browser;
use crate::support::site::{Kind, Site};

/// The path of an endpoint with values for its parameters.
fn path(endpoint: &Endpoint<Web>) -> String {
    let segment = |part: &str| if part.starts_with('{') { "x".to_owned() } else { part.to_owned() };
    endpoint.pattern.split('/').map(segment).collect::<Vec<_>>().join("/")
}

fn is_api(endpoint: &Endpoint<Web>) -> bool {
    endpoint.pattern.starts_with("/api/")
}

#[test]
fn every_api_route_but_login_requires_a_session() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let anonymous = Browser::anonymous(&web);
    let forged = Browser { cookie: Some(format!("svc_session={}", "0".repeat(64))), ..anonymous.clone() };
    for endpoint in endpoints().iter().filter(|endpoint| is_api(endpoint)) {
        let (method, path) = (endpoint.method.as_str(), path(endpoint));
        if endpoint.operation.id == "auth.login" {
            assert_eq!(endpoint.credential, Credential::Nothing);
            continue;
        }
        assert_eq!(endpoint.credential, Credential::Session, "{method} {path}");
        for browser in [&anonymous, &forged] {
            browser.send(method, &path, &[], b"").refused(401, "unauthorized");
        }
    }
    // Whether a path exists is not revealed either.
    for (method, path) in
        [("GET", "/api/nothing"), ("PATCH", "/api/settings"), ("GET", "/api"), ("POST", "/api/p/x/%2e")]
    {
        anonymous.send(method, path, &[], b"").refused(401, "unauthorized");
    }
}

#[test]
fn every_route_enforces_its_body_limit() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    for endpoint in endpoints() {
        let (method, path, max) = (endpoint.method, path(&endpoint), endpoint.body.max());
        assert!(max <= 16 << 30, "{path}");
        if max > 1 << 20 {
            assert_eq!(announce(&browser, method, &path, max + 1), 413, "{method:?} {path}");
            continue;
        }
        if method == Method::Get {
            continue;
        }
        let body = vec![b' '; usize::try_from(max).unwrap() + 1];
        let reply = browser.send(method.as_str(), &path, &[], &body);
        reply.refused(413, "payload_too_large");
    }
}

/// The status of a request that announces a body and sends none.
fn announce(browser: &Browser, method: Method, path: &str, length: u64) -> u16 {
    let mut stream = TcpStream::connect(&browser.address).unwrap();
    let cookie = browser.cookie.as_deref().unwrap();
    let (method, host) = (method.as_str(), &browser.address);
    let kind = if path.ends_with("/import") { "Content-Type: multipart/form-data; boundary=x\r\n" } else { "" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n{kind}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn json_routes_reject_other_content_types_and_invalid_json() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    for endpoint in endpoints() {
        let json = matches!(endpoint.operation.request, Some(lakemill::web::Content::Json(_)));
        if !json {
            continue;
        }
        let (method, path) = (endpoint.method.as_str(), path(&endpoint));
        browser.send(method, &path, &[("Content-Type", "text/plain")], b"{}").refused(415, "unsupported_media_type");
        for bad in [&b"{"[..], b"\xff\xfe", b"[1,", b"nul"] {
            let reply = browser.send(method, &path, &[("Content-Type", "application/json")], bad);
            assert!((400..500).contains(&reply.status), "{method} {path}: {} {}", reply.status, reply.text());
        }
    }
}

#[test]
fn every_response_has_security_headers() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    for path in ["/api/auth/me", "/api/nothing", "/openapi.json", "/", "/nothing"] {
        let reply = browser.get(path);
        for name in ["content-security-policy", "x-content-type-options", "referrer-policy", "x-request-id"] {
            assert!(reply.header(name).is_some(), "{path}: {name}");
        }
        if path.starts_with("/api") {
            assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
        }
    }
}

#[test]
fn openapi_document_lists_every_route_once() {
    let endpoints = endpoints();
    let ids: HashSet<&str> = endpoints.iter().map(|endpoint| endpoint.operation.id).collect();
    assert_eq!(ids.len(), endpoints.len());
    let document = openapi(&endpoints);
    let operations: usize =
        document["paths"].as_object().unwrap().values().map(|item| item.as_object().unwrap().len()).sum();
    assert_eq!(operations, endpoints.len());
    // Two types with one name would get a number.
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let numbered: Vec<&String> = schemas.keys().filter(|name| name.ends_with(|c: char| c.is_ascii_digit())).collect();
    assert!(numbered.is_empty(), "types that need a name of their own in the document: {numbered:?}");
    for endpoint in &endpoints {
        assert!(!endpoint.operation.responses.is_empty(), "{}", endpoint.operation.id);
        assert!(!endpoint.operation.summary.is_empty());
    }
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    assert_eq!(Browser::anonymous(&web).get("/openapi.json").ok().json(), document);
}
