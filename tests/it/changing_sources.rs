//! Sources that change or vanish while a run reads them: the run plans again, and its tables are right.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lakemill::adapters::fs::FsStore;
use lakemill::domain::job::RunErrorCode;
use lakemill::domain::limits::REPLANS_MAX;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{BodyChanged, Bucket, WriteOptions, list_all};
use lakemill::runtime::Clock;

use crate::support::faulty_store::FaultyStore;
use crate::support::lake::{Lake, MIB, RunParams, Ticks, difference, in_memory_folder, pipeline, run_on};

const MAPPING: &str = r#"{ "columns": [ { "name": "p", "type": "string" }, { "name": "n", "type": "int64" } ],
    "partition_by": ["p"] }"#;

/// A file of 150,000 rows, larger than the prefetch buffers.
fn csv(partition: &str, rows: u64) -> String {
    let rows: String = (0..rows).map(|n| format!("{partition},{}\n", n * 1_000_003)).collect();
    format!("p,n\n{rows}")
}

fn how() -> RunParams {
    RunParams::new(2, 64 * MIB)
}

#[test]
fn object_changed_or_deleted_while_read_is_planned_again() {
    // Small files are read two at a time.
    let cases = [150_000, 10_000].into_iter().flat_map(|rows| {
        let middle = rows * 7;
        [(0, false), (middle, false), (middle, true), (u64::MAX, false), (u64::MAX, true)].map(|case| (rows, case))
    });
    for (rows, (offset, vanishes)) in cases {
        // The first GET is for the manifest.
        for get in [2, 3] {
            let lake = Lake::new(MAPPING);
            for name in ["a", "b"] {
                lake.put(&format!("{name}.csv"), csv(name, rows));
            }
            let (memory, keys) = (lake.memory.clone(), [lake.key("a.csv"), lake.key("b.csv")]);
            lake.store.during_get(get, offset, move || {
                // Either source may be read first.
                for (key, partition) in keys.iter().zip(["c", "d"]) {
                    if vanishes && partition == "d" {
                        memory.delete(Bucket::Lake, std::slice::from_ref(key), &WriteOptions::default()).unwrap();
                    } else {
                        let text = csv(partition, 1_000);
                        memory.put(Bucket::Lake, key, text.as_bytes(), &WriteOptions::default()).unwrap();
                    }
                }
                Err(BodyChanged.into())
            });
            lake.run(how()).unwrap();
            let clean = lake.fresh();
            clean.run(how()).unwrap();
            assert_eq!(difference(&clean.warehouse(), &lake.warehouse()), None);
            assert_eq!(lake.warehouse().len(), if vanishes { 1 } else { 2 });
        }
    }
}

#[test]
fn object_changing_at_every_read_fails_the_run() {
    let lake = Lake::new(MAPPING);
    lake.put("a.csv", csv("a", 1_000));
    lake.run(how()).unwrap();
    let before = lake.warehouse();
    lake.put("a.csv", csv("b", 1_000));
    lake.store.reset_counts();
    // The lease reads a root; then a root and its sources before each read of the source.
    for get in (4..60).step_by(3) {
        let (memory, key) = (lake.memory.clone(), lake.key("a.csv"));
        lake.store.during_get(get, 100, move || {
            let text = csv("c", 1_000 + get);
            memory.put(Bucket::Lake, &key, text.as_bytes(), &WriteOptions::default()).unwrap();
            Err(BodyChanged.into())
        });
    }
    let failure = lake.run(how()).unwrap_err();
    assert_eq!(failure.error.code, RunErrorCode::SourceChanged);
    assert!(failure.error.code.is_transient() && !failure.partially_published);
    assert!(failure.error.detail.unwrap().contains(&format!("planned {} times", REPLANS_MAX + 1)));
    assert_eq!(difference(&before, &lake.warehouse()), None);
    assert_eq!(lake.store.written(), [""; 0]);
}

/// Changes a file while it is read.
#[derive(Debug, Clone, Copy)]
enum Change {
    Append,
    Replace,
    Truncate,
    Overwrite,
    Delete,
}

fn change(file: &Path, change: Change) {
    match change {
        Change::Append => {
            let mut file = OpenOptions::new().append(true).open(file).unwrap();
            file.write_all(b"later,1\nlater,2\n").unwrap();
        }
        Change::Replace => {
            let other = file.with_extension("new");
            std::fs::write(&other, csv("replaced", 100)).unwrap();
            std::fs::rename(other, file).unwrap();
        }
        Change::Truncate => OpenOptions::new().write(true).open(file).unwrap().set_len(4 + 9 * 20).unwrap(),
        Change::Overwrite => {
            let mut file = OpenOptions::new().write(true).open(file).unwrap();
            file.write_all(b"p,n\nx").unwrap();
        }
        Change::Delete => std::fs::remove_file(file).unwrap(),
    }
}

/// The lake folder of pipeline `x` below a store's root.
fn lake_folder(root: &Path) -> PathBuf {
    let store = FsStore::create(root).unwrap();
    store.put(Bucket::Lake, "pipelines/x/keep.txt", b"", &WriteOptions::default()).unwrap();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_name() == "keep.txt" {
                return entry.path().parent().unwrap().to_owned();
            }
            if entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    panic!("the object that was put is in no folder");
}

fn contents(store: &dyn ObjectStore) -> std::collections::BTreeMap<String, Arc<[u8]>> {
    let read = |key: String| {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut store.get(Bucket::Warehouse, &key, None).unwrap().body, &mut bytes).unwrap();
        (key, bytes.into())
    };
    list_all(store, Bucket::Warehouse, "pipelines/x/").unwrap().into_iter().map(|o| read(o.key)).collect()
}

#[test]
fn file_modified_while_read_is_planned_again() {
    let pipeline = pipeline(MAPPING);
    for what in [Change::Append, Change::Replace, Change::Truncate, Change::Overwrite, Change::Delete] {
        for offset in [0, 1_500_000] {
            let (root, scratch, clock) = (in_memory_folder(), in_memory_folder(), Ticks::default());
            let folder = lake_folder(root.path());
            std::fs::write(folder.join("a.csv"), csv("a", 150_000)).unwrap();
            std::fs::write(folder.join("b.csv"), csv("b", 10)).unwrap();
            let inner: Arc<dyn ObjectStore> = Arc::new(FsStore::create(root.path()).unwrap());
            let store = FaultyStore::new(Arc::clone(&inner));
            let file = folder.join("a.csv");
            // One of the two reads is of `a`; the other detects the change at its own pace.
            store.during_get(2, offset, move || {
                change(&file, what);
                Ok(())
            });
            run_on(&store, &pipeline, &clock as &dyn Clock, scratch.path(), how()).0.unwrap();
            let fresh = in_memory_folder();
            std::fs::create_dir_all(lake_folder(fresh.path())).unwrap();
            for entry in std::fs::read_dir(&folder).unwrap().flatten() {
                std::fs::copy(entry.path(), lake_folder(fresh.path()).join(entry.file_name())).unwrap();
            }
            let clean = FsStore::create(fresh.path()).unwrap();
            run_on(&clean, &pipeline, &clock, scratch.path(), how()).0.unwrap();
            assert_eq!(difference(&contents(&clean), &contents(&*inner)), None, "{what:?} after {offset} bytes");
        }
    }
}
