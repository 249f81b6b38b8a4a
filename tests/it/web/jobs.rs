//! Jobs: history merged with active jobs; runs, retries, cancellations.

use chrono::{TimeDelta, Utc};
use lakemill::domain::job::TableResult;
use lakemill::domain::job::{Job, JobId, JobMessage, JobStatus, RunError, RunErrorCode, RunResult, SourceResult};
use lakemill::domain::layout::{job_record_key, job_rejects_key};
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};
use uuid::{NoContext, Timestamp, Uuid};

use super::tables::TripsSite;
use super::{check_outages, on_both};
use crate::support::browser::Browser;
use crate::support::parquet_bombs;
use crate::support::site::{Kind, Site, await_some, await_that, slug};

const JOBS: &str = "/api/p/trips/jobs";

/// A job that ended `seconds_ago`, with one source.
fn ended(seconds_ago: i64) -> Job {
    let at = Utc::now() - TimeDelta::seconds(seconds_ago);
    let mut message = JobMessage::new(slug("trips"), false, "manual", at);
    let time = Timestamp::from_unix(NoContext, at.timestamp().unsigned_abs(), at.timestamp_subsec_nanos());
    message.job_id = JobId::parse(&Uuid::new_v7(time).to_string()).unwrap();
    let source = SourceResult { source: "in/a.csv".into(), rows_read: 3, rows_written: 3, ..SourceResult::default() };
    let table = TableResult { rows_written: 3, sources: vec![source], ..TableResult::default() };
    let mut result = RunResult::default();
    result.tables.insert("t".into(), table);
    Job::queued(&message, 3).started("w", 1, 1, at).completed(result, at + TimeDelta::seconds(1))
}

fn record(site: &Site, job: &Job) {
    let body = serde_json::to_vec(job).unwrap();
    let key = job_record_key(&job.pipeline, job.job_id.as_str());
    site.store.put(Bucket::Pipelines, &key, &body, &WriteOptions::default()).unwrap();
}

fn job(reply: &Value) -> Job {
    serde_json::from_value(reply.clone()).unwrap()
}

/// The ids of a page, and the cursor of the next.
fn page(browser: &Browser, query: &str) -> (Vec<String>, Option<String>) {
    let page = browser.get(&format!("{JOBS}{query}")).ok().json();
    let ids = page["jobs"].as_array().unwrap().iter().map(|job| job["job_id"].as_str().unwrap().to_owned()).collect();
    (ids, page["next"].as_str().map(str::to_owned))
}

/// Waits until the web service reports the end of a job.
fn await_end(browser: &Browser, job: &Value) -> Value {
    let path = format!("{JOBS}/{}", job["job_id"].as_str().unwrap());
    await_some("the job's end", || {
        Some(browser.get(&path).ok().json()).filter(|job| job["status"] == "completed" || job["status"] == "failed")
    })
}

#[test]
fn run_is_queued_immediately_and_followed_until_it_ends() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        site.put("trips", "in/a.csv", "a,b\nx,1\ny,2\nz,oops\n");
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        assert_eq!(browser.get(JOBS).ok().json(), json!({ "jobs": [], "next": null }));
        let reply = browser.send("POST", &format!("{JOBS}?clean=true"), &[], b"");
        assert_eq!(reply.status, 202);
        let queued = reply.json();
        assert_eq!(
            (&queued["status"], &queued["clean_run"], &queued["trigger"]),
            (&json!("queued"), &json!(true), &json!("manual"))
        );
        let end = await_end(&browser, &queued);
        assert_eq!((&end["status"], &end["clean_run"]), (&json!("completed"), &json!(true)), "{end}");
        let table = &end["result"]["tables"]["t"];
        assert_eq!((&table["rows_written"], &table["rows_rejected"]), (&json!(2), &json!(1)));
        assert_eq!(table["sources"].as_array().unwrap().len(), 1, "whole with its sources");
        let listed = browser.get(JOBS).ok().json();
        assert_eq!(listed["jobs"][0]["job_id"], queued["job_id"]);
        assert_eq!(listed["jobs"][0]["result"]["tables"]["t"]["sources"], json!([]), "a list has no sources");
    });
}

