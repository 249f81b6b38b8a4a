//! Moving files.

use lakemill::domain::job::{ChangedKeys, Job, JobMessage};
use lakemill::ports::store::Bucket;
use rustix::process::Signal;
use serde_json::json;

use super::{download, keys, level, on_both, put, upload};
use crate::support::browser::{Browser, Reply};
use crate::support::site::{Kind, Site, await_that, slug};
use crate::web::is_stopped;

fn transfer(browser: &Browser, from: &str, to: &str) -> Reply {
    browser.post("/api/lake", &json!({ "from": from, "to": to }))
}

#[test]
fn file_moves_to_a_new_key() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let body: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        put(&site, "in/a", &body);
        put(&site, "in/b", b"other");
        transfer(&browser, "in/a", "in/b").refused(409, "already_exists");
        transfer(&browser, "in/a", "in/a").refused(400, "invalid_request");
        transfer(&browser, "in/none", "in/c").refused(404, "object_not_found");
        assert_eq!(keys(&level(&browser, "in/")), ["in/a", "in/b"]);
        let moved = transfer(&browser, "in/a", "out/ü a").ok().json();
        assert_eq!((&moved["key"], &moved["size"]), (&json!("out/ü a"), &json!(1_200_000)));
        assert_eq!(keys(&level(&browser, "in/")), ["in/b"]);
        assert!(download(&browser, "out/ü a").ok().body == body);
        transfer(&browser, "in/a", "out/ü a").refused(404, "object_not_found");
    });
}

#[test]
fn move_interrupted_before_deletion_can_be_resumed() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let body = vec![7; 700_000];
        // The state after a move that died after the copy.
        put(&site, "in/a.csv", &body);
        put(&site, "pipelines/trips/a.csv", &body);
        transfer(&browser, "in/a.csv", "pipelines/trips/a.csv").ok();
        assert_eq!(keys(&level(&browser, "in/")), [""; 0]);
        assert!(download(&browser, "pipelines/trips/a.csv").ok().body == body);
        assert_eq!(site.kv.counts().unwrap().windows, 1, "its run is asked for");
        // Same length, different content.
        let mut other = body.clone();
        *other.last_mut().unwrap() = 8;
        put(&site, "in/a.csv", &other);
        transfer(&browser, "in/a.csv", "pipelines/trips/a.csv").refused(409, "already_exists");
        assert!(download(&browser, "in/a.csv").ok().body == other);
    });
}

#[test]
fn only_moving_a_source_into_a_pipeline_extends_its_window() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        for name in ["a.csv", "b.pdf", "c.csv"] {
            put(&site, name, b"a\n");
        }
        transfer(&browser, "b.pdf", "pipelines/trips/b.pdf").ok();
        transfer(&browser, "c.csv", "elsewhere/c.csv").ok();
        assert_eq!(site.kv.counts().unwrap().windows, 0);
        transfer(&browser, "a.csv", "pipelines/trips/in/A.CSV").ok();
        assert_eq!(site.kv.counts().unwrap().windows, 1);
        transfer(&browser, "pipelines/trips/in/A.CSV", "a.csv").ok();
        assert_eq!(site.kv.counts().unwrap().windows, 1);
        site.kv.drop_pipeline(&slug("trips")).unwrap();
        assert_eq!(site.kv.counts().unwrap().windows, 0, "it was that pipeline's");
    });
}

#[test]
fn requests_name_the_keys_that_they_create_and_remove() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        for name in ["moved.csv", "deleted.csv", "gone.csv", "readme.md"] {
            put(&site, &format!("pipelines/trips/in/{name}"), b"a\n");
        }
        upload(&browser, "pipelines/trips/in/new.csv", b"a\n").ok();
        transfer(&browser, "pipelines/trips/in/moved.csv", "pipelines/other/to.csv").ok();
        transfer(&browser, "pipelines/trips/in/gone.csv", "elsewhere.csv").ok();
        for name in ["deleted.csv", "readme.md"] {
            browser.delete(&format!("/api/lake?key=pipelines/trips/in/{name}")).ok();
        }
        for (pipeline, expected) in
            [("trips", &["in/deleted.csv", "in/gone.csv", "in/moved.csv", "in/new.csv"][..]), ("other", &["to.csv"])]
        {
            let message = JobMessage::new(slug(pipeline), false, "auto", chrono::Utc::now());
            await_that("the window to be due", || site.kv.fire_window(&Job::queued(&message, 3)).unwrap());
            let keys: ChangedKeys = expected.iter().copied().collect();
            assert_eq!(site.kv.changed_keys(&message.job_id).unwrap(), keys, "{pipeline}");
        }
    });
}

#[test]
fn deletion_without_a_queue_fails_and_keeps_the_file() {
    let site = Site::new(Kind::Fleet);
    let web = site.web();
    let browser = Browser::log_in(&web);
    put(&site, "pipelines/trips/a.csv", b"a\n");
    let redis = site.redis.as_ref().unwrap();
    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    browser.delete("/api/lake?key=pipelines/trips/a.csv").refused(503, "kv_unavailable");
    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(download(&browser, "pipelines/trips/a.csv").ok().body, b"a\n");
    browser.delete("/api/lake?key=pipelines/trips/a.csv").ok();
    assert_eq!(site.kv.counts().unwrap().windows, 1);
}

#[test]
fn move_keeps_the_source_until_its_run_is_requested() {
    let site = Site::new(Kind::Fleet);
    let web = site.web();
    let browser = Browser::log_in(&web);
    put(&site, "in/a.csv", b"a\n");
    let redis = site.redis.as_ref().unwrap();
    // Sessions are known, but no new locks can be taken.
    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    transfer(&browser, "in/a.csv", "pipelines/trips/a.csv").refused(503, "kv_unavailable");
    assert_eq!(download(&browser, "in/a.csv").ok().body, b"a\n");
    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    transfer(&browser, "in/a.csv", "pipelines/trips/a.csv").ok();
    assert_eq!(site.kv.counts().unwrap().windows, 1);
    assert_eq!((keys(&level(&browser, "in/")), keys(&level(&browser, "pipelines/trips/")).len()), (vec![], 1));
}

#[test]
fn upload_during_a_move_is_kept_or_reported_as_lost() {
    on_both(|kind| {
        let site = Site::new(kind);
        put(&site, "in/a", b"old");
        let (mover, other) = (site.web_with(&[("FAILPOINTS", "lake::compared=1*return(stop)->off")]), site.web());
        let browser = Browser::log_in(&mover);
        let elsewhere = Browser { address: other.address(), ..browser.clone() };
        std::thread::scope(|scope| {
            let moved = scope.spawn(|| transfer(&browser, "in/a", "out/a"));
            await_that("the move to stand still", || is_stopped(mover.pid()));
            let uploaded = scope.spawn(|| upload(&elsewhere, "in/a", b"new"));
            await_that("the new file", || site.read(Bucket::Lake, "in/a").as_deref() == Some(b"new"));
            mover.signal(Signal::CONT);
            moved.join().unwrap().ok();
            uploaded.join().unwrap().refused(412, "precondition_failed");
        });
        assert_eq!(download(&elsewhere, "out/a").ok().body, b"old");
        // It stays after the response.
        upload(&elsewhere, "in/a", b"new").ok();
        transfer(&elsewhere, "in/a", "out/a").refused(409, "already_exists");
        assert_eq!(download(&elsewhere, "in/a").ok().body, b"new");
    });
}
