//! `/metrics` of both services after real work, parsed more strictly than Prometheus does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::support::browser::Browser;
use crate::support::http_client::{get, send};
use crate::support::site::{Kind, Service, Site, await_that};

/// The families of a text and their series.
#[derive(Debug)]
struct Metrics {
    kinds: BTreeMap<String, String>,
    series: BTreeMap<String, f64>,
}

fn is_name(text: &str) -> bool {
    let ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.chars().all(ok) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

impl Metrics {
    /// Panics on any deviation from the format.
    fn parse(text: &str) -> Self {
        let (mut kinds, mut series) = (BTreeMap::new(), BTreeMap::new());
        let (mut helped, mut family): (BTreeSet<String>, Option<(String, String)>) = (BTreeSet::new(), None);
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(is_name(name) && help.ends_with('.'), "{line}");
                assert!(helped.insert(name.to_owned()), "a second HELP: {line}");
                family = None;
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(helped.contains(name), "TYPE before HELP: {line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "a second TYPE: {line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                family = Some((name.to_owned(), kind.to_owned()));
            } else {
                let (key, value) = line.rsplit_once(' ').unwrap();
                let value: f64 = value.replace("+Inf", "inf").parse().unwrap_or_else(|_| panic!("{line}"));
                let name = key.split('{').next().unwrap();
                let (own, kind) = family.as_ref().unwrap_or_else(|| panic!("no family before {line}"));
                let fits = match kind.as_str() {
                    "histogram" => ["_bucket", "_sum", "_count"].iter().any(|end| name == format!("{own}{end}")),
                    _ => name == own,
                };
                assert!(fits, "`{line}` is in the family `{own}`");
                assert!(kind == "gauge" || value >= 0.0, "{line}");
                check_labels(key);
                assert!(series.insert(key.to_owned(), value).is_none(), "twice: {line}");
            }
        }
        assert_eq!(helped, kinds.keys().cloned().collect(), "each family has HELP and TYPE");
        Self { kinds, series }
    }

    fn of(service: &Service) -> Self {
        Self::parse(&get(&service.address(), "/metrics").body)
    }

    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        *self.series.get(series).unwrap_or_else(|| panic!("`{series}` is not in {:#?}", self.series))
    }

    #[track_caller]
    fn has_families(&self, names: &[(&str, &str)]) {
        for (name, kind) in names {
            assert_eq!(self.kinds.get(*name).map(String::as_str), Some(*kind), "{name} in {:#?}", self.kinds);
        }
    }
}

fn check_labels(key: &str) {
    let Some((_, labels)) = key.split_once('{') else { return };
    let labels = labels.strip_suffix('}').unwrap_or_else(|| panic!("{key}"));
    let names: Vec<&str> = labels.split("\",").map(|label| label.split_once("=\"").unwrap().0).collect();
    assert!(names.iter().all(|name| is_name(name)), "{key}");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{key}");
}

/// Metrics that every process has.
const OF_PROCESS: &[(&str, &str)] = &[
    ("process_resident_memory_bytes", "gauge"),
    ("process_cpu_seconds_total", "counter"),
    ("process_open_fds", "gauge"),
    ("process_max_fds", "gauge"),
    ("process_start_time_seconds", "gauge"),
    ("lakemill_build_info", "gauge"),
    ("lakemill_kv_up", "gauge"),
    ("lakemill_kv_writable", "gauge"),
    ("lakemill_http_requests_total", "counter"),
    ("lakemill_http_request_duration_seconds", "histogram"),
    ("lakemill_http_connections_open", "gauge"),
];

