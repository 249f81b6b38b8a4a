//! Tables and lineage.

use lakemill::domain::layout::manifest_key;
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::on_both;
use crate::support::browser::Browser;
use crate::support::manifests::Manifest;
use crate::support::site::{Kind, Service, Site, slug};

/// A site with a pipeline `trips` after a run: table `t` of days, three rows of two sources and one reject.
pub struct TripsSite {
    pub browser: Browser,
    worker: Service,
    pub web: Service,
    /// Dropped last, since the others' logs are in it.
    pub site: Site,
}

impl TripsSite {
    pub fn new(kind: Kind) -> Self {
        Self::on(Site::new(kind))
    }

    pub fn on(site: Site) -> Self {
        let trips = Self::unrun(site);
        trips.site.put("trips", "in/a.csv", "day,a,b\n2013-01-01,x,1\n2013-01-02,y,2\nnever,bad,7\n");
        trips.site.put("trips", "in/b.csv", "day,a,b\n2013-01-02,z,\n");
        trips.run();
        trips
    }

    /// The pipeline, before its first run.
    pub fn unrun(site: Site) -> Self {
        site.pipeline("trips", &days());
        let (worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        Self { browser, worker, web, site }
    }

    pub fn run(&self) {
        let job = self.site.await_end(&self.site.enqueue("trips"));
        assert_eq!(job.error, None, "{}", self.worker.log());
    }

    /// The first data file of a partition of `t`, by its key relative to the pipeline's prefix.
    pub fn file_in(&self, partition: &str) -> String {
        Manifest::read(&*self.site.store, &slug("trips"), "t").unwrap().file_in(partition)
    }

    pub fn get(&self, path: &str) -> Value {
        self.browser.get(&format!("/api/p/trips/{path}")).ok().json()
    }
}

/// The table `t`, partitioned by day.
pub fn days() -> Value {
    json!({
        "columns": [
            { "name": "day", "type": "date" },
            { "name": "a", "type": "string", "nullable": false },
            { "name": "b", "type": "int64" }
        ],
        "partition_by": ["day"]
    })
}

#[test]
fn tables_follow_config_and_manifests_before_and_after_a_run() {
    on_both(|kind| {
        let trips = TripsSite::unrun(Site::new(kind));
        let schema = json!([
            { "name": "day", "type": "date", "nullable": true },
            { "name": "a", "type": "string", "nullable": false },
            { "name": "b", "type": "int64", "nullable": true }
        ]);
        let table = |state: &str, files: u64, rows: u64, bytes: &Value| {
            json!({
                "name": "t", "schema": schema, "state": state, "file_count": files, "rows": rows, "bytes": bytes,
                "system": false
            })
        };
        let new = json!({ "tables": [table("new", 0, 0, &json!(0))], "config": { "state": "not_run" } });
        assert_eq!(trips.get("tables"), new);
        trips.site.put("trips", "in/a.csv", "day,a,b\n2013-01-01,x,1\n2013-01-02,y,2\n");
        trips.run();
        let response = trips.get("tables");
        let bytes: usize = trips.site.warehouse("trips").values().map(Vec::len).sum();
        let applied = json!({ "tables": [table("applied", 2, 2, &json!(bytes))], "config": { "state": "applied" } });
        assert_eq!(response, applied);
        trips.site.put("trips", "in/b.csv", "day,a,b\nnever,z,1\n");
        trips.run();
        let rejected = &trips.get("tables")["tables"][1];
        assert_eq!(rejected["name"], "_rejected_rows");
        assert_eq!((&rejected["system"], &rejected["rows"]), (&json!(true), &json!(1)));
        assert_eq!(rejected["schema"][0], json!({ "name": "table", "type": "string", "nullable": false }));
    });
}

#[test]
fn columns_that_the_config_lacks_are_listed_with_their_files() {
    on_both(|kind| {
        let trips = TripsSite::unrun(Site::new(kind));
        let extra = || trips.get("tables")["tables"][0]["extra_columns"].clone();
        trips.site.put("trips", "in/a.csv", "day,a,b\n2013-01-01,x,1\n");
        trips.site.put("trips", "in/b.csv", "day,A,b,channel,promo,\n2013-01-02,y,2,web,p,\n");
        trips.site.put("trips", "in/c.csv", "day,a,b,channel\n2013-01-02,z,3,shop\n");
        trips.run();
        let both = json!([{ "name": "channel", "files": 2 }, { "name": "promo", "files": 1 }]);
        assert_eq!(extra(), both);
        // A run that doesn't read them again keeps them.
        trips.site.put("trips", "in/d.csv", "day,a,b\n2013-01-02,w,4\n");
        trips.run();
        assert_eq!(extra(), both);
        // One is replaced, one is removed.
        trips.site.put("trips", "in/b.csv", "day,a,b\n2013-01-02,y,2\n");
        trips.run();
        assert_eq!(extra(), json!([{ "name": "channel", "files": 1 }]));
        let key = "pipelines/trips/in/c.csv".to_owned();
        trips.site.store.delete(Bucket::Lake, &[key], &WriteOptions::default()).unwrap();
        trips.run();
        assert_eq!(extra(), Value::Null);
        // A wide file is recorded in part.
        let names: Vec<String> = (0..10_000).map(|n| format!("c{n}")).collect();
        let cells = vec!["1"; 10_000].join(",");
        trips.site.put("trips", "in/e.csv", format!("day,a,b,{}\n2013-01-03,v,5,{cells}\n", names.join(",")));
        trips.run();
        assert_eq!(extra().as_array().unwrap().len(), 64);
        assert_eq!(extra()[0], json!({ "name": "c0", "files": 1 }));
    });
}

#[test]
fn column_added_to_the_config_is_no_longer_extra() {
    let trips = TripsSite::unrun(Site::new(Kind::Embedded));
    trips.site.put("trips", "in/a.csv", "day,a,b,Channel,promo\n2013-01-01,x,1,web,p\n");
    trips.run();
    let mut config = days();
    config["columns"].as_array_mut().unwrap().push(json!({ "name": "via", "from": "channel", "type": "string" }));
    trips.site.pipeline("trips", &config);
    let table = &trips.get("tables")["tables"][0];
    assert_eq!(
        (&table["state"], &table["extra_columns"]),
        (&json!("changed"), &json!([{ "name": "promo", "files": 1 }]))
    );
}

#[test]
fn missing_pipeline_differs_from_broken_config() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let get = |pipeline: &str| browser.get(&format!("/api/p/{pipeline}/tables"));
        get("nowhere").refused(404, "pipeline_not_found");
        for bad in ["No", "a.b", "%2e%2e", "a%2fb", "%252e", "x%00"] {
            let reply = get(bad);
            assert!(matches!(reply.status, 400 | 404), "{bad}: {}", reply.text());
        }
        get("No").refused(400, "invalid_slug");
        site.configure("broken", &json!({ "version": 1, "mappings": [{ "table": 5 }] }));
        let response = get("broken").ok().json();
        assert_eq!((&response["config"]["state"], &response["tables"]), (&json!("invalid"), &json!([])));
        assert!(!response["config"]["problems"].as_array().unwrap().is_empty());
        // A change of the config is visible immediately.
        site.pipeline("broken", &json!({}));
        assert_eq!(get("broken").ok().json()["tables"][0]["name"], "t");
        site.pipeline("broken", &json!({ "table": "u" }));
        assert_eq!(get("broken").ok().json()["tables"][0]["name"], "u");
    });
}

