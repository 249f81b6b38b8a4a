//! The status of a pipeline's tables, compared with the CSVs in the lake.

use serde_json::{Value, json};

use super::on_both;
use crate::support::browser::Browser;
use crate::support::site::{Kind, Site};

fn config(column: &str) -> Value {
    let table = |name: &str| json!({ "table": name, "files": [format!("{name}/*.csv")], "columns": [{ "name": column, "from": "n", "type": "int64" }] });
    json!({ "version": 1, "auto_run": false, "mappings": [table("a"), table("b")] })
}

fn status(browser: &Browser) -> Value {
    browser.get("/api/p/nums/status").ok().json()
}

/// A pipeline of two tables whose first run has ended.
fn site(kind: Kind) -> Site {
    let site = Site::new(kind);
    site.configure("nums", &config("n"));
    site.put("nums", "a/1.csv", "n\n1\n2\n");
    site.put("nums", "a/2.csv", "n\n3\n");
    site.put("nums", "b/1.csv", "n\n4\n");
    site
}

#[test]
fn status_shows_pending_and_removed_files_and_a_config_that_is_not_applied() {
    on_both(compares_files_and_config);
}

fn compares_files_and_config(kind: Kind) {
    let site = site(kind);
    let (_worker, web) = site.worker_and_web();
    let browser = Browser::log_in(&web);
    let before = status(&browser);
    assert_eq!(before["config"]["state"], "not_run");
    assert_eq!(before["tables"][0]["pending"], json!({ "count": 2, "first": ["a/1.csv", "a/2.csv"] }));
    assert_eq!(before["tables"][0]["globs"], json!(["a/*.csv"]));
    assert_eq!(before["last_job"], Value::Null);

    let job = site.enqueue("nums");
    site.await_end(&job);
    let after = status(&browser);
    assert_eq!(after["tables"][0]["state"], "applied");
    assert_eq!((&after["tables"][0]["sources"], &after["tables"][0]["rows"]), (&json!(2), &json!(3)));
    assert_eq!(after["tables"][0]["pending"]["count"], 0);
    assert_eq!((&after["last_job"]["status"], &after["active"]), (&json!("completed"), &json!(false)));

    site.put("nums", "a/3.csv", "n\n5\n");
    site.put("nums", "b/1.csv", "n\n4\n44\n");
    site.put("nums", "elsewhere.csv", "n\n1\n");
    browser.send("DELETE", "/api/lake?key=pipelines/nums/a/1.csv", &[], b"").ok();
    site.configure("nums", &config("m"));
    let now = status(&browser);
    assert_eq!(now["config"]["state"], "changed");
    assert_eq!(now["tables"][0]["state"], "changed");
    assert_eq!(now["tables"][0]["pending"], json!({ "count": 1, "first": ["a/3.csv"] }));
    assert_eq!(now["tables"][0]["removed"], json!({ "count": 1, "rows": 2, "first": ["a/1.csv"] }));
    assert_eq!(now["tables"][1]["pending"], json!({ "count": 1, "first": ["b/1.csv"] }));
    assert_eq!(now["not_read"], json!({ "count": 1, "first": ["elsewhere.csv"] }));
    assert_eq!(now["complete"], true);
}

#[test]
fn status_of_an_invalid_config_keeps_the_tables_and_judges_no_file() {
    let site = site(Kind::Embedded);
    let (_worker, web) = site.worker_and_web();
    let browser = Browser::log_in(&web);
    let job = site.enqueue("nums");
    site.await_end(&job);
    site.configure("nums", &json!({ "version": 1, "mappings": 1 }));
    let status = status(&browser);
    assert_eq!(status["config"]["state"], "invalid");
    assert_eq!(status["tables"][0]["rows"], 3);
    assert_eq!(status["tables"][0]["removed"]["count"], 0);
    assert_eq!(status["not_read"]["count"], 0);
    browser.get("/api/p/none/status").refused(404, "pipeline_not_found");
}

#[test]
fn status_fails_as_the_store_does_and_recovers_with_it() {
    on_both(|kind| {
        let site = site(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let code = site.break_store();
        let reply = browser.get("/api/p/nums/status");
        assert!(reply.status >= 500, "{}", reply.status);
        assert_eq!(reply.json()["error"], code);
        site.restore_store();
        browser.get("/api/p/nums/status").ok();
    });
}

#[test]
fn files_modified_after_the_failed_job_are_untried() {
    let site = site(Kind::Embedded);
    let (_worker, web) = site.worker_and_web();
    let browser = Browser::log_in(&web);
    let files = |key: &str| status(&browser)["tables"][0][key].clone();
    assert_eq!(files("untried"), json!({ "count": 2, "first": ["a/1.csv", "a/2.csv"] }));
    site.put("nums", "a/2.csv", "other\n3\n");
    let job = site.enqueue("nums");
    site.await_end(&job);
    assert_eq!(status(&browser)["last_job"]["status"], "failed");
    assert_eq!(files("untried")["count"], 0);

    site.put("nums", "a/2.csv", "n\n3\n");
    assert_eq!(files("pending")["count"], 2);
    assert_eq!(files("untried"), json!({ "count": 1, "first": ["a/2.csv"] }));
}
