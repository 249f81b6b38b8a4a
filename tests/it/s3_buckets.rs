//! Buckets of S3 stores: existence, permissions, foreign content, notification rules.

use std::path::Path;

use lakemill::adapters::s3::{Rule, RuleKind, S3OpenError, S3Options, S3Store};
use lakemill::config::{Secret, StoreCredentials};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, StoreError, StoreResult, WriteOptions, list_all_and_skipped};
use lakemill::system::http_client::CaFileError;

use crate::support::s3_server::{S3Server, moto, s3s_fs};

const LAKE: Bucket = Bucket::Lake;
const KEY: &str = "pipelines/s/k";

fn missing<T: std::fmt::Debug>(result: StoreResult<T>, name: &str) {
    match result {
        Err(StoreError::BucketNotFound { bucket: LAKE, name: found }) => assert_eq!(found, name),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_operation_reports_a_missing_bucket() {
    let mut options = moto().options();
    let name = "no-such-lake".to_owned();
    options.buckets.lake.clone_from(&name);
    let store = S3Store::open(options).unwrap();
    let plain = WriteOptions::default();
    missing(store.probe_bucket(LAKE), &name);
    missing(store.head(LAKE, KEY), &name);
    missing(store.list(LAKE, "", None, None, 10), &name);
    missing(store.get(LAKE, KEY, None), &name);
    missing(store.get_range(LAKE, KEY, 0..1, None), &name);
    missing(store.put(LAKE, KEY, b"x", &plain), &name);
    missing(store.put(LAKE, KEY, &vec![b'x'; 17 << 20], &plain), &name);
    missing(store.delete(LAKE, &[KEY.to_owned()], &plain), &name);
    missing(store.delete(LAKE, &[KEY.to_owned(), "other".to_owned()], &plain), &name);
    missing(store.conditions(LAKE), &name);
    missing(store.copy((LAKE, KEY), (Bucket::Warehouse, KEY), &plain), &name);
    store.put(Bucket::Warehouse, KEY, b"x", &plain).unwrap();
    missing(store.copy((Bucket::Warehouse, KEY), (LAKE, KEY), &plain), &name);
    store.probe_bucket(Bucket::Pipelines).unwrap();
}

#[test]
fn missing_bucket_is_reported_after_a_bare_404() {
    let mut options = s3s_fs().options();
    options.buckets.lake = "no-such-lake".to_owned();
    let store = S3Store::open(options).unwrap();
    missing(store.head(LAKE, KEY), "no-such-lake");
    missing(store.probe_bucket(LAKE), "no-such-lake");
    assert_eq!(store.head(Bucket::Warehouse, KEY).unwrap(), None);
}

#[test]
fn wrong_credentials_report_what_to_check() {
    let reason = |change: fn(&mut Secret, &mut Secret)| {
        let mut options = s3s_fs().options();
        let StoreCredentials::Key { id, secret } = &mut options.credentials else { panic!("servers have keys") };
        change(id, secret);
        let store = S3Store::open(options).unwrap();
        match store.probe_bucket(LAKE) {
            Err(StoreError::AccessDenied { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let secret = reason(|_, secret| *secret = Secret::new("wrong"));
    assert!(secret.contains("SignatureDoesNotMatch") && secret.contains("OBJ_SECRET_ACCESS_KEY"), "{secret}");
    let id = reason(|id, _| *id = Secret::new("wrong"));
    assert!(id.starts_with("status 403"), "{id}");
    assert!(![secret, id].iter().any(|text| text.contains("wrong")), "secrets are not shown");
}

#[test]
fn unreachable_keys_are_reported_with_full_pages() {
    let options = moto().options();
    let lake = options.buckets.lake.clone();
    let store = S3Store::open(options).unwrap();
    // Like those that other tools create.
    let odd = ["p/../x", "p/b1/./x", "p/b2/.."];
    for key in odd {
        drop(ureq::put(format!("http://{}/{lake}/{key}", moto().address)).send_empty().unwrap());
    }
    let mut keys: Vec<String> = (0..6).map(|i| format!("p/b{i}")).collect();
    keys.insert(0, "p/".to_owned());
    for key in &keys {
        store.put(LAKE, key, b"", &WriteOptions::default()).unwrap();
    }
    let (listed, skipped) = list_all_and_skipped(&store, LAKE, "p/").unwrap();
    let listed: Vec<String> = listed.into_iter().map(|object| object.key).collect();
    assert_eq!((listed, skipped), (keys, odd.map(str::to_owned).into()));
    let page = store.list(LAKE, "p/", None, None, 4).unwrap();
    assert_eq!((page.objects.len(), page.skipped), (4, vec![odd[0].to_owned(), odd[1].to_owned()]));
    let rest = store.list(LAKE, "p/", None, page.next.as_deref(), 4).unwrap();
    assert_eq!((rest.objects.len(), rest.skipped, rest.next), (3, vec![odd[2].to_owned()], None));
}

#[test]
fn notification_rules_round_trip() {
    let store = S3Store::open(moto().options()).unwrap();
    let mut rules = store.notifications(LAKE).unwrap();
    assert!(rules.is_empty());
    let rule = Rule {
        kind: RuleKind::Queue,
        id: "lakemill".to_owned(),
        arn: "arn:aws:sqs:us-east-1:123456789012:worker".to_owned(),
        events: vec!["s3:ObjectCreated:*".to_owned()],
        prefix: Some("pipelines/".to_owned()),
        suffix: Some(".csv".to_owned()),
    };
    rules.push(rule.clone());
    rules.push(Rule { id: "other".to_owned(), prefix: None, suffix: Some(".csv.gz".to_owned()), ..rule.clone() });
    store.put_notifications(LAKE, &rules).unwrap();
    let mut read = store.notifications(LAKE).unwrap();
    assert_eq!(read.rules().collect::<Vec<_>>(), rules.rules().collect::<Vec<_>>());
    read.retain(|entry| entry.rule().is_some_and(|rule| rule.id != "other"));
    store.put_notifications(LAKE, &read).unwrap();
    assert_eq!(store.notifications(LAKE).unwrap().rules().collect::<Vec<_>>(), [&rule]);
    read.retain(|_| false);
    store.put_notifications(LAKE, &read).unwrap();
    assert!(store.notifications(LAKE).unwrap().is_empty());
}

#[test]
fn invalid_store_settings_are_rejected() {
    let open = |change: &dyn Fn(&mut S3Options)| {
        let mut options = s3s_fs().options();
        change(&mut options);
        S3Store::open(options).map(drop)
    };
    for endpoint in ["", "ftp://x", "http://", "localhost:9000", "https://:80"] {
        let opened = open(&|options| options.endpoint = endpoint.to_owned());
        assert!(matches!(opened, Err(S3OpenError::Endpoint { .. })), "{endpoint}");
    }
    let place = tempfile::tempdir().unwrap();
    let with_file = |path: &Path| open(&|options| options.network.ca_file = Some(path.to_owned()));
    assert!(matches!(with_file(&place.path().join("none")), Err(S3OpenError::CaFile(CaFileError::Read { .. }))));
    let file = place.path().join("ca.pem");
    for text in ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nQQ==\n-----END PRIVATE KEY-----\n"] {
        std::fs::write(&file, text).unwrap();
        assert!(matches!(with_file(&file), Err(S3OpenError::CaFile(CaFileError::Certificates { .. }))), "{text}");
    }
}

#[test]
fn private_ca_is_trusted_by_file() {
    let place = tempfile::tempdir().unwrap();
    let server = S3Server::with_tls(place.path());
    let options = || server.options_at(&format!("https://127.0.0.1:{}", server.address.port()));
    let untrusted = S3Store::open(options()).unwrap().probe_bucket(LAKE).unwrap_err();
    assert!(matches!(untrusted, StoreError::Transient { .. }), "{untrusted}");
    assert!(untrusted.to_string().contains("certificate"), "{untrusted}");
    let mut trusting = options();
    trusting.network.ca_file = Some(place.path().join("ca.pem"));
    let store = S3Store::open(trusting).unwrap();
    let body = vec![b'x'; 300_000];
    store.put(LAKE, KEY, &body, &WriteOptions::default()).unwrap();
    let mut read = Vec::new();
    std::io::copy(&mut store.get(LAKE, KEY, None).unwrap().body, &mut read).unwrap();
    assert!(read == body);
}
