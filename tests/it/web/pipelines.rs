//! Creating and listing pipelines.

use lakemill::domain::job::JobStatus;
use lakemill::domain::sample::FLIGHTS;
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::lifecycle::{objects, slugs};
use super::on_both;
use crate::support::browser::Browser;
use crate::support::http_client::send;
use crate::support::site::{Kind, Site, WEBHOOK_SECRET, await_some, await_that, slug};

#[test]
fn blank_pipeline_exists_immediately_and_takes_its_slug() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        assert_eq!(browser.get("/api/pipelines").ok().json(), json!([]));
        let reply = browser.post("/api/pipelines", &json!({ "slug": "b" })).ok();
        assert_eq!((reply.status, reply.json()), (201, json!({ "slug": "b", "template": "blank" })));
        browser.post("/api/pipelines", &json!({ "slug": "a", "template": "blank" })).ok();
        assert_eq!(slugs(&browser), ["a", "b"]);
        let config: Value = serde_json::from_slice(&objects(&site, "b")["pipelines/pipeline.json"]).unwrap();
        assert_eq!(config["mappings"], json!([]));
        assert_eq!(objects(&site, "b").len(), 1, "no mark is left");
        browser.post("/api/pipelines", &json!({ "slug": "b" })).refused(409, "already_exists");
        browser.post("/api/pipelines", &json!({ "slug": "b", "template": "flights" })).refused(409, "already_exists");
    });
}

#[test]
fn folders_with_slug_names_are_pipelines() {
    on_both(|kind| {
        let site = Site::new(kind);
        for (bucket, key) in [
            (Bucket::Lake, "pipelines/in-lake/deep/er/x.csv"),
            (Bucket::Warehouse, "pipelines/in_warehouse/t/part-00000.parquet"),
            (Bucket::Pipelines, "pipelines/configured/pipeline.json"),
            (Bucket::Lake, "pipelines/configured/x.csv"),
            (Bucket::Lake, "pipelines/Not A Slug/x.csv"),
            (Bucket::Lake, "pipelines/-x/x.csv"),
            (Bucket::Lake, "pipelines/a-file-itself"),
            (Bucket::Lake, "elsewhere/x/y.csv"),
            (Bucket::Pipelines, "workspace/settings.json"),
        ] {
            site.store.put(bucket, key, b"{}", &WriteOptions::default()).unwrap();
        }
        let web = site.web();
        let browser = Browser::log_in(&web);
        assert_eq!(slugs(&browser), ["configured", "in-lake", "in_warehouse"]);
        browser.post("/api/pipelines", &json!({ "slug": "in-lake" })).refused(409, "already_exists");
        browser.post("/api/pipelines", &json!({ "slug": "in_warehouse" })).refused(409, "already_exists");
        let details = browser.get("/api/pipelines?details=1").ok().json();
        let states: Vec<&Value> =
            details["pipelines"].as_array().unwrap().iter().map(|detail| &detail["config"]).collect();
        assert_eq!(states, ["invalid", "missing", "missing"]);
    });
}

#[test]
fn jobs_of_missing_pipelines_do_not_appear_in_the_list() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.automatic_pipeline("gone");
        site.automatic_pipeline("old");
        let (worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        browser.send("POST", "/api/p/tirps/jobs", &[], b"").refused(404, "pipeline_not_found");
        browser.delete("/api/pipelines/gone").ok();
        browser.patch("/api/pipelines/old", &json!({ "newSlug": "new" })).ok();
        let bearer = format!("Bearer {WEBHOOK_SECRET}");
        let headers = [("Authorization", bearer.as_str())];
        let late = ["gone", "old", "never"];
        for pipeline in late {
            let object = json!({ "key": format!("pipelines/{pipeline}/in/a.csv") });
            let event = json!({ "Records": [{ "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
                "s3": { "bucket": { "name": site.env()["S3_BUCKET_LAKE"] }, "object": object } }] });
            assert_eq!(send(&worker.address(), "POST", "/events/s3", &headers, &event.to_string()).status, 200);
        }
        // A job that another program wrote, or that was in flight.
        let job = site.enqueue("ghost");
        await_that("the ends", || {
            late.iter().all(|name| site.kv.window_due_at(&slug(name)).unwrap().is_none())
                && site.kv.active(&slug("ghost"), 10).unwrap().is_empty()
        });
        assert_eq!(slugs(&browser), ["new"]);
        for pipeline in late.into_iter().chain(["ghost"]) {
            assert!(site.records(pipeline).is_empty(), "{pipeline}");
        }
        let ended = browser.get(&format!("/api/p/ghost/jobs/{}", job.job_id)).ok().json();
        assert_eq!(ended["error"]["code"], "pipeline_config_not_found", "the requester can read the outcome");
    });
}

