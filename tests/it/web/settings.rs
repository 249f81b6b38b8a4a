//! Workspace settings.

use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::{check_outages, on_both};
use crate::support::browser::Browser;
use crate::support::site::{Kind, Site};

const KEY: &str = "workspace/settings.json";

fn defaults() -> Value {
    json!({ "display_name": "", "workspace_name": "Lakemill", "starred": [] })
}

#[test]
fn settings_have_defaults_and_are_shared_between_processes() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (one, other) = (site.web(), site.web());
        let browser = Browser::log_in(&one);
        assert_eq!(browser.get("/api/settings").ok().json(), defaults());
        let new = json!({
            "display_name": "  Ada\u{202e} \n", "workspace_name": "Data \u{0} team", "starred": ["b", "a", "b", "../x", "B"],
        });
        let kept = json!({ "display_name": "Ada", "workspace_name": "Data  team", "starred": ["b", "a"] });
        let reply = browser.put("/api/settings", &new).ok();
        assert_eq!(reply.json(), kept);
        let elsewhere = Browser { address: other.address(), ..browser };
        let response = elsewhere.get("/api/settings").ok();
        assert_eq!((response.json(), response.header("etag")), (kept, reply.header("etag")));
    });
}

#[test]
fn stale_settings_update_is_rejected() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let put = |tag: &str, name: &str| {
            let body = json!({ "workspace_name": name }).to_string();
            browser.send("PUT", "/api/settings", &[("If-Match", tag)], body.as_bytes())
        };
        put("*", "none is there").refused(412, "precondition_failed");
        let first = browser.put("/api/settings", &json!({ "workspace_name": "first" })).ok();
        let tag = first.header("etag").unwrap();
        put(tag, "second").ok();
        put(tag, "third").refused(412, "precondition_failed");
        put("second", "another tag").refused(412, "precondition_failed");
        put("se cond", "no tag").refused(400, "invalid_request");
        assert_eq!(browser.get("/api/settings").ok().json()["workspace_name"], "second");
    });
}

#[test]
fn malformed_settings_are_rejected() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    browser.put("/api/settings", &json!({ "workspace_name": "kept" })).ok();
    let before = site.contents();
    for bad in
        [json!([]), json!({ "workspace_name": 1 }), json!({ "starred": "a" }), json!({ "starred": [1] }), json!(null)]
    {
        browser.put("/api/settings", &bad).refused(400, "invalid_request");
    }
    browser.send("PUT", "/api/settings", &[], b"").refused(400, "invalid_request");
    browser.send("PUT", "/api/settings", &[], b"{\"workspace_name\":\"\xff\"}").refused(400, "invalid_request");
    assert_eq!(site.contents(), before);
}

#[test]
fn unknown_fields_of_settings_are_dropped() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let kept = json!({ "display_name": "", "workspace_name": "kept", "starred": [] });
    let reply = browser.put("/api/settings", &json!({ "workspace_name": "kept", "theme": { "dark": true } })).ok();
    assert_eq!((reply.json(), browser.get("/api/settings").ok().json()), (kept.clone(), kept));
}

#[test]
fn malformed_stored_settings_become_defaults_with_a_warning() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        for malformed in ["{", "[]", "{\"starred\": 7}"] {
            site.store.put(Bucket::Pipelines, KEY, malformed.as_bytes(), &WriteOptions::default()).unwrap();
            assert_eq!(browser.get("/api/settings").ok().json(), defaults());
        }
        web.await_log("stored settings are malformed");
        let large = vec![b' '; 300 << 10];
        site.store.put(Bucket::Pipelines, KEY, &large, &WriteOptions::default()).unwrap();
        assert_eq!(browser.get("/api/settings").ok().json(), defaults());
        // Settings of another version, and those written by other programs, are read as far as possible.
        let foreign = br#"{ "workspace_name": " Team\u202e ", "theme": "dark", "starred": ["a", "A"] }"#;
        site.store.put(Bucket::Pipelines, KEY, foreign, &WriteOptions::default()).unwrap();
        let expected = json!({ "display_name": "", "workspace_name": "Team", "starred": ["a"] });
        assert_eq!(browser.get("/api/settings").ok().json(), expected);
    });
}

#[test]
fn settings_fail_while_the_store_is_unavailable() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        browser.put("/api/settings", &json!({ "workspace_name": "kept" })).ok();
        let wishes = [("GET", "/api/settings", ""), ("PUT", "/api/settings", r#"{ "workspace_name": "new" }"#)];
        check_outages(&site, &browser, &wishes);
        assert_eq!(browser.get("/api/settings").ok().json()["workspace_name"], "kept");
    });
}
