//! File states in listings.

use lakemill::domain::layout::manifest_key;
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::program::mapping;
use crate::support::site::{Kind, Site, slug};
use crate::web::on_both;
use crate::web::tables::TripsSite;

/// By the files' names: the value of `state`.
fn states(browser: &Browser, prefix: &str) -> Value {
    let level = browser.get(&format!("/api/lake?state=1&prefix={prefix}")).ok().json();
    let state = |file: &Value| {
        let name = file["key"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        assert!(file.as_object().unwrap().contains_key("state"), "{file}");
        (name, file["state"].clone())
    };
    level["files"].as_array().unwrap().iter().map(state).collect::<serde_json::Map<_, _>>().into()
}

fn state(tables: &[&str], loaded: &str, rejected: Option<u64>) -> Value {
    json!({ "tables": tables, "loaded": loaded, "rows_rejected": rejected })
}

#[test]
fn listing_shows_file_states_by_table() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        trips.site.put("trips", "other/a.csv", "x\n1\n");
        trips.site.put("trips", "in/c.csv", "day,a,b\n2013-01-03,n,1\n");
        let read = state(&["t"], "loaded", Some(1));
        let response = states(&trips.browser, "pipelines/trips/in/");
        let expected = json!({
            "a.csv": read, "b.csv": state(&["t"], "loaded", Some(0)), "c.csv": state(&["t"], "new", None)
        });
        assert_eq!(response, expected);
        assert_eq!(states(&trips.browser, "pipelines/trips/other/"), json!({ "a.csv": state(&[], "not_read", None) }));
        // Same size, written immediately after.
        trips.site.put("trips", "in/b.csv", "day,a,b\n2013-01-02,q,\n");
        let response = states(&trips.browser, "pipelines/trips/in/");
        assert_eq!((&response["a.csv"], &response["b.csv"]), (&read, &state(&["t"], "changed", Some(0))));
        trips.run();
        let response = states(&trips.browser, "pipelines/trips/in/");
        assert_eq!((&response["b.csv"]["loaded"], &response["c.csv"]["loaded"]), (&json!("loaded"), &json!("loaded")));
        let plain = trips.browser.get("/api/lake?prefix=pipelines/trips/in/").ok().json();
        assert!(plain["files"][0].get("state").is_none(), "{plain}");
        trips.browser.get("/api/lake?prefix=pipelines/trips/in/&state=x").refused(400, "invalid_request");
    });
}

#[test]
fn file_is_loaded_once_all_its_tables_have_read_it() {
    let trips = TripsSite::new(Kind::Embedded);
    let of = |table: &str, files: &[&str]| {
        mapping(&json!({ "table": table, "files": files, "columns": [
        { "name": "a", "type": "string" }] }))
    };
    let config = json!({ "version": 1, "auto_run": false, "mappings": [
        of("t", &["in/*.csv"]), of("u", &["**/a.csv", "in/?.csv"]), of("v", &["in/**/deep/*"]) ] });
    trips.site.configure("trips", &config);
    let response = states(&trips.browser, "pipelines/trips/in/");
    assert_eq!(response["a.csv"], state(&["t", "u"], "new", Some(1)));
}

#[test]
fn unreadable_config_or_manifest_makes_states_unknown() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let put = |key: &str, body: &[u8]| {
            trips.site.store.put(Bucket::Pipelines, key, body, &WriteOptions::default()).unwrap();
        };
        let manifest = manifest_key(&slug("trips"), "t");
        put(&manifest, br#"{ "version": 99 }"#);
        let response = states(&trips.browser, "pipelines/trips/in/");
        assert_eq!(response["a.csv"], state(&["t"], "unknown", None));
        put(&manifest, b"nonsense");
        let response = states(&trips.browser, "pipelines/trips/in/");
        assert_eq!(response["a.csv"], state(&["t"], "new", None), "the next run reads it");
        for broken in [&b"{"[..], b"{}", b"\xff\xfe", br#"{"version":1,"mappings":[{"table":"t","files":["["]}]}"#] {
            put("pipelines/trips/pipeline.json", broken);
            let response = states(&trips.browser, "pipelines/trips/in/");
            assert_eq!(response["a.csv"], state(&[], "unknown", None), "{}", String::from_utf8_lossy(broken));
        }
        let lake = |key: &str| {
            trips.site.store.put(Bucket::Lake, key, b"x\n", &WriteOptions::default()).unwrap();
        };
        lake("elsewhere/x.csv");
        lake("pipelines/raw/x.csv");
        lake("pipelines/Not A Slug/x.csv");
        assert_eq!(states(&trips.browser, "elsewhere/"), json!({ "x.csv": null }));
        assert_eq!(states(&trips.browser, "pipelines/Not%20A%20Slug/"), json!({ "x.csv": null }));
        assert_eq!(states(&trips.browser, "pipelines/raw/"), json!({ "x.csv": state(&[], "not_read", None) }));
    });
}

#[test]
fn file_states_read_only_changed_objects() {
    let trips = TripsSite::on(Site::new(Kind::Fleet));
    let path = "pipelines/trips/in/";
    states(&trips.browser, path);
    let before = trips.site.objects_read();
    for _ in 0..5 {
        states(&trips.browser, path);
    }
    assert_eq!(trips.site.objects_read(), before, "config and manifest are kept");
}