#[test]
fn malformed_manifest_counts_as_an_empty_table() {
    let trips = TripsSite::new(Kind::Embedded);
    trips
        .site
        .store
        .put(Bucket::Pipelines, &manifest_key(&slug("trips"), "t"), b"nonsense", &WriteOptions::default())
        .unwrap();
    assert_eq!(trips.get("tables")["tables"][0]["rows"], 0);
    assert_eq!(trips.get("tables/t/rows")["total"], 0);
}

#[test]
fn oversized_and_newer_objects_are_reported() {
    let trips = TripsSite::new(Kind::Embedded);
    let put = |key: &str, bytes: &[u8]| {
        trips.site.store.put(Bucket::Pipelines, key, bytes, &WriteOptions::default()).unwrap();
    };
    let get = |path: &str| trips.browser.get(&format!("/api/p/trips/{path}"));
    let query = || trips.browser.post("/api/p/trips/query", &json!({ "sql": "SELECT * FROM t" }));
    put(&manifest_key(&slug("trips"), "t"), br#"{ "version": 99 }"#);
    for reply in [get("tables"), get("tables/t/rows"), get("tables/t/lineage"), query()] {
        let message = reply.refused(422, "invalid_config");
        assert!(message.contains("99") && message.contains("newer"), "{message}");
    }
    let large = format!("{{ \"x\": \"{}\" }}", "x".repeat(4 << 20));
    put("pipelines/trips/pipeline.json", large.as_bytes());
    let key = manifest_key(&slug("trips"), "t");
    trips.site.store.delete(Bucket::Pipelines, &[key], &WriteOptions::default()).unwrap();
    let config = get("tables").ok().json()["config"].clone();
    assert_eq!((&config["state"], &config["problems"][0]["kind"]), (&json!("invalid"), &json!("limit")));
    put("workspace/settings.json", large.as_bytes());
    assert_eq!(trips.browser.get("/api/settings").ok().json()["workspace_name"], "Lakemill");
}

#[test]
fn lineage_works_in_both_directions_with_filters_and_pages() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let all = trips.get("tables/t/lineage");
        assert_eq!((&all["sources_total"], &all["files_total"]), (&json!(2), &json!(3)));
        let source = &all["sources"][0];
        assert_eq!(source["key"], "in/a.csv");
        assert_eq!(
            (&source["rows_read"], &source["rows_written"], &source["rows_rejected"]),
            (&json!(3), &json!(2), &json!(1))
        );
        assert_eq!(source["partitions"], json!({ "day=2013-01-01": 1, "day=2013-01-02": 1 }));
        let rejects = source["rejects"].as_str().unwrap();
        let files: Vec<&str> = all["files"].as_array().unwrap().iter().map(|f| f["key"].as_str().unwrap()).collect();
        let (first, second) = (&trips.file_in("day=2013-01-01"), &trips.file_in("day=2013-01-02"));
        assert_eq!(files, [rejects, first, second]);
        assert_eq!(all["files"][2]["sources"], json!(["in/a.csv", "in/b.csv"]));
        assert_eq!(all["files"][2]["job_id"].as_str().unwrap().len(), 36);

        let of_source = trips.get("tables/t/lineage?source=in/b.csv");
        assert_eq!(of_source["files"].as_array().unwrap().len(), 1);
        assert_eq!((&of_source["files"][0]["key"], &of_source["sources_total"]), (&json!(second), &json!(1)));
        let of_file = trips.get(&format!("tables/t/lineage?file={}", first.replace('=', "%3D")));
        assert_eq!((&of_file["sources"][0]["key"], &of_file["sources_total"]), (&json!("in/a.csv"), &json!(1)));
        let of_partition = trips.get("tables/t/lineage?partition=day%3D2013-01-02&limit=1");
        assert_eq!((&of_partition["files"][0]["key"], &of_partition["files_total"]), (&json!(second), &json!(1)));
        let sources = (&of_partition["sources"][0]["key"], &of_partition["sources_total"]);
        assert_eq!(sources, (&json!("in/a.csv"), &json!(2)));
        let page = trips.get("tables/t/lineage?limit=1&offset=1");
        assert_eq!((&page["sources"][0]["key"], page["files"].as_array().unwrap().len()), (&json!("in/b.csv"), 1));
        assert_eq!(trips.get("tables/t/lineage?offset=9007199254740992")["files"], json!([]));

        let refused = |query: &str, status, code| {
            trips.browser.get(&format!("/api/p/trips/tables/{query}")).refused(status, code)
        };
        refused("t/lineage?source=in/c.csv", 404, "object_not_found");
        refused("t/lineage?file=..%2f..%2fetc%2fpasswd", 404, "object_not_found");
        refused("t/lineage?partition=day%3D2013-01-03", 404, "object_not_found");
        refused("t/lineage?partition=&source=in/a.csv", 400, "invalid_request");
        refused("t/lineage?limit=0", 400, "invalid_request");
        refused("t/lineage?limit=1001", 400, "invalid_request");
        refused("nothing/lineage", 404, "table_not_found");
        refused("_rejected_rows/lineage", 404, "table_not_found");
    });
}
