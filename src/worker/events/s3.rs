//! Records of S3 event notifications.
//!
//! Stores differ (the tests use captures of real ones): the event's name comes with and without `s3:`; the key is
//! URL-encoded, except by Ceph's radosgw, recognized by its `eventSource`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::summary::{EventBucket, EventObject, EventSummary};

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
    bucket: EventBucket<'a>,
    #[serde(borrow)]
    object: EventObject<'a>,
}

/// Adds the new objects of `lake_bucket`. Other and malformed records are ignored.
pub(super) fn add_records(summary: &mut EventSummary, records: &[Value], lake_bucket: &str) {
    for record in records {
        match Record::deserialize(record) {
            Ok(Record { s3, .. }) if s3.bucket.name != lake_bucket => summary.ignore_bucket(&s3.bucket.name),
            Ok(Record { name, source, s3 }) if is_creation(&name) => {
                let (key, is_certain) = key(&s3.object.key, &source);
                summary.add(&key, is_certain);
            }
            Ok(_) => summary.ignore_kind(),
            Err(_) => summary.ignored += 1,
        }
    }
}

fn is_creation(event: &str) -> bool {
    event.strip_prefix("s3:").unwrap_or(event).starts_with("ObjectCreated:")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::ChangedKeys;
    use crate::domain::name::Slug;
    use serde_json::json;

    fn summary(body: &Value) -> EventSummary {
        let mut summary = EventSummary::default();
        add_records(&mut summary, body["Records"].as_array().unwrap(), "lake");
        summary
    }

    fn record(name: &str, source: &str, bucket: &str, key: &str) -> Value {
        json!({ "eventName": name, "eventSource": source, "s3": { "bucket": { "name": bucket }, "object": { "key": key } } })
    }

    fn parsed(records: &[Value]) -> (Vec<String>, u64, u64) {
        let parsed = summary(&json!({ "EventName": "x", "Records": records }));
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
        let changes = |records: &[Value]| summary(&json!({ "Records": records })).changes.into_values();
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
}