#[test]
fn worker_metrics_count_jobs_and_rows() {
    for kind in [Kind::Embedded, Kind::Fleet] {
        let site = Site::new(kind);
        let rejects = json!({ "rejects": { "max_rows": 1 }, "columns": [
            { "name": "a", "type": "string" }, { "name": "b", "type": "int64" }] });
        site.pipeline("p", &rejects);
        site.put("p", "in/x.csv", "a,b\nx,1\ny,2\nz,bad\n");
        let worker = site.worker_with(&[("WORKER_CONCURRENCY", "2")]);
        let before = Metrics::of(&worker);
        assert_eq!(before.value("lakemill_job_failures_total{code=\"pipeline_config_not_found\"}"), 0.0);
        let end = site.await_end(&site.enqueue("p"));
        assert!(end.error.is_none(), "{end:?}");
        site.put("nothing", "x.csv", "a\n");
        site.await_end(&site.enqueue("nothing"));
        let ended = |metrics: &Metrics| metrics.value("lakemill_jobs_total{status=\"failed\"}") == 1.0;
        await_that("both to be counted", || ended(&Metrics::of(&worker)));
        let metrics = Metrics::of(&worker);
        metrics.has_families(OF_PROCESS);
        metrics.has_families(&[
            ("lakemill_run_duration_seconds", "histogram"),
            ("lakemill_queue_oldest_seconds", "gauge"),
            ("lakemill_scratch_free_bytes", "gauge"),
            ("lakemill_all_paused", "gauge"),
        ]);
        for (series, value) in [
            ("lakemill_jobs_total{status=\"completed\"}", 1.0),
            ("lakemill_job_failures_total{code=\"pipeline_config_not_found\"}", 1.0),
            ("lakemill_job_failures_total{code=\"s3_error\"}", 0.0),
            ("lakemill_run_duration_seconds_count", 2.0),
            ("lakemill_run_duration_seconds_bucket{le=\"14400\"}", 2.0),
            ("lakemill_rows_read_total", 3.0),
            ("lakemill_rows_written_total", 2.0),
            ("lakemill_rows_rejected_total", 1.0),
            ("lakemill_bytes_read_total", 18.0),
            ("lakemill_executors", 2.0),
            ("lakemill_draining", 0.0),
            ("lakemill_kv_up", 1.0),
            ("lakemill_store_up", 1.0),
            ("lakemill_store_requests_total{outcome=\"refused\"}", 0.0),
            ("lakemill_store_requests_total{outcome=\"failed\"}", 0.0),
            ("lakemill_kv_errors_total", 0.0),
            ("lakemill_queue_oldest_seconds", 0.0),
        ] {
            assert_eq!(metrics.value(series), value, "{series}");
        }
        let series = "lakemill_pipeline_completed_timestamp_seconds{pipeline=\"p\"}";
        // They are cached.
        await_that("it to have completed", || Metrics::of(&worker).series.contains_key(series));
        let completed = Metrics::of(&worker).value(series);
        assert!((completed - end.enqueued_at.timestamp() as f64).abs() <= 1.0, "{completed} {end:?}");
        assert!(!metrics.series.contains_key("lakemill_pipeline_failed_timestamp_seconds{pipeline=\"p\"}"));
        assert_eq!(metrics.value("lakemill_pipelines_omitted"), 0.0);
        assert!(metrics.value("lakemill_store_requests_total{outcome=\"ok\"}") > 5.0);
        assert!(metrics.value("lakemill_scratch_free_bytes") > 1e6);
        for gone in ["lakemill_run_seconds_total", "lakemill_process_resident_memory_bytes"] {
            assert!(!metrics.kinds.contains_key(gone), "{gone}");
        }
    }
}

#[test]
fn pipelines_beyond_the_maximum_have_no_metrics_of_their_own() {
    let site = Site::new(Kind::Embedded);
    for (slug, csv) in [("a", "a,b\nx,bad\n"), ("b", "a,b\nx,1\n")] {
        site.pipeline(slug, &json!({ "rejects": { "max_ratio": 0.0 } }));
        site.put(slug, "in/x.csv", csv);
    }
    let worker = site.worker_with(&[("SVC_METRICS_PIPELINES", "1")]);
    assert!(site.await_end(&site.enqueue("a")).error.is_some());
    assert!(site.await_end(&site.enqueue("b")).error.is_none());
    let metrics = Metrics::of(&worker);
    assert!(metrics.value("lakemill_pipeline_failed_timestamp_seconds{pipeline=\"a\"}") > 1e9);
    assert_eq!(metrics.value("lakemill_pipelines_omitted"), 1.0);
    let own = metrics.series.keys().filter(|series| series.contains("{pipeline="));
    assert_eq!(own.collect::<Vec<_>>(), ["lakemill_pipeline_failed_timestamp_seconds{pipeline=\"a\"}"]);
}

