//! Files are detected, however they enter the lake's folder.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lakemill::adapters::fs::{FsStore, LakeWatch};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, Precondition, WriteOptions};
use lakemill::ports::store::{LakeChange, LakeChanges};

const DEADLINE: Duration = Duration::from_secs(60);

struct Watched {
    root: tempfile::TempDir,
    store: FsStore,
    watch: Option<LakeWatch>,
    changes: LakeChanges,
}

impl Watched {
    /// With one folder in the lake: `pipelines/x`.
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = FsStore::create(root.path()).unwrap();
        fs::create_dir_all(root.path().join("lake/pipelines/x")).unwrap();
        let (watch, changes) = store.watch().unwrap();
        Self { root, store, watch: Some(watch), changes }
    }

    /// A folder on the same file system, outside of the lake.
    fn outside(&self, path: &str) -> PathBuf {
        self.root.path().join("outside").join(path)
    }

    fn lake(&self, path: &str) -> PathBuf {
        self.root.path().join("lake/pipelines/x").join(path)
    }

    /// Atomically, by a rename.
    fn write(&self, path: &str) {
        write(self.lake(path));
    }

    /// Messages until each of these arrives, by its key or by a rescan.
    fn until(&self, names: &[&str]) -> Messages {
        let mut missing: BTreeSet<String> = names.iter().map(|name| key(name)).collect();
        let deadline = Instant::now() + DEADLINE;
        let mut messages = Messages::default();
        while !missing.is_empty() {
            let change = self.changes.recv_deadline(deadline);
            match change.unwrap_or_else(|_| panic!("received {messages:?}, but not {missing:?}")) {
                LakeChange::Keys(keys) => {
                    for key in keys {
                        missing.remove(&key);
                        messages.keys.insert(key);
                    }
                }
                LakeChange::Rescan => {
                    missing.clear();
                    messages.rescans += 1;
                }
            }
        }
        messages
    }

    fn until_rescan(&self) {
        let deadline = Instant::now() + DEADLINE;
        while self.changes.recv_deadline(deadline).unwrap() != LakeChange::Rescan {}
    }

    /// Messages before that of a file written now. Events arrive in order.
    fn before_now(&self, name: &str) -> BTreeSet<String> {
        self.write(name);
        let mut messages = self.until(&[name]);
        assert_eq!(messages.rescans, 0);
        assert!(messages.keys.remove(&key(name)));
        messages.keys
    }

    /// Whether the kernel watches the lake's folder for this process.
    fn is_watched(&self) -> bool {
        let inode = format!(" ino:{:x} ", fs::metadata(self.root.path().join("lake")).unwrap().ino());
        let files = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
        let mut texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.any(|text| text.lines().any(|line| line.starts_with("inotify") && line.contains(&inode)))
    }
}

#[derive(Debug, Default)]
struct Messages {
    keys: BTreeSet<String>,
    rescans: u32,
}

fn key(name: &str) -> String {
    format!("pipelines/x/{name}")
}

fn keys(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| key(name)).collect()
}

fn write(path: PathBuf) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "a\n1\n").unwrap();
}

#[test]
fn slowly_written_file_is_reported_when_closed() {
    let watched = Watched::new();
    let mut slow = File::create(watched.lake("slow.csv")).unwrap();
    for row in 0..3 {
        writeln!(slow, "{row}").unwrap();
        slow.sync_all().unwrap();
        assert_eq!(watched.before_now(&format!("fence-{row}.csv")), keys(&[]));
    }
    drop(slow);
    assert_eq!(watched.until(&["slow.csv"]).keys, keys(&["slow.csv"]));

    // Also when more is appended later.
    let mut slow = File::options().append(true).open(watched.lake("slow.csv")).unwrap();
    writeln!(slow, "4").unwrap();
    assert_eq!(watched.before_now("fence.csv"), keys(&[]));
    drop(slow);
    assert_eq!(watched.until(&["slow.csv"]).keys, keys(&["slow.csv"]));
}

#[test]
fn moved_linked_and_put_files_are_reported() {
    let watched = Watched::new();
    write(watched.outside("a.csv"));
    fs::hard_link(watched.outside("a.csv"), watched.lake("linked.csv")).unwrap();
    assert_eq!(watched.until(&["linked.csv"]).keys, keys(&["linked.csv"]));
    fs::rename(watched.outside("a.csv"), watched.lake("moved.csv")).unwrap();
    assert_eq!(watched.until(&["moved.csv"]).keys, keys(&["moved.csv"]));
    fs::rename(watched.lake("moved.csv"), watched.lake("renamed.csv")).unwrap();
    assert_eq!(watched.until(&["renamed.csv"]).keys, keys(&["moved.csv", "renamed.csv"]));
    for when in [Precondition::IfNoneMatch, Precondition::None] {
        watched.store.put(Bucket::Lake, &key("put.csv"), b"a\n", &WriteOptions::default().with(when)).unwrap();
        assert_eq!(watched.until(&["put.csv"]).keys, keys(&["put.csv"]));
    }
}

#[test]
fn files_of_a_moved_in_folder_and_later_ones_are_reported() {
    let watched = Watched::new();
    let names = ["f/1.csv", "f/g/2.csv", "f/g/3.csv", "f/h/i/4.csv"];
    names.iter().for_each(|name| write(watched.outside(name)));
    fs::create_dir(watched.outside("f/empty")).unwrap();
    fs::rename(watched.outside("f"), watched.lake("f")).unwrap();
    assert_eq!(watched.until(&names).keys, keys(&names));
    for name in ["f/5.csv", "f/empty/6.csv", "f/h/i/7.csv"] {
        watched.write(name);
        assert_eq!(watched.until(&[name]).keys, keys(&[name]));
    }
    // Also under another name. The kernel doesn't list the files of a folder that was moved away.
    fs::rename(watched.lake("f/h"), watched.lake("moved")).unwrap();
    watched.until_rescan();
    watched.write("moved/i/8.csv");
    assert_eq!(watched.until(&["moved/i/8.csv"]).keys, keys(&["moved/i/8.csv"]));
}

