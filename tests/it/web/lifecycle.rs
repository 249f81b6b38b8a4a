//! Delete and rename: complete, rejected, and interrupted at every step.

use std::collections::BTreeMap;

use lakemill::domain::job::{Job, JobStatus};
use lakemill::domain::layout::pipeline_prefix;
use lakemill::domain::table_log::root::Root;
use lakemill::pipelines::tables::tables;
use lakemill::ports::store::{Bucket, WriteOptions, list_all};
use serde_json::json;

use super::on_both;
use crate::support::browser::{Browser, Reply};
use crate::support::manifests::Manifest;
use crate::support::site::{Site, await_some, slug};

/// Every object of a pipeline, by `<bucket>/<key relative to the pipeline>`.
pub fn objects(site: &Site, pipeline: &str) -> BTreeMap<String, Vec<u8>> {
    let prefix = pipeline_prefix(&slug(pipeline));
    let mut objects = BTreeMap::new();
    for bucket in Bucket::ALL {
        for object in list_all(&*site.store, bucket, &prefix).unwrap() {
            let bytes = site.read(bucket, &object.key);
            objects.extend(bytes.map(|bytes| (format!("{bucket}/{}", &object.key[prefix.len()..]), bytes)));
        }
    }
    objects
}

/// [`objects`] without records of jobs, and with the sources of manifests in place of the shards, which contain their
/// tags.
pub fn content(site: &Site, pipeline: &str) -> BTreeMap<String, Vec<u8>> {
    let mut objects = objects(site, pipeline);
    objects.retain(|key, _| !key.starts_with("pipelines/jobs/"));
    let name = slug(pipeline);
    for table in tables(&*site.store, &name).unwrap() {
        let mut manifest = Manifest::read(&*site.store, &name, &table).unwrap();
        for shard in std::mem::take(&mut manifest.root.sources) {
            objects.remove(&format!("pipelines/manifests/{table}/{}.json.zst", shard.name));
        }
        manifest.sources.values_mut().for_each(|source| source.etag = None);
        let root = Root { is_foreign: false, ..manifest.root };
        let sources = serde_json::to_vec(&manifest.sources).unwrap();
        objects.insert(format!("pipelines/manifests/{table}.json"), [root.to_json(), sources].concat());
    }
    objects
}

/// The only file of a partition of table `t`, by its key in [`content`].
pub fn file_of(content: &BTreeMap<String, Vec<u8>>, partition: &str) -> Option<String> {
    let prefix = format!("warehouse/t/{partition}/part-");
    content.keys().find(|key| key.starts_with(&prefix)).cloned()
}

pub fn slugs(browser: &Browser) -> Vec<String> {
    serde_json::from_value(browser.get("/api/pipelines").ok().json()).unwrap()
}

/// A pipeline that has run: three sources, one with a reject, partitions, a dashboard, a saved query.
pub fn lay_out(site: &Site, pipeline: &str) {
    site.pipeline(pipeline, &json!({ "partition_by": ["a"] }));
    site.put(pipeline, "in/1.csv", "a,b\nx,1\ny,2\n");
    site.put(pipeline, "in/sub/2.csv", "a,b\nx,3\nz,no\n");
    site.put(pipeline, "in/ü ,%2F.csv", "a,b\nx/y,4\n");
    site.put(pipeline, "notes.txt", "not a source");
    for name in ["dashboards/d.yaml", "queries/q.json"] {
        let key = format!("{}{name}", pipeline_prefix(&slug(pipeline)));
        site.store.put(Bucket::Pipelines, &key, name.as_bytes(), &WriteOptions::default()).unwrap();
    }
}

pub fn has_run(site: &Site, pipelines: &[&str]) {
    let jobs: Vec<Job> = pipelines.iter().map(|pipeline| site.enqueue(pipeline)).collect();
    for job in jobs {
        let end = site.await_end(&job);
        assert_eq!(end.status, JobStatus::Completed, "{end:?}");
    }
}

/// Runs a pipeline, and checks that there is nothing to do.
#[track_caller]
pub fn assert_nothing_to_do(site: &Site, pipeline: &str) {
    let end = site.await_end(&site.enqueue(pipeline));
    assert_eq!(end.status, JobStatus::Completed, "{end:?}");
    let result = end.result.unwrap();
    assert!(result.tables.values().all(|t| (t.sources_read, t.partitions_written) == (0, 0)), "{result:?}");
}

