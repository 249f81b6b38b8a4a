//! Parses events of the object store, as posted or received from a queue.
//!
//! Three shapes, of which SNS may wrap the first two, once:
//! - S3 event notifications (`Records`, or `s3:TestEvent` when a rule is installed), see `s3`;
//! - S3 events of EventBridge (`detail-type`), whose keys are not encoded;
//! - messages of SNS (`Type`), whose signature is the caller's to check.

mod s3;
mod summary;

use serde::Deserialize;
use serde_json::Value;

use crate::domain::limits::EVENT_BYTES_MAX;
use crate::ports::event_topics::{TopicMessage, TopicMessageKind};

pub use summary::EventSummary;
use summary::{EventBucket, EventObject};

/// A body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventBody {
    Events(EventSummary),
    /// Not verified.
    Topic(Box<TopicMessage>),
}

/// A body that holds no events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    #[error("the body is not JSON: {why}")]
    NotJson { why: String },
    #[error(
        "the body is not an S3 event notification: expected an object with an array `Records`, an EventBridge event of \
         S3, or an SNS message, found {found}"
    )]
    NotANotification { found: &'static str },
    #[error("the body is not an SNS message: {why}")]
    NotATopicMessage { why: String },
    #[error("the SNS message contains another SNS message; expected S3 events")]
    Nested,
    #[error("the SNS message is a `{found}`; expected a `Notification`")]
    NoNotification { found: &'static str },
    #[error("all events are of other buckets, such as `{name}`")]
    OtherBucket { name: String },
    #[error("the message has {bytes} bytes, expected at most {EVENT_BYTES_MAX}")]
    TooLarge { bytes: usize },
    #[error("`Message` of the SNS message: {0}")]
    InMessage(Box<EventError>),
}

/// The part of an EventBridge event that only S3 sends.
#[derive(Debug, Deserialize)]
struct NativeDetail<'a> {
    #[serde(borrow)]
    bucket: EventBucket<'a>,
    #[serde(borrow)]
    object: EventObject<'a>,
}

/// Parses a body. Events of buckets other than `lake_bucket` are ignored, as are malformed records.
///
/// # Errors
/// [`EventError`] if it has none of the shapes.
pub fn read(body: &[u8], lake_bucket: &str) -> Result<EventBody, EventError> {
    let envelope: Value =
        serde_json::from_slice(body).map_err(|error| EventError::NotJson { why: error.to_string() })?;
    let Value::Object(fields) = &envelope else { return Err(EventError::NotANotification { found: kind(&envelope) }) };
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let mut summary = EventSummary::default();
    match fields.get("Records") {
        Some(Value::Array(records)) => s3::add_records(&mut summary, records, lake_bucket),
        Some(other) => return Err(EventError::NotANotification { found: kind(other) }),
        None if text("Event") == Some("s3:TestEvent") => {}
        None if text("source").is_some() && fields.contains_key("detail-type") => match text("source") {
            Some("aws.s3") => add_native(&mut summary, text("detail-type"), fields.get("detail"), lake_bucket),
            _ => return Err(EventError::NotANotification { found: "an EventBridge event of another service" }),
        },
        None if fields.contains_key("Type") && fields.contains_key("Message") => {
            let message = TopicMessage::deserialize(&envelope);
            let message = message.map_err(|error| EventError::NotATopicMessage { why: error.to_string() })?;
            return Ok(EventBody::Topic(Box::new(message)));
        }
        None => return Err(EventError::NotANotification { found: "an object without it" }),
    }
    Ok(EventBody::Events(summary))
}

/// Parses the content of a notification of SNS. The caller must have verified it.
///
/// # Errors
/// Same as for [`read`]; another message of SNS, or of another kind, holds no events.
pub fn read_message(message: &TopicMessage, lake_bucket: &str) -> Result<EventSummary, EventError> {
    if message.kind != TopicMessageKind::Notification {
        return Err(EventError::NoNotification { found: message.kind.name() });
    }
    match read(message.message.as_bytes(), lake_bucket) {
        Ok(EventBody::Events(summary)) => Ok(summary),
        Ok(EventBody::Topic(_)) => Err(EventError::Nested),
        Err(error) => Err(EventError::InMessage(Box::new(error))),
    }
}

