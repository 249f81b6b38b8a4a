//! Serving the browser UI. `static/tests` has the browser tests.

use std::path::{Path, PathBuf};

use crate::support::browser::Browser;
use crate::support::lake::gzip;
use crate::support::site::{Kind, Site};

const PAGE: &str = "<!doctype html><title>built</title>";

/// Files of a UI build.
fn built(folder: &Path) -> PathBuf {
    let dist = folder.join("dist");
    std::fs::create_dir_all(dist.join("assets")).unwrap();
    for (name, text) in [
        ("index.html", PAGE),
        ("theme.js", "theme"),
        ("favicon.svg", "<svg/>"),
        ("assets/index-Abc123.js", "plain"),
        ("assets/index-Abc123.js.br", "brotli"),
        ("assets/index-Abc123.js.gz", "gzip"),
        ("assets/index-Abc123.css", "a{}"),
    ] {
        std::fs::write(dist.join(name), text).unwrap();
    }
    std::fs::write(dist.join("assets/packed-Abc123.js.gz"), gzip(b"packed")).unwrap();
    std::fs::write(folder.join("secret.js"), "secret").unwrap();
    dist
}

#[test]
fn ui_paths_serve_the_page_without_a_session() {
    let site = Site::new(Kind::Embedded);
    let folder = tempfile::tempdir().unwrap();
    let web = site.web_with(&[("SVC_UI_DIR", built(folder.path()).to_str().unwrap())]);
    let anonymous = Browser::anonymous(&web);
    for path in
        ["/", "/login", "/new", "/lake", "/lake?prefix=a%2F", "/settings", "/p/shop", "/p/shop/jobs/1/x", "/p/%20"]
    {
        let reply = anonymous.get(path).ok();
        assert_eq!(reply.text(), PAGE, "{path}");
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(reply.header("cache-control"), Some("no-cache"));
        assert!(reply.header("content-security-policy").unwrap().contains("script-src 'self'"));
    }
    anonymous.send("POST", "/", &[], b"").refused(405, "method_not_allowed");
}

#[test]
fn unknown_path_serves_browsers_the_page_with_404_and_others_json() {
    let site = Site::new(Kind::Embedded);
    let folder = tempfile::tempdir().unwrap();
    let web = site.web_with(&[("SVC_UI_DIR", built(folder.path()).to_str().unwrap())]);
    let (anonymous, known) = (Browser::anonymous(&web), Browser::log_in(&web));
    let shown = |browser: &Browser, method: &str, path: &str| {
        let accept = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        browser.send(method, path, &[accept], b"")
    };
    for path in ["/nowhere", "/settings/more", "/pp/shop", "/blah/%2e/x"] {
        let reply = shown(&anonymous, "GET", path);
        assert_eq!((reply.status, reply.text().as_str()), (404, PAGE), "{path}");
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        assert!(reply.header("content-security-policy").unwrap().contains("script-src 'self'"));
        for accept in [&[][..], &[("Accept", "*/*")], &[("Accept", "application/json, text/html;q=0")]] {
            anonymous.send("GET", path, accept, b"").refused(404, "not_found");
        }
        shown(&anonymous, "POST", path).refused(404, "not_found");
    }
    assert_eq!(shown(&anonymous, "HEAD", "/nowhere").status, 404);
    shown(&anonymous, "GET", "/api/nowhere").refused(401, "unauthorized");
    shown(&known, "GET", "/api/nowhere").refused(404, "not_found");
    shown(&anonymous, "GET", "/assets/none.js").refused(404, "not_found");
    shown(&known, "GET", "/api/auth/login").refused(405, "method_not_allowed");
}

#[test]
fn hashed_assets_are_immutable_and_compressed() {
    let site = Site::new(Kind::Embedded);
    let folder = tempfile::tempdir().unwrap();
    let web = site.web_with(&[("SVC_UI_DIR", built(folder.path()).to_str().unwrap())]);
    let anonymous = Browser::anonymous(&web);
    let get = |accepted: &str| anonymous.send("GET", "/assets/index-Abc123.js", &[("Accept-Encoding", accepted)], b"");
    for (accepted, encoding, text) in [
        ("gzip, deflate, br", Some("br"), "brotli"),
        ("gzip", Some("gzip"), "gzip"),
        ("br;q=0, gzip;q=0.1", Some("gzip"), "gzip"),
        ("identity", None, "plain"),
    ] {
        let reply = get(accepted).ok();
        assert_eq!((reply.header("content-encoding"), reply.text().as_str()), (encoding, text), "{accepted}");
        assert_eq!(reply.header("content-type"), Some("text/javascript; charset=utf-8"));
        assert_eq!(reply.header("cache-control"), Some("public, max-age=31536000, immutable"));
        assert_eq!(reply.header("vary"), Some("Accept-Encoding"));
    }
    // Programs embed compressed variants only.
    let packed = anonymous.send("GET", "/assets/packed-Abc123.js", &[("Accept-Encoding", "identity")], b"").ok();
    assert_eq!((packed.header("content-encoding"), packed.text().as_str()), (None, "packed"));
    assert_eq!(packed.header("content-type"), Some("text/javascript; charset=utf-8"));
    // Without a compressed variant the file itself is served.
    let style = anonymous.send("GET", "/assets/index-Abc123.css", &[("Accept-Encoding", "br")], b"").ok();
    assert_eq!((style.header("content-encoding"), style.text().as_str()), (None, "a{}"));
    assert_eq!(style.header("content-type"), Some("text/css; charset=utf-8"));
}

#[test]
fn unchanged_ui_file_is_not_sent_again() {
    let site = Site::new(Kind::Embedded);
    let folder = tempfile::tempdir().unwrap();
    let dist = built(folder.path());
    let web = site.web_with(&[("SVC_UI_DIR", dist.to_str().unwrap())]);
    let anonymous = Browser::anonymous(&web);
    let tag = anonymous.get("/").ok().header("etag").unwrap().to_owned();
    let again = anonymous.send("GET", "/", &[("If-None-Match", &tag)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(again.header("etag"), Some(tag.as_str()));
    std::fs::write(dist.join("index.html"), "newer").unwrap();
    let newer = anonymous.send("GET", "/", &[("If-None-Match", &tag)], b"");
    assert_eq!((newer.status, newer.text().as_str()), (200, "newer"));
    let head = anonymous.send("HEAD", "/assets/index-Abc123.js", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn asset_names_cannot_escape_the_folder() {
    let site = Site::new(Kind::Embedded);
    let folder = tempfile::tempdir().unwrap();
    let web = site.web_with(&[("SVC_UI_DIR", built(folder.path()).to_str().unwrap())]);
    let anonymous = Browser::anonymous(&web);
    for name in [
        "%2e%2e/%2e%2e/secret.js",
        "..%2f..%2fsecret.js",
        "..%2F..%2Fsecret.js",
        "%2Fetc%2Fpasswd",
        "nothing.js",
        ".",
        "%00",
    ] {
        let reply = anonymous.get(&format!("/assets/{name}"));
        assert!((400..=404).contains(&reply.status), "{name}: {} {}", reply.status, reply.text());
        assert!(!reply.text().contains("secret"), "{name}");
    }
}
