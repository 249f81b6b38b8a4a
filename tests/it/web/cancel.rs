//! Cancelling queries from any process.

use std::time::{Duration, Instant};

use serde_json::json;

use super::on_both;
use super::tables::TripsSite;
use crate::support::browser::Browser;
use crate::support::site::{Kind, Site, await_some};

const ENDLESS: &str = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range = -1";

fn on(kind: Kind) -> TripsSite {
    let mut site = Site::new(kind);
    site.set("SVC_QUERY_TIMEOUT_MS", "120000");
    TripsSite::on(site)
}

/// Cancels once the query is registered.
fn cancel(browser: &Browser, id: &str) {
    await_some("the query to be known", || {
        let reply = browser.post("/api/p/trips/query/cancel", &json!({ "query_id": id }));
        if reply.status == 404 {
            reply.refused(404, "query_not_found");
            return None;
        }
        assert_eq!(reply.ok().json(), json!({ "cancelled": true }));
        Some(())
    });
}

#[test]
fn query_is_cancelled_by_any_process() {
    on_both(|kind| {
        let trips = on(kind);
        let other = trips.site.web();
        let elsewhere = Browser { address: other.address(), ..trips.browser.clone() };
        for (browser, id) in [(&trips.browser, "own"), (&elsewhere, "others")] {
            std::thread::scope(|scope| {
                let began = Instant::now();
                let query = scope
                    .spawn(|| trips.browser.post("/api/p/trips/query", &json!({ "sql": ENDLESS, "query_id": id })));
                cancel(browser, id);
                query.join().unwrap().refused(422, "query_cancelled");
                assert!(began.elapsed() < Duration::from_secs(60));
            });
            browser.post("/api/p/trips/query/cancel", &json!({ "query_id": id })).refused(404, "query_not_found");
        }
        let fine = trips.browser.post("/api/p/trips/query", &json!({ "sql": "SELECT 1", "query_id": "own" })).ok();
        assert_eq!(fine.json()["rows"], json!([[1]]));
    });
}

#[test]
fn query_ids_are_unique_within_a_pipeline() {
    let trips = on(Kind::Embedded);
    trips.site.pipeline("other", &json!({}));
    std::thread::scope(|scope| {
        let query = scope.spawn(|| {
            // The other request may be registered first.
            await_some("the query's end", || {
                let reply = trips.browser.post("/api/p/trips/query", &json!({ "sql": ENDLESS, "query_id": "q" }));
                (reply.status != 409).then_some(reply)
            })
        });
        await_some("the id to be taken", || {
            let reply = trips.browser.post("/api/p/trips/query", &json!({ "sql": "SELECT 1", "query_id": "q" }));
            (reply.status == 409).then(|| reply.refused(409, "already_exists"))
        });
        trips.browser.post("/api/p/other/query/cancel", &json!({ "query_id": "q" })).refused(404, "query_not_found");
        trips.browser.post("/api/p/other/query", &json!({ "sql": "SELECT 1", "query_id": "q" })).ok();
        cancel(&trips.browser, "q");
        query.join().unwrap().refused(422, "query_cancelled");
    });
}

#[test]
fn malformed_ids_and_queries_are_rejected() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let cancel = |body: &serde_json::Value| browser.post("/api/p/trips/query/cancel", body);
        for body in [json!({}), json!({ "query_id": "" }), json!({ "query_id": "a:b" }), json!({ "query_id": 5 })] {
            cancel(&body).refused(400, "invalid_request");
        }
        cancel(&json!({ "query_id": "unknown" })).refused(404, "query_not_found");
    });
}