#[test]
fn unavailable_stores_are_counted() {
    let site = Site::new(Kind::Fleet);
    let worker = site.worker();
    assert_eq!(Metrics::of(&worker).value("lakemill_store_up"), 1.0);
    site.break_store();
    await_that("the store to be away", || Metrics::of(&worker).value("lakemill_store_up") == 0.0);
    assert!(Metrics::of(&worker).value("lakemill_store_requests_total{outcome=\"failed\"}") > 0.0);
    site.break_kv();
    let metrics = Metrics::of(&worker);
    assert_eq!(metrics.value("lakemill_kv_up"), 0.0);
    assert!(metrics.value("lakemill_kv_errors_total") > 0.0);
    assert!(!metrics.kinds.contains_key("lakemill_queue_entries"), "what is not known is left out");
}

#[test]
fn draining_and_old_jobs_are_visible_in_metrics() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("p", &json!({}));
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let worker = site.worker_with(&[("FAILPOINTS", "convert::piece=sleep(3600000)")]);
    site.enqueue("p");
    worker.await_log("job started");
    await_that("the job to get old", || Metrics::of(&worker).value("lakemill_queue_oldest_seconds") > 0.5);
    worker.signal(rustix::process::Signal::TERM);
    await_that("it to drain", || Metrics::of(&worker).value("lakemill_draining") == 1.0);
    assert_eq!(Metrics::of(&worker).value("lakemill_jobs_in_flight"), 1.0);
}

#[test]
fn web_metrics_count_queries_cache_and_logins() {
    for kind in [Kind::Embedded, Kind::Fleet] {
        let site = Site::new(kind);
        site.pipeline("p", &json!({}));
        site.put("p", "in/x.csv", "a,b\nx,1\n");
        let (worker, web) = site.worker_and_web();
        site.await_end(&site.enqueue("p"));
        drop(worker);
        let confined = Metrics::of(&web).value("lakemill_sandbox_confined");
        let wrong = send(&web.address(), "POST", "/api/auth/login", &[], r#"{"password":"wrong"}"#);
        assert_eq!(wrong.status, 401);
        let browser = Browser::log_in(&web);
        let query = |sql: &str| browser.post("/api/p/p/query", &json!({ "sql": sql })).status;
        assert_eq!([query("SELECT * FROM t"), query("SELECT a FROM t"), query("DROP TABLE t")], [200, 200, 400]);
        let metrics = Metrics::of(&web);
        metrics.has_families(OF_PROCESS);
        for (series, value) in [
            ("lakemill_queries_total{outcome=\"ok\"}", 2.0),
            ("lakemill_queries_total{outcome=\"invalid\"}", 1.0),
            ("lakemill_queries_total{outcome=\"timeout\"}", 0.0),
            ("lakemill_query_duration_seconds_count", 3.0),
            ("lakemill_logins_total{outcome=\"ok\"}", 1.0),
            ("lakemill_logins_total{outcome=\"failed\"}", 1.0),
            ("lakemill_logins_total{outcome=\"throttled\"}", 0.0),
            ("lakemill_cache_limit_bytes", 10_737_418_240.0),
            ("lakemill_kv_up", 1.0),
        ] {
            assert_eq!(metrics.value(series), value, "{series}");
        }
        assert_eq!(metrics.value("lakemill_sandbox_confined"), confined, "the processes say what the kernel said");
        let is_logged = web.has_logged("Landlock");
        assert_eq!(confined, f64::from(u8::from(!is_logged)), "a kernel without it is logged");
        await_that("no query to be on", || Metrics::of(&web).value("lakemill_queries_running") == 0.0);
        let (bytes, misses) =
            (metrics.value("lakemill_cache_bytes"), metrics.value("lakemill_cache_requests_total{outcome=\"miss\"}"));
        match kind {
            Kind::Embedded => assert_eq!((bytes, misses), (0.0, 0.0), "links need no cache"),
            Kind::Fleet => assert!(bytes > 0.0 && misses >= 1.0, "{bytes} {misses}"),
        }
    }
}
