//! Parses S3 event notifications.
//!
//! Stores differ (the tests use captures of real ones): the event's name comes with and without `s3:`; the key is
//! URL-encoded, except by Ceph's radosgw, recognized by its `eventSource`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::domain::job::ChangedKeys;
use crate::domain::layout::split_key;
use crate::domain::name::Slug;

/// The content of a notification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventSummary {
    /// The new objects of each pipeline.
    pub changes: BTreeMap<Slug, ChangedKeys>,
    /// Records of new objects in the lake.
    pub accepted: u64,
    /// Records of other events, buckets and keys.
    pub ignored: u64,
}

/// A body that is not an S3 event notification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    #[error("the body is not JSON: {why}")]
    NotJson { why: String },
    #[error("the body is an SNS message; enable raw message delivery, or have the store send events directly")]
    Sns,
    #[error("the body is not an S3 event notification: expected an object with an array `Records`, found {found}")]
    NotANotification { found: &'static str },
}

/// The fields of a record that are used.
#[derive(Debug, Deserialize)]
struct Record<'a> {
    #[serde(rename = "eventName", borrow)]
    name: Cow<'a, str>,
    #[serde(rename = "eventSource", borrow, default)]
    source: Cow<'a, str>,
    #[serde(borrow)]
    s3: S3<'a>,
}

#[derive(Debug, Deserialize)]
struct S3<'a> {
    #[serde(borrow)]
    bucket: Bucket<'a>,
    #[serde(borrow)]
    object: Object<'a>,
}

#[derive(Debug, Deserialize)]
struct Bucket<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
}

/// Parses a notification. Records of buckets other than `lake_bucket` are ignored.
///
/// # Errors
/// [`EventError`] if it is not a notification. Malformed records are ignored.
pub fn read(body: &[u8], lake_bucket: &str) -> Result<EventSummary, EventError> {
    let envelope: Value =
        serde_json::from_slice(body).map_err(|error| EventError::NotJson { why: error.to_string() })?;
    let Value::Object(envelope) = envelope else { return Err(EventError::NotANotification { found: kind(&envelope) }) };
    let records = match envelope.get("Records") {
        Some(Value::Array(records)) => records,
        Some(other) => return Err(EventError::NotANotification { found: kind(other) }),
        None if envelope.get("Event").and_then(Value::as_str) == Some("s3:TestEvent") => {
            return Ok(EventSummary::default());
        }
        None if envelope.contains_key("Message") && envelope.contains_key("Type") => return Err(EventError::Sns),
        None => return Err(EventError::NotANotification { found: "an object without it" }),
    };
    let mut summary = EventSummary::default();
    for record in records {
        let record = Record::deserialize(record).ok().filter(|record| is_new_object(record, lake_bucket));
        let key = record.as_ref().map(|record| key(&record.s3.object.key, &record.source));
        match key.as_ref().and_then(|(key, is_certain)| Some((split_key(key)?, *is_certain))) {
            Some(((slug, key), is_certain)) => {
                summary.accepted += 1;
                let changed = summary.changes.entry(slug).or_insert_with(ChangedKeys::none);
                if is_certain { changed.insert(key) } else { *changed = ChangedKeys::All }
            }
            None => summary.ignored += 1,
        }
    }
    Ok(summary)
}

fn is_new_object(record: &Record<'_>, lake_bucket: &str) -> bool {
    let name = record.name.strip_prefix("s3:").unwrap_or(&record.name);
    name.starts_with("ObjectCreated:") && record.s3.bucket.name == lake_bucket
}

/// The key as stored, and whether that is certain: a key that can't be decoded is not.
fn key<'a>(sent: &'a str, source: &str) -> (Cow<'a, str>, bool) {
    if source == "ceph:s3" {
        return (Cow::Borrowed(sent), true);
    }
    if !percents_are_valid(sent) {
        return (Cow::Borrowed(sent), false);
    }
    let spaced = sent.replace('+', " ");
    match percent_encoding::percent_decode_str(&spaced).decode_utf8() {
        Ok(decoded) => (Cow::Owned(decoded.into_owned()), true),
        Err(_) => (Cow::Borrowed(sent), false),
    }
}

