//! The limits of a watch, with small values.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const DEADLINE: Duration = Duration::from_secs(60);

struct Fixture {
    root: TempDir,
    store: FsStore,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = FsStore::create(root.path()).unwrap();
        Self { root, store }
    }

    fn lake(&self, path: &str) -> PathBuf {
        self.root.path().join("lake").join(path)
    }

    fn write(&self, path: &str) {
        fs::create_dir_all(self.lake(path).parent().unwrap()).unwrap();
        fs::write(self.lake(path), "a\n").unwrap();
    }

    fn watch(&self, tuning: Tuning) -> (LakeWatch, LakeChanges) {
        start(Arc::clone(&self.store.folders), tuning).unwrap()
    }
}

/// Waits for a rescan; returns the keys reported before it.
fn until_rescan(changes: &LakeChanges) -> Vec<String> {
    let deadline = Instant::now() + DEADLINE;
    let mut reported = Vec::new();
    loop {
        match changes.recv_deadline(deadline).expect("a rescan comes") {
            LakeChange::Rescan => return reported,
            LakeChange::Keys(keys) => reported.extend(keys),
        }
    }
}

fn until_key(changes: &LakeChanges, key: &str) {
    let deadline = Instant::now() + DEADLINE;
    let is_it = |change| matches!(change, LakeChange::Keys(keys) if keys.iter().any(|k| k == key));
    while !is_it(changes.recv_deadline(deadline).expect("the key comes")) {}
}

#[test]
fn folders_over_the_limit_cause_rescans_and_are_watched_once_possible() {
    let f = Fixture::new();
    for n in 0..4 {
        f.write(&format!("{n}/a.csv"));
    }
    let tuning = Tuning { folders_max: 3, rescan_every: Duration::from_millis(200), ..TUNING };
    let (_watch, changes) = f.watch(tuning);
    until_rescan(&changes);
    until_rescan(&changes);
    for n in 0..3 {
        fs::remove_dir_all(f.lake(&n.to_string())).unwrap();
    }
    // One of the next rescans sets all watches.
    let deadline = Instant::now() + DEADLINE;
    for n in 0.. {
        f.write(&format!("3/{n}.csv"));
        match changes.recv_deadline(deadline).unwrap() {
            LakeChange::Rescan => {}
            LakeChange::Keys(keys) => {
                assert!(keys.iter().all(|key| key.starts_with("3/")), "{keys:?}");
                break;
            }
        }
    }
}

#[test]
fn new_folder_over_the_limit_causes_a_rescan() {
    let f = Fixture::new();
    let tuning = Tuning { folders_max: 2, reset_pause: Duration::from_millis(10), ..TUNING };
    let (_watch, changes) = f.watch(tuning);
    f.write("1/a.csv");
    until_key(&changes, "1/a.csv");
    f.write("2/a.csv");
    until_rescan(&changes);
}

#[test]
fn dropped_events_cause_a_rescan_and_later_events_are_reported() {
    let f = Fixture::new();
    let tuning = Tuning { events_max: 1, reset_pause: Duration::from_millis(10), ..TUNING };
    let (_watch, changes) = f.watch(tuning);
    let mut reported = Vec::new();
    let deadline = Instant::now() + DEADLINE;
    // One of many bursts arrives while the thread is busy.
    let mut n = 0;
    let rescan = loop {
        for _ in 0..200 {
            f.write(&format!("{n}.csv"));
            n += 1;
        }
        let next = changes.recv_deadline(deadline).expect("a change is reported");
        match next {
            LakeChange::Rescan => break true,
            LakeChange::Keys(keys) => reported.extend(keys),
        }
    };
    assert!(rescan);
    // The rest of the bursts may cause more rescans first.
    let is_later = |key: &String| key.starts_with("new/");
    for n in 0.. {
        f.write(&format!("new/{n}.csv"));
        match changes.recv_deadline(deadline).expect("later changes are reported") {
            LakeChange::Keys(keys) if keys.iter().any(is_later) => break,
            LakeChange::Keys(_) | LakeChange::Rescan => {}
        }
    }
}

#[test]
fn slow_receiver_gets_a_rescan_and_then_keys() {
    let f = Fixture::new();
    let (out, changes) = bounded(1);
    let (stop, stopped) = bounded(0);
    let mut watcher = Watcher::new(Arc::clone(&f.store.folders), TUNING, out);
    watcher.set_watches();
    let start = Instant::now();
    for key in ["first.csv", "second.csv", "third.csv"] {
        watcher.outbox.key(key.to_owned(), start);
        watcher.outbox.flush(start + TUNING.batch);
    }
    assert!(watcher.outbox.blocked().is_some());
    let thread = std::thread::spawn(move || watcher.run(&stopped));
    assert_eq!(until_rescan(&changes), ["first.csv"]);
    f.write("fourth.csv");
    until_key(&changes, "fourth.csv");
    drop(stop);
    thread.join().unwrap();
}

#[test]
fn watch_ends_when_the_receiver_is_gone() {
    let f = Fixture::new();
    let (mut watch, changes) = f.watch(TUNING);
    drop(changes);
    f.write("a.csv");
    watch.thread.take().unwrap().join().unwrap();
}
