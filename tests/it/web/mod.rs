//! The web service as browsers use it: the binary over HTTP, on every backend.

mod about;
mod archive;
mod audit;
mod auth;
mod bad_input;
mod cache;
mod cancel;
mod config;
mod config_versions;
mod dashboards;
mod fleet;
mod history;
mod impact;
mod infer;
mod jobs;
mod lake;
mod lifecycle;
mod pauses;
mod pipelines;
mod preview;
mod published;
mod query;
mod routes;
mod rows;
mod saved_queries;
mod schemathesis;
mod settings;
mod snapshot;
mod staged_tables;
mod stats;
mod status;
mod stored_tables;
mod tables;
mod ui;
mod unfinished;
mod unusual_keys;
mod validate;

use serde_json::json;

use crate::support::browser::Browser;
use crate::support::site::{Kind, Site};

/// Whether a process is stopped (SIGSTOP).
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Runs a test on each kind of installation.
pub fn on_both(test: impl Fn(Kind)) {
    test(Kind::Embedded);
    test(Kind::Fleet);
}

/// A request: method, path, body.
pub type RequestParts<'a> = (&'a str, &'a str, &'a str);

/// Checks that during a store's outage each of these requests, which would otherwise succeed, changes nothing and
/// returns the code in the table, and that all succeed after it.
pub fn check_outages(site: &Site, browser: &Browser, requests: &[RequestParts<'_>]) {
    let send = |(method, path, body): &RequestParts<'_>| browser.send(method, path, &[], body.as_bytes());
    let before = site.contents();
    let code = site.break_store();
    for request in requests {
        send(request).refused(502, code);
    }
    site.restore_store();
    assert_eq!(site.contents(), before);
    site.break_kv();
    for request in requests {
        send(request).refused(503, "kv_unavailable");
    }
    site.restore_kv();
    assert_eq!(site.contents(), before);
    assert_eq!(browser.get("/api/auth/me").ok().json(), json!({ "authenticated": true }));
}