#[test]
fn run_is_queued_for_a_pipeline_without_config() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        browser.get(JOBS).refused(404, "pipeline_not_found");
        browser.send("POST", JOBS, &[], b"").refused(404, "pipeline_not_found");
        site.put("trips", "in/a.csv", "a\n1\n");
        let queued = browser.send("POST", JOBS, &[], b"").ok().json();
        let end = await_end(&browser, &queued);
        assert_eq!((&end["status"], &end["error"]["code"]), (&json!("failed"), &json!("pipeline_config_not_found")));
        assert_eq!(page(&browser, "").0, [queued["job_id"].as_str().unwrap()]);
    });
}

#[test]
fn ended_job_can_be_retried_and_an_active_one_cannot() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        let web = site.web();
        let browser = Browser::log_in(&web);
        let first = browser.send("POST", &format!("{JOBS}?clean=1&prefix=in/2024"), &[], b"").ok().json();
        assert_eq!(first["prefix"], "pipelines/trips/in/2024");
        let path = format!("{JOBS}/{}", first["job_id"].as_str().unwrap());
        assert_eq!(browser.get(&path).ok().json(), first);
        browser.send("POST", &format!("{path}/retry"), &[], b"").refused(409, "pipeline_busy");
        let worker = site.worker();
        await_end(&browser, &first);
        drop(worker);
        let reply = browser.send("POST", &format!("{path}/retry"), &[], b"");
        assert_eq!(reply.status, 202);
        let again = reply.json();
        assert_ne!(again["job_id"], first["job_id"]);
        for field in ["prefix", "clean_run", "pipeline"] {
            assert_eq!(again[field], first[field]);
        }
        assert_eq!((&again["status"], &again["attempt"]), (&json!("queued"), &json!(0)));
        assert_eq!(page(&browser, "").0.len(), 2);
    });
}

#[test]
fn job_of_a_renamed_pipeline_is_shown_and_retried_under_the_new_name() {
    on_both(|kind| {
        let site = Site::new(kind);
        let mut old = ended(10);
        old.prefix = "pipelines/trips/in/".to_owned();
        let body = serde_json::to_vec(&old).unwrap();
        site.pipeline("moved", &json!({}));
        let key = job_record_key(&slug("moved"), old.job_id.as_str());
        site.store.put(Bucket::Pipelines, &key, &body, &WriteOptions::default()).unwrap();
        let web = site.web();
        let browser = Browser::log_in(&web);
        let path = format!("/api/p/moved/jobs/{}", old.job_id);
        let response = browser.get(&path).ok().json();
        assert_eq!((&response["pipeline"], &response["prefix"]), (&json!("moved"), &json!("pipelines/moved/in/")));
        let listed = browser.get("/api/p/moved/jobs").ok().json();
        assert_eq!(listed["jobs"][0]["pipeline"], "moved");
        let again = browser.send("POST", &format!("{path}/retry"), &[], b"").ok().json();
        assert_eq!((&again["pipeline"], &again["prefix"]), (&json!("moved"), &json!("pipelines/moved/in/")));
    });
}

#[test]
fn queued_job_can_be_cancelled_and_an_ended_one_cannot() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        let web = site.web();
        let browser = Browser::log_in(&web);
        let queued = browser.send("POST", JOBS, &[], b"").ok().json();
        let cancel = format!("{JOBS}/{}/cancel", queued["job_id"].as_str().unwrap());
        for _ in 0..2 {
            let reply = browser.send("POST", &cancel, &[], b"");
            assert_eq!((reply.status, &reply.json()["job_id"]), (202, &queued["job_id"]));
        }
        let _worker = site.worker();
        let end = await_end(&browser, &queued);
        assert_eq!((&end["status"], &end["error"]["code"]), (&json!("failed"), &json!("cancelled")));
        let too_late = await_some("the end in the queue too", || {
            Some(browser.send("POST", &cancel, &[], b"")).filter(|reply| reply.status != 202)
        });
        too_late.refused(409, "pipeline_busy");
    });
}