fn percents_are_valid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&b| b == b'%') {
        let digits = rest.get(at + 1..at + 3);
        if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
            return false;
        }
        rest = &rest[at + 3..];
    }
    true
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

    fn record(name: &str, source: &str, bucket: &str, key: &str) -> Value {
        json!({ "eventName": name, "eventSource": source, "s3": { "bucket": { "name": bucket }, "object": { "key": key } } })
    }

    fn parsed(records: &[Value]) -> (Vec<String>, u64, u64) {
        let body = json!({ "EventName": "x", "Records": records }).to_string();
        let parsed = read(body.as_bytes(), "lake").unwrap();
        (parsed.changes.keys().map(Slug::to_string).collect(), parsed.accepted, parsed.ignored)
    }

    #[test]
    fn created_objects_count_with_and_without_the_s3_prefix() {
        let records = [
            record("s3:ObjectCreated:Put", "minio:s3", "lake", "pipelines%2Fa%2Fx+y.csv"),
            record("ObjectCreated:CompleteMultipartUpload", "aws:s3", "lake", "pipelines/b/z.csv"),
            record("s3:ObjectCreated:Copy", "rustfs:s3", "lake", "pipelines%2fa%2f1.txt"),
            record("s3:ObjectRemoved:Delete", "aws:s3", "lake", "pipelines/c/x.csv"),
            record("s3:ObjectCreated:Put", "aws:s3", "other", "pipelines/c/x.csv"),
        ];
        assert_eq!(parsed(&records), (vec!["a".into(), "b".into()], 3, 2));
    }

    #[test]
    fn keys_are_decoded_by_their_source() {
        for (source, parsed, key_is) in [
            ("aws:s3", "a+b%2Bc%25.csv", "a b+c%.csv"),
            ("ceph:s3", "a b+c%.csv", "a b+c%.csv"),
            ("ceph:s3", "a%2Fb", "a%2Fb"),
            ("minio:s3", "a%252Fb", "a%2Fb"),
            ("aws:s3", "50%.csv", "50%.csv"),
            ("aws:s3", "a+b%zz", "a+b%zz"),
            ("aws:s3", "%ff", "%ff"),
            ("", "a%C3%A9", "aé"),
        ] {
            assert_eq!(key(parsed, source).0, key_is, "{source} {parsed}");
        }
    }

    #[test]
    fn keys_are_relative_and_uncertain_ones_mean_all() {
        let changes = |records: &[Value]| {
            read(json!({ "Records": records }).to_string().as_bytes(), "lake").unwrap().changes.into_values()
        };
        let put = |key: &str| record("s3:ObjectCreated:Put", "aws:s3", "lake", key);
        let mut found = changes(&[
            put("pipelines/a/in/x+y.csv"),
            put("pipelines/a/z.csv"),
            put("pipelines/b/50%.csv"),
            put("pipelines/b/z.csv"),
            put("pipelines/c/%ff.csv"),
            put(&format!("pipelines/d/{}", "x".repeat(5_000))),
        ]);
        assert_eq!(found.next(), Some(["in/x y.csv", "z.csv"].into_iter().collect()));
        assert!(found.all(|changed| changed == ChangedKeys::All));
    }

    #[test]
    fn foreign_keys_and_malformed_records_are_ignored() {
        let records = [
            record("s3:ObjectCreated:Put", "aws:s3", "lake", "other/x.csv"),
            record("s3:ObjectCreated:Put", "aws:s3", "lake", "pipelines/x.csv"),
            record("s3:ObjectCreated:Put", "aws:s3", "lake", "pipelines/My+Pipe/x.csv"),
            record("s3:ObjectCreated:Put", "aws:s3", "lake", "pipelines/a/"),
            record("s3:ObjectCreated:Put", "aws:s3", "lake", "pipelines/..%2Fa/x.csv"),
            record("s3:ObjectCreated:Put", "aws:s3", "lake", &"x".repeat(100_000)),
            json!({ "eventName": 7 }),
            json!({ "eventName": "s3:ObjectCreated:Put", "s3": { "bucket": {}, "object": {} } }),
            json!(null),
        ];
        assert_eq!(parsed(&records), (vec![], 0, 9));
    }

    #[test]
    fn other_bodies_are_rejected_and_a_test_event_is_accepted() {
        let test = br#"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"lake"}"#;
        assert_eq!(read(test, "lake"), Ok(EventSummary::default()));
        assert_eq!(read(br#"{"Records":[]}"#, "lake"), Ok(EventSummary::default()));
        assert_eq!(read(br#"{"Type":"Notification","Message":"{}"}"#, "lake"), Err(EventError::Sns));
        for (body, part) in [
            ("", "not JSON"),
            ("[]", "found an array"),
            ("{}", "an object without it"),
            (r#"{"Records":{}}"#, "found an object"),
            (r#"{"Records":null}"#, "found null"),
            ("\u{feff}{}", "not JSON"),
            (&"[".repeat(100_000), "not JSON"),
        ] {
            let error = read(body.as_bytes(), "lake").unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
