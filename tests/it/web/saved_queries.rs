//! Saved queries.

use lakemill::domain::digest::sha256_hex;
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::{check_outages, on_both};
use crate::support::browser::{Browser, RESPONSE_WAIT_MAX};
use crate::support::site::{Kind, Site};

const QUERIES: &str = "/api/p/trips/queries";

fn site(kind: Kind) -> Site {
    let site = Site::new(kind);
    site.pipeline("trips", &json!({}));
    site
}

fn save(browser: &Browser, name: &str) -> Value {
    let reply = browser.post(QUERIES, &json!({ "name": name, "sql": "SELECT 1" }));
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json()
}

fn path(query: &Value) -> String {
    format!("{QUERIES}/{}", query["id"].as_str().unwrap())
}

fn names(browser: &Browser) -> Vec<String> {
    let listed = browser.get(QUERIES).ok().json();
    listed["queries"].as_array().unwrap().iter().map(|query| query["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn queries_are_saved_listed_shown_changed_and_deleted() {
    on_both(|kind| {
        let site = site(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        assert_eq!(browser.get(QUERIES).ok().json(), json!({ "queries": [] }));
        let long = save(&browser, "  zeta ");
        assert_eq!(long["created_at"], long["updated_at"]);
        let short = save(&browser, "Alpha");
        save(&browser, "beta");
        assert_eq!(names(&browser), ["Alpha", "beta", "zeta"]);
        assert_eq!(browser.get(&path(&short)).ok().json(), short);

        let changed = browser.put(&path(&short), &json!({ "name": "omega", "sql": "SELECT 2" })).ok().json();
        assert_eq!((&changed["id"], &changed["created_at"]), (&short["id"], &short["created_at"]));
        assert!(changed["updated_at"].as_str() > short["updated_at"].as_str());
        assert_eq!(browser.get(&path(&short)).ok().json(), changed);

        assert_eq!(browser.delete(&path(&short)).ok().json(), json!({ "deleted": short["id"] }));
        for reply in [browser.get(&path(&short)), browser.delete(&path(&short))] {
            reply.refused(404, "query_not_found");
        }
        browser.put(&path(&short), &json!({ "name": "x", "sql": "SELECT 2" })).refused(404, "query_not_found");
        assert_eq!(names(&browser), ["beta", "zeta"]);
    });
}

#[test]
fn names_are_unique_ignoring_case_and_normal_form() {
    on_both(|kind| {
        let site = site(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let first = save(&browser, "Umsätze");
        let second = save(&browser, "other");
        for taken in ["Umsätze", "UMSÄTZE", " umsa\u{308}tze "] {
            let body = json!({ "name": taken, "sql": "SELECT 2" });
            browser.post(QUERIES, &body).refused(409, "name_taken");
            browser.put(&path(&second), &body).refused(409, "name_taken");
        }
        // A query may keep its own name in another case.
        browser.put(&path(&first), &json!({ "name": "UMSÄTZE", "sql": "SELECT 2" })).ok();
        assert_eq!(names(&browser), ["other", "UMSÄTZE"]);
    });
}

#[test]
fn one_of_concurrent_saves_of_a_query_name_succeeds() {
    on_both(|kind| {
        let site = site(kind);
        let (one, other) = (site.web(), site.web());
        let browser = Browser::log_in(&one);
        let elsewhere = Browser { address: other.address(), ..browser.clone() };
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..24)
                .map(|i| {
                    let browser = if i < 20 { &browser } else { &elsewhere };
                    let name = if i % 3 == 0 { "Race" } else { "rACE" };
                    scope.spawn(move || browser.post(QUERIES, &json!({ "name": name, "sql": "SELECT 1" })).status)
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 23, "{statuses:?}");
        assert_eq!(names(&browser).len(), 1);
    });
}

#[test]
fn stale_update_is_rejected() {
    on_both(|kind| {
        let site = site(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let query = save(&browser, "a");
        let tag = browser.get(&path(&query)).ok().header("etag").unwrap().to_owned();
        let put = |sql: &str| {
            let body = json!({ "name": "a", "sql": sql }).to_string();
            browser.send("PUT", &path(&query), &[("If-Match", &tag)], body.as_bytes())
        };
        let new = put("SELECT 2").ok().header("etag").unwrap().to_owned();
        assert_ne!(new, tag);
        put("SELECT 3").refused(412, "precondition_failed");
        assert_eq!(browser.get(&path(&query)).ok().json()["sql"], "SELECT 2");
    });
}

#[test]
fn foreign_object_is_not_listed_as_a_query_and_can_be_deleted() {
    on_both(|kind| {
        let site = site(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        save(&browser, "good");
        let large = vec![b' '; 3 << 20];
        for (name, body) in [("bad.json", &b"{"[..]), ("list.json", b"[]"), ("large.json", &large), ("x y.json", b"{}")]
        {
            let key = format!("pipelines/trips/queries/{name}");
            site.store.put(Bucket::Pipelines, &key, body, &WriteOptions::default()).unwrap();
        }
        assert_eq!(names(&browser), ["good"]);
        browser.get(&format!("{QUERIES}/bad")).refused(404, "query_not_found");
        browser.delete(&format!("{QUERIES}/bad")).ok();
        save(&browser, "another");
        assert_eq!(names(&browser), ["another", "good"]);
    });
}

#[test]
fn bad_input_is_rejected_and_changes_nothing() {
    let site = site(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let query = save(&browser, "kept");
    let before = site.contents();
    let bad = [
        json!({}),
        json!([]),
        json!(["a", "SELECT 1"]),
        json!({ "name": "a" }),
        json!({ "sql": "SELECT 1" }),
        json!({ "name": "", "sql": "SELECT 1" }),
        json!({ "name": " \t", "sql": "SELECT 1" }),
        json!({ "name": "a\nb", "sql": "SELECT 1" }),
        json!({ "name": "a\u{202e}b", "sql": "SELECT 1" }),
        json!({ "name": "x".repeat(201), "sql": "SELECT 1" }),
        json!({ "name": "a", "sql": " " }),
        json!({ "name": "a", "sql": "x".repeat(300_000) }),
        json!({ "name": "a", "sql": "SELECT '\u{0}'" }),
        json!({ "name": 1, "sql": "SELECT 1" }),
        json!({ "name": "a", "sql": "SELECT 1", "id": "mine" }),
    ];
    for body in &bad {
        browser.post(QUERIES, body).refused(400, "invalid_request");
        browser.put(&path(&query), body).refused(400, "invalid_request");
    }
    browser.send("POST", QUERIES, &[], b"{\"name\":\"\xc3\x28\",\"sql\":\"x\"}").refused(400, "invalid_request");
    let good = json!({ "name": "a", "sql": "SELECT 1" });
    for (path, status, code) in [
        ("/api/p/nothing/queries", 404, "pipeline_not_found"),
        ("/api/p/No%20slug/queries", 400, "invalid_slug"),
        ("/api/p/%2e%2e/queries", 400, "invalid_slug"),
        ("/api/p/trips%2F../queries", 400, "invalid_slug"),
    ] {
        browser.get(path).refused(status, code);
        browser.post(path, &good).refused(status, code);
    }
    for (id, status, code) in [
        ("/nothing", 404, "query_not_found"),
        ("/%2e%2e", 404, "query_not_found"),
        ("/..%2F..%2Fpipeline", 404, "query_not_found"),
        ("/%252e%252e%252fpipeline", 404, "query_not_found"),
        ("/a%00", 400, "invalid_request"),
    ] {
        let path = format!("{QUERIES}{id}");
        browser.get(&path).refused(status, code);
        browser.delete(&path).refused(status, code);
        browser.put(&path, &good).refused(status, code);
    }
    browser.get("/api/p/nothing/queries/x").refused(404, "pipeline_not_found");
    assert_eq!(site.contents(), before);
}

#[test]
fn lock_of_a_dead_process_expires() {
    on_both(|kind| {
        let site = site(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        // Like the lock of a dead process, shortly before it expires.
        assert!(site.kv.try_lock("queries/trips", "dead", std::time::Duration::from_secs(1)).unwrap());
        save(&browser, "after");
    });
}

#[test]
fn foreign_objects_do_not_hide_queries() {
    let site = site(Kind::Fleet);
    let web = site.web();
    let browser = Browser::log_in(&web);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let site = &site;
            scope.spawn(move || {
                for number in 0..140 {
                    let key = format!("pipelines/trips/queries/-{thread}-{number}.txt");
                    site.store.put(Bucket::Pipelines, &key, b"", &WriteOptions::default()).unwrap();
                }
            });
        }
    });
    save(&browser, "kept");
    assert_eq!(names(&browser), ["kept"]);
    browser.post(QUERIES, &json!({ "name": "KEPT", "sql": "SELECT 1" })).refused(409, "name_taken");
}

#[test]
fn waiting_saves_do_not_occupy_all_handlers() {
    on_both(|kind| {
        let site = site(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        // Like a concurrent save of this name.
        let lock = format!("queries/trips/name/{}", sha256_hex(b"race"));
        assert!(site.kv.try_lock(&lock, "other", std::time::Duration::from_secs(600)).unwrap());
        let (sender, statuses) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..12 {
                let (browser, sender) = (&browser, sender.clone());
                let body = json!({ "name": "Race", "sql": "SELECT 1" });
                scope.spawn(move || sender.send(browser.post(QUERIES, &body).status).unwrap());
            }
            for _ in 0..4 {
                assert_eq!(statuses.recv_timeout(RESPONSE_WAIT_MAX).unwrap(), 409);
            }
            save(&browser, "another");
            site.kv.unlock(&lock, "other").unwrap();
        });
        let mut waited: Vec<u16> = statuses.try_iter().collect();
        waited.sort_unstable();
        assert_eq!(waited, [201, 409, 409, 409, 409, 409, 409, 409]);
        assert_eq!(names(&browser), ["another", "Race"]);
    });
}

#[test]
fn saved_queries_fail_while_the_store_is_unavailable() {
    on_both(|kind| {
        let site = site(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let own = path(&save(&browser, "kept"));
        let new = r#"{ "name": "new", "sql": "SELECT 1" }"#;
        let wishes =
            [("GET", QUERIES, ""), ("POST", QUERIES, new), ("GET", &own, ""), ("PUT", &own, new), ("DELETE", &own, "")];
        check_outages(&site, &browser, &wishes);
        assert_eq!(names(&browser), ["kept"]);
    });
}