/// Repeats a request until no lock of a dead process blocks it.
pub fn repeat(send: impl Fn() -> Reply) -> Reply {
    await_some("the lock of the dead", || {
        let reply = send();
        let busy = reply.status == 409 && reply.json()["error"] == "pipeline_busy";
        (!busy).then_some(reply)
    })
}

fn rename(browser: &Browser, from: &str, to: &str) -> Reply {
    browser.patch(&format!("/api/pipelines/{from}"), &json!({ "newSlug": to }))
}

fn answers(browser: &Browser, method: &str, path: &str, body: &[u8]) -> bool {
    browser.try_send(method, path, &[], body).is_ok()
}

#[test]
fn deleted_pipeline_leaves_no_objects_and_no_job_restores_it() {
    on_both(|kind| {
        let site = Site::new(kind);
        lay_out(&site, "p");
        lay_out(&site, "p-2");
        let (worker, web) = site.worker_and_web();
        has_run(&site, &["p", "p-2"]);
        let other = objects(&site, "p-2");
        drop(worker);
        // Enqueued before, and not started yet.
        let waiting = site.enqueue("p");
        site.kv.extend_windows(&[slug("p")]).unwrap();
        let browser = Browser::log_in(&web);
        let reply = browser.delete("/api/pipelines/p").ok().json();
        assert!(reply["objects"].as_u64().unwrap() > 10, "{reply}");
        assert_eq!(objects(&site, "p"), BTreeMap::new());
        assert_eq!(objects(&site, "p-2"), other, "its neighbour stays");
        assert_eq!(slugs(&browser), ["p-2"]);
        assert_eq!(site.seen(&waiting), None);
        browser.delete("/api/pipelines/p").refused(404, "pipeline_not_found");
        let _worker = site.worker();
        has_run(&site, &["p-2"]);
        assert_eq!(objects(&site, "p"), BTreeMap::new());
    });
}

#[test]
fn renamed_pipeline_keeps_its_objects_and_needs_no_run() {
    on_both(|kind| {
        let site = Site::new(kind);
        lay_out(&site, "old");
        let (_worker, web) = site.worker_and_web();
        has_run(&site, &["old"]);
        let before = (content(&site, "old"), site.records("old"));
        let browser = Browser::log_in(&web);
        assert_eq!(rename(&browser, "old", "new").ok().json(), json!({ "slug": "new" }));
        assert_eq!(slugs(&browser), ["new"]);
        assert_eq!((content(&site, "new"), site.records("new")), before);
        assert_nothing_to_do(&site, "new");
        rename(&browser, "old", "newer").refused(404, "pipeline_not_found");
        rename(&browser, "new", "old").ok();
        assert_nothing_to_do(&site, "old");
    });
}

#[test]
fn rename_preserves_mismatches_with_the_manifest() {
    on_both(|kind| {
        let site = Site::new(kind);
        lay_out(&site, "old");
        let (_worker, web) = site.worker_and_web();
        has_run(&site, &["old"]);
        let good = content(&site, "old");
        // A source has changed since, and a file of a table is damaged; both of the same size.
        site.put("old", "in/1.csv", "a,b\nx,1\ny,7\n");
        assert_eq!(file_of(&good, "a=z"), None, "its row is a reject");
        let x = file_of(&good, "a=x").unwrap();
        let broken = vec![0; good[&x].len()];
        let key = x.replace("warehouse/", "pipelines/old/");
        site.store.put(Bucket::Warehouse, &key, &broken, &WriteOptions::default()).unwrap();
        let browser = Browser::log_in(&web);
        rename(&browser, "old", "new").ok();
        let end = site.await_end(&site.enqueue("new"));
        assert_eq!(end.status, JobStatus::Completed, "{end:?}");
        let after = content(&site, "new");
        assert_ne!(file_of(&after, "a=y"), file_of(&good, "a=y"), "the changed source was read");
        assert_eq!(after[&x], broken, "the partition's rows are as they were");
        let end = site.await_end(&site.enqueue_as("new", true));
        assert_eq!((end.status, content(&site, "new")[&x] == good[&x]), (JobStatus::Completed, true));
    });
}

