//! Pausing and resuming runs over the API.

use serde_json::json;

use super::on_both;
use crate::support::browser::Browser;
use crate::support::site::{Kind, Site};

#[test]
fn runs_are_paused_and_resumed_by_pipeline_and_for_all() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        assert_eq!(browser.get("/api/pauses").ok().json(), json!({ "all": null, "pipelines": [] }));
        browser.put("/api/p/p/pause", &json!({})).refused(404, "pipeline_not_found");
        browser.delete("/api/p/p/pause").refused(404, "pipeline_not_found");
        browser.post("/api/pipelines", &json!({ "slug": "p", "template": "blank" })).ok();
        let pause = browser.put("/api/p/p/pause", &json!({ "reason": " Ann moves the lake " })).ok().json();
        assert_eq!(pause["reason"], "Ann moves the lake");
        browser.put("/api/pause", &json!({})).ok();
        let found = browser.get("/api/pauses").ok().json();
        let expected = json!([{ "pipeline": "p", "since": pause["since"], "reason": "Ann moves the lake" }]);
        assert_eq!((&found["pipelines"], &found["all"]["reason"]), (&expected, &json!("")));
        assert_eq!(browser.delete("/api/pause").ok().json(), json!({ "resumed": true }));
        assert_eq!(browser.delete("/api/pause").ok().json(), json!({ "resumed": false }));
        assert_eq!(browser.delete("/api/p/p/pause").ok().json(), json!({ "resumed": true }));
        assert_eq!(browser.get("/api/pauses").ok().json()["pipelines"], json!([]));
    });
}

#[test]
fn reason_of_a_pause_is_bounded() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    for reason in [json!("x".repeat(501)), json!(7), json!(null)] {
        browser.put("/api/pause", &json!({ "reason": reason })).refused(400, "invalid_request");
    }
    browser.put("/api/pause", &json!({ "reason": "x".repeat(500) })).ok();
    browser.put("/api/pause", &json!({ "text": "x" })).refused(400, "invalid_request");
}

#[test]
fn renamed_pipeline_stays_paused_and_deleted_one_does_not() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        browser.post("/api/pipelines", &json!({ "slug": "a", "template": "blank" })).ok();
        browser.put("/api/p/a/pause", &json!({ "reason": "held" })).ok();
        browser.send("PATCH", "/api/pipelines/a", &[], br#"{"newSlug":"b"}"#).ok();
        let found = browser.get("/api/pauses").ok().json();
        assert_eq!(found["pipelines"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&found["pipelines"][0]["pipeline"], &found["pipelines"][0]["reason"]),
            (&json!("b"), &json!("held"))
        );
        browser.delete("/api/pipelines/b").ok();
        assert_eq!(browser.get("/api/pauses").ok().json()["pipelines"], json!([]));
    });
}
