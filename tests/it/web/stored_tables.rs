//! Tables follow their manifests: an invalid, missing or unapplied config changes nothing.

use lakemill::domain::layout::{config_key, manifest_key};
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::on_both;
use super::tables::{TripsSite, days};
use crate::support::browser::Browser;
use crate::support::program::mapping;
use crate::support::site::{Kind, Site, slug};

const DASHBOARD: &str = "version: 2\ntitle: Trips\nqueries:\n  all: { sql: SELECT a FROM t }\npanels:\n  - id: rows\n    type: table\n    query: all\n";

/// The names of columns, in their order.
fn names(columns: &Value) -> Vec<&str> {
    columns.as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect()
}

fn query(browser: &Browser, sql: &str) -> Value {
    browser.post("/api/p/trips/query", &json!({ "sql": sql })).ok().json()
}

fn put(trips: &TripsSite, key: &str, bytes: &[u8]) {
    trips.site.store.put(Bucket::Pipelines, key, bytes, &WriteOptions::default()).unwrap();
}

/// The table `t` with other columns: `b` is renamed and precedes `a`, and `c` is new.
fn renamed() -> Value {
    json!({
        "columns": [
            { "name": "day", "type": "date" },
            { "name": "amount", "type": "decimal(10,2)", "from": "b" },
            { "name": "a", "type": "string", "nullable": false },
            { "name": "c", "type": "string", "from": "a" }
        ],
        "partition_by": ["day"]
    })
}

#[test]
fn tables_are_served_with_invalid_or_missing_config() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let dashboard = "/api/p/trips/dashboards/trips";
        let yaml = ("Content-Type", "application/yaml");
        trips.browser.send("PUT", dashboard, &[yaml], DASHBOARD.as_bytes()).ok();
        let before = trips.get("tables");
        let rows = trips.get("tables/t/rows?sort=a");
        assert_eq!((&before["config"], rows.get("config")), (&json!({ "state": "applied" }), None));
        for state in ["invalid", "missing"] {
            if state == "invalid" {
                put(&trips, &config_key(&slug("trips")), br#"{ "version": 1, "mappings": [{ "table": 5 }] }"#);
            } else {
                let key = config_key(&slug("trips"));
                trips.site.store.delete(Bucket::Pipelines, &[key], &WriteOptions::default()).unwrap();
            }
            let response = trips.get("tables");
            assert_eq!(response["config"]["state"], state);
            assert_eq!(response["config"]["problems"].is_array(), state == "invalid", "{response}");
            assert_eq!(response["tables"][0]["schema"], before["tables"][0]["schema"]);
            assert_eq!(
                (&response["tables"][0]["state"], &response["tables"][0]["rows"]),
                (&json!("unknown"), &json!(3))
            );
            assert_eq!(response["tables"][1], before["tables"][1]);
            let found = trips.get("tables/t/rows?sort=a");
            assert_eq!((&found["columns"], &found["rows"]), (&rows["columns"], &rows["rows"]));
            let one = query(&trips.browser, "SELECT 1");
            assert_eq!(one["rows"], json!([[1]]));
            let counted = query(&trips.browser, "SELECT count(*) FROM t JOIN _rejected_rows ON true");
            assert_eq!(counted["rows"], json!([[3]]));
            let panels = trips.browser.post(&format!("{dashboard}/data"), &json!({})).ok().json();
            assert_eq!(panels["panels"]["rows"]["row_count"], 3, "{panels}");
            let (stats, lineage) = (trips.get("tables/t/stats"), trips.get("tables/t/lineage"));
            assert_eq!((&stats["rows"], &lineage["files_total"]), (&json!(3), &json!(3)));
            for answer in [&found, &one, &counted, &panels, &stats, &lineage] {
                assert_eq!(answer["config"]["state"], state, "{answer}");
            }
            let download =
                trips.browser.post("/api/p/trips/query/download", &json!({ "sql": "SELECT a FROM t ORDER BY a" }));
            assert_eq!(download.ok().text().lines().count(), 4);
        }
    });
}

