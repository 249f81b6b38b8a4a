//! Checks whether the store notifies the worker of new files.

use std::time::Duration;

use super::check::CheckResult;
use super::context::DoctorContext;
use super::objects::{listed, store_missing};
use super::worker::{ask, is_of_this_machine};
use crate::cli::probe::ProbeResult;
use crate::cli::services::Backend;
use crate::cli::webhook::reports_new_files;
use crate::ports::store::Bucket;

/// Reconciliation at this interval replaces notifications.
const FREQUENT_INTERVAL_MAX: Duration = Duration::from_secs(3_600);

pub(super) fn rule(context: &DoctorContext) -> Vec<CheckResult> {
    let store = match context.backend() {
        Ok(Backend::S3(store)) => store,
        Ok(Backend::Folder(_)) => {
            return vec![CheckResult::ok("not needed: the worker watches the lake's folder")];
        }
        Err(missing) => return vec![store_missing(missing)],
    };
    if let Err(error) = listed(&**store, Bucket::Lake) {
        return vec![CheckResult::skipped(format!("reading the lake bucket failed: {error}"))];
    }
    let every = context.worker.as_ref().ok().and_then(|loaded| loaded.config.reconcile);
    let every = every.filter(|every| *every <= FREQUENT_INTERVAL_MAX);
    let reconciled = every.map(|every| {
        let seconds = every.as_secs();
        format!("no notifications; the lake is compared every {seconds} s (SVC_RECONCILE_SECONDS)")
    });
    let mut findings = vec![match store.notifications(Bucket::Lake) {
        Ok(rules) if reports_new_files(&rules) => CheckResult::ok(
            "the lake bucket has a notification rule for new \
         files",
        ),
        Ok(rules) if rules.has_event_bridge() => CheckResult::ok(
            "the lake bucket sends its events to EventBridge; whether one of its rules reports new files can't be checked",
        ),
        Ok(_) | Err(_) if reconciled.is_some() => CheckResult::ok(reconciled.unwrap_or_default()),
        Ok(_) => CheckResult::warning(
            "the lake bucket has no notification rule for new files: they don't start runs",
            "run `lakemill webhook install`, or set SVC_RECONCILE_SECONDS to compare the lake regularly",
        ),
        Err(error) => CheckResult::warning(
            format!("reading the notification rules of the lake bucket failed: {error}"),
            "if the store has no notifications, set SVC_RECONCILE_SECONDS to compare the lake regularly",
        ),
    }];
    // Without a listening worker this check is skipped; the worker's check reports it.
    if let Some(at) = context.worker_address().filter(|at| is_of_this_machine(at.ip())) {
        for method in ["GET", "HEAD"] {
            match ask(at, method, "/") {
                ProbeResult::Http(200, _) | ProbeResult::NotListening => {}
                ProbeResult::Http(status, _) => {
                    findings.push(refused(method, &format!("answered with status {status}")))
                }
                ProbeResult::Silent(why) => findings.push(refused(method, &format!("failed: {why}"))),
            }
        }
    }
    findings
}

fn refused(method: &str, how: &str) -> CheckResult {
    let message =
        format!("the request {method} / to the worker {how}; stores send this request before they deliver events");
    CheckResult::warning(message, "check which server listens on PORT, and any proxy in front of it")
}
