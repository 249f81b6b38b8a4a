//! Invalid and ambiguous keys.

use serde_json::json;

use super::{answer, begin, download, encoded, keys, level, on_both, put, upload};
use crate::support::browser::Browser;
use crate::support::site::Site;

/// Encoded as in the query string; each is `invalid_key` on every backend.
fn refused() -> Vec<String> {
    let mut refused: Vec<String> = [
        "",
        "/",
        "..",
        ".",
        "../x",
        "a/../b",
        "a/..",
        "a/./b",
        "a//b",
        "/a",
        "a/",
        "a/b/",
        "%2e%2e",
        "%2e%2e/x",
        "..%2fx",
        "%2e%2e%2fx",
        "a%2f..%2f..%2fx",
        "a%5cb",
        "..%5cx",
        "a\\b",
        "a%0ab",
        "a%0d%0ab",
        "a%1bb",
        "a%7fb",
        "a%c2%85b",
        "%e2%80%aefdp.csv",
        "a%e2%81%a6b",
        "a%d8%9cb",
        "%2f",
        "%2fetc%2fpasswd",
        "a%2f",
    ]
    .map(str::to_owned)
    .to_vec();
    refused.push("k".repeat(1_025));
    // Too long only once it is decoded: 600 letters of two bytes.
    refused.push("%C3%A9".repeat(600));
    refused
}

/// The request target itself is malformed: rejected before the key is parsed.
const MALFORMED: [&str; 8] = ["%00", "a%00b", "%", "%2", "%zz", "%c0%ae%c0%ae%c0%afx", "%ff", "%ed%a0%80"];

/// Unusual, but valid: they are decoded only once.
const UNUSUAL: [&str; 7] = ["a%252fb%255cc", "%EF%BC%8Ex", "...", "100%25", "a+b%2Bc%26d%3D%3F%23.csv", "C:x", "~"];

#[test]
fn traversal_keys_are_rejected_by_every_route() {
    on_both(|kind| {
        let site = Site::new(kind);
        put(&site, "kept", b"1");
        let web = site.web();
        let browser = Browser::log_in(&web);
        let before = site.contents();
        let cases = refused().into_iter().map(|key| (key, "invalid_key"));
        for (key, code) in cases.chain(MALFORMED.map(|key| (key.to_owned(), "invalid_request"))) {
            for (method, path) in [
                ("PUT", format!("/api/lake?key={key}")),
                ("DELETE", format!("/api/lake?key={key}")),
                ("GET", format!("/api/lake/object?key={key}")),
            ] {
                let reply = browser.send(method, &path, &[], if method == "PUT" { b"x" } else { b"" });
                reply.refused(400, code);
            }
        }
        // Encodings that our clients don't send.
        for key in ["..\\x", "a\\b", "../../x", "/etc/passwd", "a//../b"] {
            for method in ["DELETE", "PUT"] {
                let response =
                    answer(begin(&web, &browser, method, &format!("/api/lake?key={key}"), "Content-Length: 0"));
                assert!(response.starts_with("HTTP/1.1 400 ") && response.contains("invalid_key"), "{key}: {response}");
            }
        }
        for key in ["", "..", "../x", "a/../b", "a//b", "a\\b", "a\0b", "a\nb", "\u{202e}a", "a/", &"k".repeat(1_025)] {
            browser.post("/api/lake", &json!({ "from": "kept", "to": key })).refused(400, "invalid_key");
            browser.post("/api/lake", &json!({ "from": key, "to": "new" })).refused(400, "invalid_key");
        }
        for prefix in ["..", "../", "a/../", "a//../", "%2e%2e/", "a/%2e/"] {
            browser.get(&format!("/api/lake?prefix={prefix}")).refused(400, "invalid_key");
        }
        assert_eq!(site.contents(), before);
    });
}

#[test]
fn keys_are_percent_decoded_once() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        for key in UNUSUAL {
            let path = format!("/api/lake?key=odd/{key}");
            let stored = browser.send("PUT", &path, &[], key.as_bytes());
            assert_eq!(stored.status, 201, "{key}: {}", stored.text());
            let stored = stored.json()["key"].as_str().unwrap().to_owned();
            assert!(stored.starts_with("odd/"), "{stored}");
            assert!(keys(&level(&browser, "odd/")).contains(&stored.as_str()), "{stored}");
            assert_eq!(browser.get(&format!("/api/lake/object?key=odd/{key}")).ok().body, key.as_bytes());
            browser.delete(&path).ok();
        }
        assert_eq!(level(&browser, "odd/")["files"], json!([]));
    });
}

