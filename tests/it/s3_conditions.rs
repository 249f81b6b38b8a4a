//! Preconditions on S3 stores that support them fully, partly, or not at all.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lakemill::adapters::s3::{Conditions, S3Options, S3Store};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, ETag, Precondition, StoreError, StoreResult, WriteOptions};

use crate::support::concurrent;
use crate::support::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use crate::support::key_locks::TestLocks;
use crate::support::s3_server::{moto, s3s_fs};

const LAKE: Bucket = Bucket::Lake;
const KEY: &str = "pipelines/s/k";
const RACERS: usize = 12;

fn create() -> WriteOptions<'static> {
    WriteOptions::default().with(Precondition::IfNoneMatch)
}

fn replace(tag: ETag) -> WriteOptions<'static> {
    WriteOptions::default().with(Precondition::IfMatch(tag))
}

fn refused<T>(result: StoreResult<T>) -> bool {
    matches!(result, Err(StoreError::PreconditionFailed { .. }))
}

/// Options for a store that ignores conditions on requests for which `deaf` is true.
fn ignoring_conditions(deaf: fn(&ProxiedRequest) -> bool) -> (S3Options, HttpProxy) {
    let proxy = s3s_fs().behind(move |passing| {
        if deaf(passing) {
            passing.drop_header("if-match");
            passing.drop_header("if-none-match");
        }
        ProxyAction::Forward
    });
    (s3s_fs().options_at(&proxy.url()), proxy)
}

fn everything(_: &ProxiedRequest) -> bool {
    true
}

fn completing(passing: &ProxiedRequest) -> bool {
    passing.method == "POST"
}

#[test]
fn probe_detects_enforced_preconditions() {
    let found = |options: S3Options| S3Store::open(options).unwrap().conditions(LAKE).unwrap();
    let expected = |put, complete, listed_etags| Conditions { put, complete, listed_etags };
    assert_eq!(found(s3s_fs().options()), expected(true, true, false));
    let of_moto = found(moto().options());
    assert!(of_moto.put && of_moto.listed_etags);
    let (options, _proxy) = ignoring_conditions(everything);
    assert_eq!(found(options), expected(false, false, false));
    let (options, _proxy) = ignoring_conditions(completing);
    assert_eq!(found(options), expected(true, false, false));
    // A store that rejects even a correct `If-Match`.
    let proxy = s3s_fs().behind(|passing| match passing.header("if-match") {
        Some(_) => ProxyAction::Answer(b"HTTP/1.1 412 Precondition Failed\r\ncontent-length: 0\r\n\r\n".to_vec()),
        None => ProxyAction::Forward,
    });
    assert_eq!(found(s3s_fs().options_at(&proxy.url())), expected(false, false, false));
    // A store that doesn't know the header.
    let proxy = s3s_fs().behind(|passing| match passing.header("if-none-match") {
        Some(_) => ProxyAction::Answer(b"HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\n\r\n".to_vec()),
        None => ProxyAction::Forward,
    });
    assert!(!found(s3s_fs().options_at(&proxy.url())).put);
}

#[test]
fn store_is_probed_once_and_left_clean() {
    let probes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&probes);
    let proxy = moto().behind(move |passing| {
        if passing.method == "PUT" && passing.target.contains("lakemill-probe") {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        ProxyAction::Forward
    });
    let options = moto().options_at(&proxy.url());
    let lake = options.buckets.lake.clone();
    let store = S3Store::open(options.clone()).unwrap();
    store.put(LAKE, KEY, b"1", &WriteOptions::default()).unwrap();
    assert_eq!(probes.load(Ordering::SeqCst), 0, "nobody needed to know");
    assert!(refused(store.put(LAKE, KEY, b"2", &create())));
    let made = probes.load(Ordering::SeqCst);
    assert!(made > 0);
    let other = S3Store::open(options).unwrap();
    assert!(refused(other.put(LAKE, KEY, b"2", &create())));
    assert_eq!(probes.load(Ordering::SeqCst), made);
    let keys: Vec<String> = store.list(LAKE, "", None, None, 10).unwrap().objects.into_iter().map(|o| o.key).collect();
    assert_eq!(keys, [KEY]);
    let uploads = ureq::get(format!("http://{}/{lake}?uploads=", moto().address)).call().unwrap();
    assert!(!uploads.into_body().read_to_string().unwrap().contains("<Upload>"));
}

#[test]
fn interrupted_probe_runs_again() {
    let is_away = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_away);
    let proxy = s3s_fs().behind(move |passing| {
        if passing.header("if-match").is_some() && seen.load(Ordering::SeqCst) {
            ProxyAction::Close
        } else {
            ProxyAction::Forward
        }
    });
    let store = s3s_fs().store_at(&proxy);
    let error = store.put(LAKE, KEY, b"1", &create()).unwrap_err();
    assert!(matches!(error, StoreError::Transient { .. }), "{error}");
    is_away.store(false, Ordering::SeqCst);
    store.put(LAKE, KEY, b"1", &create()).unwrap();
    assert!(store.conditions(LAKE).unwrap().put);
}

