//! Queries during publishes, and unavailable files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::on_both;
use super::tables::TripsSite;
use crate::support::browser::Browser;
use crate::support::concurrent::{Body, with_background};
use crate::support::http_proxy::ProxyAction;
use crate::support::manifests::Manifest;
use crate::support::program::mapping;
use crate::support::s3_server::s3s_fs;
use crate::support::site::{Kind, Site, await_that, slug};

fn query(browser: &Browser, sql: &str) -> Value {
    browser.post("/api/p/trips/query", &json!({ "sql": sql })).ok().json()
}

#[test]
fn missing_file_is_reported_until_a_clean_run_rebuilds_it() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let manifest = Manifest::read(&*trips.site.store, &slug("trips"), "t").unwrap();
        let file = manifest.files().next().unwrap().key.clone();
        let gone = format!("pipelines/trips/{file}");
        trips.site.store.delete(Bucket::Warehouse, &[gone], &WriteOptions::default()).unwrap();
        let refused = trips.browser.post("/api/p/trips/query", &json!({ "sql": "SELECT count(*) FROM t" }));
        let message = refused.refused(422, "table_damaged");
        assert!(message.contains(&file) && message.contains("clean run"), "{message}");
        assert_eq!(query(&trips.browser, "SELECT 1")["rows"], json!([[1]]));
        let job = trips.site.await_end(&trips.site.enqueue_as("trips", true));
        assert_eq!(job.error, None);
        assert_eq!(query(&trips.browser, "SELECT count(*) FROM t")["rows"], json!([[3]]));
    });
}

#[test]
fn readers_see_consistent_tables_during_runs() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let reads = |_, body: &Body| {
            let mut seen = 0;
            while body.is_running() || seen == 0 {
                let response = query(&trips.browser, "SELECT count(DISTINCT a), count(*) FROM t");
                let row = &response["rows"][0];
                assert!(*row == json!([3, 3]) || row[0] == 1 && row[1] == 40, "{response}");
                seen += 1;
            }
        };
        with_background(2, reads, || {
            for round in 0..3 {
                let rows: String = (0..40).map(|n| format!("2013-02-{:02},r{round},{n}\n", n % 20 + 1)).collect();
                trips.site.put("trips", "in/a.csv", format!("day,a,b\n{rows}"));
                trips
                    .site
                    .store
                    .delete(Bucket::Lake, &["pipelines/trips/in/b.csv".to_owned()], &WriteOptions::default())
                    .unwrap();
                let job = trips.site.await_end(&trips.site.enqueue_as("trips", true));
                assert_eq!(job.error, None);
            }
        });
        assert_eq!(query(&trips.browser, "SELECT count(DISTINCT a), count(*) FROM t")["rows"], json!([[1, 40]]));
    });
}

