//! The cache of the warehouse's files: bounded, whole files alone, each fetched once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lakemill::domain::digest::sha256_hex;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, ETag, WriteOptions};
use lakemill::sql::sandbox::StagingFolder;
use lakemill::web::cache::{Cache, CacheError, Patience, Pins, Room, Tree, TreeKey, Wanted};
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

    fn wanted(&self, key: &str, into: &str) -> Wanted {
        let meta = self.store.head(Bucket::Warehouse, key).unwrap().unwrap();
        let etag = meta.etag.unwrap();
        Wanted { key: key.to_owned(), etag, sha256: String::new(), size: meta.size, into: self.path(into) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn provide_within(&self, keys: &[&str], wait: Duration) -> Result<Pins, CacheError> {
        let id = uuid::Uuid::new_v4();
        let into = |at: usize, key: &str| self.wanted(key, &format!("{key}-{at}-{id}"));
        let wanted: Vec<Wanted> = keys.iter().enumerate().map(|(at, key)| into(at, key)).collect();
        let pins =
            self.cache.provide(&self.store, &wanted, Patience { until: Instant::now() + wait, stopped: &never })?;
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
    fn held(&self) -> (usize, u64) {
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
fn a_file_is_fetched_once_and_found_again_after_a_restart() {
    let f = Fixture::new(100);
    drop(f.provide(&["a", "b"]).unwrap());
    drop(f.provide(&["b", "a", "a"]).unwrap());
    assert_eq!((f.gets(), f.held()), (2, (2, 20)));
    let f = f.reopen();
    drop(f.provide(&["a", "b"]).unwrap());
    assert_eq!((f.gets(), f.held()), (2, (2, 20)));
}

#[test]
fn many_that_want_a_file_at_once_fetch_it_once() {
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
fn what_was_used_least_recently_goes_and_what_is_in_use_stays() {
    let f = Fixture::new(30);
    for keys in [&["a", "b", "c"][..], &["a"], &["b"]] {
        drop(f.provide(keys).unwrap());
    }
    drop(f.provide(&["d"]).unwrap());
    assert_eq!((f.gets(), f.held()), (4, (3, 30)));
    drop(f.provide(&["a", "b", "d"]).unwrap());
    assert_eq!(f.gets(), 4, "`c` went");
    let held = f.provide(&["a"]).unwrap();
    drop(f.provide(&["c", "e"]).unwrap());
    assert_eq!((f.gets(), f.held()), (6, (3, 30)));
    drop(f.provide(&["a"]).unwrap());
    assert_eq!(f.gets(), 6, "`a` was in use");
    drop(held);
}

#[test]
fn a_query_that_needs_more_than_there_is_room_is_told_both_sizes() {
    let f = Fixture::new(25);
    let error = f.provide(&["a", "b", "c"]).err().unwrap();
    assert!(matches!(error, CacheError::TooLarge { needed: 30, bytes_max: 25 }), "{error}");
    assert_eq!((f.gets(), f.held()), (0, (0, 0)));
    drop(f.provide(&["a", "b"]).unwrap());
}

#[test]
fn room_that_others_hold_is_waited_for_and_given_as_soon_as_it_is_free() {
    let f = Fixture::new(25);
    let held = f.provide(&["a", "b"]).unwrap();
    let error = f.provide_within(&["c"], Duration::from_millis(50)).err().unwrap();
    assert!(matches!(error, CacheError::Busy), "{error}");
    assert_eq!(f.held(), (2, 20));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| f.provide(&["c", "d"]).map(drop));
        std::thread::sleep(Duration::from_millis(50));
        drop(held);
        waits.join().unwrap().unwrap();
    });
    assert_eq!(f.held(), (2, 20));
}

#[test]
fn nothing_half_is_kept_of_a_fetch_that_fails() {
    let f = Fixture::new(100);
    for n in 1..=2 {
        f.store.during_get(n, 4, || Err(std::io::ErrorKind::ConnectionReset.into()));
    }
    let error = f.provide(&["a"]).err().unwrap();
    assert!(matches!(error, CacheError::Store(_)), "{error}");
    assert_eq!((f.gets(), f.held()), (2, (0, 0)));
    f.store.during_get(3, 4, || Err(std::io::ErrorKind::ConnectionReset.into()));
    drop(f.provide(&["a"]).unwrap());
    assert_eq!((f.gets(), f.held()), (4, (1, 10)), "one that broke off once is read again");
}

#[test]
fn a_content_that_is_not_the_one_whose_hash_is_known_is_not_kept() {
    let f = Fixture::new(100);
    let patience = Patience { until: Instant::now() + Duration::from_secs(30), stopped: &never };
    let of = |content: &[u8], into| Wanted { sha256: sha256_hex(content), ..f.wanted("a", into) };
    let error = f.cache.provide(&f.store, &[of(b"another", "other")], patience).err().unwrap();
    assert!(matches!(error, CacheError::Store(_)) && error.to_string().contains("a"), "{error}");
    assert_eq!((f.gets(), f.held()), (2, (0, 0)), "it was read again");
    drop(f.cache.provide(&f.store, &[of(b"aaaaaaaaaa", "own")], patience).unwrap());
    assert_eq!((f.gets(), f.held()), (3, (1, 10)));
}

#[test]
fn an_object_that_is_another_now_is_told_as_changed() {
    let f = Fixture::new(100);
    let old = f.wanted("a", "old");
    f.store.put(Bucket::Warehouse, "a", b"new", &WriteOptions::default()).unwrap();
    let patience = Patience { until: Instant::now() + Duration::from_secs(30), stopped: &never };
    let gone = Wanted { key: "gone".into(), etag: ETag("x".into()), ..old.clone() };
    let longer = Wanted { size: 11, ..f.wanted("b", "longer") };
    for wanted in [old, gone, longer] {
        let error = f.cache.provide(&f.store, &[wanted], patience).err().unwrap();
        assert!(matches!(error, CacheError::Changed { .. }), "{error}");
    }
    assert_eq!(f.held(), (0, 0));
}

#[test]
fn a_query_that_was_ended_waits_no_longer() {
    let f = Fixture::new(100);
    let stopped = AtomicBool::new(true);
    let look = || stopped.load(Ordering::SeqCst);
    let patience = Patience { until: Instant::now() + Duration::from_secs(30), stopped: &look };
    let error = f.cache.provide(&f.store, &[f.wanted("a", "a")], patience).err().unwrap();
    assert!(matches!(error, CacheError::Stopped), "{error}");
}

#[test]
fn leftovers_and_files_that_are_not_whole_go_at_the_start() {
    let f = Fixture::new(100);
    drop(f.provide(&["a", "b"]).unwrap());
    let files = f.slot().join("files");
    let first = std::fs::read_dir(&files).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&first, "short").unwrap();
    std::fs::write(files.join("nonsense"), "x").unwrap();
    std::fs::write(f.slot().join("tmp/half"), "x").unwrap();
    let f = f.reopen();
    assert_eq!(f.held(), (1, 10));
    drop(f.provide(&["a", "b"]).unwrap());
    assert_eq!(f.gets(), 3);
}

#[test]
fn a_file_that_somebody_removed_or_cut_is_fetched_again() {
    let f = Fixture::new(100);
    drop(f.provide(&["a"]).unwrap());
    let file = || std::fs::read_dir(f.slot().join("files")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(file()).unwrap();
    drop(f.provide(&["a"]).unwrap());
    // The links that queries have are the same file: a new one takes its name.
    let cut = f.path("cut");
    std::fs::write(&cut, "cut").unwrap();
    std::fs::rename(&cut, file()).unwrap();
    drop(f.provide(&["a"]).unwrap());
    assert_eq!((f.gets(), f.held()), (3, (1, 10)));
}

#[test]
fn files_from_before_the_machine_started_are_not_trusted() {
    let f = Fixture::new(100);
    drop(f.provide(&["a"]).unwrap());
    std::fs::write(f.slot().join("boot"), "another start").unwrap();
    let f = f.reopen();
    assert_eq!(f.held(), (0, 0));
}

#[test]
fn processes_share_a_folder_without_touching_each_others_files() {
    let f = Fixture::new(100);
    drop(f.provide(&["a"]).unwrap());
    let other = Cache::open(&f.path("files"), 100).unwrap();
    let patience = Patience { until: Instant::now() + Duration::from_secs(30), stopped: &never };
    drop(other.provide(&f.store, &[f.wanted("a", "theirs")], patience).unwrap());
    assert_eq!((f.gets(), f.held()), (2, (1, 10)));
    drop(other);
    // The one that starts next clears away what the dead one left.
    let f = f.reopen();
    assert_eq!(f.held(), (1, 10));
    assert!(!f.path("files/slot-01/files").exists());
}

/// A tree with files of the cache; its state is their names.
fn tree(f: &Fixture, keys: &[&str]) -> Tree {
    let folder = f.path(&uuid::Uuid::new_v4().to_string());
    std::fs::create_dir(&folder).unwrap();
    let folder = StagingFolder::new(folder);
    let pins = f.provide(keys).unwrap();
    Tree::new(Some(key(keys)), folder, pins, keys.len())
}

fn key(keys: &[&str]) -> TreeKey {
    TreeKey { table: "p/t".to_owned(), state: keys.concat() }
}

#[test]
fn files_of_a_kept_tree_stay_until_a_query_needs_their_room() {
    let f = Fixture::new(30);
    let kept = tree(&f, &["a", "b"]);
    let folder = kept.path().to_owned();
    f.cache.keep_tree(kept);
    for other in ["c", "d", "e"] {
        drop(f.provide(&[other]).unwrap());
    }
    assert_eq!((f.gets(), f.held()), (5, (3, 30)));
    let taken = f.cache.take_tree(&key(&["a", "b"])).unwrap();
    assert!(f.cache.take_tree(&key(&["a", "b"])).is_none(), "one query has it");
    f.cache.keep_tree(taken);
    drop(f.provide(&["c", "d"]).unwrap());
    assert!(!folder.exists() && f.cache.take_tree(&key(&["a", "b"])).is_none());
    assert!(f.held().1 <= 30);
}

#[test]
fn a_query_that_has_a_tree_does_not_wait_for_room_and_one_that_waits_gets_a_trees() {
    let f = Fixture::new(30);
    let in_use = tree(&f, &["a", "b"]);
    let patience = Patience { until: Instant::now() + Duration::from_secs(30), stopped: &never };
    let more = [f.wanted("c", "c"), f.wanted("d", "d")];
    let error = f.cache.provide_each(&f.store, &[&more], patience, Room::AtOnce).err().unwrap();
    assert!(matches!(error, CacheError::Busy), "{error}");
    let folder = in_use.path().to_owned();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| f.provide(&["c", "d"]).map(drop));
        f.cache.keep_tree(in_use);
        waits.join().unwrap().unwrap();
    });
    assert!(!folder.exists());
    let each = f.cache.provide_each(&f.store, &[&[f.wanted("a", "a2")], &[]], patience, Room::AtOnce).unwrap();
    assert_eq!(each.len(), 2);
}

#[test]
fn a_tree_that_is_for_nobody_else_goes_at_once() {
    let f = Fixture::new(30);
    let own = tree(&f, &["a"]).for_nobody();
    let folder = own.path().to_owned();
    f.cache.keep_tree(own);
    assert!(!folder.exists() && f.cache.take_tree(&key(&["a"])).is_none());
    drop(f.provide(&["b", "c", "d"]).unwrap());
}

#[test]
fn a_tree_goes_when_its_table_is_asked_for_in_another_state() {
    let f = Fixture::new(30);
    let old = tree(&f, &["a"]);
    let folder = old.path().to_owned();
    f.cache.keep_tree(old);
    assert!(f.cache.take_tree(&key(&["b"])).is_none());
    await_that("the old tree's end", || !folder.exists());
    assert!(f.cache.take_tree(&key(&["a"])).is_none());
}
