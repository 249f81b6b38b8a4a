//! What happens at the watch's bounds, with bounds small enough to reach.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const DEADLINE: Duration = Duration::from_secs(60);

struct Place {
    root: TempDir,
    store: FsStore,
}

impl Place {
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

/// Waits for a rescan. Gives the keys told before it.
fn until_rescan(changes: &LakeChanges) -> Vec<String> {
    let deadline = Instant::now() + DEADLINE;
    let mut told = Vec::new();
    loop {
        match changes.recv_deadline(deadline).expect("a rescan comes") {
            LakeChange::Rescan => return told,
            LakeChange::Keys(keys) => told.extend(keys),
        }
    }
}

fn until_key(changes: &LakeChanges, key: &str) {
    let deadline = Instant::now() + DEADLINE;
    let is_it = |change| matches!(change, LakeChange::Keys(keys) if keys.iter().any(|k| k == key));
    while !is_it(changes.recv_deadline(deadline).expect("the key comes")) {}
}

#[test]
fn folders_beyond_the_limit_are_made_up_for_by_rescans_and_watched_once_they_can_be() {
    let place = Place::new();
    for n in 0..4 {
        place.write(&format!("{n}/a.csv"));
    }
    let tuning = Tuning { folders_max: 3, rescan_every: Duration::from_millis(200), ..TUNING };
    let (_watch, changes) = place.watch(tuning);
    until_rescan(&changes);
    until_rescan(&changes);
    for n in 0..3 {
        fs::remove_dir_all(place.lake(&n.to_string())).unwrap();
    }
    // All are watched from one of the next rescans on.
    let deadline = Instant::now() + DEADLINE;
    for n in 0.. {
        place.write(&format!("3/{n}.csv"));
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
fn a_folder_too_many_that_comes_later_makes_a_rescan() {
    let place = Place::new();
    let tuning = Tuning { folders_max: 2, arm_pause: Duration::from_millis(10), ..TUNING };
    let (_watch, changes) = place.watch(tuning);
    place.write("1/a.csv");
    until_key(&changes, "1/a.csv");
    place.write("2/a.csv");
    until_rescan(&changes);
}

#[test]
fn events_for_which_there_is_no_room_make_a_rescan_and_later_ones_are_told_again() {
    let place = Place::new();
    let tuning = Tuning { sights_max: 1, arm_pause: Duration::from_millis(10), ..TUNING };
    let (_watch, changes) = place.watch(tuning);
    let mut told = Vec::new();
    let deadline = Instant::now() + DEADLINE;
    // One of many bursts finds the thread busy.
    let mut n = 0;
    let rescan = loop {
        for _ in 0..200 {
            place.write(&format!("{n}.csv"));
            n += 1;
        }
        let next = changes.recv_deadline(deadline).expect("something is told");
        match next {
            LakeChange::Rescan => break true,
            LakeChange::Keys(keys) => told.extend(keys),
        }
    };
    assert!(rescan);
    // What is left of the bursts may make more of them, and take the room of what comes next.
    let is_later = |key: &String| key.starts_with("new/");
    for n in 0.. {
        place.write(&format!("new/{n}.csv"));
        match changes.recv_deadline(deadline).expect("later ones are told") {
            LakeChange::Keys(keys) if keys.iter().any(is_later) => break,
            LakeChange::Keys(_) | LakeChange::Rescan => {}
        }
    }
}

#[test]
fn a_receiver_that_is_behind_gets_a_rescan_for_what_had_no_room_and_then_keys_again() {
    let place = Place::new();
    let (out, changes) = bounded(1);
    let (stop, stopped) = bounded(0);
    let mut watching = Watching::new(Arc::clone(&place.store.folders), TUNING, out);
    watching.arm();
    let start = Instant::now();
    for key in ["first.csv", "second.csv", "third.csv"] {
        watching.outbox.key(key.to_owned(), start);
        watching.outbox.tend(start + TUNING.batch);
    }
    assert!(watching.outbox.stuck().is_some());
    let thread = std::thread::spawn(move || watching.run(&stopped));
    assert_eq!(until_rescan(&changes), ["first.csv"]);
    place.write("fourth.csv");
    until_key(&changes, "fourth.csv");
    drop(stop);
    thread.join().unwrap();
}

#[test]
fn the_watch_ends_when_nobody_listens() {
    let place = Place::new();
    let (mut watch, changes) = place.watch(TUNING);
    drop(changes);
    place.write("a.csv");
    watch.thread.take().unwrap().join().unwrap();
}