#[test]
fn slug_with_only_job_records_is_available() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let record = "pipelines/tirps/jobs/odd.json";
        site.store.put(Bucket::Pipelines, record, b"{}", &WriteOptions::default()).unwrap();
        browser.send("POST", "/api/p/tirps/jobs", &[], b"").refused(404, "pipeline_not_found");
        assert_eq!(browser.post("/api/pipelines", &json!({ "slug": "tirps" })).ok().status, 201);
        browser.post("/api/pipelines", &json!({ "slug": "tirps" })).refused(409, "already_exists");
    });
}

#[test]
fn list_details_have_config_last_job_and_next_due() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.configure(
            "p",
            &json!({ "version": 1, "title": "Trips", "auto_run": false, "mappings": [
            crate::support::program::mapping(&json!({})) ] }),
        );
        site.put("p", "in/1.csv", "a,b\nx,1\n");
        site.configure("broken", &json!({ "version": 1, "title": "Half", "mappings": [{}, {}] }));
        let (_worker, web) = site.worker_and_web();
        let job = site.enqueue("p");
        site.await_end(&job);
        site.kv.extend_windows(&[slug("broken")]).unwrap();
        let browser = Browser::log_in(&web);
        let details = browser.get("/api/pipelines?details=true").ok().json();
        assert_eq!(details["truncated"], false);
        let [broken, p] = details["pipelines"].as_array().unwrap().as_slice() else { panic!("{details}") };
        assert_eq!((&p["title"], &p["tables"], &p["auto_run"]), (&json!("Trips"), &json!(1), &json!(false)));
        assert_eq!(p["last_job"]["job_id"], job.job_id.as_str());
        assert_eq!((&p["last_job"]["status"], &p["config"]), (&json!("completed"), &json!("valid")));
        assert_eq!((&broken["config"], &broken["tables"]), (&json!("invalid"), &json!(2)));
        assert!(broken["problems"].as_u64().unwrap() > 1 && broken["title"] == "Half", "{broken}");
        assert!(broken["next_due"].is_string(), "{broken}");
        assert_eq!(details["next"], json!(null));
        let first = browser.get("/api/pipelines?details=true&limit=1").ok().json();
        assert_eq!(
            (&first["pipelines"], &first["truncated"], &first["next"]),
            (&json!([broken]), &json!(true), &json!("broken"))
        );
        let second = browser.get("/api/pipelines?details=true&limit=1&after=broken").ok().json();
        assert_eq!((&second["pipelines"][0]["slug"], &second["next"]), (&json!("p"), &json!(null)));
        for bad in ["limit=0", "limit=1001", "after=A"] {
            browser.get(&format!("/api/pipelines?details=true&{bad}")).refused(400, "invalid_request");
        }
    });
}

