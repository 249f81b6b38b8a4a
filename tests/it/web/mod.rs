//! The web service as browsers use it: the real binary over HTTP, on every backend.

mod auth;
mod cache;
mod cancel;
mod dashboards;
mod query;
mod routes;
mod rows;
mod snapshot;
mod tables;

use crate::support::site::Kind;

/// Runs a test on each kind of installation.
pub fn on_both(test: impl Fn(Kind)) {
    test(Kind::Embedded);
    test(Kind::Fleet);
}