#[test]
fn deleted_files_are_reported() {
    let watched = Watched::new();
    for name in ["a.csv", "b.csv", "f/c.csv", "f/g/d.csv", "away/e.csv", ".hidden.csv", "part.csv.tmp"] {
        watched.write(name);
    }
    write(watched.outside("outside.csv"));
    watched.before_now("fence-1.csv");
    fs::remove_file(watched.lake("a.csv")).unwrap();
    fs::remove_file(watched.lake(".hidden.csv")).unwrap();
    fs::rename(watched.lake("b.csv"), watched.outside("b.csv")).unwrap();
    fs::remove_dir_all(watched.lake("f")).unwrap();
    watched.store.delete(Bucket::Lake, &[key("fence-1.csv")], &WriteOptions::default()).unwrap();
    let messages = watched.before_now("fence-2.csv");
    assert_eq!(messages, keys(&["a.csv", "b.csv", "f/c.csv", "f/g/d.csv", "fence-1.csv"]));
    // Written under another name and renamed: no reason for a rescan.
    fs::rename(watched.lake("part.csv.tmp"), watched.lake("part.csv")).unwrap();
    assert_eq!(watched.before_now("fence-3.csv"), keys(&["part.csv.tmp", "part.csv"]));
    fs::rename(watched.lake("away"), watched.outside("away")).unwrap();
    watched.until_rescan();
}

#[test]
fn file_in_new_folders_is_reported() {
    let watched = Watched::new();
    for n in 0..100 {
        let name = format!("{n}/a/b/c/d/e/f.csv");
        watched.write(&name);
        watched.until(&[&name]);
    }
    // Removed and created again at once.
    for n in 0..50 {
        let name = format!("again/a/{n}.csv");
        watched.write(&name);
        watched.until(&[&name]);
        fs::remove_dir_all(watched.lake("again")).unwrap();
    }
}

#[test]
fn thousands_of_files_at_once_are_all_reported() {
    let watched = Watched::new();
    let names: Vec<String> = (0..5_000).map(|n| format!("{}/{n}.csv", n % 10)).collect();
    std::thread::scope(|scope| {
        for names in names.chunks(1_250) {
            scope.spawn(|| names.iter().for_each(|name| watched.write(name)));
        }
        watched.until(&names.iter().map(String::as_str).collect::<Vec<_>>());
    });
}

#[test]
fn dot_files_and_folders_are_ignored() {
    let watched = Watched::new();
    for name in [".a.csv", ".d/a.csv", "d/.a.csv", "d/.e/f/a.csv"] {
        watched.write(name);
    }
    write(watched.outside("moved/.a.csv"));
    fs::rename(watched.outside("moved"), watched.lake("moved")).unwrap();
    write(watched.root.path().join("lake/.lakemill/tmp/a"));
    assert_eq!(watched.before_now("fence.csv"), keys(&[]));
    fs::rename(watched.lake(".a.csv"), watched.lake("a.csv")).unwrap();
    assert_eq!(watched.until(&["a.csv"]).keys, keys(&["a.csv"]));
}

#[test]
fn reads_and_special_files_are_not_reported() {
    let watched = Watched::new();
    watched.write("a.csv");
    watched.until(&["a.csv"]);
    watched.before_now("fence-1.csv");
    fs::read(watched.lake("a.csv")).unwrap();
    std::os::unix::fs::symlink(watched.outside("b.csv"), watched.lake("link.csv")).unwrap();
    fs::create_dir(watched.lake("empty")).unwrap();
    fs::remove_dir(watched.lake("empty")).unwrap();
    assert_eq!(watched.before_now("fence-2.csv"), keys(&[]));
}

#[test]
fn replaced_lake_is_watched_again_after_a_rescan() {
    let watched = Watched::new();
    let lake = watched.root.path().join("lake");
    let aside = watched.root.path().join("aside");
    for round in 0..2 {
        let name = format!("{round}.csv");
        match round {
            0 => {
                fs::remove_dir_all(&lake).unwrap();
                fs::create_dir(&lake).unwrap();
            }
            _ => {
                fs::create_dir_all(aside.join("pipelines/x")).unwrap();
                fs::rename(&lake, watched.root.path().join("old")).unwrap();
                fs::rename(&aside, &lake).unwrap();
            }
        }
        watched.write(&name);
        assert_eq!(watched.until(&["no such file"]).rescans, 1);
        // Another rescan may replace a key.
        loop {
            watched.write(&name);
            if watched.until(&[&name]).keys == keys(&[&name]) {
                break;
            }
        }
    }
}

#[test]
fn missing_lake_is_watched_once_created() {
    let root = tempfile::tempdir().unwrap();
    let store = FsStore::open(root.path()).unwrap();
    let (watch, changes) = store.watch().unwrap();
    fs::create_dir(root.path().join("lake")).unwrap();
    let watched = Watched { root, store, watch: Some(watch), changes };
    assert_eq!(watched.until(&["no such file"]).rescans, 1);
    watched.write("a.csv");
    assert_eq!(watched.until(&["a.csv"]).keys, keys(&["a.csv"]));
}

#[test]
fn watch_ends_when_its_guard_is_dropped() {
    let mut watched = Watched::new();
    assert!(watched.is_watched());
    drop(watched.watch.take());
    assert!(!watched.is_watched());
    watched.write("a.csv");
    assert!(watched.changes.recv().is_err(), "the sender is gone");
}