/// A site on S3 with tables of the given days (18 MB per table), and a web service with a cache of 64 MiB.
fn site_with_large_tables(tables: &[(&str, &[u64])]) -> TripsSite {
    let trips = TripsSite::unrun({
        let mut site = Site::new(Kind::Fleet);
        site.set("SVC_CACHE_BYTES", "67108864").set("SVC_RUN_MEMORY_BYTES", "268435456");
        site
    });
    let of = |(table, days): &(&str, &[u64])| {
        mapping(&json!({
            "table": table, "files": days.iter().map(|day| format!("in/{day}.csv")).collect::<Vec<_>>(),
            "columns": [{ "name": "day", "type": "date" }, { "name": "a", "type": "string" }, { "name": "b", "type": "int64" }],
            "partition_by": ["day"], "parquet": { "compression": "none" }
        }))
    };
    let mappings: Vec<Value> = tables.iter().map(of).collect();
    trips.site.configure("trips", &json!({ "version": 1, "mappings": mappings }));
    for day in tables.iter().flat_map(|(_, days)| days.iter().copied()) {
        // Text that dictionary encoding doesn't shrink.
        let row =
            |n: u64| format!("2013-01-0{day},{:064x}{n:0960},{n}\n", (n * 4 + day).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let rows: String = (0..17_500).map(row).collect();
        trips.site.put("trips", &format!("in/{day}.csv"), format!("day,a,b\n{rows}"));
    }
    trips.run();
    trips
}

#[test]
fn query_larger_than_the_cache_reports_both_sizes() {
    let trips = site_with_large_tables(&[("t", &[1, 2, 3, 4])]);
    let bytes = trips.get("tables")["tables"][0]["bytes"].as_u64().unwrap();
    assert!(bytes > 67_108_864, "{bytes}");
    let reply = trips.browser.post("/api/p/trips/query", &json!({ "sql": "SELECT count(*) FROM t" }));
    let message = reply.refused(422, "query_too_large");
    assert!(message.contains(&bytes.to_string()) && message.contains("67108864"), "{message}");
    assert_eq!(query(&trips.browser, "SELECT 1")["rows"], json!([[1]]));
    trips.browser.get("/api/p/trips/tables/t/rows?sort=b").refused(422, "query_too_large");
    // A page in file order needs only the files that contain it.
    assert_eq!(trips.get("tables/t/rows?limit=1&offset=40000")["total"], 70_000);
}

#[test]
fn tables_that_exceed_the_cache_together_fail_immediately() {
    let trips = site_with_large_tables(&[("t", &[1, 2]), ("u", &[3, 4])]);
    let bytes: u64 =
        trips.get("tables")["tables"].as_array().unwrap().iter().map(|t| t["bytes"].as_u64().unwrap()).sum();
    let began = Instant::now();
    let reply = trips.browser.post("/api/p/trips/query", &json!({ "sql": "SELECT count(*) FROM t JOIN u USING (b)" }));
    let message = reply.refused(422, "query_too_large");
    assert!(message.contains(&bytes.to_string()) && message.contains("67108864"), "{message}");
    assert!(began.elapsed() < Duration::from_secs(60), "nothing was waited for");
    assert_eq!(query(&trips.browser, "SELECT count(*) FROM t")["rows"], json!([[35_000]]));
    assert_eq!(query(&trips.browser, "SELECT count(*) FROM u")["rows"], json!([[35_000]]));
}

#[test]
fn queries_with_slow_files_release_their_child_and_time_out() {
    let mut site = Site::new(Kind::Fleet);
    site.set("SVC_QUERY_TIMEOUT_MS", "2000");
    let trips = TripsSite::on(site);
    let upstream = s3s_fs();
    let fetching = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&fetching);
    let proxy = upstream.behind(move |request| {
        if request.method == "GET" && request.target.contains(".parquet") {
            seen.store(true, Ordering::SeqCst);
            // Longer than a query may take.
            return ProxyAction::Delay(Duration::from_secs(12));
        }
        ProxyAction::Forward
    });
    let web = trips.site.web_with(&[("OBJ_ENDPOINT_URL", &proxy.url())]);
    let browser = Browser { address: web.address(), ..trips.browser.clone() };
    std::thread::scope(|scope| {
        let slow = || browser.post("/api/p/trips/query", &json!({ "sql": "SELECT * FROM t" }));
        // One for each SQL process.
        let slow = [(); 4].map(|()| scope.spawn(slow));
        await_that("files to be fetched", || fetching.load(Ordering::SeqCst));
        assert_eq!(query(&browser, "SELECT 1")["rows"], json!([[1]]));
        assert!(slow.iter().all(|one| !one.is_finished()));
        for one in slow {
            one.join().unwrap().refused(422, "query_timeout");
        }
    });
}