#[test]
fn recent_jobs_are_oldest_first_and_their_records_are_read_once() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline("p", &json!({ "rejects": { "max_rows": 1, "max_ratio": 0.0 } }));
        site.put("q", "in/1.csv", "a,b\nx,1\n");
        let (_worker, web) = site.worker_and_web();
        let run = |csv: &str| {
            site.put("p", "in/1.csv", csv);
            site.await_end(&site.enqueue("p")).job_id.to_string()
        };
        let ids = [run("a,b\nx,1\ny,2\nz,no\n"), run("a,b\nx,1\n"), run("a,b\nno,no\nno,no\n")];
        let browser = Browser::log_in(&web);
        let get = |query: &str| browser.get(&format!("/api/pipelines?details=1{query}")).ok().json();
        let response = get("&recent=30");
        let [p, q] = response["pipelines"].as_array().unwrap().as_slice() else { panic!("{response}") };
        let jobs = p["recent"].as_array().unwrap();
        let of = |name: &str| jobs.iter().map(|job| job[name].clone()).collect::<Vec<_>>();
        assert_eq!(of("job_id"), ids);
        assert_eq!(of("status"), ["completed", "completed", "failed"]);
        assert_eq!(of("rows_rejected"), [json!(1), json!(0), json!(null)]);
        assert!(jobs.iter().all(|job| job["duration_ms"].is_u64() && job["finished_at"].is_string()), "{response}");
        let bytes: usize = site.warehouse("p").values().map(Vec::len).sum();
        assert_eq!((&p["rows"], &p["bytes"]), (&json!(1), &json!(bytes)));
        assert_eq!(
            (&q["rows"], &q["recent"], &response["recent_truncated"]),
            (&json!(null), &json!([]), &json!(false))
        );
        let few = get("&recent=1");
        assert_eq!(few["pipelines"][0]["recent"], json!([jobs[2]]));
        let plain = get("");
        assert_eq!((&plain["pipelines"][0]["recent"], &plain["pipelines"][0]["rows"]), (&json!(null), &json!(null)));
        assert_eq!(plain["recent_truncated"], false);
        if kind == Kind::Fleet {
            let cost = |query: &str| {
                let before = site.objects_read();
                get(query);
                site.objects_read() - before
            };
            assert_eq!(cost("&recent=30"), cost(""), "records are kept");
        }
        for query in ["&recent=31", "&recent=x", "&recent=-1"] {
            browser.get(&format!("/api/pipelines?details=1{query}")).refused(400, "invalid_request");
        }
        site.store.put(Bucket::Pipelines, "pipelines/p/jobs/odd.json", b"nonsense", &WriteOptions::default()).unwrap();
        assert_eq!(get("&recent=30")["pipelines"][0]["recent"].as_array().unwrap().len(), 3);
    });
}

#[test]
fn sample_pipeline_is_created_and_runs() {
    let site = Site::new(Kind::Embedded);
    let (_worker, web) = site.worker_and_web();
    let browser = Browser::log_in(&web);
    browser.post("/api/pipelines", &json!({ "slug": "my-flights", "template": "flights" })).ok();
    let there = objects(&site, "my-flights");
    for (name, content) in FLIGHTS.files {
        assert!(there[&format!("lake/{name}")] == *content, "{name}");
    }
    assert_eq!(there["pipelines/pipeline.json"], FLIGHTS.config.as_bytes());
    let end = await_some("the run of the new files", || site.records("my-flights").pop());
    assert_eq!((end.status, end.trigger.as_str()), (JobStatus::Completed, "auto"), "{end:?}");
    for (name, _) in FLIGHTS.dashboards {
        let data = browser.post(&format!("/api/p/my-flights/dashboards/{name}/data"), &json!({})).ok().json();
        let panels = data["panels"].as_object().unwrap();
        assert!(!panels.is_empty() && panels.values().all(|panel| panel["error"].is_null()), "{data}");
    }
}

#[test]
fn slug_of_a_deleted_pipeline_can_be_reused() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        browser.post("/api/pipelines", &json!({ "slug": "p" })).ok();
        browser.delete("/api/pipelines/p").ok();
        browser.post("/api/pipelines", &json!({ "slug": "p" })).ok();
        site.pipeline("p", &json!({}));
        site.put("p", "in/1.csv", "a,b\nx,1\n");
        // The deletion's tombstone is removed, so that its jobs run.
        let end = site.await_end(&site.enqueue("p"));
        assert_eq!(end.status, JobStatus::Completed, "{end:?}");
    });
}

