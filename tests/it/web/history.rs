//! Earlier versions of tables, and archived sources.

use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::on_both;
use super::tables::{TripsSite, days};
use crate::support::browser::Browser;
use crate::support::site::{Kind, Site, slug};

/// A pipeline with two versions: `b.csv` was replaced.
fn versions(kind: Kind) -> TripsSite {
    let site = Site::new(kind);
    let trips = TripsSite::unrun(site);
    let mut mapping = days();
    mapping["keep_history"] = json!("1h");
    mapping["when_removed"] = json!("keep_rows");
    trips.site.pipeline("trips", &mapping);
    trips.site.put("trips", "in/a.csv", "day,a,b\n2013-01-01,x,1\nnever,bad,7\n");
    trips.site.put("trips", "in/b.csv", "day,a,b\n2013-01-02,z,2\n");
    trips.run();
    trips.site.put("trips", "in/b.csv", "day,a,b\n2013-01-02,z,5\n2013-01-03,z,6\nnever,bad,8\n");
    trips.run();
    trips
}

fn sum(browser: &Browser, sql: &str, as_of: &Value) -> Value {
    let body = json!({ "sql": sql, "as_of": as_of });
    browser.post("/api/p/trips/query", &body).ok().json()["rows"][0][0].clone()
}

#[test]
fn earlier_versions_can_be_read() {
    on_both(|kind| {
        let trips = versions(kind);
        let response = trips.get("tables/t/commits");
        assert_eq!(response["total"], 2);
        let commit = |at: usize, member: &str| response["commits"][at][member].clone();
        assert_eq!((commit(0, "sequence"), commit(0, "rows"), commit(0, "sources")), (json!(2), json!(3), json!(2)));
        assert_eq!(
            (commit(1, "sequence"), commit(1, "rows"), commit(1, "sources_archived")),
            (json!(1), json!(2), json!(0))
        );
        assert_eq!(trips.get("tables/t/commits?limit=1&offset=1")["commits"][0]["sequence"], 1);
        let time = commit(1, "committed_at");
        let all = "SELECT CAST(sum(b) AS INTEGER) FROM t";
        for (as_of, expected) in [(json!(1), 3), (json!("1"), 3), (time.clone(), 3), (json!(2), 12), (Value::Null, 12)]
        {
            assert_eq!(sum(&trips.browser, all, &as_of), expected, "{as_of}");
        }
        let rejected = "SELECT count(*) FROM _rejected_rows";
        assert_eq!(
            (sum(&trips.browser, rejected, &time), sum(&trips.browser, rejected, &Value::Null)),
            (json!(1), json!(2))
        );
        assert_eq!(trips.get("tables/t/rows?as_of=1")["total"], 2);
        assert_eq!(trips.get("tables/t/rows?sort=-b&limit=1&as_of=1")["rows"][0][2].to_string().trim_matches('"'), "2");
        assert_eq!(
            (trips.get("tables/t/rows")["total"].clone(), trips.get("tables/t/rows?as_of=2")["total"].clone()),
            (json!(3), json!(3))
        );
        assert_eq!(trips.get("tables/t/lineage?as_of=1")["sources"][1]["rows_read"], 1);
        assert_eq!(trips.get("tables/t/lineage")["sources"][1]["rows_read"], 3);
    });
}

#[test]
fn versions_that_are_gone_name_the_oldest() {
    on_both(|kind| {
        let trips = versions(kind);
        let oldest = trips.get("tables/t/commits")["commits"][1]["committed_at"].clone();
        let names_it = |message: &str| {
            assert!(message.contains("oldest version is 1") && message.contains(oldest.as_str().unwrap()), "{message}");
        };
        for as_of in ["7", "2001-02-03T04:05:06Z"] {
            let path = |of: &str| format!("/api/p/trips/tables/t/{of}?as_of={as_of}");
            names_it(&trips.browser.get(&path("rows")).refused(404, "version_not_found"));
            names_it(&trips.browser.get(&path("lineage")).refused(404, "version_not_found"));
            let body = json!({ "sql": "SELECT 1 FROM t", "as_of": as_of });
            for path in ["query", "query/download"] {
                names_it(&trips.browser.post(&format!("/api/p/trips/{path}"), &body).refused(404, "version_not_found"));
            }
        }
        for as_of in [json!("yesterday"), json!(0), json!("-1")] {
            let body = json!({ "sql": "SELECT 1 FROM t", "as_of": as_of });
            trips.browser.post("/api/p/trips/query", &body).refused(400, "invalid_request");
        }
        let two = json!({ "sql": "SELECT 1 FROM t, _rejected_rows", "as_of": 1 });
        let message = trips.browser.post("/api/p/trips/query", &two).refused(400, "invalid_request");
        assert!(message.contains("one table"), "{message}");
        trips.browser.get("/api/p/trips/tables/_rejected_rows/commits").refused(404, "table_not_found");
    });
}