#[test]
fn failed_rename_or_delete_changes_nothing() {
    on_both(|kind| {
        let site = Site::new(kind);
        lay_out(&site, "p");
        site.pipeline("q", &json!({}));
        let web = site.web();
        let browser = Browser::log_in(&web);
        let before = (objects(&site, "p"), objects(&site, "q"));
        rename(&browser, "p", "q").refused(409, "already_exists");
        rename(&browser, "p", "p").refused(409, "already_exists");
        rename(&browser, "none", "none").refused(404, "pipeline_not_found");
        rename(&browser, "none", "n2").refused(404, "pipeline_not_found");
        browser.delete("/api/pipelines/none").refused(404, "pipeline_not_found");
        for bad in ["", "P", "../p", "a/b", "%2e%2e", "ü", "p\u{0}"] {
            rename(&browser, "p", bad).refused(400, "invalid_slug");
        }
        for bad in ["P", "%2e%2e", "%252e%252e", "a%2Fb", "%00", "%c3%bc", "_x"] {
            browser.send("DELETE", &format!("/api/pipelines/{bad}"), &[], b"");
            let reply = browser.patch(&format!("/api/pipelines/{bad}"), &json!({ "newSlug": "n" }));
            assert!(reply.status == 400 || reply.status == 404, "{bad}: {}", reply.text());
        }
        for body in [json!({}), json!({ "newSlug": 1 }), json!({ "new_slug": "n" }), json!({ "newSlug": "n", "x": 1 })]
        {
            browser.patch("/api/pipelines/p", &body).refused(400, "invalid_request");
        }
        // Like a lock held by a run.
        let hold =
            |name: &str| site.kv.lock_pipeline(&slug(name), std::time::Duration::from_secs(600), 0).unwrap().unwrap();
        let held = hold("p");
        browser.delete("/api/pipelines/p").refused(409, "pipeline_busy");
        rename(&browser, "p", "n").refused(409, "pipeline_busy");
        site.kv.release(&held).unwrap();
        let held = hold("n");
        rename(&browser, "p", "n").refused(409, "pipeline_busy");
        browser.post("/api/pipelines", &json!({ "slug": "n" })).refused(409, "pipeline_busy");
        site.kv.release(&held).unwrap();
        assert_eq!((objects(&site, "p"), objects(&site, "q")), before);
        assert_eq!(slugs(&browser), ["p", "q"]);
        // None of these remains.
        rename(&browser, "p", "n").ok();
    });
}

/// Where a rename dies, and whether repeating it has anything left to do.
const RENAME_FAILPOINTS: &[(&str, bool)] = &[
    ("make::marked", true),
    ("rename::between_copies", true),
    ("rename::between_copies=5*off->", true),
    ("rename::copied", true),
    ("rename::leaving", true),
    ("make::made", true),
    ("rename::moved", true),
    ("rename::config_copied", true),
    ("rename::dropped", true),
    ("rename::config_deleted", true),
    ("rename::between_deletes", true),
    ("rename::between_deletes=2*off->", true),
    ("rename::deleted", true),
    ("rename::left", true),
    ("make::unmarked", false),
];

/// Sends a request to a web service that dies at `place`; `place=n*off->`: at its arrival after the `n`th.
pub fn kill_at(site: &Site, place: &str, send: impl Fn(&Browser) -> bool) {
    let (name, before) = place.split_once('=').unwrap_or((place, ""));
    let mut web = site.web_with(&[("FAILPOINTS", &format!("{name}={before}return(kill)"))]);
    let browser = Browser::log_in(&web);
    assert!(!send(&browser), "{place}: it was answered");
    assert_eq!(web.await_exit(), None, "{place}");
}