#[test]
fn pipeline_is_created_from_a_csv_inside_or_outside_it() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        let csv = b"id,name\n1,a\n2,b\n";
        site.put("own", "in/people [1].csv", csv);
        site.store.put(Bucket::Lake, "elsewhere/people.csv", csv, &WriteOptions::default()).unwrap();
        let create = |slug: &str, key: &str| {
            browser.post("/api/pipelines", &json!({ "slug": slug, "template": "from-csv", "key": key }))
        };
        create("own", "pipelines/own/in/people [1].csv").ok();
        create("copied", "elsewhere/people.csv").ok();
        for (slug, file) in [("own", "lake/in/people [1].csv"), ("copied", "lake/people.csv")] {
            let there = objects(&site, slug);
            assert_eq!(there[file], csv);
            let end = site.await_end(&site.enqueue(slug));
            assert_eq!(end.status, JobStatus::Completed, "{end:?}");
            assert_eq!(site.warehouse(slug).len(), 1, "{slug}");
        }
        // A prefix with objects other than files is a pipeline.
        create("own", "pipelines/own/in/people [1].csv").refused(409, "already_exists");
        site.put("tables", "a.csv", csv);
        let table = "pipelines/tables/t/part-00000.parquet";
        site.store.put(Bucket::Warehouse, table, b"x", &WriteOptions::default()).unwrap();
        create("tables", "pipelines/tables/a.csv").refused(409, "already_exists");
        // A failed creation leaves only the file.
        site.put("none", "a.csv", b"");
        create("none", "pipelines/none/a.csv").refused(422, "invalid_config");
        assert_eq!(objects(&site, "none").into_keys().collect::<Vec<_>>(), ["lake/a.csv"]);
    });
}

#[test]
fn malformed_create_requests_are_rejected() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let create = |body: Value| browser.post("/api/pipelines", &body);
    for body in [
        json!({}),
        json!([]),
        json!(null),
        json!({ "slug": 7 }),
        json!({ "slug": null }),
        json!({ "slug": "a", "template": "none" }),
        json!({ "slug": "a", "template": 1 }),
        json!({ "slug": "a", "more": 1 }),
        json!({ "slug": "a", "key": "x.csv" }),
        json!({ "slug": "a", "template": "flights", "key": "x.csv" }),
        json!({ "slug": "a", "template": "from-csv" }),
    ] {
        create(body).refused(400, "invalid_request");
    }
    for slug in ["", "A", "a/b", "..", "%2e%2e", "a%00", "ä", "\u{ff41}", "-a", &"x".repeat(64)] {
        create(json!({ "slug": slug })).refused(400, "invalid_slug");
    }
    for key in ["../x.csv", "/x.csv", "a//b.csv", "a\\b.csv", "a/./b", "a\u{0}b", "a\u{202e}b", ""] {
        create(json!({ "slug": "a", "template": "from-csv", "key": key })).refused(400, "invalid_key");
    }
    create(json!({ "slug": "a", "template": "from-csv", "key": "no/such.csv" })).refused(404, "object_not_found");
    browser.get("/api/pipelines?details=x").refused(400, "invalid_request");
    browser.get("/api/pipelines?details=1&details=1").refused(400, "invalid_request");
    assert_eq!(slugs(&browser), [""; 0]);
}

#[test]
fn one_of_concurrent_creates_of_a_slug_succeeds() {
    on_both(|kind| {
        let site = Site::new(kind);
        let webs = [site.web(), site.web()];
        let browsers: Vec<Browser> = webs.iter().map(Browser::log_in).collect();
        let made: usize = std::thread::scope(|scope| {
            let ask = |at: usize| {
                let browser = &browsers[at % 2];
                scope.spawn(move || browser.post("/api/pipelines", &json!({ "slug": "p" })))
            };
            let replies: Vec<_> = (0..8).map(ask).collect();
            replies.into_iter().map(|reply| reply.join().unwrap()).map(one_or_taken).sum()
        });
        assert_eq!(made, 1);
        assert_eq!(objects(&site, "p").len(), 1);
    });
}

fn one_or_taken(reply: crate::support::browser::Reply) -> usize {
    if reply.status == 201 {
        return 1;
    }
    let body = reply.json();
    assert!(body["error"] == "already_exists" || body["error"] == "pipeline_busy", "{body}");
    0
}