#[test]
fn saved_config_changes_no_column_before_its_run() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let before = trips.get("tables");
        let rows = trips.get("tables/t/rows?sort=a");
        trips.site.pipeline("trips", &renamed());
        let response = trips.get("tables");
        assert_eq!(response["config"], json!({ "state": "changed" }));
        assert_eq!(response["tables"][0]["state"], "changed");
        assert_eq!(response["tables"][0]["schema"], before["tables"][0]["schema"]);
        let found = trips.get("tables/t/rows?sort=a");
        assert_eq!(names(&found["columns"]), ["day", "a", "b"]);
        assert_eq!((&found["rows"], &found["config"]["state"]), (&rows["rows"], &json!("changed")));
        assert_eq!(names(&trips.get("tables/t/stats")["columns"]), ["day", "a", "b"]);
        assert_eq!(query(&trips.browser, "SELECT sum(b) FROM t")["rows"][0][0].to_string().trim_matches('"'), "3");
        trips.browser.post("/api/p/trips/query", &json!({ "sql": "SELECT amount FROM t" })).refused(400, "invalid_sql");
        trips.run();
        let response = trips.get("tables");
        assert_eq!(
            (&response["config"]["state"], &response["tables"][0]["state"]),
            (&json!("applied"), &json!("applied"))
        );
        assert_eq!(names(&response["tables"][0]["schema"]), ["day", "amount", "a", "c"]);
        let found = trips.get("tables/t/rows");
        assert_eq!((names(&found["columns"]), found.get("config")), (vec!["day", "amount", "a", "c"], None));
    });
}

/// Changed globs or another table don't affect the columns of stored data.
#[test]
fn changed_globs_and_added_tables_wait_for_a_run() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let state = || {
            let response = trips.get("tables");
            (response["config"]["state"].clone(), response["tables"][0]["state"].clone())
        };
        let both = |one: &str, other: &str| (json!(one), json!(other));
        let with_files = |files: Value| {
            let mut change = days();
            change["files"] = files;
            change
        };
        assert_eq!(state(), both("applied", "applied"));
        for files in [json!(["in/*.csv", "late/*.csv"]), json!(["in/b.csv"]), json!(["in/*.csv"])] {
            trips.site.pipeline("trips", &with_files(files.clone()));
            assert_eq!(state(), both("changed", "changed"), "{files}");
            trips.run();
            assert_eq!(state(), both("applied", "applied"), "{files}");
        }
        // A table without files yet.
        let mappings =
            [&with_files(json!(["in/*.csv"])), &json!({ "table": "u", "files": ["nowhere/*.csv"] })].map(mapping);
        trips.site.configure("trips", &json!({ "version": 1, "auto_run": false, "mappings": mappings }));
        assert_eq!(state(), both("changed", "applied"));
        assert_eq!(trips.get("tables")["tables"][1]["state"], "new");
        trips.run();
        assert_eq!(state(), both("applied", "applied"));
        assert_eq!(
            (&trips.get("tables")["tables"][1]["state"], &trips.get("tables/u/rows")["total"]),
            (&json!("applied"), &json!(0))
        );
        assert_eq!(query(&trips.browser, "SELECT count(*) FROM u")["rows"], json!([[0]]));
    });
}

#[test]
fn removed_table_stays_readable_until_a_clean_run() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        trips.site.pipeline("trips", &json!({ "table": "u", "columns": days()["columns"] }));
        let states = || {
            let response = trips.get("tables");
            let tables = response["tables"].as_array().unwrap().iter();
            let state = |t: &Value| format!("{} {}", t["name"].as_str().unwrap(), t["state"].as_str().unwrap());
            tables.map(state).collect::<Vec<_>>()
        };
        assert_eq!(states(), ["u new", "t removed", "_rejected_rows applied"]);
        trips.run();
        assert_eq!(states(), ["u applied", "t removed", "_rejected_rows applied"]);
        assert_eq!(query(&trips.browser, "SELECT count(*) FROM t, (SELECT count(*) FROM u)")["rows"], json!([[3]]));
        assert_eq!(trips.get("tables/t/rows")["total"], 3);
        assert_eq!(trips.site.await_end(&trips.site.enqueue_as("trips", true)).error, None);
        assert_eq!(states(), ["u applied", "_rejected_rows applied"]);
        trips.browser.get("/api/p/trips/tables/t/rows").refused(404, "table_not_found");
    });
}

#[test]
fn newer_manifest_fails_only_its_own_table() {
    let trips = TripsSite::new(Kind::Embedded);
    put(&trips, &manifest_key(&slug("trips"), "t"), br#"{ "version": 99 }"#);
    assert_eq!(query(&trips.browser, "SELECT 1")["rows"], json!([[1]]));
    let refused = trips.browser.post("/api/p/trips/query", &json!({ "sql": "SELECT * FROM t" }));
    assert!(refused.refused(422, "invalid_config").contains("newer"));
}

#[test]
fn pipeline_without_config_has_no_tables() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.put("trips", "in/a.csv", "a\n1\n");
        let web = site.web();
        let browser = Browser::log_in(&web);
        let response = browser.get("/api/p/trips/tables").ok().json();
        assert_eq!(response, json!({ "tables": [], "config": { "state": "missing" } }));
        assert_eq!(query(&browser, "SELECT 1")["config"], json!({ "state": "missing" }));
        browser.get("/api/p/nowhere/tables").refused(404, "pipeline_not_found");
    });
}