#[test]
fn interrupted_rename_can_be_resumed_from_any_step() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (olds, news): (Vec<String>, Vec<String>) =
            (0..RENAME_FAILPOINTS.len()).map(|at| (format!("old-{at}"), format!("new-{at}"))).unzip();
        olds.iter().for_each(|old| lay_out(&site, old));
        // Running throughout.
        let worker = site.worker();
        has_run(&site, &olds.iter().map(String::as_str).collect::<Vec<_>>());
        let before: Vec<_> = olds.iter().map(|old| content(&site, old)).collect();
        for (at, (place, _)) in RENAME_FAILPOINTS.iter().enumerate() {
            let body = json!({ "newSlug": news[at] }).to_string();
            let path = format!("/api/pipelines/{}", olds[at]);
            kill_at(&site, place, |browser| answers(browser, "PATCH", &path, body.as_bytes()));
            let configs = [&olds[at], &news[at]]
                .iter()
                .filter(|slug| objects(&site, slug).contains_key("pipelines/pipeline.json"))
                .count();
            assert!(configs >= 1, "{place}: no name has a config");
        }
        let web = site.web();
        let browser = Browser::log_in(&web);
        for (at, (place, unfinished)) in RENAME_FAILPOINTS.iter().enumerate() {
            let reply = repeat(|| rename(&browser, &olds[at], &news[at]));
            assert_eq!(reply.status, if *unfinished { 200 } else { 404 }, "{place}: {}", reply.text());
            assert_eq!(objects(&site, &olds[at]), BTreeMap::new(), "{place}");
            assert_eq!(content(&site, &news[at]), before[at], "{place}");
            assert_nothing_to_do(&site, &news[at]);
            let failed: Vec<Job> =
                site.records(&news[at]).into_iter().filter(|job| job.status == JobStatus::Failed).collect();
            assert!(failed.is_empty(), "{place}: half a pipeline ran: {failed:?}");
        }
        let mut listed = news.clone();
        listed.sort_unstable();
        assert_eq!(slugs(&browser), listed);
        drop(worker);
    });
}