#[test]
fn archived_sources_are_shown() {
    on_both(|kind| {
        let trips = versions(kind);
        let key = "pipelines/trips/in/a.csv".to_owned();
        trips.site.store.delete(Bucket::Lake, &[key], &WriteOptions::default()).unwrap();
        let job = trips.site.await_end(&trips.site.enqueue("trips"));
        assert_eq!(job.result.unwrap().tables["t"].sources_archived, 1);
        let sources = trips.get("tables/t/lineage")["sources"].clone();
        assert_eq!((&sources[0]["archived"], &sources[1]["archived"]), (&json!(true), &json!(false)));
        assert_eq!(trips.get("tables/t/commits")["commits"][0]["sources_archived"], 1);
        assert_eq!(trips.get("tables/t/rows")["total"], 3);
        let failed = trips.site.await_end(&trips.site.enqueue_as("trips", true)).error.unwrap();
        assert_eq!(failed.code.to_string(), "archived_sources_missing");
    });
}

#[test]
fn renamed_pipeline_keeps_its_versions() {
    on_both(|kind| {
        let trips = versions(kind);
        let before = trips.get("tables/t/commits");
        trips.browser.patch("/api/pipelines/trips", &json!({ "newSlug": "tours" })).ok();
        let get = |path: &str| trips.browser.get(&format!("/api/p/tours/{path}")).ok().json();
        assert_eq!(get("tables/t/commits"), before);
        assert_eq!(
            (get("tables/t/rows?as_of=1")["total"].clone(), get("tables/t/lineage?as_of=1")["sources_total"].clone()),
            (json!(2), json!(2))
        );
        let body = json!({ "sql": "SELECT count(*) FROM t", "as_of": 1 });
        assert_eq!(trips.browser.post("/api/p/tours/query", &body).ok().json()["rows"], json!([[2]]));
    });
}

#[test]
fn version_shows_what_it_changed() {
    on_both(|kind| {
        let trips = versions(kind);
        let found = trips.get("tables/t/commits/2");
        assert_eq!((&found["sequence"], &found["previous"], &found["rows"]), (&json!(2), &json!(1), &json!(3)));
        let changes = &found["changes"];
        assert_eq!(
            changes["sources"],
            json!([{ "source": "in/b.csv", "change": "changed", "rows_before": 1, "rows_after": 2 }])
        );
        assert_eq!((&changes["sources_changed"], &changes["partitions_changed"]), (&json!(1), &json!(2)));
        assert_eq!(changes["files_added"]["rows"], 2);
        let first = trips.get("tables/t/commits/1");
        assert_eq!((&first["previous"], &first["changes"]), (&Value::Null, &Value::Null));
        for sequence in ["3", "0", "x", "18446744073709551616"] {
            let path = format!("/api/p/trips/tables/t/commits/{sequence}");
            trips.browser.get(&path).refused(404, "version_not_found");
        }
    });
}

#[test]
fn earlier_version_is_restored_as_a_new_one() {
    on_both(|kind| {
        let trips = versions(kind);
        let all = "SELECT CAST(sum(b) AS INTEGER) FROM t";
        let restore =
            |sequence: Value| trips.browser.post("/api/p/trips/tables/t/restore", &json!({ "sequence": sequence }));
        let made = restore(json!(1)).ok().json();
        assert_eq!((&made["sequence"], &made["restored"], &made["rows"]), (&json!(3), &json!(1), &json!(2)));
        assert_eq!(sum(&trips.browser, all, &Value::Null), 3);
        assert_eq!(sum(&trips.browser, all, &json!(2)), 12, "what was present stays readable");
        assert_eq!(trips.get("tables/t/commits")["commits"][0], made);
        restore(json!(3)).refused(400, "invalid_request");
        restore(json!(9)).refused(404, "version_not_found");
        restore(json!("1")).refused(400, "invalid_request");
        trips.run();
        assert_eq!(sum(&trips.browser, all, &Value::Null), 12, "a run makes the table of the lake again");
        let fence = trips.site.kv.lock_pipeline(&slug("trips"), std::time::Duration::from_secs(60), 0).unwrap();
        assert!(fence.is_some());
        restore(json!(1)).refused(409, "pipeline_busy");
    });
}
