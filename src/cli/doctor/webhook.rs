//! Checks whether the store notifies the worker of new files.

use std::time::Duration;

use super::check::CheckResult;
use super::objects::{listed, without};
use super::surroundings::Surroundings;
use super::worker::{ask, is_of_this_machine};
use crate::cli::probe::ProbeResult;
use crate::cli::services::Backend;
use crate::cli::webhook::reports_new_files;
use crate::ports::store::Bucket;

/// Comparing the lake this often replaces notifications.
const OFTEN: Duration = Duration::from_secs(3_600);

pub(super) fn rule(around: &Surroundings) -> Vec<CheckResult> {
    let store = match around.backend() {
        Ok(Backend::S3(store)) => store,
        Ok(Backend::Folder(_)) => {
            return vec![CheckResult::ok("not needed: the worker watches the lake's folder itself")];
        }
        Err(missing) => return vec![without(missing)],
    };
    if let Err(error) = listed(&**store, Bucket::Lake) {
        return vec![CheckResult::skipped(format!("can't be looked at: {error}"))];
    }
    let every = around.worker.as_ref().ok().and_then(|loaded| loaded.config.reconcile);
    let every = every.filter(|every| *every <= OFTEN);
    let reconciled = every.map(|every| {
        let seconds = every.as_secs();
        format!("the store tells nobody, and the lake is looked through every {seconds} s (SVC_RECONCILE_SECONDS)")
    });
    let mut findings = vec![match store.notifications(Bucket::Lake) {
        Ok(rules) if reports_new_files(&rules) => CheckResult::ok("the lake bucket has a rule for new files"),
        Ok(_) | Err(_) if reconciled.is_some() => CheckResult::ok(reconciled.unwrap_or_default()),
        Ok(_) => CheckResult::warning(
            "the lake bucket has no rule for new files: they start no runs",
            "`lakemill webhook install --arn ARN`; or SVC_RECONCILE_SECONDS, to have the lake looked through regularly",
        ),
        Err(error) => CheckResult::warning(
            format!("the rules of the lake bucket can't be read: {error}"),
            "if the store has no notifications, set SVC_RECONCILE_SECONDS, to have the lake looked through regularly",
        ),
    }];
    // Nothing listens there, which the worker's own check reports.
    if let Some(at) = around.worker_address().filter(|at| is_of_this_machine(at.ip())) {
        for method in ["GET", "HEAD"] {
            match ask(at, method, "/") {
                ProbeResult::Http(200, _) | ProbeResult::Nobody => {}
                ProbeResult::Http(status, _) => findings.push(refused(method, &format!("with status {status}"))),
                ProbeResult::Silent(why) => findings.push(refused(method, &format!("not: {why}"))),
            }
        }
    }
    findings
}

fn refused(method: &str, how: &str) -> CheckResult {
    let message = format!("the worker answers {method} / {how}, which stores ask before they post");
    CheckResult::warning(message, "see what answers at PORT, and what stands in front of it")
}
