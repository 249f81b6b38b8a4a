//! Requests to unfinished, renamed and deleted pipelines lose nothing.

use std::collections::BTreeMap;

use lakemill::domain::layout::{config_key, pipeline_prefix, unfinished_key};
use lakemill::ports::store::{Bucket, WriteOptions, list_all};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::lifecycle::{content, has_run, kill_at, lay_out, objects, repeat, slugs};
use super::on_both;
use crate::support::browser::{Browser, Reply};
use crate::support::site::{Kind, Service, Site, await_some, await_that, slug};

const LONG: (&str, &str) = ("JOB_LOCK_TTL_MS", "60000");

fn config_path(pipeline: &str) -> String {
    format!("/api/p/{pipeline}/config")
}

fn edit() -> Value {
    json!({ "version": 1, "title": "edited", "auto_run": false, "mappings": [] })
}

fn is_edited(site: &Site, pipeline: &str) -> bool {
    let config = site.read(Bucket::Pipelines, &config_key(&slug(pipeline)));
    config.is_some_and(|config| serde_json::from_slice::<Value>(&config).unwrap() == edit())
}

/// Repeats a request until a dead process's lock no longer rejects it, and checks that its leftovers do.
#[track_caller]
fn refused_as_unfinished(send: impl Fn() -> Reply) {
    let message = await_some("what a process that died has left", || {
        let message = send().refused(409, "pipeline_busy");
        message.contains("repeat").then_some(message)
    });
    assert!(message.contains('`'), "{message}");
}

fn rename(browser: &Browser, from: &str, to: &str) -> Reply {
    browser.patch(&format!("/api/pipelines/{from}"), &json!({ "newSlug": to }))
}

#[track_caller]
fn rejects_writes(browser: &Browser, pipeline: &str) {
    refused_as_unfinished(|| browser.put(&config_path(pipeline), &edit()));
    let yaml = [("Content-Type", "application/yaml")];
    let path = format!("/api/p/{pipeline}/dashboards");
    browser.send("PUT", &format!("{path}/x?draft=1"), &yaml, b"version: 2").refused(409, "pipeline_busy");
    browser.post(&path, &json!({ "name": "x" })).refused(409, "pipeline_busy");
    let query = json!({ "name": "x", "sql": "SELECT 1" });
    browser.post(&format!("/api/p/{pipeline}/queries"), &query).refused(409, "pipeline_busy");
}

/// The result of saving the config under the old name after an interrupted rename.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Save {
    /// It moves with the rest.
    Moves,
    Refused,
    /// The name is free, so the save creates a pipeline that stays.
    Stays,
}

const PLACES: &[(&str, Save)] = &[
    ("make::marked", Save::Moves),
    ("rename::between_copies=2*off->", Save::Moves),
    ("rename::copied", Save::Moves),
    ("rename::leaving", Save::Refused),
    ("make::made", Save::Refused),
    ("rename::config_copied", Save::Refused),
    ("rename::moved", Save::Refused),
    ("rename::dropped", Save::Refused),
    ("rename::config_deleted", Save::Refused),
    ("rename::between_deletes=1*off->", Save::Refused),
    ("rename::deleted", Save::Refused),
    ("rename::left", Save::Stays),
];

