//! The lake: listings, uploads, moves, deletions, downloads.

mod keys;
mod lines;
mod moves;
mod states;
mod uploads;

use std::io::{Read, Write};
use std::net::TcpStream;

use lakemill::ports::store::{Bucket, WriteOptions};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{check_outages, on_both};
use crate::support::browser::{Browser, Reply};
use crate::support::site::{Kind, Service, Site};

pub fn encoded(key: &str) -> String {
    utf8_percent_encode(key, NON_ALPHANUMERIC).to_string()
}

fn upload(browser: &Browser, key: &str, body: &[u8]) -> Reply {
    browser.send("PUT", &format!("/api/lake?key={}", encoded(key)), &[], body)
}

pub fn download(browser: &Browser, key: &str) -> Reply {
    browser.get(&format!("/api/lake/object?key={}", encoded(key)))
}

/// A connection on which the head of a request was sent. `target` is sent as it is.
fn begin(web: &Service, browser: &Browser, method: &str, target: &str, fields: &str) -> TcpStream {
    let mut stream = TcpStream::connect(web.address()).unwrap();
    let (address, cookie) = (web.address(), browser.cookie.as_deref().unwrap());
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n{fields}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// The response, read until the connection closes.
fn answer(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let mut piece = [0; 4_096];
    // The end may be a reset: the bytes before it count.
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        answer.extend_from_slice(&piece[..read]);
        if answer.ends_with(b"}") {
            break;
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

pub fn level(browser: &Browser, prefix: &str) -> Value {
    browser.get(&format!("/api/lake?prefix={}", encoded(prefix))).ok().json()
}

pub fn keys(level: &Value) -> Vec<&str> {
    level["files"].as_array().unwrap().iter().map(|file| file["key"].as_str().unwrap()).collect()
}

fn put(site: &Site, key: &str, body: &[u8]) {
    site.store.put(Bucket::Lake, key, body, &WriteOptions::default()).unwrap();
}

#[test]
fn lake_level_is_listed_in_pages() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let empty = json!({ "prefix": "", "folders": [], "files": [], "next": null });
        assert_eq!(level(&browser, ""), empty);
        for key in ["a.csv", "b/1", "b/2/x", "c/3", "d", "é/ü", "pipelines/trips/in/x.csv"] {
            put(&site, key, key.as_bytes());
        }
        let root = level(&browser, "");
        assert_eq!(root["folders"], json!(["b/", "c/", "pipelines/", "é/"]));
        assert_eq!(keys(&root), ["a.csv", "d"]);
        assert_eq!(root["files"][0]["size"], 5);
        assert!(chrono::DateTime::parse_from_rfc3339(root["files"][0]["modified"].as_str().unwrap()).is_ok());
        let folder = level(&browser, "b/");
        assert_eq!((&folder["folders"], keys(&folder)), (&json!(["b/2/"]), vec!["b/1"]));
        assert_eq!(keys(&level(&browser, "é/")), ["é/ü"]);
        assert_eq!(level(&browser, "nothing/")["files"], json!([]));

        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = browser.get(&format!("/api/lake?limit=2{after}")).ok().json();
            let names = ["folders", "files"].map(|name| page[name].as_array().unwrap().clone()).concat();
            assert!(names.len() <= 2);
            seen.extend(names.iter().map(|name| name["key"].as_str().or(name.as_str()).unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={}", encoded(next));
        }
        seen.sort_unstable();
        assert_eq!(seen, ["a.csv", "b/", "c/", "d", "pipelines/", "é/"]);
    });
}

#[test]
fn forged_page_token_is_rejected_or_harmless() {
    on_both(|kind| {
        let site = Site::new(kind);
        put(&site, "a/b", b"1");
        let web = site.web();
        let browser = Browser::log_in(&web);
        for token in ["x", "k", "p", "kz", "pa/", "k../../etc", "", "%%%", "é", "[]"] {
            let seal = &lakemill::domain::digest::sha256_hex(token.as_bytes())[..16];
            let reply = browser.get(&format!("/api/lake?after={}", encoded(&format!("{seal}.{token}"))));
            if reply.status != 200 {
                reply.refused(400, "invalid_request");
            }
        }
        let site_is_away = site.break_store();
        let seal = &lakemill::domain::digest::sha256_hex(b"k")[..16];
        browser.get(&format!("/api/lake?after={seal}.k")).refused(502, site_is_away);
        site.restore_store();
    });
}

#[test]
fn download_is_an_attachment() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let page = b"<html><script>alert(1)</script>";
        let key = "pages/\"naïve\"; 100%.html";
        put(&site, key, page);
        let reply = download(&browser, key).ok();
        assert_eq!(reply.body, page);
        for (name, value) in [
            ("content-type", "application/octet-stream"),
            ("x-content-type-options", "nosniff"),
            ("content-length", "31"),
            ("cache-control", "no-store"),
            (
                "content-disposition",
                "attachment; filename=\"_na_ve_; 100_.html\"; filename*=UTF-8''%22na%C3%AFve%22%3B%20100%25.html",
            ),
        ] {
            assert_eq!(reply.header(name), Some(value));
        }
        assert!(reply.header("etag").unwrap().starts_with('"'));
        let head = browser.send("HEAD", &format!("/api/lake/object?key={}", encoded(key)), &[], b"").ok();
        assert_eq!((head.header("content-length"), head.body.len()), (Some("31"), 0));

        let large: Vec<u8> = (0..9_000_000_u32).map(|i| (i % 251) as u8).collect();
        put(&site, "large", &large);
        assert!(download(&browser, "large").ok().body == large);
        put(&site, "empty", b"");
        assert_eq!(download(&browser, "empty").ok().header("content-length"), Some("0"));
        let start = browser.get("/api/lake/object?key=large&head=1000").ok();
        assert!(start.body == large[..1_000]);
        assert_eq!(browser.get("/api/lake/object?key=empty&head=1000").ok().body, b"");
        download(&browser, "nothing").refused(404, "object_not_found");
    });
}

