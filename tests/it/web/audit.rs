//! The audit log.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::on_both;
use crate::support::browser::Browser;
use crate::support::site::{Kind, Site, await_some};

/// The log's lines once it has `count` of them.
fn lines(file: &Path, count: usize) -> Vec<Value> {
    await_some("the lines of the audit log", || {
        let text = std::fs::read_to_string(file).ok()?;
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (lines.len() >= count).then_some(lines)
    })
}

#[test]
fn audit_log_has_changes_and_logins_and_no_reads() {
    on_both(|kind| {
        let site = Site::new(kind);
        let file = site.home().join("audit.jsonl");
        let web = site.web_with(&[("SVC_AUDIT_FILE", file.to_str().unwrap())]);
        let anonymous = Browser::anonymous(&web);
        anonymous.post("/api/auth/login", &json!({ "password": "guessed" })).refused(401, "unauthorized");
        let browser = Browser::log_in(&web);
        browser.post("/api/pipelines", &json!({ "slug": "p", "template": "blank" })).ok();
        browser.get("/api/pipelines").ok();
        browser.post("/api/p/p/query", &json!({ "sql": "SELECT 1" })).ok();
        browser.send("PUT", "/api/lake?key=pipelines/p/a%20b.csv", &[], b"id\n1\n").ok();
        browser.delete("/api/pipelines/nowhere").refused(404, "pipeline_not_found");
        let reply = browser.delete("/api/pipelines/p").ok();

        let found = lines(&file, 6);
        let column = |name: &str| found.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
        let operations =
            ["auth.login", "auth.login", "pipelines.create", "lake.upload", "pipelines.delete", "pipelines.delete"];
        assert_eq!(column("operation"), operations);
        assert_eq!(column("status"), [401, 200, 201, 201, 404, 200].map(|status| json!(status)));
        assert_eq!(found[3]["query"], json!({ "key": "pipelines/p/a b.csv" }));
        assert_eq!((&found[5]["method"], &found[5]["path"]), (&json!("DELETE"), &json!("/api/pipelines/p")));
        assert_eq!(found[5]["request_id"], reply.header("x-request-id").unwrap());
        assert_eq!(column("client"), vec![json!("127.0.0.1"); 6]);
        let session = found[2]["session"].as_str().unwrap();
        assert!(found[0]["session"].is_null() && found[1]["session"].is_null());
        assert!(found[2..].iter().all(|line| line["session"] == session) && session.len() == 12);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains(browser.cookie.as_deref().unwrap().split_once('=').unwrap().1) && !text.contains("guessed")
        );
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    });
}

#[test]
fn audit_log_can_be_rotated_and_its_loss_fails_no_request() {
    let site = Site::new(Kind::Embedded);
    let folder = site.home().join("audit");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("log.jsonl");
    let web = site.web_with(&[("SVC_AUDIT_FILE", file.to_str().unwrap())]);
    let browser = Browser::log_in(&web);
    lines(&file, 1);
    std::fs::rename(&file, folder.join("log.jsonl.1")).unwrap();
    browser.post("/api/pipelines", &json!({ "slug": "a", "template": "blank" })).ok();
    assert_eq!(lines(&file, 1)[0]["operation"], "pipelines.create");

    std::fs::rename(&folder, site.home().join("moved")).unwrap();
    browser.post("/api/pipelines", &json!({ "slug": "b", "template": "blank" })).ok();
    browser.post("/api/pipelines", &json!({ "slug": "c", "template": "blank" })).ok();
    await_some("the report", || web.has_logged("audit log can't be written").then_some(()));
    std::fs::create_dir(&folder).unwrap();
    browser.delete("/api/pipelines/b").ok();
    await_some("the deletion", || lines(&file, 1).into_iter().find(|line| line["path"] == "/api/pipelines/b"));
    await_some("the recovery", || web.has_logged("audit log can be written again").then_some(()));
    assert_eq!(web.log().matches("audit log can't be written").count(), 1, "{}", web.log());
}

#[test]
fn audit_file_that_cannot_be_created_prevents_the_start() {
    let site = Site::new(Kind::Embedded);
    let file = site.home().join("missing/audit.jsonl");
    let mut web = site.start("web", &[("SVC_AUDIT_FILE", file.to_str().unwrap())]);
    assert_ne!(web.await_exit(), Some(0), "{}", web.log());
    assert!(web.has_logged("SVC_AUDIT_FILE") && web.has_logged("audit.jsonl"), "{}", web.log());
}