#[test]
fn interrupted_rename_blocks_others_until_resumed_or_deleted() {
    on_both(|kind| {
        let site = Site::new(kind);
        lay_out(&site, "a");
        lay_out(&site, "b");
        let before = objects(&site, "a");
        kill_at(&site, "rename::copied", |browser| {
            answers(browser, "PATCH", "/api/pipelines/a", br#"{"newSlug":"c"}"#)
        });
        let web = site.web();
        let browser = Browser::log_in(&web);
        repeat(|| rename(&browser, "b", "c")).refused(409, "already_exists");
        repeat(|| browser.post("/api/pipelines", &json!({ "slug": "c" }))).refused(409, "already_exists");
        rename(&browser, "c", "d").refused(409, "pipeline_busy");
        browser.get("/api/p/c/export").refused(409, "pipeline_busy");
        // The old pipeline is complete throughout.
        assert_eq!(objects(&site, "a"), before);
        repeat(|| browser.delete("/api/pipelines/c")).ok();
        rename(&browser, "b", "c").ok();
        assert_eq!(objects(&site, "a"), before);
    });
}

#[test]
fn uploads_during_an_interrupted_rename_are_moved() {
    on_both(|kind| {
        let site = Site::new(kind);
        let pipelines = ["early", "late", "last"];
        for pipeline in pipelines {
            lay_out(&site, pipeline);
        }
        let worker = site.worker();
        has_run(&site, &pipelines);
        drop(worker);
        let places = ["rename::copied", "rename::config_copied", "rename::config_deleted"];
        for (pipeline, place) in pipelines.into_iter().zip(places) {
            let path = format!("/api/pipelines/{pipeline}");
            let body = format!("{{\"newSlug\":\"{pipeline}-2\"}}");
            kill_at(&site, place, |browser| answers(browser, "PATCH", &path, body.as_bytes()));
            site.put(pipeline, "in/1.csv", "a,b\nx,100\n");
            site.put(pipeline, "in/9.csv", "a,b\nnew,9\n");
        }
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        for pipeline in pipelines {
            let new = format!("{pipeline}-2");
            repeat(|| rename(&browser, pipeline, &new)).ok();
            let there = objects(&site, &new);
            assert_eq!(there["lake/in/1.csv"], b"a,b\nx,100\n", "{pipeline}");
            assert_eq!(there["lake/in/9.csv"], b"a,b\nnew,9\n", "{pipeline}");
            let end = site.await_end(&site.enqueue(&new));
            assert_eq!(end.status, JobStatus::Completed, "{end:?}");
            let tables = content(&site, &new);
            assert!(file_of(&tables, "a=new").is_some(), "{pipeline}: {:?}", tables.keys());
            assert_eq!(file_of(&tables, "a=y"), None, "{pipeline}: {:?}", tables.keys());
            assert_eq!(objects(&site, pipeline), BTreeMap::new());
        }
    });
}

#[test]
fn foreign_config_does_not_complete_an_unfinished_pipeline() {
    let site = Site::new(crate::support::site::Kind::Embedded);
    lay_out(&site, "old");
    let worker = site.worker();
    has_run(&site, &["old"]);
    drop(worker);
    let before = content(&site, "old");
    kill_at(&site, "rename::between_copies", |browser| {
        answers(browser, "PATCH", "/api/pipelines/old", br#"{"newSlug":"new"}"#)
    });
    site.pipeline("new", &json!({}));
    let web = site.web();
    let browser = Browser::log_in(&web);
    repeat(|| rename(&browser, "old", "new")).ok();
    assert_eq!(content(&site, "new"), before);
    assert_eq!(objects(&site, "old"), BTreeMap::new());
}

#[test]
fn failed_rename_leaves_nothing_under_the_new_name() {
    let site = Site::new(crate::support::site::Kind::Embedded);
    site.pipeline("p", &json!({}));
    site.put("p", "in/1.csv", "a,b\nx,1\n");
    // With a longer slug its key would exceed the limit.
    let long = vec!["x".repeat(200); 5].join("/");
    site.put("p", &format!("{long}/abc"), "x");
    let before = objects(&site, "p");
    let web = site.web();
    let browser = Browser::log_in(&web);
    rename(&browser, "p", &"q".repeat(63)).refused(400, "invalid_key");
    assert_eq!((objects(&site, "p"), slugs(&browser)), (before, vec!["p".to_owned()]));
    rename(&browser, "p", "q").ok();
}

const DELETE_FAILPOINTS: &[(&str, bool)] = &[
    ("delete::dropped", true),
    ("delete::config_deleted", true),
    ("delete::between_pages", true),
    ("delete::between_pages=1*off->", true),
    ("delete::deleted", false),
];

#[test]
fn interrupted_delete_can_be_resumed_from_any_step() {
    on_both(|kind| {
        let site = Site::new(kind);
        let names: Vec<String> = (0..DELETE_FAILPOINTS.len()).map(|at| format!("p-{at}")).collect();
        names.iter().for_each(|name| lay_out(&site, name));
        let worker = site.worker();
        has_run(&site, &names.iter().map(String::as_str).collect::<Vec<_>>());
        for (name, (place, _)) in names.iter().zip(DELETE_FAILPOINTS) {
            let path = format!("/api/pipelines/{name}");
            kill_at(&site, place, |browser| answers(browser, "DELETE", &path, b""));
        }
        let web = site.web();
        let browser = Browser::log_in(&web);
        for (name, (place, unfinished)) in names.iter().zip(DELETE_FAILPOINTS) {
            let reply = repeat(|| browser.delete(&format!("/api/pipelines/{name}")));
            assert_eq!(reply.status, if *unfinished { 200 } else { 404 }, "{place}: {}", reply.text());
            assert_eq!(objects(&site, name), BTreeMap::new(), "{place}");
        }
        assert_eq!(slugs(&browser), [""; 0]);
        drop(worker);
    });
}

#[test]
fn interrupted_create_can_be_resumed_from_any_step() {
    on_both(|kind| {
        let site = Site::new(kind);
        let places = ["make::marked", "create::between_writes", "make::made", "create::configured", "make::unmarked"];
        let template = |at: usize| if at == 1 { "flights" } else { "blank" };
        for (at, place) in places.iter().enumerate() {
            let body = json!({ "slug": format!("p-{at}"), "template": template(at) }).to_string();
            kill_at(&site, place, |browser| answers(browser, "POST", "/api/pipelines", body.as_bytes()));
        }
        let web = site.web();
        let browser = Browser::log_in(&web);
        for (at, place) in places.iter().enumerate() {
            let name = format!("p-{at}");
            let other = if at == 1 { "blank" } else { "flights" };
            repeat(|| browser.post("/api/pipelines", &json!({ "slug": name, "template": other })))
                .refused(409, "already_exists");
            let reply = repeat(|| browser.post("/api/pipelines", &json!({ "slug": name, "template": template(at) })));
            assert_eq!(reply.status, if *place == "make::unmarked" { 409 } else { 201 }, "{place}: {}", reply.text());
            let there = objects(&site, &name);
            assert_eq!(there.len(), if at == 1 { 18 } else { 1 }, "{place}: {:?}", there.keys());
            assert!(there.contains_key("pipelines/pipeline.json"), "{place}");
        }
    });
}
