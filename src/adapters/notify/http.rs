//! Sends notifications by HTTP POST.

use std::time::Duration;

use ureq::Agent;

use super::payload;
use crate::adapters::network::{by_proxy, client};
use crate::config::{NetworkConfig, NotifyRoute, NotifyTarget, Secret};
use crate::domain::digest::hmac_sha256_hex;
use crate::domain::notification::{Notification, TargetKind, TargetName};
use crate::ports::NotificationTarget;
use crate::ports::notification_target::DeliveryError;
use crate::runtime::{Clock, SystemClock};

/// Timeout of a whole request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(15);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Maximum number of bytes read from a response.
const RESPONSE_BYTES_MAX: u64 = 64 << 10;
/// Longest pause that a target can ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

const TIMESTAMP: &str = "x-lakemill-timestamp";
const SIGNATURE: &str = "x-lakemill-signature";
const EVENT: &str = "x-lakemill-event";
const ID: &str = "x-lakemill-id";

/// A webhook.
pub(super) struct HttpTarget {
    name: TargetName,
    agent: Agent,
    route: HttpRoute,
}

enum HttpRoute {
    Json { url: Secret, key: Secret },
    Slack(Secret),
    Teams(Secret),
    Mattermost(Secret),
    Ntfy { server: Secret, topic: Secret, authorization: Option<Secret> },
}

impl HttpTarget {
    pub(super) fn open(target: &NotifyTarget, key: &Secret, network: &NetworkConfig) -> Result<Self, String> {
        let (url, route) = match (&target.route, target.name.kind) {
            (NotifyRoute::Http(url), TargetKind::Slack) => (url, HttpRoute::Slack(url.clone())),
            (NotifyRoute::Http(url), TargetKind::Teams) => (url, HttpRoute::Teams(url.clone())),
            (NotifyRoute::Http(url), TargetKind::Mattermost) => (url, HttpRoute::Mattermost(url.clone())),
            (NotifyRoute::Http(url), TargetKind::Json | TargetKind::Ntfy | TargetKind::Smtp) => {
                (url, HttpRoute::Json { url: url.clone(), key: key.clone() })
            }
            (NotifyRoute::Ntfy { server, topic, authorization }, _) => {
                let authorization = authorization.clone();
                (server, HttpRoute::Ntfy { server: server.clone(), topic: topic.clone(), authorization })
            }
            (NotifyRoute::Mail(_), _) => return Err("it is not a webhook".into()),
        };
        let client = client(url.reveal(), network).map_err(|error| error.to_string())?;
        let config = client
            .max_idle_connections(0)
            .timeout_connect(Some(CONNECT_TIME_MAX))
            .timeout_global(Some(REQUEST_TIME_MAX))
            .build();
        Ok(Self { name: target.name.clone(), agent: config.new_agent(), route })
    }

    fn post(&self, url: &Secret, headers: &[(&str, &str)], body: &[u8]) -> Result<(), DeliveryError> {
        let mut request = self.agent.post(url.reveal());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = request.content_type("application/json").send(body);
        let mut response = sent.map_err(|error| failed(describe(&error) + &by_proxy(self.agent.config().proxy())))?;
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (retry_after, location) = (header("retry-after"), header("location"));
        // Read, so that the target has sent all of it; its content doesn't matter.
        let _ = response.body_mut().with_config().limit(RESPONSE_BYTES_MAX).read_to_vec();
        match status {
            200..=299 => Ok(()),
            300..=399 => {
                let to = location.and_then(|url| Some(url::Url::parse(&url).ok()?.host_str()?.to_owned()));
                let to = to.map_or_else(String::new, |host| format!(" to `{host}`"));
                Err(failed(format!("responded with a redirect{to} (status {status}), which is not followed")))
            }
            status => {
                let seconds = retry_after.and_then(|text| text.trim().parse::<u64>().ok()).map(Duration::from_secs);
                let retry_after = seconds.map(|pause| pause.min(RETRY_AFTER_MAX));
                let message = format!("responded with status {status}, expected 200 to 299");
                Err(DeliveryError { message, retry_after })
            }
        }
    }
}

impl NotificationTarget for HttpTarget {
    fn name(&self) -> &TargetName {
        &self.name
    }

    fn send(&self, notification: &Notification) -> Result<(), DeliveryError> {
        match &self.route {
            HttpRoute::Json { url, key } => {
                let body = serde_json::to_vec(notification).map_err(|error| failed(error.to_string()))?;
                let timestamp = SystemClock.now().timestamp().to_string();
                let signature = signature(key, &timestamp, &body);
                let headers = [
                    (TIMESTAMP, timestamp.as_str()),
                    (SIGNATURE, signature.as_str()),
                    (EVENT, notification.event.as_str()),
                    (ID, notification.id.as_str()),
                ];
                self.post(url, &headers, &body)
            }
            HttpRoute::Slack(url) => self.post(url, &[], &payload::slack(notification)),
            HttpRoute::Teams(url) => self.post(url, &[], &payload::teams(notification)),
            HttpRoute::Mattermost(url) => self.post(url, &[], &payload::mattermost(notification)),
            HttpRoute::Ntfy { server, topic, authorization } => {
                let headers: Vec<(&str, &str)> =
                    authorization.iter().map(|value| ("authorization", value.reveal())).collect();
                self.post(server, &headers, &payload::ntfy(notification, topic.reveal()))
            }
        }
    }
}

/// `v1=` and the HMAC-SHA256 of `<timestamp>.<body>`, in hex.
fn signature(key: &Secret, timestamp: &str, body: &[u8]) -> String {
    format!("v1={}", hmac_sha256_hex(key.reveal().as_bytes(), &[timestamp.as_bytes(), b".", body]))
}

fn failed(message: String) -> DeliveryError {
    DeliveryError { message, retry_after: None }
}

/// Without the URL, which is a secret.
fn describe(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "timed out".into(),
        ureq::Error::HostNotFound => "the host name can't be resolved".into(),
        ureq::Error::ConnectionFailed => "the connection failed".into(),
        ureq::Error::ConnectProxyFailed(reason) => reason.clone(),
        ureq::Error::Io(error) => format!("the connection failed: {}", error.kind()),
        ureq::Error::Rustls(error) => format!("TLS failed: {error}"),
        // The enum is non-exhaustive.
        _ => "the request failed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with Python's `hmac`.
    #[test]
    fn signature_covers_timestamp_and_body() {
        let key = Secret::new("sixteen bytes key");
        let expected = "v1=743cf21c8cbdfcd369d84462ed9528f4a1e46a73d58c107c59e66abd006310cd";
        assert_ne!(signature(&key, "1700000001", b"{\"a\":1}"), signature(&key, "1700000000", b"{\"a\":1}"));
        assert_eq!(signature(&key, "1700000000", b"{\"a\":1}"), expected);
    }
}