#[test]
fn history_is_newest_first_with_active_jobs() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        let web = site.web();
        let browser = Browser::log_in(&web);
        let mut expected = Vec::new();
        for seconds_ago in [50, 40, 30, 20, 10] {
            let job = ended(seconds_ago);
            record(&site, &job);
            expected.insert(0, job.job_id.to_string());
        }
        let queued = browser.send("POST", JOBS, &[], b"").ok().json();
        expected.insert(0, queued["job_id"].as_str().unwrap().to_owned());
        let key = job_record_key(&slug("trips"), "unreadable");
        site.store.put(Bucket::Pipelines, &key, b"{", &WriteOptions::default()).unwrap();

        assert_eq!(page(&browser, ""), (expected.clone(), None));
        let (mut seen, mut before) = (Vec::new(), String::new());
        loop {
            let (ids, next) = page(&browser, &format!("?limit=4{before}"));
            assert!(ids.len() <= 4);
            seen.extend(ids);
            let Some(next) = next else { break };
            before = format!("&before={next}");
        }
        assert_eq!(seen, expected);
        let oldest = browser.get(&format!("{JOBS}/{}", expected[5])).ok().json();
        assert_eq!(job(&oldest).result.unwrap().tables["t"].sources.len(), 1);
        browser.get(&format!("{JOBS}/unreadable")).refused(404, "job_not_found");
    });
}

#[test]
fn history_page_reads_only_the_records_it_shows() {
    let site = Site::new(Kind::Fleet);
    site.pipeline("trips", &json!({}));
    let web = site.web();
    let browser = Browser::log_in(&web);
    for seconds_ago in 0..300 {
        record(&site, &ended(seconds_ago));
    }
    let before = site.objects_read();
    let (ids, next) = page(&browser, "?limit=20");
    assert_eq!(ids.len(), 20);
    let reads = site.objects_read() - before;
    assert!(reads <= 22, "{reads} objects were read for 20 jobs");
    let before = site.objects_read();
    page(&browser, &format!("?limit=20&before={}", next.unwrap()));
    let reads = site.objects_read() - before;
    assert!(reads <= 22, "{reads} objects were read for the 20 after");
}