#[test]
fn probe_tolerates_lost_responses() {
    for lossy in ["PUT", "POST"] {
        let seen = Mutex::new(BTreeSet::new());
        let proxy = s3s_fs().behind(move |passing| {
            // Each request that may have taken effect, on its first attempt; starting an upload has no effect.
            let is_upload_begun = passing.target.ends_with("uploads=") || passing.target.ends_with("uploads");
            let request = (passing.target.clone(), passing.body.clone());
            let is_first = passing.method == lossy && !is_upload_begun && seen.lock().unwrap().insert(request);
            if is_first { ProxyAction::LoseAnswer } else { ProxyAction::Forward }
        });
        let found = s3s_fs().store_at(&proxy).conditions(LAKE).unwrap();
        assert!(found.put && found.complete, "{lossy}: {found:?}");
    }
}

/// Like [`concurrent::race`], each thread with its own store.
fn race<T: Send>(options: &S3Options, act: impl Fn(usize, &S3Store) -> T + Sync) -> Vec<T> {
    concurrent::race(RACERS, || S3Store::open(options.clone()).unwrap(), act)
}

#[test]
fn locks_emulate_preconditions() {
    let (options, _proxy) = ignoring_conditions(everything);
    let locks = Arc::new(TestLocks::default());
    let options = options.with_locks(locks.clone());
    let store = S3Store::open(options.clone()).unwrap();
    store.put(Bucket::Warehouse, "from", &vec![b'f'; 300_000], &WriteOptions::default()).unwrap();
    for round in 0..3 {
        let key = format!("pipelines/s/{round}");
        let results = race(&options, |racer, store| match racer % 3 {
            0 => store.put(LAKE, &key, b"small", &create()),
            1 => store.put(LAKE, &key, &vec![b'l'; 300_000], &create()),
            _ => store.copy((Bucket::Warehouse, "from"), (LAKE, &key), &create()),
        });
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        assert!(results.into_iter().all(|result| result.is_ok() || refused(result)));
    }
    store.put(LAKE, KEY, b"0", &create()).unwrap();
    race(&options, |_, store| {
        loop {
            let reader = store.get(LAKE, KEY, None).unwrap();
            let count: usize = std::io::read_to_string(reader.body).unwrap().parse().unwrap();
            let next = (count + 1).to_string();
            match store.put(LAKE, KEY, next.as_bytes(), &replace(reader.meta.etag.unwrap())) {
                Ok(_) => break,
                Err(StoreError::PreconditionFailed { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    let count = std::io::read_to_string(store.get(LAKE, KEY, None).unwrap().body).unwrap();
    assert_eq!(count, RACERS.to_string());
    assert!(store.capabilities().unwrap().conditional_writes);
    assert_eq!(locks.taken.load(Ordering::SeqCst), locks.given_back.load(Ordering::SeqCst));
    locks.is_away.store(true, Ordering::SeqCst);
    let error = store.put(LAKE, KEY, b"x", &create()).unwrap_err();
    assert!(matches!(error, StoreError::Transient { .. }), "{error}");
}

#[test]
fn preconditions_without_locks_are_checked_before_the_write() {
    let (options, _proxy) = ignoring_conditions(everything);
    let store = S3Store::open(options).unwrap();
    for size in [1, 300_000] {
        let key = format!("pipelines/s/{size}");
        let tag = store.put(LAKE, &key, &vec![b'1'; size], &create()).unwrap().etag.unwrap();
        assert!(refused(store.put(LAKE, &key, &vec![b'2'; size], &create())));
        assert!(refused(store.put(LAKE, &key, &vec![b'2'; size], &replace(ETag("0".repeat(32))))));
        store.put(LAKE, &key, &vec![b'3'; size], &replace(tag)).unwrap();
    }
    assert!(!store.capabilities().unwrap().conditional_writes);
}

#[test]
fn locks_cover_only_uploads_if_puts_are_conditional() {
    let (options, _proxy) = ignoring_conditions(completing);
    let locks = Arc::new(TestLocks::default());
    let store = S3Store::open(options.with_locks(locks.clone())).unwrap();
    let tag = store.put(LAKE, KEY, b"small", &create()).unwrap().etag.unwrap();
    assert!(refused(store.put(LAKE, KEY, b"small", &create())));
    assert_eq!(locks.taken.load(Ordering::SeqCst), 0);
    assert!(refused(store.put(LAKE, KEY, &vec![b'l'; 300_000], &create())));
    store.put(LAKE, KEY, &vec![b'l'; 300_000], &replace(tag)).unwrap();
    assert_eq!(locks.taken.load(Ordering::SeqCst), 2);
}
