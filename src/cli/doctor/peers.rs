//! Whether services that run take the secrets of this environment.

use std::net::SocketAddr;
use std::time::Duration;

use super::check::Finding;
use super::surroundings::Surroundings;
use super::worker;
use crate::cli::probe::{Answer, post};
use crate::config::{Loaded, Secret, WebConfig};

const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// What stores send to try a webhook: it changes nothing.
const TEST_EVENT: &str = r#"{"Event":"s3:TestEvent"}"#;

pub(super) fn secrets(around: &Surroundings) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let (Ok(Loaded { config, .. }), Some(at)) = (&around.worker, around.worker_address()) {
        findings.extend(webhook(at, &config.webhook_secret));
    }
    if let Ok(Loaded { config, .. }) = &around.web {
        findings.push(worker_token(config));
    }
    if findings.is_empty() {
        findings.push(Finding::skipped("no service of this environment answers"));
    }
    findings
}

/// `None` if no worker responds here, which another check reports.
fn webhook(at: SocketAddr, secret: &Secret) -> Option<Finding> {
    if !worker::answers_at(at) {
        return None;
    }
    let headers = [("X-Svc-Webhook-Secret", secret.reveal())];
    match post(&format!("http://{at}/events/s3"), &headers, TEST_EVENT, ANSWER_TIME_MAX) {
        Answer::Http(200, _) => Some(Finding::ok(format!("the worker at http://{at} takes SVC_WEBHOOK_SECRET"))),
        Answer::Http(401, _) => Some(Finding::problem(
            format!("the worker at http://{at} refuses SVC_WEBHOOK_SECRET of this environment"),
            "if it is the worker of another installation on this machine, set PORT to that of this one's; else give \
             worker, this environment and the store's webhook target the same secret, and restart the worker",
        )),
        Answer::Http(..) | Answer::Nobody | Answer::Silent(_) => None,
    }
}

fn worker_token(config: &WebConfig) -> Finding {
    let url = &config.worker_url;
    let bearer = format!("Bearer {}", config.worker_token.reveal());
    let start = "start a worker, or correct SVC_WORKER_URL: until then expressions in configs are not checked";
    match post(&format!("{url}/config/validate"), &[("Authorization", &bearer)], "{}", ANSWER_TIME_MAX) {
        Answer::Http(200, _) => Finding::ok(format!("the worker at {url} takes SVC_WORKER_TOKEN")),
        Answer::Http(401, _) => Finding::problem(
            format!("the worker at {url} refuses SVC_WORKER_TOKEN"),
            "if it is the worker of another installation, correct SVC_WORKER_URL; else give workers and web services \
             the same SVC_WORKER_TOKEN, and restart them",
        ),
        Answer::Http(status, _) => {
            Finding::warning(format!("what answers at {url} is no worker: status {status}, expected 200"), start)
        }
        Answer::Nobody => Finding::warning(format!("no worker answers at {url}"), start),
        Answer::Silent(why) => Finding::warning(format!("no worker answers at {url}: {why}"), start),
    }
}