#[test]
fn keys_that_no_export_allows_are_not_created_and_stay_usable() {
    on_both(|kind| {
        let site = Site::new(kind);
        put(&site, "kept", b"1");
        let web = site.web();
        let browser = Browser::log_in(&web);
        let before = site.contents();
        for key in [
            "pipelines/x/%252e%252e/a",
            "%2e",
            "..%2f..",
            "a%2F..%2fb",
            "..%5Cx",
            "%c0%ae%c0%ae/a",
            "\u{2025}/a",
            "\u{2025}\u{2215}x",
            "a/\u{ff0e}\u{ff0e}/b",
            "\u{ff0e}\u{ff0e}\u{ff0f}x",
            "pipelines/x/C:/a",
        ] {
            let message = upload(&browser, key, b"x").refused(400, "invalid_key");
            assert!(message.contains("`..`") || message.contains("drive"), "{message}");
            browser.post("/api/lake", &json!({ "from": "kept", "to": key })).refused(400, "invalid_key");
        }
        assert_eq!(site.contents(), before);
        put(&site, "a/%2e%2e/b", b"theirs");
        let moved = browser.post("/api/lake", &json!({ "from": "a/%2e%2e/b", "to": "a/b" })).ok().json();
        assert_eq!(moved["key"], "a/b");
    });
}

#[test]
fn keys_are_normalised_and_foreign_forms_stay_reachable() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let (decomposed, composed) = ("e\u{301}/a.csv", "é/a.csv");
        assert_eq!(upload(&browser, decomposed, b"ours").json()["key"], composed);
        let get = |key: &str| browser.get(&format!("/api/lake/object?key={}", encoded(key)));
        assert_eq!((get(decomposed).ok().body, get(composed).ok().body), (b"ours".to_vec(), b"ours".to_vec()));
        put(&site, decomposed, b"theirs");
        assert_eq!((get(decomposed).ok().body, get(composed).ok().body), (b"theirs".to_vec(), b"ours".to_vec()));
        assert_eq!(keys(&level(&browser, "e\u{301}/")), [decomposed]);
        browser.delete(&format!("/api/lake?key={}", encoded(decomposed))).ok();
        assert_eq!(get(composed).ok().body, b"ours");
        assert_eq!(keys(&level(&browser, "e\u{301}/")), [composed]);
    });
}

#[test]
fn folder_store_rejects_keys_it_cannot_hold() {
    let site = Site::new(crate::support::site::Kind::Embedded);
    put(&site, "a", b"1");
    put(&site, "b/c", b"2");
    let web = site.web();
    let browser = Browser::log_in(&web);
    let before = site.contents();
    let long = "x".repeat(256);
    for key in ["a/b", "b", long.as_str(), ".lakemill/tmp/x", ".lakemill"] {
        upload(&browser, key, b"x").refused(400, "invalid_key");
        browser.post("/api/lake", &json!({ "from": "b/c", "to": key })).refused(400, "invalid_key");
    }
    assert_eq!(site.contents(), before);
}

#[test]
fn key_with_empty_segment_is_distinct_from_its_neighbour() {
    on_both(|kind| {
        let site = Site::new(kind);
        put(&site, "a/b.csv", b"1");
        let web = site.web();
        let browser = Browser::log_in(&web);
        for key in ["a//b.csv", "/a/b.csv", "a/b.csv/", "a/", "a//"] {
            download(&browser, key).refused(400, "invalid_key");
            browser.delete(&format!("/api/lake?key={}", encoded(key))).refused(400, "invalid_key");
            browser.post("/api/lake", &json!({ "from": key, "to": "x.csv" })).refused(400, "invalid_key");
        }
        assert_eq!(download(&browser, "a/b.csv").ok().body, b"1");
    });
}

#[test]
fn files_with_foreign_names_are_fully_usable() {
    on_both(|kind| {
        let site = Site::new(kind);
        let odd = ["in/a\\b.csv", "in/line\nbreak.csv", "in/\u{202e}x.csv"];
        for key in odd {
            put(&site, key, key.as_bytes());
        }
        let web = site.web();
        let browser = Browser::log_in(&web);
        put(&site, "in\\sub\n/x.csv", b"x");
        assert_eq!(keys(&level(&browser, "in\\sub\n/")), ["in\\sub\n/x.csv"]);
        let level = || level(&browser, "in/");
        assert_eq!(keys(&level()).len(), odd.len());
        for (at, key) in odd.into_iter().enumerate() {
            assert!(keys(&level()).contains(&key), "{key:?}");
            assert_eq!(download(&browser, key).ok().body, key.as_bytes());
            let to = format!("moved/{at}.csv");
            browser.post("/api/lake", &json!({ "from": key, "to": to })).ok();
            assert_eq!(download(&browser, &to).ok().body, key.as_bytes());
            put(&site, key, b"again");
            browser.delete(&format!("/api/lake?key={}", encoded(key))).ok();
            browser.delete(&format!("/api/lake?key={}", encoded(key))).refused(400, "invalid_key");
        }
        assert_eq!(keys(&level()), [""; 0]);
    });
}
