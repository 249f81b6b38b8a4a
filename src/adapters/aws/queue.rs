//! A queue of SQS: its JSON protocol, with requests signed in their headers.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Agent;
use url::Url;

use super::chain::Credentials;
use super::keys::SigningKeys;
use super::sign::{RequestSigner, UnsignedRequest};
use crate::adapters::network::{by_proxy, client};
use crate::config::{EventQueueConfig, NetworkConfig};
use crate::domain::text::clipped;
use crate::ports::EventQueue;
use crate::ports::event_queue::{QUEUE_CALL_TIME_MAX, QueueError, QueueMessage, QueueState};
use crate::runtime::Clock;
use crate::system::http_client::{self, TextResponse};

/// Longest wait for messages that SQS allows.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// For connecting, sending and receiving, in addition to the wait for messages.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Messages per request, the most that SQS allows.
const BATCH_MAX: usize = 10;
/// Largest response: a batch of messages of 1 MiB each, with escapes.
const RESPONSE_BYTES_MAX: u64 = 32 << 20;
const CONTENT_TYPE: &str = "application/x-amz-json-1.0";
/// Codes of requests whose keys have ended or are unknown.
const KEY_CODES: [&str; 5] = [
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "InvalidSecurityToken",
    "UnrecognizedClientException",
];

const _: () = assert!(2 * (WAIT_MAX.as_secs() + ANSWER_TIME_MAX.as_secs()) <= QUEUE_CALL_TIME_MAX.as_secs());

/// A queue of SQS.
pub struct SqsQueue {
    url: String,
    /// Scheme and host of the queue's URL.
    endpoint: Url,
    signer: RequestSigner,
    credentials: Arc<Credentials>,
    clock: Arc<dyn Clock>,
    agent: Agent,
}

/// Why a request failed.
enum CallError {
    /// The keys have ended or are unknown.
    Keys(String),
    Other(String),
}

impl SqsQueue {
    /// Sends nothing.
    ///
    /// # Errors
    /// The URL or the file of certificate authorities can't be used.
    pub fn open(
        config: &EventQueueConfig,
        credentials: Arc<Credentials>,
        clock: Arc<dyn Clock>,
        network: &NetworkConfig,
    ) -> Result<Self, String> {
        let mut endpoint = Url::parse(&config.url).map_err(|error| format!("`{}`: {error}", config.url))?;
        endpoint.set_path("/");
        let client = client(&config.url, network).map_err(|error| error.to_string())?;
        let agent = client.timeout_connect(Some(CONNECT_TIME_MAX)).build().new_agent();
        let signer = RequestSigner::new(&config.region, "sqs");
        Ok(Self { url: config.url.clone(), endpoint, signer, credentials, clock, agent })
    }

    /// Sends an action, and once more with other keys if these were refused.
    fn call<T: for<'a> Deserialize<'a>>(
        &self,
        action: &str,
        mut fields: Value,
        wait: Duration,
    ) -> Result<T, QueueError> {
        fields["QueueUrl"] = self.url.as_str().into();
        let body = fields.to_string();
        let failed = |reason: String| QueueError { queue: self.url.clone(), reason };
        let of_keys = |error: &dyn std::fmt::Display| failed(error.to_string());
        let now = self.clock.now();
        let keys = self.credentials.keys(now).map_err(|error| of_keys(&error))?;
        let answer = match self.send(action, &body, wait, &keys) {
            Err(CallError::Keys(_)) if self.credentials.reject(&keys, now) => {
                let keys = self.credentials.keys(self.clock.now()).map_err(|error| of_keys(&error))?;
                self.send(action, &body, wait, &keys)
            }
            answer => answer,
        };
        let text = match answer {
            Ok(text) => text,
            Err(CallError::Keys(reason) | CallError::Other(reason)) => {
                return Err(failed(format!("{action}: {reason}")));
            }
        };
        let text = if text.trim().is_empty() { "{}" } else { text.as_str() };
        serde_json::from_str(text).map_err(|error| failed(format!("{action}: the response can't be read: {error}")))
    }

