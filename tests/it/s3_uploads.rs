//! Multipart uploads, and copies, on S3.

use std::io::Read;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lakemill::adapters::s3::S3Store;
use lakemill::domain::name::Slug;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, ETag, Lease, LeaseLost, Precondition, StoreError, WriteOptions};

use crate::support::TestLease;
use crate::support::http_proxy::{ProxiedRequest, ProxyAction};
use crate::support::s3_server::{moto, s3s_fs};

const LAKE: Bucket = Bucket::Lake;
const WAREHOUSE: Bucket = Bucket::Warehouse;
const KEY: &str = "pipelines/s/k";

fn body(size: usize) -> Vec<u8> {
    (0..size as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn read(store: &S3Store, key: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.get(WAREHOUSE, key, None).unwrap().body.read_to_end(&mut bytes).unwrap();
    bytes
}

fn part_number(passing: &ProxiedRequest) -> Option<u32> {
    let (_, rest) = passing.target.split_once("partNumber=")?;
    rest.split('&').next()?.parse().ok()
}

#[test]
fn large_body_is_uploaded_in_parts() {
    let parts = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&parts);
    let proxy = s3s_fs().behind(move |passing| {
        if let Some(number) = part_number(passing) {
            recorded.lock().unwrap().push((number, passing.body.len()));
        }
        ProxyAction::Forward
    });
    let store = s3s_fs().store_at(&proxy);
    let (body, place) = (body((20 << 20) + 7), tempfile::tempdir().unwrap());
    let path = place.path().join("spool");
    std::fs::write(&path, &body).unwrap();
    let from_file = store.put_file(WAREHOUSE, KEY, &path, &WriteOptions::default()).unwrap();
    assert_eq!(from_file.size, body.len() as u64);
    assert!(read(&store, KEY) == body);
    let mut sizes = std::mem::take(&mut *parts.lock().unwrap());
    sizes.sort_unstable();
    assert_eq!(sizes, [(1, 8 << 20), (2, 8 << 20), (3, (4 << 20) + 7)]);
    let from_bytes = store.put(WAREHOUSE, "pipelines/s/l", &body, &WriteOptions::default()).unwrap();
    assert!(read(&store, "pipelines/s/l") == body);
    assert_eq!(from_bytes.etag, from_file.etag);
    assert_eq!(store.head(WAREHOUSE, KEY).unwrap().unwrap().etag, from_file.etag);
}

#[test]
fn failed_upload_leaves_nothing() {
    let proxy = moto().behind(|passing| match part_number(passing) {
        Some(2) => ProxyAction::Answer(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n".to_vec()),
        _ => ProxyAction::Forward,
    });
    let options = moto().options_at(&proxy.url());
    let warehouse = options.buckets.warehouse.clone();
    let store = S3Store::open(options).unwrap();
    let error = store.put(WAREHOUSE, KEY, &body(20 << 20), &WriteOptions::default()).unwrap_err();
    assert!(matches!(error, StoreError::AccessDenied { .. }), "{error}");
    assert_eq!(moto().open_uploads(&warehouse), 0);
    assert_eq!(store.head(WAREHOUSE, KEY).unwrap(), None);
}

/// A lease whose check panics.
struct Panicking {
    slug: Slug,
    asked: AtomicUsize,
}

impl Lease for Panicking {
    fn slug(&self) -> &Slug {
        &self.slug
    }

    fn fence(&self) -> u64 {
        1
    }

    fn remaining(&self) -> Result<Duration, LeaseLost> {
        // The upload has been started; its first part has not been sent.
        assert!(self.asked.fetch_add(1, Ordering::SeqCst) < 2, "a bug");
        Ok(Duration::from_secs(60))
    }
}

#[test]
fn panicking_upload_leaves_nothing() {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let proxy = moto().behind(move |passing| {
        counted.fetch_add(usize::from(passing.target.contains("uploads=")), Ordering::SeqCst);
        ProxyAction::Forward
    });
    let options = moto().options_at(&proxy.url());
    let warehouse = options.buckets.warehouse.clone();
    let store = S3Store::open(options).unwrap();
    let lease = Panicking { slug: Slug::parse("s").unwrap(), asked: AtomicUsize::new(0) };
    let put = || store.put(WAREHOUSE, KEY, &body(300_000), &WriteOptions::leased(&lease));
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(put)).unwrap_err();
    assert_eq!((begun.load(Ordering::SeqCst), moto().open_uploads(&warehouse)), (1, 0));
}

#[test]
fn dropped_or_stopped_staged_upload_leaves_nothing() {
    let options = moto().options();
    let warehouse = options.buckets.warehouse.clone();
    let store = S3Store::open(options).unwrap();
    let place = tempfile::tempdir().unwrap();
    let (large, small) = (place.path().join("large"), place.path().join("small"));
    std::fs::write(&large, body(20 << 20)).unwrap();
    std::fs::write(&small, body(1_000)).unwrap();
    let lease = TestLease::new("s", 1);
    let staged = store.stage_file(WAREHOUSE, KEY, &large, "", &lease, &|| true).unwrap();
    assert!(staged.is_some());
    assert_eq!(moto().open_uploads(&warehouse), 1);
    drop(staged);
    assert_eq!(moto().open_uploads(&warehouse), 0);
    // Checked before each part.
    let asked = AtomicUsize::new(0);
    let keep_going = || asked.fetch_add(1, Ordering::SeqCst) < 2;
    assert!(store.stage_file(WAREHOUSE, KEY, &large, "", &lease, &keep_going).unwrap().is_none());
    assert!(store.stage_file(WAREHOUSE, KEY, &small, "", &lease, &|| true).unwrap().is_none());
    assert_eq!((moto().open_uploads(&warehouse), store.head(WAREHOUSE, KEY).unwrap()), (0, None));
}

#[test]
fn upload_with_a_failed_precondition_leaves_nothing() {
    let options = moto().options();
    let warehouse = options.buckets.warehouse.clone();
    let store = S3Store::open(options).unwrap();
    let old = store.put(WAREHOUSE, KEY, b"old", &WriteOptions::default()).unwrap();
    for when in [Precondition::IfNoneMatch, Precondition::IfMatch(ETag("0".repeat(32)))] {
        let error = store.put(WAREHOUSE, KEY, &body(300_000), &WriteOptions::default().with(when)).unwrap_err();
        assert!(matches!(error, StoreError::PreconditionFailed { .. }), "{error}");
    }
    assert_eq!(read(&store, KEY), b"old");
    assert_eq!(moto().open_uploads(&warehouse), 0);
    let replace = WriteOptions::default().with(Precondition::IfMatch(old.etag.unwrap()));
    store.put(WAREHOUSE, KEY, &body(300_000), &replace).unwrap();
    assert!(read(&store, KEY) == body(300_000));
}

#[test]
fn file_truncated_during_its_upload_fails() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("spool");
    std::fs::write(&path, body(40 << 20)).unwrap();
    let (cut, first) = (path.clone(), AtomicBool::new(true));
    let proxy = s3s_fs().behind(move |passing| {
        if part_number(passing).is_some() && first.swap(false, Ordering::SeqCst) {
            std::fs::OpenOptions::new().write(true).open(&cut).unwrap().set_len(100).unwrap();
        }
        ProxyAction::Forward
    });
    let store = s3s_fs().store_at(&proxy);
    let error = store.put_file(WAREHOUSE, KEY, &path, &WriteOptions::default()).unwrap_err();
    assert!(matches!(&error, StoreError::Transient { .. }), "{error}");
    assert!(error.to_string().contains("was truncated"), "{error}");
    assert_eq!(store.head(WAREHOUSE, KEY).unwrap(), None);
}

