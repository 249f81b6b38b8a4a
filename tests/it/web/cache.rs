//! The cache of warehouse files: bounded, complete files only, each fetched once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lakemill::domain::digest::sha256_hex;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, WriteOptions};
use lakemill::sql::sandbox::StagingFolder;
use lakemill::web::cache::{Cache, CacheError, CacheWait, Deadline, Pins, RequestedFile, StagedTable, StagedTableKey};
use tempfile::TempDir;

use crate::support::faulty_store::FaultyStore;
use crate::support::memory_store::MemoryStore;
use crate::support::site::await_that;

struct Fixture {
    folder: TempDir,
    store: FaultyStore,
    cache: Arc<Cache>,
    bytes_max: u64,
}

fn never() -> bool {
    false
}

impl Fixture {
    /// With objects `a` to `e`, of 10 bytes each.
    fn new(bytes_max: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        for name in ["a", "b", "c", "d", "e"] {
            store.put(Bucket::Warehouse, name, name.repeat(10).as_bytes(), &WriteOptions::default()).unwrap();
        }
        let cache = Cache::open(&folder.path().join("files"), bytes_max).unwrap();
        Self { folder, store, cache, bytes_max }
    }

    fn wanted(&self, key: &str, into: &str) -> RequestedFile {
        let meta = self.store.head(Bucket::Warehouse, key).unwrap().unwrap();
        let sha256 = sha256_hex(key.repeat(10).as_bytes());
        RequestedFile { key: key.to_owned(), sha256, size: meta.size, into: self.path(into) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn provide_within(&self, keys: &[&str], wait: Duration) -> Result<Pins, CacheError> {
        let id = uuid::Uuid::new_v4();
        let into = |at: usize, key: &str| self.wanted(key, &format!("{key}-{at}-{id}"));
        let wanted: Vec<RequestedFile> = keys.iter().enumerate().map(|(at, key)| into(at, key)).collect();
        let pins =
            self.cache.provide(&self.store, &wanted, Deadline { until: Instant::now() + wait, stopped: &never })?;
        for (key, wanted) in keys.iter().zip(&wanted) {
            assert_eq!(std::fs::read_to_string(&wanted.into).unwrap(), key.repeat(10));
        }
        Ok(pins)
    }

    fn provide(&self, keys: &[&str]) -> Result<Pins, CacheError> {
        self.provide_within(keys, Duration::from_secs(30))
    }

    fn gets(&self) -> u64 {
        self.store.counts(Bucket::Warehouse).gets
    }

    fn slot(&self) -> PathBuf {
        self.path("files/slot-00")
    }

    /// Files in the cache, and their bytes.
    fn cached_files(&self) -> (usize, u64) {
        let files: Vec<u64> = sizes(&self.slot().join("files"));
        assert_eq!(sizes(&self.slot().join("tmp")), [0; 0], "nothing half is left");
        (files.len(), files.iter().sum())
    }

    fn reopen(self) -> Self {
        let Self { folder, store, cache, bytes_max } = self;
        drop(cache);
        let cache = Cache::open(&folder.path().join("files"), bytes_max).unwrap();
        Self { folder, store, cache, bytes_max }
    }
}

fn sizes(folder: &Path) -> Vec<u64> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).collect()
}

#[test]
fn file_is_fetched_once_and_survives_a_restart() {
    let f = Fixture::new(100);
    drop(f.provide(&["a", "b"]).unwrap());
    drop(f.provide(&["b", "a", "a"]).unwrap());
    assert_eq!((f.gets(), f.cached_files()), (2, (2, 20)));
    let f = f.reopen();
    drop(f.provide(&["a", "b"]).unwrap());
    assert_eq!((f.gets(), f.cached_files()), (2, (2, 20)));
}

#[test]
fn concurrent_queries_fetch_a_file_once() {
    let f = Fixture::new(100);
    f.store.during_get(1, 0, || {
        std::thread::sleep(Duration::from_millis(300));
        Ok(())
    });
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| f.provide(&["a"]).unwrap());
        }
    });
    assert_eq!(f.gets(), 1);
}

#[test]
fn least_recently_used_files_are_evicted_and_pinned_ones_stay() {
    let f = Fixture::new(30);
    for keys in [&["a", "b", "c"][..], &["a"], &["b"]] {
        drop(f.provide(keys).unwrap());
    }
    drop(f.provide(&["d"]).unwrap());
    assert_eq!((f.gets(), f.cached_files()), (4, (3, 30)));
    drop(f.provide(&["a", "b", "d"]).unwrap());
    assert_eq!(f.gets(), 4, "`c` went");
    let held = f.provide(&["a"]).unwrap();
    drop(f.provide(&["c", "e"]).unwrap());
    assert_eq!((f.gets(), f.cached_files()), (6, (3, 30)));
    drop(f.provide(&["a"]).unwrap());
    assert_eq!(f.gets(), 6, "`a` was in use");
    drop(held);
}