#[test]
fn store_failure_during_a_query_is_reported() {
    let trips = TripsSite::new(Kind::Fleet);
    let broken = Arc::new(AtomicBool::new(true));
    let (rule, upstream) = (Arc::clone(&broken), s3s_fs());
    let proxy = upstream.behind(move |request| {
        let fetches = request.method == "GET" && request.target.contains(".parquet");
        if fetches && rule.load(Ordering::SeqCst) { ProxyAction::CutAfter(20) } else { ProxyAction::Forward }
    });
    let web = trips.site.web_with(&[("OBJ_ENDPOINT_URL", &proxy.url())]);
    let browser = Browser { address: web.address(), ..trips.browser.clone() };
    let began = Instant::now();
    browser.post("/api/p/trips/query", &json!({ "sql": "SELECT * FROM t" })).refused(502, "s3_error");
    assert!(began.elapsed() < Duration::from_secs(60));
    broken.store(false, Ordering::SeqCst);
    assert_eq!(query(&browser, "SELECT count(*) FROM t")["rows"], json!([[3]]));
    // From now on it is read from the cache.
    broken.store(true, Ordering::SeqCst);
    assert_eq!(query(&browser, "SELECT count(*) FROM t")["rows"], json!([[3]]));
}

#[test]
fn reader_restarts_if_a_commit_deletes_its_files() {
    let trips = TripsSite::on(Site::new(Kind::Fleet));
    let (held, go) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true)));
    let pattern = Arc::new(parking_lot::Mutex::new(String::new()));
    let (upstream, rule) = (s3s_fs(), (Arc::clone(&held), Arc::clone(&go), Arc::clone(&pattern)));
    let proxy = upstream.behind(move |request| {
        let (held, go, pattern) = &rule;
        let is_wanted = request.method == "GET" && request.target.contains(&*pattern.lock());
        // The first request of each read waits for a commit.
        if is_wanted && !held.swap(true, Ordering::SeqCst) {
            await_that("the commit", || go.load(Ordering::SeqCst));
        }
        ProxyAction::Forward
    });
    let web = trips.site.web_with(&[("OBJ_ENDPOINT_URL", &proxy.url())]);
    let browser = Browser { address: web.address(), ..trips.browser.clone() };
    let get = |path: &str| browser.get(&format!("/api/p/trips/{path}")).ok().json();
    let sql = json!({ "sql": "SELECT a FROM t ORDER BY a" });
    let download = json!({ "sql": "SELECT a FROM t ORDER BY a" });
    let reads: [(&str, &str, &(dyn Fn() -> String + Sync)); 6] = [
        ("query", ".parquet", &|| query(&browser, "SELECT a FROM t ORDER BY a")["rows"].to_string()),
        ("rows", ".parquet", &|| get("tables/t/rows?sort=a")["rows"].to_string()),
        ("download", ".parquet", &|| browser.post("/api/p/trips/query/download", &download).ok().text()),
        ("statistics", ".parquet", &|| get("tables/t/stats").to_string()),
        ("query of the manifest", ".json.zst", &|| browser.post("/api/p/trips/query", &sql).ok().text()),
        ("lineage", ".json.zst", &|| get("tables/t/lineage")["files"].to_string()),
    ];
    for (round, (what, of, read)) in reads.into_iter().enumerate() {
        go.store(false, Ordering::SeqCst);
        let text = format!("r{round}");
        trips.site.put("trips", "in/a.csv", format!("day,a,b\n2013-01-01,{text}-before,1\n"));
        trips.run();
        let before = trips.file_in("day=2013-01-01");
        *pattern.lock() = if of == ".parquet" { before.rsplit('/').next().unwrap_or_default() } else { of }.to_owned();
        held.store(false, Ordering::SeqCst);
        let response = std::thread::scope(|scope| {
            let reader = scope.spawn(read);
            await_that("the read to begin", || held.load(Ordering::SeqCst));
            trips.site.put(
                "trips",
                "in/a.csv",
                format!("day,a,b\n2013-01-01,{text}-after,1\n2013-01-01,{text}-more,2\n"),
            );
            trips.run();
            go.store(true, Ordering::SeqCst);
            reader.join().unwrap()
        });
        let after = trips.file_in("day=2013-01-01");
        let expected = if what == "lineage" { after } else { format!("{text}-after") };
        assert!(response.contains(&expected) && !response.contains("before"), "{what}: {response}");
        assert!(!response.contains(&before), "{what}: {response}");
    }
}