#[test]
fn delete_removes_one_object_and_reports_a_missing_one() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        put(&site, "a/b", b"1");
        put(&site, "a/c", b"2");
        let delete = |key: &str| browser.delete(&format!("/api/lake?key={}", encoded(key)));
        assert_eq!(delete("a/b").ok().json(), json!({ "deleted": "a/b" }));
        delete("a/b").refused(404, "object_not_found");
        // The S3 test server fails for a key that is one of its folders.
        if kind == Kind::Embedded {
            delete("a").refused(404, "object_not_found");
            download(&browser, "a").refused(404, "object_not_found");
        }
        assert_eq!(keys(&level(&browser, "a/")), ["a/c"]);
    });
}

#[test]
fn invalid_parameters_are_rejected() {
    let site = Site::new(Kind::Embedded);
    put(&site, "k", b"1");
    let web = site.web();
    let browser = Browser::log_in(&web);
    let before = site.contents();
    for (method, path) in [
        ("GET", "/api/lake?limit=0"),
        ("GET", "/api/lake?limit=1001"),
        ("GET", "/api/lake?limit=ten"),
        ("GET", "/api/lake?after=made-up"),
        ("GET", "/api/lake?after="),
        ("GET", "/api/lake?prefix=a&prefix=b"),
        ("GET", "/api/lake/object"),
        ("GET", "/api/lake/object?key=k&key=l"),
        ("GET", "/api/lake/object?key=k&head=0"),
        ("GET", "/api/lake/object?key=k&head=99999999"),
        ("DELETE", "/api/lake"),
        ("PUT", "/api/lake"),
        ("PUT", "/api/lake?key=a&key=b"),
        ("POST", "/api/lake"),
    ] {
        browser.send(method, path, &[], b"").refused(400, "invalid_request");
    }
    for bad in [json!({}), json!([]), json!(["k", "l"]), json!({ "from": "k" }), json!({ "from": "k", "to": 1 })] {
        browser.post("/api/lake", &bad).refused(400, "invalid_request");
    }
    browser.post("/api/lake", &json!({ "from": "k", "to": "l", "x": 1 })).refused(400, "invalid_request");
    let reply = browser.send("PUT", "/api/lake?key=l", &[("If-None-Match", "\"x\"")], b"1");
    reply.refused(400, "invalid_request");
    assert_eq!(site.contents(), before);
}

#[test]
fn lake_fails_while_a_store_is_unavailable() {
    on_both(|kind| {
        let site = Site::new(kind);
        put(&site, "pipelines/trips/a.csv", b"a\n");
        let web = site.web();
        let browser = Browser::log_in(&web);
        let key = "key=pipelines/trips/a.csv";
        let (lake, object) = (format!("/api/lake?{key}"), format!("/api/lake/object?{key}"));
        let wishes = [
            ("GET", "/api/lake", ""),
            ("PUT", lake.as_str(), "b\n"),
            ("PUT", "/api/lake?key=pipelines/trips/new.csv", "b\n"),
            ("POST", "/api/lake", r#"{ "from": "pipelines/trips/a.csv", "to": "pipelines/trips/b.csv" }"#),
            ("DELETE", &lake, ""),
            ("GET", &object, ""),
        ];
        check_outages(&site, &browser, &wishes);
        assert_eq!(site.kv.counts().unwrap().windows, 0);
        assert_eq!(download(&browser, "pipelines/trips/a.csv").ok().body, b"a\n");
    });
}