#[test]
fn files_larger_than_the_cache_report_both_sizes() {
    let f = Fixture::new(25);
    let error = f.provide(&["a", "b", "c"]).err().unwrap();
    assert!(matches!(error, CacheError::TooLarge { needed: 30, bytes_max: 25 }), "{error}");
    assert_eq!((f.gets(), f.cached_files()), (0, (0, 0)));
    drop(f.provide(&["a", "b"]).unwrap());
}

#[test]
fn query_waits_for_room_and_continues_once_it_is_free() {
    let f = Fixture::new(25);
    let held = f.provide(&["a", "b"]).unwrap();
    let error = f.provide_within(&["c"], Duration::from_millis(50)).err().unwrap();
    assert!(matches!(error, CacheError::Busy), "{error}");
    assert_eq!(f.cached_files(), (2, 20));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| f.provide(&["c", "d"]).map(drop));
        std::thread::sleep(Duration::from_millis(50));
        drop(held);
        waits.join().unwrap().unwrap();
    });
    assert_eq!(f.cached_files(), (2, 20));
}

#[test]
fn failed_fetch_leaves_no_partial_file() {
    let f = Fixture::new(100);
    for n in 1..=2 {
        f.store.during_get(n, 4, || Err(std::io::ErrorKind::ConnectionReset.into()));
    }
    let error = f.provide(&["a"]).err().unwrap();
    assert!(matches!(error, CacheError::Store(_)), "{error}");
    assert_eq!((f.gets(), f.cached_files()), (2, (0, 0)));
    f.store.during_get(3, 4, || Err(std::io::ErrorKind::ConnectionReset.into()));
    drop(f.provide(&["a"]).unwrap());
    assert_eq!((f.gets(), f.cached_files()), (4, (1, 10)), "one that broke off once is read again");
}

#[test]
fn content_with_wrong_digest_is_not_cached() {
    let f = Fixture::new(100);
    let deadline = Deadline { until: Instant::now() + Duration::from_secs(30), stopped: &never };
    let of = |content: &[u8], into| RequestedFile { sha256: sha256_hex(content), ..f.wanted("a", into) };
    let error = f.cache.provide(&f.store, &[of(b"another", "other")], deadline).err().unwrap();
    assert!(matches!(error, CacheError::Gone { .. }) && error.to_string().contains("a"), "{error}");
    assert_eq!((f.gets(), f.cached_files()), (1, (0, 0)));
    drop(f.cache.provide(&f.store, &[of(b"aaaaaaaaaa", "own")], deadline).unwrap());
    assert_eq!((f.gets(), f.cached_files()), (2, (1, 10)));
}

#[test]
fn missing_or_replaced_object_is_reported() {
    let f = Fixture::new(100);
    let old = f.wanted("a", "old");
    f.store.put(Bucket::Warehouse, "a", b"new", &WriteOptions::default()).unwrap();
    let deadline = Deadline { until: Instant::now() + Duration::from_secs(30), stopped: &never };
    let gone = RequestedFile { key: "gone".into(), ..old.clone() };
    let longer = RequestedFile { size: 11, ..f.wanted("b", "longer") };
    for wanted in [old, gone, longer] {
        let error = f.cache.provide(&f.store, &[wanted], deadline).err().unwrap();
        assert!(matches!(error, CacheError::Gone { .. }), "{error}");
    }
    assert_eq!(f.cached_files(), (0, 0));
}

#[test]
fn cancelled_query_stops_waiting() {
    let f = Fixture::new(100);
    let stopped = AtomicBool::new(true);
    let look = || stopped.load(Ordering::SeqCst);
    let deadline = Deadline { until: Instant::now() + Duration::from_secs(30), stopped: &look };
    let error = f.cache.provide(&f.store, &[f.wanted("a", "a")], deadline).err().unwrap();
    assert!(matches!(error, CacheError::Stopped), "{error}");
}

#[test]
fn leftovers_and_incomplete_files_are_deleted_at_start() {
    let f = Fixture::new(100);
    drop(f.provide(&["a", "b"]).unwrap());
    let files = f.slot().join("files");
    let first = std::fs::read_dir(&files).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&first, "short").unwrap();
    std::fs::write(files.join("nonsense"), "x").unwrap();
    std::fs::write(f.slot().join("tmp/half"), "x").unwrap();
    let f = f.reopen();
    assert_eq!(f.cached_files(), (1, 10));
    drop(f.provide(&["a", "b"]).unwrap());
    assert_eq!(f.gets(), 3);
}