#[test]
fn rejects_of_a_failed_job_are_downloaded_as_parquet() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({ "rejects": { "max_rows": 0, "max_ratio": 0.0 } }));
        site.put("trips", "in/a.csv", "a,b\nx,oops\n");
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        let queued = browser.send("POST", JOBS, &[], b"").ok().json();
        let end = await_end(&browser, &queued);
        assert_eq!(end["error"]["code"], "too_many_rejects", "{end}");
        let id = queued["job_id"].as_str().unwrap();
        let reply = browser.get(&format!("{JOBS}/{id}/rejects")).ok();
        assert!(reply.body.starts_with(b"PAR1") && reply.body.ends_with(b"PAR1"));
        let stored = site.read(Bucket::Pipelines, &job_rejects_key(&slug("trips"), id)).unwrap();
        assert_eq!(reply.body, stored);
        let named = format!("attachment; filename=\"trips-{id}.rejected.parquet\"");
        assert_eq!(reply.header("content-disposition"), Some(named.as_str()));
        let shown = browser.get(&format!("{JOBS}/{id}/rejects?format=json")).ok().json();
        let row = json!({
            "table": "t", "source": "in/a.csv", "line": 2, "byte_offset": 4, "byte_length": 7, "column": "b", "value": "oops",
            "reason": "wrong_type", "message": shown["rows"][0]["message"], "raw": "x,oops", "raw_hex": null
        });
        assert_eq!(shown, json!({ "rows": [row], "total": 1, "truncated": false }));
        assert!(shown["rows"][0]["message"].as_str().unwrap().contains("int64"), "{shown}");
        for query in ["?format=csv", "?format=json&limit=0", "?format=json&limit=1001", "?format=json&format=json"] {
            browser.get(&format!("{JOBS}/{id}/rejects{query}")).refused(400, "invalid_request");
        }
        let other = ended(5);
        record(&site, &other);
        for format in ["", "?format=json"] {
            browser.get(&format!("{JOBS}/{}/rejects{format}", other.job_id)).refused(404, "object_not_found");
            browser.get(&format!("{JOBS}/nothing/rejects{format}")).refused(404, "job_not_found");
        }
        let key = job_rejects_key(&slug("trips"), id);
        site.store.put(Bucket::Pipelines, &key, b"no parquet", &WriteOptions::default()).unwrap();
        browser.get(&format!("{JOBS}/{id}/rejects?format=json")).refused(400, "invalid_request");
        // A file that crashes its reader isn't read again.
        for (what, bomb) in parquet_bombs::all() {
            site.store.put(Bucket::Pipelines, &key, &bomb, &WriteOptions::default()).unwrap();
            for _ in 0..2 {
                let reply = browser.get(&format!("{JOBS}/{id}/rejects?format=json"));
                reply.refused(400, "invalid_request");
                let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
                assert!(message.contains("rejected rows can't be read"), "{what}: {message}");
            }
            assert_eq!(browser.get(&format!("{JOBS}/{id}/rejects")).ok().body, bomb, "{what}");
        }
        let logged = web.log().matches("Parquet file is unreadable").count();
        assert_eq!(logged, 4, "each is read once: {}", web.log());
    });
}

#[test]
fn ended_job_lists_its_changes() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let last = || {
            let id = page(&trips.browser, "?limit=1").0.remove(0);
            let table = |job: &Value| job["result"]["tables"]["t"].clone();
            let listed = table(&trips.browser.get(&format!("{JOBS}?limit=1")).ok().json()["jobs"][0]);
            let whole = table(&trips.browser.get(&format!("{JOBS}/{id}")).ok().json());
            assert_eq!(listed["changes"]["partitions"], json!([]));
            assert_eq!(listed["changes"]["partitions_total"], whole["changes"]["partitions_total"]);
            (whole["rows_before"].clone(), whole["changes"].clone())
        };
        let change = |day: &str, before: Option<u64>, after: Option<u64>, sources: &[&str]| {
            json!({ "partition": format!("day=2013-01-{day}"), "rows_before": before, "rows_after": after,
                "sources": sources })
        };
        let (before, changes) = last();
        let both = ["in/a.csv", "in/b.csv"];
        let first = [change("02", None, Some(2), &both), change("01", None, Some(1), &both[..1])];
        assert_eq!((before, changes), (json!(null), json!({ "partitions": first, "partitions_total": 2 })));
        trips.site.put("trips", "in/b.csv", "day,a,b\n2013-01-02,z,\n2013-01-02,zz,\n2013-01-03,n,1\n");
        trips.run();
        let (before, changes) = last();
        let second = [change("02", Some(2), Some(3), &both[1..]), change("03", None, Some(1), &both[1..])];
        assert_eq!((before, changes), (json!(3), json!({ "partitions": second, "partitions_total": 2 })));
        trips.run();
        assert_eq!(last(), (json!(5), json!({ "partitions": [], "partitions_total": 0 })), "nothing was to do");
        // Rows that no longer exist.
        trips.site.put("trips", "in/b.csv", "day,a,b\n2013-01-02,z,\n2013-01-02,zz,\n");
        trips.run();
        let gone = [change("03", Some(1), None, &both[1..])];
        assert_eq!(last(), (json!(5), json!({ "partitions": gone, "partitions_total": 1 })));
    });
}