    fn send(&self, action: &str, body: &str, wait: Duration, keys: &SigningKeys) -> Result<String, CallError> {
        let target = format!("AmazonSQS.{action}");
        let headers = [("content-type", CONTENT_TYPE), ("x-amz-target", target.as_str())];
        let request = UnsignedRequest { method: "POST", url: &self.endpoint, headers: &headers, body: body.as_bytes() };
        let signed = self.signer.headers(keys, &request, self.clock.now());
        let signed = signed.map_err(|error| CallError::Other(error.to_string()))?;
        let headers = headers.into_iter().chain(signed.iter().map(|(name, value)| (*name, value.as_str())));
        let request = http_client::request("POST", self.endpoint.as_str(), headers, body.as_bytes());
        let request = self.agent.configure_request(request.map_err(CallError::Other)?);
        let request = request.timeout_global(Some(wait + ANSWER_TIME_MAX)).build();
        let sent = http_client::send(&self.agent, request, RESPONSE_BYTES_MAX);
        let TextResponse { status, text } =
            sent.map_err(|error| CallError::Other(error + &by_proxy(self.agent.config().proxy())))?;
        if status == 200 { Ok(text) } else { Err(refusal(status, &text)) }
    }
}

/// An error's document.
#[derive(Deserialize)]
struct Refusal {
    /// Perhaps with a namespace before `#`.
    #[serde(rename = "__type")]
    code: String,
    #[serde(alias = "Message", default)]
    message: String,
}