/// Parses a message of a queue, in which SNS may have wrapped it: who may send to the queue is for its policy to say.
///
/// # Errors
/// Same as for [`read`] and [`read_message`]; also if all its events are of other buckets, or if it is too large.
pub fn read_queued(body: &str, lake_bucket: &str) -> Result<EventSummary, EventError> {
    if body.len() as u64 > EVENT_BYTES_MAX {
        return Err(EventError::TooLarge { bytes: body.len() });
    }
    let summary = match read(body.as_bytes(), lake_bucket)? {
        EventBody::Events(summary) => summary,
        EventBody::Topic(message) => read_message(&message, lake_bucket)?,
    };
    match &summary.other_bucket {
        Some(name) if summary.of_lake == 0 => Err(EventError::OtherBucket { name: name.clone() }),
        _ => Ok(summary),
    }
}

/// Adds an EventBridge event of S3. Other and malformed ones are ignored.
fn add_native(summary: &mut EventSummary, kind: Option<&str>, detail: Option<&Value>, lake_bucket: &str) {
    let detail = detail.and_then(|detail| NativeDetail::deserialize(detail).ok());
    match detail {
        Some(detail) if detail.bucket.name != lake_bucket => summary.ignore_bucket(&detail.bucket.name),
        Some(detail) if kind == Some("Object Created") => summary.add(&detail.object.key, true),
        Some(_) => summary.ignore_kind(),
        None => summary.ignored += 1,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn events(body: &Value) -> EventSummary {
        match read(body.to_string().as_bytes(), "lake") {
            Ok(EventBody::Events(summary)) => summary,
            other => panic!("{other:?}"),
        }
    }

    fn wrapped(body: &str) -> Box<TopicMessage> {
        let wrapped = json!({ "Type": "Notification", "TopicArn": "arn:aws:sns:r:1:t", "Message": body });
        match read(wrapped.to_string().as_bytes(), "lake") {
            Ok(EventBody::Topic(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    /// As documented, with another bucket and key.
    fn native(kind: &str, bucket: &str, key: &str) -> Value {
        json!({
            "version": "0", "id": "17793124-05d4-b198-2fde-7ededc63b103", "detail-type": kind, "source": "aws.s3",
            "account": "111122223333", "time": "2021-11-12T00:00:00Z", "region": "ca-central-1",
            "resources": [format!("arn:aws:s3:::{bucket}")],
            "detail": {
                "version": "0", "bucket": { "name": bucket },
                "object": { "key": key, "size": 5, "etag": "b1946ac92492d2347c6235b4d2611184", "sequencer": "617f0" },
                "request-id": "N4N7GDK58NMKJ12R", "requester": "123456789012", "source-ip-address": "1.2.3.4",
                "reason": "PutObject",
            },
        })
    }

    #[test]
    fn keys_of_eventbridge_are_not_decoded() {
        let found = events(&native("Object Created", "lake", "pipelines/a/x+y%20é.csv"));
        assert_eq!((found.accepted, found.ignored), (1, 0));
        assert_eq!(found.changes.into_values().next(), Some(["x+y%20é.csv"].into_iter().collect()));
        for ignored in [
            native("Object Deleted", "lake", "pipelines/a/x.csv"),
            native("Object Tags Added", "lake", "pipelines/a/x.csv"),
            native("Object Created", "other", "pipelines/a/x.csv"),
            native("Object Created", "lake", "x.csv"),
            json!({ "source": "aws.s3", "detail-type": "Object Created" }),
            json!({ "source": "aws.s3", "detail-type": 7, "detail": 7 }),
        ] {
            let found = events(&ignored);
            assert_eq!((found.accepted, found.ignored), (0, 1), "{ignored}");
        }
    }

    #[test]
    fn sns_wraps_events_once() {
        let of_s3 = json!({ "Records": [{ "eventName": "ObjectCreated:Put",
            "s3": { "bucket": { "name": "lake" }, "object": { "key": "pipelines/a/x+y.csv" } } }] });
        for (body, key) in [(of_s3, "x y.csv"), (native("Object Created", "lake", "pipelines/a/x+y.csv"), "x+y.csv")] {
            let found = read_message(&wrapped(&body.to_string()), "lake").unwrap();
            assert_eq!(found.changes.into_values().next(), Some([key].into_iter().collect()));
        }
        let test = r#"{"Service":"Amazon S3","Event":"s3:TestEvent"}"#;
        assert_eq!(read_message(&wrapped(test), "lake"), Ok(EventSummary::default()));
        let twice = json!({ "Type": "Notification", "TopicArn": "t", "Message": test }).to_string();
        assert_eq!(read_message(&wrapped(&twice), "lake"), Err(EventError::Nested));
        let error = read_message(&wrapped("hello"), "lake").unwrap_err().to_string();
        assert!(error.starts_with("`Message` of the SNS message: the body is not JSON"), "{error}");
        let confirmation = TopicMessage { kind: TopicMessageKind::SubscriptionConfirmation, ..*wrapped(test) };
        let error = read_message(&confirmation, "lake").unwrap_err().to_string();
        assert_eq!(error, "the SNS message is a `SubscriptionConfirmation`; expected a `Notification`");
    }

    #[test]
    fn message_of_a_queue_must_have_an_event_of_the_lake() {
        let of = |buckets: &[&str]| {
            let record = |bucket: &&str| {
                json!({ "eventName": "ObjectRemoved:Delete",
                "s3": { "bucket": { "name": bucket }, "object": { "key": "k" } } })
            };
            json!({ "Records": buckets.iter().map(record).collect::<Vec<_>>() }).to_string()
        };
        for body in [of(&[]), of(&["lake"]), of(&["other", "lake"]), r#"{"Event":"s3:TestEvent"}"#.to_owned()] {
            assert!(read_queued(&body, "lake").is_ok(), "{body}");
        }
        let error = |body: &str| read_queued(body, "lake").unwrap_err().to_string();
        assert_eq!(error(&of(&["other"])), "all events are of other buckets, such as `other`");
        let created = native("Object Created", "other", "pipelines/a/x.csv").to_string();
        assert_eq!(error(&created), "all events are of other buckets, such as `other`");
        let wrapped = json!({ "Type": "Notification", "TopicArn": "t", "Message": created }).to_string();
        assert_eq!(error(&wrapped), "all events are of other buckets, such as `other`");
        let large = " ".repeat(usize::try_from(EVENT_BYTES_MAX).unwrap() + 1);
        assert_eq!(error(&large), "the message has 1048577 bytes, expected at most 1048576");
    }

    #[test]
    fn other_bodies_are_rejected_and_a_test_event_is_accepted() {
        let test = json!({ "Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "lake" });
        assert_eq!(events(&test), EventSummary::default());
        assert_eq!(events(&json!({ "Records": [] })), EventSummary::default());
        for (body, part) in [
            ("", "not JSON"),
            ("[]", "found an array"),
            ("{}", "an object without it"),
            (r#"{"Records":{}}"#, "found an object"),
            (r#"{"Records":null}"#, "found null"),
            (r#"{"source":"aws.ec2","detail-type":"x"}"#, "found an EventBridge event of another service"),
            (r#"{"Type":"Other","Message":"{}","TopicArn":"t"}"#, "not an SNS message: unknown variant `Other`"),
            (r#"{"Type":"Notification","Message":"{}"}"#, "not an SNS message: missing field `TopicArn`"),
            (r#"{"Type":"Notification","Message":7,"TopicArn":"t"}"#, "not an SNS message: invalid type"),
            ("\u{feff}{}", "not JSON"),
            (&"[".repeat(100_000), "not JSON"),
        ] {
            let error = read(body.as_bytes(), "lake").unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