#[test]
fn bad_input_is_rejected_and_enqueues_nothing() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("trips", &json!({}));
    let web = site.web();
    let browser = Browser::log_in(&web);
    let before = site.contents();
    for query in
        ["?limit=0", "?limit=201", "?limit=x", "?limit=-1", "?limit=1&limit=2", "?before=x", "?before=", "?before=1"]
    {
        browser.get(&format!("{JOBS}{query}")).refused(400, "invalid_request");
    }
    for query in ["?clean=maybe", "?clean=TRUE%20", "?clean=1&clean=0", "?Clean=true", "?cleanrun=1", "?clean=1&x"] {
        browser.send("POST", &format!("{JOBS}{query}"), &[], b"").refused(400, "invalid_request");
    }
    let long = "x".repeat(1_100);
    for prefix in ["..", "../other/", "a//b", "%2e%2e/x", "a%5Cb", "a%0Ab", "pipelines/other/", "%E2%80%AE", &long] {
        browser.send("POST", &format!("{JOBS}?prefix={prefix}"), &[], b"").refused(400, "invalid_key");
    }
    for (path, status, code) in
        [("/api/p/No%20slug/jobs", 400, "invalid_slug"), ("/api/p/..%2Ftrips/jobs", 400, "invalid_slug")]
    {
        browser.get(path).refused(status, code);
        browser.send("POST", path, &[], b"").refused(status, code);
    }
    for id in ["nothing", "%2e%2e", "..%2Fpipeline", "%252e%252e%252fpipeline", &"x".repeat(65)] {
        browser.get(&format!("{JOBS}/{id}")).refused(404, "job_not_found");
        for verb in ["cancel", "retry"] {
            browser.send("POST", &format!("{JOBS}/{id}/{verb}"), &[], b"").refused(404, "job_not_found");
        }
    }
    // A job is visible only under its own pipeline.
    let other = ended(5);
    record(&site, &other);
    browser.get(&format!("/api/p/other/jobs/{}", other.job_id)).refused(404, "job_not_found");
    assert_eq!(site.contents().len(), before.len() + 1);
    assert!(site.kv.active(&slug("trips"), 10).unwrap().is_empty());
}

#[test]
fn clean_run_parameter_is_never_misread() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("trips", &json!({}));
    let web = site.web();
    let browser = Browser::log_in(&web);
    let run = |query: &str| browser.send("POST", &format!("{JOBS}{query}"), &[], b"").ok().json()["clean_run"].clone();
    for query in ["?clean", "?clean=", "?clean=1", "?clean=true", "?clean=TRUE", "?clean=True"] {
        assert_eq!(run(query), true, "{query}");
    }
    for query in ["", "?clean=0", "?clean=FALSE"] {
        assert_eq!(run(query), false, "{query}");
    }
}

#[test]
fn empty_json_object_is_accepted_as_no_body() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("trips", &json!({}));
    let web = site.web();
    let browser = Browser::log_in(&web);
    for body in ["{}", " { }\n", "", " "] {
        browser.send("POST", JOBS, &[("Content-Type", "application/json")], body.as_bytes()).ok();
    }
    for body in ["{\"a\":1}", "[]", "x", "{}{}", &" ".repeat(100), &format!("{{{}}}", " ".repeat(100))] {
        browser.send("POST", JOBS, &[], body.as_bytes()).refused(413, "payload_too_large");
    }
    assert_eq!(site.kv.active(&slug("trips"), 10).unwrap().len(), 4);
}

#[test]
fn runs_are_enqueued_without_the_object_store() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        let job = ended(60).job_id;
        let error = RunError::new(RunErrorCode::NoInput, "no source");
        let mut failed = ended(60);
        (failed.job_id, failed.status, failed.error) = (job, JobStatus::Failed, Some(error));
        record(&site, &failed);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let own = format!("{JOBS}/{}", failed.job_id);
        let (cancel, retry, rejects) = (format!("{own}/cancel"), format!("{own}/retry"), format!("{own}/rejects"));
        let wishes = [
            ("GET", JOBS, ""),
            ("GET", own.as_str(), ""),
            ("POST", &cancel, ""),
            ("POST", &retry, ""),
            ("GET", &rejects, ""),
        ];
        check_outages(&site, &browser, &wishes);
        assert!(site.kv.active(&slug("trips"), 10).unwrap().is_empty());
        site.break_store();
        let queued = browser.send("POST", JOBS, &[], b"");
        site.restore_store();
        assert_eq!(queued.status, 202);
        site.break_kv();
        browser.send("POST", JOBS, &[], b"").refused(503, "kv_unavailable");
        site.restore_kv();
        assert_eq!(site.kv.active(&slug("trips"), 10).unwrap().len(), 1);
    });
}