fn refusal(status: u16, text: &str) -> CallError {
    let Ok(Refusal { code, message }) = serde_json::from_str(text) else {
        return CallError::Other(format!("status {status}: {}", clipped(text.trim())));
    };
    let code = code.rsplit('#').next().unwrap_or_default();
    let reason = format!("status {status}, `{}`: {}", clipped(code), clipped(&message));
    if KEY_CODES.contains(&code) { CallError::Keys(reason) } else { CallError::Other(reason) }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Received {
    #[serde(default)]
    messages: Vec<ReceivedMessage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceivedMessage {
    message_id: String,
    receipt_handle: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    attributes: ReceivedAttributes,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct ReceivedAttributes {
    approximate_receive_count: Option<String>,
    /// Milliseconds since 1970.
    sent_timestamp: Option<String>,
}

impl ReceivedMessage {
    fn into_message(self) -> QueueMessage {
        let Self { message_id, receipt_handle, body, attributes } = self;
        let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
        let receives = number(attributes.approximate_receive_count).and_then(|count| u32::try_from(count).ok());
        let sent = number(attributes.sent_timestamp).and_then(|ms| i64::try_from(ms).ok());
        QueueMessage {
            id: message_id,
            receipt: receipt_handle,
            body,
            receives: receives.unwrap_or(1),
            sent_at: sent.and_then(DateTime::<Utc>::from_timestamp_millis),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Deleted {
    #[serde(default)]
    failed: Vec<NotDeleted>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NotDeleted {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Described {
    #[serde(default)]
    attributes: QueueAttributes,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct QueueAttributes {
    approximate_number_of_messages: Option<String>,
    /// JSON.
    redrive_policy: Option<String>,
}

impl Described {
    fn state(&self) -> QueueState {
        let policy =
            self.attributes.redrive_policy.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
        // A number or, set by some tools, its text.
        let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
        let receives_max = policy.as_ref().and_then(|policy| number(policy.get("maxReceiveCount")?));
        let waiting = self.attributes.approximate_number_of_messages.as_deref().and_then(|text| text.parse().ok());
        QueueState {
            receives_max: receives_max.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
            waiting: waiting.unwrap_or_default(),
        }
    }
}

impl EventQueue for SqsQueue {
    fn name(&self) -> &str {
        &self.url
    }

    fn receive(&self, wait: Duration) -> Result<Vec<QueueMessage>, QueueError> {
        let wait = wait.min(WAIT_MAX);
        let attributes = ["ApproximateReceiveCount", "SentTimestamp"];
        let fields = json!({
            "MaxNumberOfMessages": BATCH_MAX,
            "WaitTimeSeconds": wait.as_secs(),
            "MessageSystemAttributeNames": attributes,
            // The name before 2023, which other implementations know.
            "AttributeNames": attributes,
        });
        let received: Received = self.call("ReceiveMessage", fields, wait)?;
        Ok(received.messages.into_iter().map(ReceivedMessage::into_message).collect())
    }

    fn delete(&self, messages: &[QueueMessage]) -> Result<Vec<String>, QueueError> {
        let mut failures = Vec::new();
        for batch in messages.chunks(BATCH_MAX) {
            let entry = |(at, message): (usize, &QueueMessage)| json!({ "Id": at.to_string(), "ReceiptHandle": message.receipt });
            let entries: Vec<Value> = batch.iter().enumerate().map(entry).collect();
            let deleted: Deleted = self.call("DeleteMessageBatch", json!({ "Entries": entries }), Duration::ZERO)?;
            let reason = |failure: NotDeleted| format!("`{}` {}", clipped(&failure.code), clipped(&failure.message));
            failures.extend(deleted.failed.into_iter().map(reason));
        }
        Ok(failures)
    }

    fn state(&self) -> Result<QueueState, QueueError> {
        let fields = json!({ "AttributeNames": ["RedrivePolicy", "ApproximateNumberOfMessages"] });
        let described: Described = self.call("GetQueueAttributes", fields, Duration::ZERO)?;
        Ok(described.state())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of SQS's documentation, shortened.
    #[test]
    fn answers_are_read_as_documented() {
        let text = r#"{"Messages": [{"Attributes": {"SenderId": "AIDASSYFHUBOBT7F4XT75",
            "ApproximateFirstReceiveTimestamp": "1677112433437", "ApproximateReceiveCount": "3",
            "SentTimestamp": "1677112427387"}, "Body": "This is a test message",
            "MD5OfBody": "fafb00f5732ab283681e124bf8747ed1", "MessageId": "219f8380-5770-4cc2-8c3e-5c715e145f5e",
            "ReceiptHandle": "AQEBaZ+j5qUoOAoxlmrCQPkBm9njMWXqemmIG6shMHCO6fV20JrQYg/AiZ8JELwLwOu5U61W+aIX5Qzu7GGofxJuvzymr4Ph53RiR0mudj4InLSgpSspYeTRDteBye5tV/txbZDdNZxsi+qqZA9xPnmMscKQqF6pGhnGIKrnkYGl45Nl6GPIZv62LrIRb6mSqOn1fn0yqrvmWuuY3w2UzQbaYunJWGxpzZze21EOBtywknU3Je/g7G9is+c6K9hGniddzhLkK1tHzZKjejOU4jokaiB4nmi0dF3JqLzDsQuPF0Gi8qffhEvw56nl8QCbluSJScFhJYvoagGnDbwOnd9z50L239qtFIgETdpKyirlWwl/NGjWJ45dqWpiW3d2Ws7q"}]}"#;
        let received: Received = serde_json::from_str(text).unwrap();
        let message = received.messages.into_iter().next().unwrap().into_message();
        assert_eq!((message.body.as_str(), message.receives), ("This is a test message", 3));
        assert_eq!(message.sent_at.unwrap().timestamp_millis(), 1_677_112_427_387);
        assert!(serde_json::from_str::<Received>("{}").unwrap().messages.is_empty());
        let text = r#"{"Failed": [{"Id": "1", "SenderFault": true, "Code": "ReceiptHandleIsInvalid", "Message": "m"}],
            "Successful": [{"Id": "0"}]}"#;
        assert_eq!(serde_json::from_str::<Deleted>(text).unwrap().failed[0].code, "ReceiptHandleIsInvalid");
    }

    #[test]
    fn dead_letter_queue_is_read_from_the_redrive_policy() {
        let state = |attributes: Value| {
            serde_json::from_value::<Described>(json!({ "Attributes": attributes })).unwrap().state()
        };
        let policy =
            |count: Value| json!({ "deadLetterTargetArn": "arn:aws:sqs:r:1:d", "maxReceiveCount": count }).to_string();
        let some = QueueState { receives_max: Some(5), waiting: 7 };
        for count in [json!(5), json!("5")] {
            let attributes = json!({ "RedrivePolicy": policy(count), "ApproximateNumberOfMessages": "7" });
            assert_eq!(state(attributes), some);
        }
        assert_eq!(state(json!({})), QueueState { receives_max: None, waiting: 0 });
        assert_eq!(state(json!({ "RedrivePolicy": "{}" })).receives_max, None);
    }

    #[test]
    fn key_errors_are_distinguished_from_others() {
        let text =
            r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}"#;
        let CallError::Other(reason) = refusal(400, text) else { panic!("not of keys") };
        assert_eq!(reason, "status 400, `QueueDoesNotExist`: The specified queue does not exist.");
        let text = r#"{"__type":"com.amazon.coral.service#ExpiredTokenException","Message":"expired"}"#;
        assert!(matches!(refusal(403, text), CallError::Keys(_)));
        let CallError::Other(reason) = refusal(503, "<html>") else { panic!("not of keys") };
        assert_eq!(reason, "status 503: <html>");
    }
}