#[test]
fn part_is_retried_after_a_transient_failure() {
    let (failed, sent) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&sent);
    let proxy = s3s_fs().behind(move |passing| {
        if part_number(passing).is_none() {
            return ProxyAction::Forward;
        }
        counted.fetch_add(1, Ordering::SeqCst);
        match failed.fetch_add(1, Ordering::SeqCst) {
            0 => ProxyAction::Close,
            1 => ProxyAction::LoseAnswer,
            _ => ProxyAction::Forward,
        }
    });
    let store = s3s_fs().store_at(&proxy);
    let body = body(20 << 20);
    store.put(WAREHOUSE, KEY, &body, &WriteOptions::default()).unwrap();
    assert!(read(&store, KEY) == body);
    assert_eq!(sent.load(Ordering::SeqCst), 5);
}

#[test]
fn large_copy_respects_its_precondition() {
    for server in [s3s_fs(), moto()] {
        let store = S3Store::open(server.options()).unwrap();
        let body = body(700_000);
        store.put(LAKE, "from +%é", &body, &WriteOptions::default()).unwrap();
        let copy = |when| store.copy((LAKE, "from +%é"), (WAREHOUSE, KEY), &WriteOptions::default().with(when));
        let made = copy(Precondition::IfNoneMatch).unwrap();
        assert_eq!((made.size, made.etag.clone()), (700_000, store.head(WAREHOUSE, KEY).unwrap().unwrap().etag));
        assert!(matches!(copy(Precondition::IfNoneMatch), Err(StoreError::PreconditionFailed { .. })));
        let wrong = Precondition::IfMatch(ETag("0".repeat(32)));
        assert!(matches!(copy(wrong), Err(StoreError::PreconditionFailed { .. })));
        copy(Precondition::IfMatch(made.etag.unwrap())).unwrap();
        assert!(read(&store, KEY) == body);
    }
}

#[test]
fn copy_restarts_when_its_source_changes() {
    let changes = Arc::new(AtomicUsize::new(1));
    let left = Arc::clone(&changes);
    let proxy = s3s_fs().behind(move |passing| {
        let copies = passing.header("x-amz-copy-source-if-match").is_some();
        let changed = copies && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        if changed {
            ProxyAction::Answer(b"HTTP/1.1 412 Precondition Failed\r\ncontent-length: 0\r\n\r\n".to_vec())
        } else {
            ProxyAction::Forward
        }
    });
    let store = s3s_fs().store_at(&proxy);
    store.put(LAKE, "from", b"x", &WriteOptions::default()).unwrap();
    store.copy((LAKE, "from"), (WAREHOUSE, KEY), &WriteOptions::default()).unwrap();
    assert_eq!(read(&store, KEY), b"x");
    changes.store(usize::MAX, Ordering::SeqCst);
    let error = store.copy((LAKE, "from"), (WAREHOUSE, KEY), &WriteOptions::default()).unwrap_err();
    assert!(error.to_string().contains("the object changed while it was read"), "{error}");
}