#[test]
fn config_saved_during_interrupted_rename_is_rejected_or_kept() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (olds, news): (Vec<String>, Vec<String>) =
            (0..PLACES.len()).map(|at| (format!("old-{at}"), format!("new-{at}"))).unzip();
        olds.iter().for_each(|old| lay_out(&site, old));
        let worker = site.worker();
        has_run(&site, &olds.iter().map(String::as_str).collect::<Vec<_>>());
        drop(worker);
        let before: Vec<_> = olds.iter().map(|old| content(&site, old)).collect();
        for (at, (place, _)) in PLACES.iter().enumerate() {
            let (path, body) = (format!("/api/pipelines/{}", olds[at]), json!({ "newSlug": news[at] }).to_string());
            kill_at(&site, place, |browser| browser.try_send("PATCH", &path, &[], body.as_bytes()).is_ok());
        }
        let web = site.web();
        let browser = Browser::log_in(&web);
        for (at, (place, save)) in PLACES.iter().enumerate() {
            let (old, new) = (&olds[at], &news[at]);
            rejects_writes(&browser, new);
            match save {
                Save::Moves | Save::Stays => {
                    repeat(|| browser.put(&config_path(old), &edit())).ok();
                }
                Save::Refused => {
                    refused_as_unfinished(|| browser.put(&config_path(old), &edit()));
                    refused_as_unfinished(|| rename(&browser, old, "another"));
                }
            }
            repeat(|| rename(&browser, old, new)).ok();
            let mut wanted = before[at].clone();
            let is_edited_there = is_edited(&site, new);
            assert_eq!(is_edited_there, *save == Save::Moves, "{place}");
            let is_version = |key: &str| key.starts_with("pipelines/config/");
            let (versions, mut there): (BTreeMap<_, _>, BTreeMap<_, _>) =
                content(&site, new).into_iter().partition(|(key, _)| is_version(key));
            let config = wanted.remove("pipelines/pipeline.json").expect("a config");
            assert!(there.remove("pipelines/pipeline.json").is_some(), "{place}");
            assert_eq!(there, wanted, "{place}");
            // The history of the config moves with the rest.
            let kept = if is_edited_there { vec![config, edit().to_string().into_bytes()] } else { Vec::new() };
            assert_eq!(versions.into_values().collect::<Vec<_>>(), kept, "{place}");
            if *save == Save::Stays {
                assert!(is_edited(&site, old), "{place}");
            } else {
                assert_eq!(objects(&site, old), BTreeMap::new(), "{place}");
            }
        }
    });
}

#[test]
fn unfinished_pipeline_takes_no_config_and_can_be_resumed() {
    on_both(|kind| {
        let site = Site::new(kind);
        let body_of = |name: &str| json!({ "slug": name, "template": "flights" });
        for (name, place) in
            [("a", "make::marked"), ("b", "create::between_writes"), ("c", "make::made"), ("d", "create::configured")]
        {
            let body = body_of(name).to_string();
            kill_at(&site, place, |browser| browser.try_send("POST", "/api/pipelines", &[], body.as_bytes()).is_ok());
        }
        let web = site.web();
        let browser = Browser::log_in(&web);
        for name in ["a", "b", "c", "d"] {
            rejects_writes(&browser, name);
            repeat(|| browser.post("/api/pipelines", &body_of(name))).ok();
            assert_eq!(objects(&site, name).len(), 18, "{name}");
            browser.put(&config_path(name), &edit()).ok();
        }
    });
}

#[test]
fn abandoned_rename_blocks_nothing() {
    let site = Site::new(Kind::Embedded);
    lay_out(&site, "a");
    kill_at(&site, "rename::leaving", |browser| {
        browser.try_send("PATCH", "/api/pipelines/a", &[], br#"{"newSlug":"b"}"#).is_ok()
    });
    let web = site.web();
    let browser = Browser::log_in(&web);
    refused_as_unfinished(|| browser.put(&config_path("a"), &edit()));
    repeat(|| browser.delete("/api/pipelines/b")).ok();
    browser.put(&config_path("a"), &edit()).ok();
    browser.get("/api/p/a/export").ok();
    rename(&browser, "a", "c").ok();
    assert_eq!((slugs(&browser), is_edited(&site, "c")), (vec!["c".to_owned()], true));
    // And the other way round: the old one is deleted, and its copy is not a pipeline.
    lay_out(&site, "d");
    kill_at(&site, "rename::copied", |browser| {
        browser.try_send("PATCH", "/api/pipelines/d", &[], br#"{"newSlug":"e"}"#).is_ok()
    });
    repeat(|| browser.delete("/api/pipelines/d")).ok();
    repeat(|| rename(&browser, "d", "e")).refused(404, "pipeline_not_found");
    browser.delete("/api/pipelines/e").ok();
    assert_eq!(slugs(&browser), ["c"]);
}

#[test]
fn unreadable_marker_means_an_unfinished_pipeline() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    site.pipeline("whole", &json!({}));
    let long = vec![b' '; 100 << 10];
    for mark in [&b"{}"[..], b"", b"null", b"\xff", br#"{"operation":"later","stage":"made"}"#, &long] {
        lay_out(&site, "p");
        site.store.put(Bucket::Pipelines, &unfinished_key(&slug("p")), mark, &WriteOptions::default()).unwrap();
        let what = String::from_utf8_lossy(mark);
        browser.post("/api/pipelines", &json!({ "slug": "p" })).refused(409, "already_exists");
        rename(&browser, "whole", "p").refused(409, "already_exists");
        for reply in
            [rename(&browser, "p", "q"), browser.get("/api/p/p/export"), browser.put(&config_path("p"), &edit())]
        {
            let message = reply.refused(409, "pipeline_busy");
            assert!(message.contains("delete `p`"), "{what}: {message}");
        }
        browser.delete("/api/pipelines/p").ok();
        assert_eq!(slugs(&browser), ["whole"], "{what}");
    }
}

fn await_stopped(web: &Service) {
    let stat = format!("/proc/{}/stat", web.pid());
    await_that("its standing still", || {
        std::fs::read_to_string(&stat).is_ok_and(|stat| stat.rsplit_once(") ").unwrap().1.starts_with('T'))
    });
}

/// Sends a request to a web service that pauses at `place`, calls `meanwhile`, and returns the response.
fn stopped_at(
    site: &Site,
    place: &str,
    send: impl Fn(&Browser) -> Reply + Send + Sync,
    meanwhile: impl FnOnce(),
) -> Reply {
    let web = site.web_with(&[("FAILPOINTS", &format!("{place}=1*return(stop)->off")), LONG]);
    let browser = Browser::log_in(&web);
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| send(&browser));
        await_stopped(&web);
        meanwhile();
        web.signal(Signal::CONT);
        sent.join().unwrap()
    })
}

