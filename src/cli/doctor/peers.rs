//! Whether running services accept this environment's secrets.

use std::net::SocketAddr;
use std::time::Duration;

use super::check::CheckResult;
use super::context::DoctorContext;
use super::worker;
use crate::cli::probe::{ProbeResult, post};
use crate::config::{Secret, WebConfig, WithWarnings};

const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// The test event that stores send to a webhook; it has no effect.
const TEST_EVENT: &str = r#"{"Event":"s3:TestEvent"}"#;

pub(super) fn secrets(context: &DoctorContext) -> Vec<CheckResult> {
    let mut findings = Vec::new();
    if let (Ok(WithWarnings { config, .. }), Some(at)) = (&context.worker, context.worker_address()) {
        findings.extend(webhook(at, &config.webhook_secret));
    }
    if let Ok(WithWarnings { config, .. }) = &context.web {
        findings.push(worker_token(config));
    }
    if findings.is_empty() {
        findings.push(CheckResult::skipped("no service of this environment is running"));
    }
    findings
}

/// `None` if no worker responds here, which another check reports.
fn webhook(at: SocketAddr, secret: &Secret) -> Option<CheckResult> {
    if !worker::responds_at(at) {
        return None;
    }
    let headers = [("X-Svc-Webhook-Secret", secret.reveal())];
    match post(&format!("http://{at}/events/s3"), &headers, TEST_EVENT, ANSWER_TIME_MAX) {
        ProbeResult::Http(200, _) => {
            Some(CheckResult::ok(format!("the worker at http://{at} accepts SVC_WEBHOOK_SECRET")))
        }
        ProbeResult::Http(401, _) => Some(CheckResult::problem(
            format!("the worker at http://{at} rejects SVC_WEBHOOK_SECRET of this environment"),
            "if that worker belongs to another installation on this machine, set PORT to this installation's; \
             otherwise set the same secret for the worker, this environment and the store's webhook target, and \
             restart the worker",
        )),
        ProbeResult::Http(..) | ProbeResult::NotListening | ProbeResult::Silent(_) => None,
    }
}

fn worker_token(config: &WebConfig) -> CheckResult {
    let url = &config.worker_url;
    let bearer = format!("Bearer {}", config.worker_token.reveal());
    let start = "start a worker, or correct SVC_WORKER_URL: until then expressions in configs are not checked";
    match post(&format!("{url}/config/validate"), &[("Authorization", &bearer)], "{}", ANSWER_TIME_MAX) {
        ProbeResult::Http(200, _) => CheckResult::ok(format!("the worker at {url} accepts SVC_WORKER_TOKEN")),
        ProbeResult::Http(401, _) => CheckResult::problem(
            format!("the worker at {url} rejects SVC_WORKER_TOKEN"),
            "if that worker belongs to another installation, correct SVC_WORKER_URL; otherwise set the same \
             SVC_WORKER_TOKEN for workers and web services, and restart them",
        ),
        ProbeResult::Http(status, _) => {
            CheckResult::warning(format!("the server at {url} is not a worker: status {status}, expected 200"), start)
        }
        ProbeResult::NotListening => CheckResult::warning(format!("no worker responds at {url}"), start),
        ProbeResult::Silent(why) => CheckResult::warning(format!("no worker responds at {url}: {why}"), start),
    }
}