#[test]
fn deleted_or_truncated_cache_file_is_fetched_again() {
    let f = Fixture::new(100);
    drop(f.provide(&["a"]).unwrap());
    let file = || std::fs::read_dir(f.slot().join("files")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(file()).unwrap();
    drop(f.provide(&["a"]).unwrap());
    // The links of queries are the same file: a new one takes its name.
    let cut = f.path("cut");
    std::fs::write(&cut, "cut").unwrap();
    std::fs::rename(&cut, file()).unwrap();
    drop(f.provide(&["a"]).unwrap());
    assert_eq!((f.gets(), f.cached_files()), (3, (1, 10)));
}

#[test]
fn cached_files_from_before_a_reboot_are_deleted() {
    let f = Fixture::new(100);
    drop(f.provide(&["a"]).unwrap());
    std::fs::write(f.slot().join("boot"), "another start").unwrap();
    let f = f.reopen();
    assert_eq!(f.cached_files(), (0, 0));
}

#[test]
fn processes_share_the_cache_folder_without_interference() {
    let f = Fixture::new(100);
    drop(f.provide(&["a"]).unwrap());
    let other = Cache::open(&f.path("files"), 100).unwrap();
    let deadline = Deadline { until: Instant::now() + Duration::from_secs(30), stopped: &never };
    drop(other.provide(&f.store, &[f.wanted("a", "theirs")], deadline).unwrap());
    assert_eq!((f.gets(), f.cached_files()), (2, (1, 10)));
    drop(other);
    // The next process removes the files of the dead one.
    let f = f.reopen();
    assert_eq!(f.cached_files(), (1, 10));
    assert!(!f.path("files/slot-01/files").exists());
}

/// A staged table with files of the cache; its state is their names.
fn tree(f: &Fixture, keys: &[&str]) -> StagedTable {
    let folder = f.path(&uuid::Uuid::new_v4().to_string());
    std::fs::create_dir(&folder).unwrap();
    let folder = StagingFolder::new(folder);
    let pins = f.provide(keys).unwrap();
    StagedTable::new(Some(key(keys)), folder, pins, keys.len())
}

fn key(keys: &[&str]) -> StagedTableKey {
    StagedTableKey { table: "p/t".to_owned(), state: keys.concat() }
}

#[test]
fn pooled_files_stay_until_a_query_needs_room() {
    let f = Fixture::new(30);
    let kept = tree(&f, &["a", "b"]);
    let folder = kept.path().to_owned();
    f.cache.return_staged(kept);
    for other in ["c", "d", "e"] {
        drop(f.provide(&[other]).unwrap());
    }
    assert_eq!((f.gets(), f.cached_files()), (5, (3, 30)));
    let taken = f.cache.take_staged(&key(&["a", "b"])).unwrap();
    assert!(f.cache.take_staged(&key(&["a", "b"])).is_none(), "one query has it");
    f.cache.return_staged(taken);
    drop(f.provide(&["c", "d"]).unwrap());
    assert!(!folder.exists() && f.cache.take_staged(&key(&["a", "b"])).is_none());
    assert!(f.cached_files().1 <= 30);
}

#[test]
fn query_with_staged_table_does_not_wait_for_room() {
    let f = Fixture::new(30);
    let in_use = tree(&f, &["a", "b"]);
    let deadline = Deadline { until: Instant::now() + Duration::from_secs(30), stopped: &never };
    let more = [f.wanted("c", "c"), f.wanted("d", "d")];
    let error = f.cache.provide_each(&f.store, &[&more], deadline, CacheWait::Fail).err().unwrap();
    assert!(matches!(error, CacheError::Busy), "{error}");
    let folder = in_use.path().to_owned();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| f.provide(&["c", "d"]).map(drop));
        f.cache.return_staged(in_use);
        waits.join().unwrap().unwrap();
    });
    assert!(!folder.exists());
    let each = f.cache.provide_each(&f.store, &[&[f.wanted("a", "a2")], &[]], deadline, CacheWait::Fail).unwrap();
    assert_eq!(each.len(), 2);
}

#[test]
fn non_reusable_staged_table_is_deleted_immediately() {
    let f = Fixture::new(30);
    let own = tree(&f, &["a"]).not_reusable();
    let folder = own.path().to_owned();
    f.cache.return_staged(own);
    assert!(!folder.exists() && f.cache.take_staged(&key(&["a"])).is_none());
    drop(f.provide(&["b", "c", "d"]).unwrap());
}

#[test]
fn staged_table_is_deleted_when_another_version_is_requested() {
    let f = Fixture::new(30);
    let old = tree(&f, &["a"]);
    let folder = old.path().to_owned();
    f.cache.return_staged(old);
    assert!(f.cache.take_staged(&key(&["b"])).is_none());
    await_that("the old tree's end", || !folder.exists());
    assert!(f.cache.take_staged(&key(&["a"])).is_none());
}