#[test]
fn file_overwritten_during_rename_is_moved_in_its_new_version() {
    on_both(|kind| {
        for place in ["rename::copied", "rename::config_deleted", "rename::late_copied"] {
            let site = Site::new(kind);
            lay_out(&site, "old");
            // Same size, and most likely the same second.
            let change = || site.put("old", "in/1.csv", "a,b\nx,1\ny,7\n");
            stopped_at(&site, place, |browser| rename(browser, "old", "new"), change).ok();
            assert_eq!(objects(&site, "new")["lake/in/1.csv"], b"a,b\nx,1\ny,7\n", "{place}");
            assert_eq!(objects(&site, "old"), BTreeMap::new(), "{place}");
        }
    });
}

#[test]
fn file_uploaded_under_the_new_name_is_not_overwritten() {
    on_both(|kind| {
        let site = Site::new(kind);
        lay_out(&site, "old");
        let change = || site.put("new", "in/1.csv", "a,b\nx,1\ny,7\n");
        stopped_at(&site, "rename::config_deleted", |browser| rename(browser, "old", "new"), change).ok();
        assert_eq!(objects(&site, "new")["lake/in/1.csv"], b"a,b\nx,1\ny,7\n");
    });
}

#[test]
fn uploads_during_a_delete_are_deleted() {
    on_both(|kind| {
        let site = Site::new(kind);
        lay_out(&site, "p");
        let late = || site.put("p", "in/late.csv", "a,b\nx,1\n");
        stopped_at(&site, "delete::round", |browser| browser.delete("/api/pipelines/p"), late).ok();
        assert_eq!(objects(&site, "p"), BTreeMap::new());
    });
}

#[test]
fn dashboard_and_query_writes_wait_for_a_delete_and_then_fail() {
    on_both(|kind| {
        let site = Site::new(kind);
        lay_out(&site, "p");
        let web = site.web();
        let browser = Browser::log_in(&web);
        let hold = site.kv.lock_pipeline(&slug("p"), std::time::Duration::from_secs(60), 0).unwrap().unwrap();
        std::thread::scope(|scope| {
            let draft = scope.spawn(|| browser.post("/api/p/p/dashboards", &json!({ "name": "late" })));
            let query = json!({ "name": "late", "sql": "SELECT 1" });
            let query = scope.spawn({
                let browser = &browser;
                move || browser.post("/api/p/p/queries", &query)
            });
            // The state after a delete; an operation that passed its check before is rejected nevertheless.
            for bucket in [Bucket::Pipelines, Bucket::Lake] {
                let listed = list_all(&*site.store, bucket, &pipeline_prefix(&slug("p"))).unwrap();
                let keys: Vec<String> = listed.into_iter().map(|object| object.key).collect();
                site.store.delete(bucket, &keys, &WriteOptions::default()).unwrap();
            }
            site.kv.release(&hold).unwrap();
            for reply in [draft.join().unwrap(), query.join().unwrap()] {
                reply.refused(404, "pipeline_not_found");
            }
        });
        assert_eq!(objects(&site, "p"), BTreeMap::new());
    });
}
