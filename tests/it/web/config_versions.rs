//! The configs that a pipeline had: kept by every save, shown, restored, and carried along with the pipeline.

use lakemill::domain::layout::{ConfigChange, ConfigVersion};
use lakemill::domain::layout::{config_key, config_version_key, config_versions_prefix};
use lakemill::ports::store::{Bucket, WriteOptions, list_all};
use serde_json::{Value, json};

use super::archive::{export, import_as};
use super::on_both;
use crate::support::browser::{Browser, Reply};
use crate::support::site::{Site, slug};

const PATH: &str = "/api/p/x/config";
const VERSIONS: &str = "/api/p/x/config/versions";

fn save(browser: &Browser, query: &str, text: &str) -> Reply {
    let path = format!("{PATH}{query}");
    browser.send("PUT", &path, &[("Content-Type", "application/json")], text.as_bytes()).ok()
}

fn put_by_another_program(site: &Site, text: &str) {
    site.store.put(Bucket::Pipelines, &config_key(&slug("x")), text.as_bytes(), &WriteOptions::default()).unwrap();
}

/// `version change restored current` of each version, newest first.
fn listed(browser: &Browser, path: &str) -> Vec<String> {
    let list = browser.get(path).ok().json();
    let versions = list["versions"].as_array().expect("versions").clone();
    let text = |one: &Value| {
        let current = if one["current"] == true { " current" } else { "" };
        format!("{} {} {}{current}", one["version"], one["change"].as_str().unwrap_or("?"), one["restored"])
    };
    versions.iter().map(text).collect()
}

#[test]
fn each_save_is_kept_with_its_time_and_client() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let (first, second) = ("{ \"n\": 1 }\n", "{\"n\":2}");
        save(&browser, "", first);
        save(&browser, "", second);
        // Neither a save of the same text nor one that stores nothing is a version.
        save(&browser, "", second);
        save(&browser, "?dry_run=1", "{\"n\":3}");
        assert_eq!(listed(&browser, VERSIONS), ["2 saved null current", "1 saved null"]);
        let list = browser.get(VERSIONS).ok().json();
        let newest = &list["versions"][0];
        assert_eq!((&list["total"], &newest["address"], &newest["bytes"]), (&json!(2), &json!("127.0.0.1"), &json!(7)));
        assert!(newest["at"].as_str().is_some_and(|at| at >= list["versions"][1]["at"].as_str().unwrap()));
        for (version, text) in [(1, first), (2, second)] {
            let reply = browser.get(&format!("{VERSIONS}/{version}")).ok();
            assert_eq!((reply.text().as_str(), reply.header("content-type")), (text, Some("application/json")));
        }
        assert_eq!(listed(&browser, &format!("{VERSIONS}?limit=1&offset=1")), ["1 saved null"]);
        for missing in ["3", "0", "-1", "x", "99999999999999999999"] {
            browser.get(&format!("{VERSIONS}/{missing}")).refused(404, "version_not_found");
        }
        browser.get("/api/p/none/config/versions").refused(404, "pipeline_not_found");
        browser.get("/api/p/none/config/versions/1").refused(404, "pipeline_not_found");
        browser.get(&format!("{VERSIONS}?limit=501")).refused(400, "invalid_request");
    });
}

#[test]
fn restored_version_is_named_if_the_content_is_equal() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        for text in ["{\"n\":1}", "{\"n\":2}"] {
            save(&browser, "", text);
        }
        save(&browser, "?restores=1", "{\"n\":1}");
        save(&browser, "?restores=2", "{\"n\":\"edited\"}");
        save(&browser, "?restores=9", "{\"n\":9}");
        let expected = ["5 saved null current", "4 saved null", "3 restored 1", "2 saved null", "1 saved null"];
        assert_eq!(listed(&browser, VERSIONS), expected);
        browser.put(&format!("{PATH}?restores=x"), &json!({})).refused(400, "invalid_request");
    });
}

#[test]
fn config_of_another_program_is_listed_and_kept_before_it_is_replaced() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        browser.post("/api/pipelines", &json!({ "slug": "x" })).ok();
        assert_eq!(listed(&browser, VERSIONS), ["null found null current"]);
        let blank = browser.get(PATH).ok().text();
        save(&browser, "", "{\"n\":1}");
        put_by_another_program(&site, "not JSON \u{e9}");
        assert_eq!(listed(&browser, VERSIONS), ["null found null current", "2 saved null", "1 found null"]);
        save(&browser, "", "{\"n\":2}");
        let expected = ["4 saved null current", "3 found null", "2 saved null", "1 found null"];
        assert_eq!(listed(&browser, VERSIONS), expected);
        for (version, text) in [(1, blank.as_str()), (3, "not JSON \u{e9}")] {
            assert_eq!(browser.get(&format!("{VERSIONS}/{version}")).ok().text(), text);
        }
    });
}

#[test]
fn the_oldest_versions_and_foreign_objects_hide_nothing() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let put = |key: &str, body: &[u8]| {
            site.store.put(Bucket::Pipelines, key, body, &WriteOptions::default()).unwrap();
        };
        let at = chrono::DateTime::from_timestamp_millis(1_790_000_000_000).unwrap();
        for version in 1..=500 {
            let kept = ConfigVersion { version, at, change: ConfigChange::Saved, address: None };
            put(&config_version_key(&slug("x"), kept), format!("{{\"n\":{version}}}").as_bytes());
        }
        let prefix = config_versions_prefix(&slug("x"));
        put(&format!("{prefix}00000000000000000009.json"), b"{}");
        put(&format!("{prefix}zzz/other.txt"), b"x");
        save(&browser, "", "{\"n\":501}");
        let all = listed(&browser, &format!("{VERSIONS}?limit=500"));
        assert_eq!((all.len(), all[0].as_str(), all[499].as_str()), (500, "501 saved null current", "2 saved null"));
        browser.get(&format!("{VERSIONS}/1")).refused(404, "version_not_found");
        assert_eq!(list_all(&*site.store, Bucket::Pipelines, &prefix).unwrap().len(), 502);
    });
}

#[test]
fn versions_are_deleted_with_their_pipeline() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        save(&browser, "", "{\"version\":1,\"mappings\":[]}");
        save(&browser, "", "{\"version\":1,\"title\":\"t\",\"mappings\":[]}");
        let expected = ["2 saved null current", "1 saved null"];
        browser.patch("/api/pipelines/x", &json!({ "newSlug": "y" })).ok();
        assert_eq!(listed(&browser, "/api/p/y/config/versions"), expected);
        let archive = export(&browser, "y");
        import_as(&browser, "z", &archive).ok();
        assert_eq!(listed(&browser, "/api/p/z/config/versions"), expected);
        for gone in ["y", "z"] {
            browser.delete(&format!("/api/pipelines/{gone}")).ok();
            browser.get(&format!("/api/p/{gone}/config/versions")).refused(404, "pipeline_not_found");
            assert!(list_all(&*site.store, Bucket::Pipelines, &format!("pipelines/{gone}/")).unwrap().is_empty());
        }
    });
}