/// Enqueues a job like another program.
fn xadd(site: &Site, id: &str, pipeline: &str) {
    let words = ["XADD", "svc:jobs:stream", "*", "job_id", id, "pipeline", pipeline, "clean_run", "true"];
    let _: redis::Value = site.redis.as_ref().unwrap().ask(&words);
}

#[test]
fn externally_enqueued_job_is_shown_and_can_be_cancelled() {
    let site = Site::new(Kind::Fleet);
    site.pipeline("trips", &json!({}));
    site.put("trips", "in/a.csv", "a,b\nx,1\n");
    let web = site.web();
    let browser = Browser::log_in(&web);
    xadd(&site, "theirs", "trips");
    xadd(&site, "other", "elsewhere");
    let listed = browser.get(JOBS).ok().json();
    let jobs = listed["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1, "{listed}");
    let fields = (&jobs[0]["job_id"], &jobs[0]["status"], &jobs[0]["clean_run"], &jobs[0]["attempt"]);
    assert_eq!(fields, (&json!("theirs"), &json!("queued"), &json!(true), &json!(0)));
    assert_eq!(browser.get(&format!("{JOBS}/theirs")).ok().json(), jobs[0]);
    let cards = browser.get("/api/pipelines?details=1").ok().json();
    assert_eq!(cards["pipelines"][0]["last_job"]["job_id"], "theirs");
    assert_eq!(browser.send("POST", &format!("{JOBS}/theirs/cancel"), &[], b"").status, 202);
    let _worker = site.worker();
    let end = await_end(&browser, &jobs[0]);
    assert_eq!((&end["status"], &end["error"]["code"]), (&json!("failed"), &json!("cancelled")), "{end}");
}

#[test]
fn externally_enqueued_jobs_are_dropped_by_delete_and_rename() {
    let site = Site::new(Kind::Fleet);
    let web = site.web();
    let browser = Browser::log_in(&web);
    for name in ["gone", "old"] {
        site.pipeline(name, &json!({}));
        site.put(name, "in/a.csv", "a,b\nx,1\n");
        xadd(&site, &format!("of-{name}"), name);
    }
    browser.delete("/api/pipelines/gone").ok();
    browser.patch("/api/pipelines/old", &json!({ "newSlug": "new" })).ok();
    assert_eq!(site.kv.counts().unwrap().stream, 0);
    for name in ["gone", "old", "new"] {
        assert!(site.kv.active(&slug(name), 10).unwrap().is_empty(), "{name}");
    }
}

#[test]
fn queued_job_shows_the_workers_max_attempts() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        let web = site.web();
        let browser = Browser::log_in(&web);
        let run = || browser.send("POST", JOBS, &[], b"").json();
        assert_eq!(run()["max_attempts"], 3, "the default, where no worker has run yet");
        let mut worker = site.worker_with(&[("MAX_ATTEMPTS", "7")]);
        await_that("the worker's setting", || site.kv.attempts_max().unwrap() == Some(7));
        worker.signal(rustix::process::Signal::TERM);
        worker.await_exit();
        let queued = run();
        assert_eq!((&queued["status"], &queued["max_attempts"]), (&json!("queued"), &json!(7)));
        let path = format!("{JOBS}/{}", queued["job_id"].as_str().unwrap());
        assert_eq!(browser.get(&path).ok().json()["max_attempts"], 7);
        assert_eq!(browser.get(JOBS).ok().json()["jobs"][0]["max_attempts"], 7);
    });
}

