//! Reads the posts of object stores that tell of new objects.
//!
//! Stores differ (captures of real ones are the tests' input): the event's name comes with and without `s3:`; the key is
//! URL-encoded, but raw from Ceph's radosgw, which its `eventSource` tells.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::domain::layout::pipeline_of;
use crate::domain::name::Slug;

/// What a post told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// Pipelines that got new objects.
    pub pipelines: BTreeSet<Slug>,
    /// Records that count.
    pub accepted: u64,
    /// Records of other events, buckets and keys.
    pub ignored: u64,
}

/// A body that is no event envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    #[error("the body is not JSON: {why}")]
    NotJson { why: String },
    #[error("the body is an SNS envelope; subscribe with raw message delivery, or let the store post events itself")]
    Sns,
    #[error("the body is no event envelope: expected an object with an array `Records`, found {found}")]
    NoEnvelope { found: &'static str },
}

/// The parts of a record that count.
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

/// Reads a post; `lake_bucket` is the name of the bucket that counts.
///
/// # Errors
/// [`EventError`] if it is no event envelope. A record that can't be understood is ignored.
pub fn read(body: &[u8], lake_bucket: &str) -> Result<Told, EventError> {
    let envelope: Value =
        serde_json::from_slice(body).map_err(|error| EventError::NotJson { why: error.to_string() })?;
    let Value::Object(envelope) = envelope else { return Err(EventError::NoEnvelope { found: kind(&envelope) }) };
    let records = match envelope.get("Records") {
        Some(Value::Array(records)) => records,
        Some(other) => return Err(EventError::NoEnvelope { found: kind(other) }),
        None if envelope.get("Event").and_then(Value::as_str) == Some("s3:TestEvent") => return Ok(Told::default()),
        None if envelope.contains_key("Message") && envelope.contains_key("Type") => return Err(EventError::Sns),
        None => return Err(EventError::NoEnvelope { found: "an object without it" }),
    };
    let mut told = Told::default();
    for record in records {
        match Record::deserialize(record).ok().and_then(|record| pipeline(&record, lake_bucket)) {
            Some(slug) => {
                told.accepted += 1;
                told.pipelines.insert(slug);
            }
            None => told.ignored += 1,
        }
    }
    Ok(told)
}

fn pipeline(record: &Record<'_>, lake_bucket: &str) -> Option<Slug> {
    let name = record.name.strip_prefix("s3:").unwrap_or(&record.name);
    if !name.starts_with("ObjectCreated:") || record.s3.bucket.name != lake_bucket {
        return None;
    }
    pipeline_of(&key(&record.s3.object.key, &record.source))
}

/// The key as it is in the store.
fn key<'a>(told: &'a str, source: &str) -> Cow<'a, str> {
    if source == "ceph:s3" || !percents_are_valid(told) {
        return Cow::Borrowed(told);
    }
    let spaced = told.replace('+', " ");
    match percent_encoding::percent_decode_str(&spaced).decode_utf8() {
        Ok(decoded) => Cow::Owned(decoded.into_owned()),
        Err(_) => Cow::Borrowed(told),
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

    fn told(records: &[Value]) -> (Vec<String>, u64, u64) {
        let body = json!({ "EventName": "x", "Records": records }).to_string();
        let told = read(body.as_bytes(), "lake").unwrap();
        (told.pipelines.iter().map(Slug::to_string).collect(), told.accepted, told.ignored)
    }

    #[test]
    fn created_objects_of_the_lake_count_with_and_without_the_prefix_of_the_event() {
        let records = [
            record("s3:ObjectCreated:Put", "minio:s3", "lake", "pipelines%2Fa%2Fx+y.csv"),
            record("ObjectCreated:CompleteMultipartUpload", "aws:s3", "lake", "pipelines/b/z.csv"),
            record("s3:ObjectCreated:Copy", "rustfs:s3", "lake", "pipelines%2fa%2f1.txt"),
            record("s3:ObjectRemoved:Delete", "aws:s3", "lake", "pipelines/c/x.csv"),
            record("s3:ObjectCreated:Put", "aws:s3", "other", "pipelines/c/x.csv"),
        ];
        assert_eq!(told(&records), (vec!["a".into(), "b".into()], 3, 2));
    }

    #[test]
    fn keys_are_decoded_once_and_by_their_source() {
        for (source, told, key_is) in [
            ("aws:s3", "a+b%2Bc%25.csv", "a b+c%.csv"),
            ("ceph:s3", "a b+c%.csv", "a b+c%.csv"),
            ("ceph:s3", "a%2Fb", "a%2Fb"),
            ("minio:s3", "a%252Fb", "a%2Fb"),
            ("aws:s3", "50%.csv", "50%.csv"),
            ("aws:s3", "a+b%zz", "a+b%zz"),
            ("aws:s3", "%ff", "%ff"),
            ("", "a%C3%A9", "aé"),
        ] {
            assert_eq!(key(told, source), key_is, "{source} {told}");
        }
    }

    #[test]
    fn keys_of_no_pipeline_and_records_of_no_sense_are_ignored() {
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
        assert_eq!(told(&records), (vec![], 0, 9));
    }

    #[test]
    fn what_is_no_envelope_is_refused_and_a_test_event_is_fine() {
        let test = br#"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"lake"}"#;
        assert_eq!(read(test, "lake"), Ok(Told::default()));
        assert_eq!(read(br#"{"Records":[]}"#, "lake"), Ok(Told::default()));
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
