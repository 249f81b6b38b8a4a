//! Writes of a run on S3: signed to expire before the run's lease, by the store's clock.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lakemill::adapters::s3::S3Store;
use lakemill::domain::name::Slug;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, Lease, LeaseLost, StoreError, StoreResult, WriteOptions};
use lakemill::runtime::Clock;
use lakemill::runtime::SystemClock;

use crate::support::http_proxy::{ProxiedRequest, ProxyAction};
use crate::support::s3_server::s3s_fs;

const LAKE: Bucket = Bucket::Lake;
const KEY: &str = "pipelines/s/k";

/// A lease with an expiry time.
pub struct Ending {
    slug: Slug,
    end: Instant,
}

impl Ending {
    pub fn in_ms(ms: u64) -> Self {
        Self { slug: Slug::parse("s").unwrap(), end: Instant::now() + Duration::from_millis(ms) }
    }
}

impl Lease for Ending {
    fn slug(&self) -> &Slug {
        &self.slug
    }

    fn fence(&self) -> u64 {
        1
    }

    fn remaining(&self) -> Result<Duration, LeaseLost> {
        self.end.checked_duration_since(Instant::now()).ok_or(LeaseLost)
    }
}

pub fn assert_lease_lost<T: std::fmt::Debug>(result: StoreResult<T>) {
    assert!(matches!(result, Err(StoreError::LeaseLost(_))), "{result:?}");
}

fn expires(passing: &ProxiedRequest) -> u64 {
    let (_, rest) = passing.target.split_once("X-Amz-Expires=").unwrap();
    rest.split('&').next().unwrap().parse().unwrap()
}

/// Writes under a lease of 3.5 s; the effective request is delayed beyond it.
fn check_delayed_write(act: fn(&S3Store, &WriteOptions<'_>) -> StoreResult<()>) {
    let is_late = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_late);
    let proxy = s3s_fs().behind(move |passing| {
        let takes_effect = match passing.method.as_str() {
            "POST" => !passing.target.contains("uploads="),
            "PUT" => !passing.target.contains("partNumber"),
            "DELETE" => !passing.target.contains("uploadId"),
            _ => false,
        };
        if takes_effect && seen.load(Ordering::SeqCst) {
            ProxyAction::Delay(Duration::from_secs(4))
        } else {
            ProxyAction::Forward
        }
    });
    let store = s3s_fs().store_at(&proxy);
    for key in [KEY, "pipelines/s/other", "pipelines/s/from"] {
        store.put(LAKE, key, b"old", &WriteOptions::default()).unwrap();
    }
    is_late.store(true, Ordering::SeqCst);
    let lease = Ending::in_ms(3_500);
    assert_lease_lost(act(&store, &WriteOptions::leased(&lease)));
    let old = std::io::read_to_string(store.get(LAKE, KEY, None).unwrap().body).unwrap();
    assert_eq!(old, "old");
}

#[test]
fn store_rejects_a_write_after_its_lease() {
    std::thread::scope(|scope| {
        let cases: [fn(&S3Store, &WriteOptions<'_>) -> StoreResult<()>; 5] = [
            |store, options| store.put(LAKE, KEY, b"new", options).map(drop),
            |store, options| store.put(LAKE, KEY, &vec![b'n'; 300_000], options).map(drop),
            |store, options| store.copy((LAKE, "pipelines/s/from"), (LAKE, KEY), options).map(drop),
            |store, options| store.delete(LAKE, &[KEY.to_owned()], options),
            |store, options| store.delete(LAKE, &[KEY.to_owned(), "pipelines/s/other".to_owned()], options),
        ];
        for case in cases {
            scope.spawn(move || check_delayed_write(case));
        }
    });
}

#[test]
fn nothing_is_sent_with_less_than_a_second_left() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let proxy = s3s_fs().behind(move |passing| {
        counted.fetch_add(usize::from(passing.method != "HEAD"), Ordering::SeqCst);
        ProxyAction::Forward
    });
    let store = s3s_fs().store_at(&proxy);
    store.put(LAKE, KEY, b"old", &WriteOptions::default()).unwrap();
    let lease = Ending::in_ms(900);
    let options = WriteOptions::leased(&lease);
    assert_lease_lost(store.put(LAKE, KEY, b"new", &options));
    assert_lease_lost(store.put(LAKE, KEY, &vec![b'n'; 300_000], &options));
    assert_lease_lost(store.copy((LAKE, KEY), (LAKE, "pipelines/s/l"), &options));
    assert_lease_lost(store.delete(LAKE, &[KEY.to_owned()], &options));
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

#[test]
fn every_request_of_a_write_expires_within_the_lease() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&seen);
    let proxy = s3s_fs().behind(move |passing| {
        if passing.target.contains("X-Amz-Expires") {
            recorded.lock().unwrap().push((passing.method.clone(), expires(passing)));
        }
        ProxyAction::Forward
    });
    let store = s3s_fs().store_at(&proxy);
    store.head(LAKE, KEY).unwrap();
    seen.lock().unwrap().clear();
    let lease = Ending::in_ms(60_000);
    store.put(LAKE, KEY, &vec![b'n'; 300_000], &WriteOptions::leased(&lease)).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().map(|(method, _)| method.as_str()).collect::<Vec<_>>(), ["POST", "PUT", "POST"]);
    assert!(seen.iter().all(|(_, expires)| (30..=50).contains(expires)), "{seen:?}");
}

/// A wrong local clock.
struct WrongClock(chrono::TimeDelta);

impl Clock for WrongClock {
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        SystemClock.now() + self.0
    }

    fn since_boot(&self) -> Duration {
        SystemClock.since_boot()
    }
}

#[test]
fn wrong_clock_is_compensated() {
    std::thread::scope(|scope| {
        for seconds in [7_200, -7_200, 400, -400] {
            scope.spawn(move || {
                let signed = Arc::new(AtomicUsize::new(0));
                let (recorded, delay) = (Arc::clone(&signed), Arc::new(AtomicBool::new(false)));
                let delayed = Arc::clone(&delay);
                let proxy = s3s_fs().behind(move |passing| {
                    if passing.target.contains("X-Amz-Expires") {
                        recorded.store(usize::try_from(expires(passing)).unwrap(), Ordering::SeqCst);
                    }
                    let act = if delayed.load(Ordering::SeqCst) { Duration::from_secs(4) } else { Duration::ZERO };
                    ProxyAction::Delay(act)
                });
                let mut options = s3s_fs().options_at(&proxy.url());
                options.clock = Arc::new(WrongClock(chrono::TimeDelta::seconds(seconds)));
                let store = S3Store::open(options).unwrap();
                assert_eq!(store.clock_skew(), None);
                store.put(LAKE, KEY, b"1", &WriteOptions::default()).unwrap();
                let skew = store.clock_skew().unwrap().num_seconds();
                assert!((seconds - 1..seconds + 30).contains(&skew), "{skew}");
                let lease = Ending::in_ms(60_000);
                store.put(LAKE, KEY, b"2", &WriteOptions::leased(&lease)).unwrap();
                assert!((30..=50).contains(&signed.load(Ordering::SeqCst)));
                // The write also ends with the lease by the store's clock.
                delay.store(true, Ordering::SeqCst);
                let lease = Ending::in_ms(3_500);
                assert_lease_lost(store.put(LAKE, KEY, b"3", &WriteOptions::leased(&lease)));
            });
        }
    });
}