#[test]
fn empty_file_is_a_source_without_rows() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        site.put("trips", "in/a.csv", "a,b\nx,1\n");
        site.put("trips", "in/empty.csv", "");
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        let end = await_end(&browser, &browser.send("POST", JOBS, &[], b"").json());
        assert_eq!(end["status"], "completed", "{end}");
        let sources = &end["result"]["tables"]["t"]["sources"];
        assert_eq!((&sources[0]["source"], sources[0].get("note")), (&json!("in/a.csv"), None));
        assert_eq!((&sources[1]["source"], &sources[1]["rows_read"]), (&json!("in/empty.csv"), &json!(0)));
        assert_eq!(sources[1]["note"], "the file is empty: it has no rows");
    });
}

#[test]
fn dry_run_reports_what_a_config_would_make_of_all_files_and_writes_nothing() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        site.put("trips", "in/a.csv", "a,b\nx,1\ny,2\n");
        site.put("trips", "in/b.csv", "a,b\nx,3\ny,oops\n");
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        let first = browser.send("POST", JOBS, &[], b"").json();
        assert_eq!(await_end(&browser, &first)["status"], "completed");
        let before = site.contents();
        let stored = browser.get("/api/p/trips/config").ok().json();
        let with_type = |ty: &str| {
            let mut config = stored.clone();
            let columns = config["mappings"][0]["columns"].as_array_mut().unwrap();
            columns.iter_mut().find(|column| column["name"] == "a").unwrap()["type"] = json!(ty);
            config["mappings"][0]["rejects"] = json!({ "max_ratio": 1.0 });
            config.to_string()
        };
        let start = |config: &str| browser.send("POST", "/api/p/trips/dry-runs", &[], config.as_bytes());

        let reply = start(&with_type("string"));
        assert_eq!(reply.status, 202, "{}", reply.text());
        assert_eq!(reply.json()["trigger"], "dry_run");
        let ended = await_end(&browser, &reply.json());
        let table = &ended["result"]["tables"]["t"];
        assert_eq!((&table["rows_written"], &table["rows_rejected"]), (&json!(3), &json!(1)), "{ended}");
        let [row] = ended["result"]["rejected_rows"].as_array().unwrap().as_slice() else { panic!("{ended}") };
        assert_eq!(
            (&row["table"], &row["source"], &row["line"], &row["column"], &row["value"]),
            (&json!("t"), &json!("in/b.csv"), &json!(3), &json!("b"), &json!("oops"))
        );
        // Every row is rejected, the first of each file are shown.
        let ended = await_end(&browser, &start(&with_type("int64")).json());
        assert_eq!(ended["result"]["tables"]["t"]["rows_rejected"], 4, "{ended}");
        assert_eq!(ended["result"]["rejected_rows"].as_array().unwrap().len(), 4);

        await_that("the configs of dry runs to be gone", || site.contents() == before);
        assert_eq!(page(&browser, "").0, [first["job_id"].as_str().unwrap()], "the history has no dry run");
        let retried = format!("{JOBS}/{}/retry", ended["job_id"].as_str().unwrap());
        browser.send("POST", &retried, &[], b"").refused(400, "invalid_request");
        start(&with_type("no_such_type")).refused(422, "invalid_config");
        start("{").refused(400, "invalid_request");
        browser
            .send("POST", "/api/p/nope/dry-runs", &[], stored.to_string().as_bytes())
            .refused(404, "pipeline_not_found");
    });
}

#[test]
fn dry_run_of_a_large_ratio_of_rejects_fails_with_the_rows() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("trips", &json!({ "rejects": { "max_ratio": 0.0 } }));
    site.put("trips", "in/a.csv", "a,b\nx,1\ny,oops\n");
    let (_worker, web) = site.worker_and_web();
    let browser = Browser::log_in(&web);
    let config = browser.get("/api/p/trips/config").ok().text();
    let reply = browser.send("POST", "/api/p/trips/dry-runs", &[], config.as_bytes()).json();
    let ended = await_end(&browser, &reply);
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("too_many_rejects")), "{ended}");
    assert!(ended["error"]["detail"].as_str().unwrap().contains("`in/a.csv` line 3"), "{ended}");
}

/// The pipelines and ids of a page of all jobs, and the cursor of the next.
fn all(browser: &Browser, query: &str) -> (Vec<(String, String)>, Option<String>) {
    let page = browser.get(&format!("/api/jobs{query}")).ok().json();
    let text = |job: &Value, name: &str| job[name].as_str().unwrap().to_owned();
    let jobs = page["jobs"].as_array().unwrap().iter();
    (jobs.map(|job| (text(job, "pipeline"), text(job, "job_id"))).collect(), page["next"].as_str().map(str::to_owned))
}

fn await_complete(browser: &Browser) {
    await_that("the index of jobs", || browser.get("/api/jobs").ok().json()["complete"] == true);
}

#[test]
fn jobs_of_all_pipelines_are_listed_by_status_also_after_lost_data_and_a_rename() {
    on_both(|kind| {
        let site = Site::new(kind);
        // Records of an earlier key-value store, one of a job of another program.
        site.pipeline("trips", &json!({}));
        site.pipeline("fares", &json!({}));
        let old = ended(100);
        record(&site, &old);
        let mut foreign = ended(50);
        foreign.job_id = JobId::parse("by-hand").unwrap();
        foreign.pipeline = slug("fares");
        record(&site, &foreign);
        site.store.put(Bucket::Pipelines, "pipelines/fares/jobs/broken.json", b"{", &WriteOptions::default()).unwrap();
        let (worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        await_complete(&browser);
        let named = |pipeline: &str, job: &str| (pipeline.to_owned(), job.to_owned());
        let first = [named("fares", "by-hand"), named("trips", old.job_id.as_str())];
        assert_eq!(all(&browser, ""), (first.to_vec(), None));
        let page = browser.get("/api/jobs").ok().json();
        assert_eq!((&page["since"], &page["jobs"][0]["result"]["tables"]["t"]["sources"]), (&json!(null), &json!([])));

        // Without a file a run fails.
        let failed = browser.send("POST", JOBS, &[], b"").ok().json();
        await_end(&browser, &failed);
        let failed = named("trips", failed["job_id"].as_str().unwrap());
        await_that("the failed job", || all(&browser, "?status=failed").0 == [failed.clone()]);
        drop(worker);
        let queued = browser.send("POST", "/api/p/fares/jobs", &[], b"").ok().json();
        let queued = named("fares", queued["job_id"].as_str().unwrap());
        assert_eq!(all(&browser, "?status=active").0, std::slice::from_ref(&queued));
        let whole = [&[queued, failed.clone()], &first[..]].concat();
        assert_eq!(all(&browser, "").0, whole);
        let (mut paged, mut next) = all(&browser, "?limit=1");
        while let Some(before) = next {
            let page = all(&browser, &format!("?limit=1&before={before}"));
            paged.extend(page.0);
            next = page.1;
        }
        assert_eq!(paged, whole);
        for bad in ["?status=completed", "?limit=0", "?limit=201", "?before=x"] {
            browser.get(&format!("/api/jobs{bad}")).refused(400, "invalid_request");
        }

        browser.patch("/api/pipelines/trips", &json!({ "newSlug": "rides" })).ok();
        let _worker = site.worker();
        await_complete(&browser);
        assert!(all(&browser, "?status=failed").0.contains(&named("rides", &failed.1)));
        assert!(all(&browser, "").0.contains(&named("rides", old.job_id.as_str())));
        browser.send("DELETE", "/api/pipelines/rides", &[], b"").ok();
        assert!(all(&browser, "").0.iter().all(|(pipeline, _)| pipeline == "fares"));
    });
}
