//! Iceberg metadata of a table: each commit is a snapshot, whichever process dies, and nothing is left behind.

use std::collections::BTreeSet;
use std::sync::Arc;

use lakemill::domain::pipeline::TableFormat;
use lakemill::domain::table_log::root::Root;
use lakemill::pipelines::tables::{FoundRoot, TableError, TableStore, mark_log, restore};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::Value;

use crate::support::faulty_store::{CrashTiming, FaultyStore};
use crate::support::memory_store::MemoryStore;
use crate::table_commits::{
    FIRST, RunLease, SECOND, THIRD, after_first, after_third, faults, present, read, run_published, slug,
};

const ICEBERG: &[TableFormat] = &[TableFormat::Iceberg];
const PREFIX: &str = "pipelines/shop/t/metadata/";

fn names(store: &MemoryStore) -> BTreeSet<String> {
    let all = store.objects();
    all.keys().filter_map(|(_, key)| key.strip_prefix(PREFIX)).map(str::to_owned).collect()
}

/// The metadata that a reader finds by the hint.
fn metadata(store: &MemoryStore) -> Value {
    let hint = read(store, Bucket::Warehouse, &format!("{PREFIX}version-hint.text")).unwrap();
    let text = read(store, Bucket::Warehouse, &format!("{PREFIX}v{hint}.metadata.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Asserts that the metadata is that of the root, and returns the snapshots' ids.
fn snapshots(store: &MemoryStore, root: &Root) -> Vec<u64> {
    let metadata = metadata(store);
    assert_eq!(metadata["current-snapshot-id"], root.sequence);
    assert_eq!(metadata["table-uuid"], root.iceberg.as_ref().unwrap().id);
    let (listed, names) = (metadata["snapshots"].as_array().unwrap(), names(store));
    for snapshot in listed {
        let list = snapshot["manifest-list"].as_str().unwrap().rsplit('/').next().unwrap();
        assert!(names.contains(list), "{list} of {snapshot}");
    }
    listed.iter().map(|snapshot| snapshot["snapshot-id"].as_u64().unwrap()).collect()
}

#[test]
fn iceberg_metadata_has_each_commit_once_whenever_a_run_dies() {
    for dies in [CrashTiming::BeforeWrite, CrashTiming::AfterWrite] {
        for keep_history in [false, true] {
            for at in 1.. {
                let memory = Arc::new(MemoryStore::new());
                run_published(&*memory, 1, FIRST, keep_history, ICEBERG).unwrap();
                let store = FaultyStore::new(Arc::clone(&memory) as Arc<dyn ObjectStore>);
                store.crash_at_write(at, dies);
                let _ = run_published(&store, 2, SECOND, keep_history, ICEBERG);
                if !store.is_crashed() {
                    assert!(at > 12, "a commit has more writes than {at}");
                    break;
                }
                run_published(&*memory, 3, SECOND, keep_history, ICEBERG).unwrap();
                let last = run_published(&*memory, 4, THIRD, keep_history, ICEBERG).unwrap();
                let case = format!("write {at}, {dies:?}, keep_history {keep_history}");
                assert_eq!(present(&*memory), after_third(), "{case}");
                let kept = if keep_history { Vec::from_iter(1..=last.sequence) } else { vec![last.sequence] };
                assert_eq!(snapshots(&memory, &last), kept, "{case}");
                assert_eq!(faults(&*memory), [""; 0], "{case}");
            }
        }
    }
}

#[test]
fn equal_commits_make_equal_metadata() {
    let objects = || {
        let memory = MemoryStore::new();
        run_published(&memory, 1, FIRST, true, ICEBERG).unwrap();
        run_published(&memory, 2, SECOND, true, ICEBERG).unwrap();
        let names = names(&memory);
        let text = |name: &String| memory.objects()[&(Bucket::Warehouse, format!("{PREFIX}{name}"))].bytes.clone();
        names.iter().map(|name| (name.clone(), text(name))).collect::<Vec<_>>()
    };
    assert_eq!(objects(), objects());
}

#[test]
fn snapshots_expire_with_the_history() {
    let memory = MemoryStore::new();
    run_published(&memory, 1, FIRST, true, ICEBERG).unwrap();
    let kept = run_published(&memory, 2, SECOND, true, ICEBERG).unwrap();
    assert_eq!(snapshots(&memory, &kept), [1, 2]);
    let expired = run_published(&memory, 3, THIRD, false, ICEBERG).unwrap();
    assert_eq!(snapshots(&memory, &expired), [3]);
    assert_eq!(names(&memory).len(), 4, "metadata, hint, list and manifest: {:?}", names(&memory));
    assert_eq!(faults(&memory), [""; 0]);
}

#[test]
fn iceberg_metadata_ends_when_it_is_switched_off_and_begins_with_all_files_when_switched_on() {
    let memory = MemoryStore::new();
    run_published(&memory, 1, FIRST, true, &[]).unwrap();
    let begun = run_published(&memory, 2, &[], true, ICEBERG).unwrap();
    assert_eq!(snapshots(&memory, &begun), [2]);
    // Named as a catalog names its metadata files.
    let foreign = "00000-6ba7b810-9dad-11d1-80b4-00c04fd430c8.metadata.json";
    memory.put(Bucket::Warehouse, &format!("{PREFIX}{foreign}"), b"{}", &WriteOptions::default()).unwrap();
    assert_eq!(metadata(&memory)["snapshots"][0]["summary"]["added-data-files"], "3");
    run_published(&memory, 3, SECOND, true, &[]).unwrap();
    assert_eq!(names(&memory), BTreeSet::from([foreign.to_owned()]), "objects of others stay");
    let again = run_published(&memory, 4, THIRD, true, &[TableFormat::Delta, TableFormat::Iceberg]).unwrap();
    assert_eq!(snapshots(&memory, &again), [4]);
    assert_ne!(begun.iceberg.unwrap().id, again.iceberg.unwrap().id);
    assert_eq!(faults(&memory), [format!("unknown {PREFIX}{foreign}: ")]);
}

#[test]
fn metadata_of_another_program_is_replaced_only_on_request() {
    let memory = MemoryStore::new();
    run_published(&memory, 1, FIRST, false, ICEBERG).unwrap();
    let foreign = format!("{PREFIX}v2.metadata.json");
    memory.put(Bucket::Warehouse, &foreign, b"{}", &WriteOptions::default()).unwrap();
    assert!(faults(&memory).iter().any(|fault| fault.contains("another program")), "{:?}", faults(&memory));
    for fence in [2, 3] {
        let refused = run_published(&memory, fence, SECOND, false, ICEBERG).unwrap_err();
        assert!(matches!(refused, TableError::Log { format: TableFormat::Iceberg, .. }), "{refused}");
    }
    assert_eq!(read(&memory, Bucket::Warehouse, &foreign).unwrap(), "{}");
    let slug = slug();
    let table = TableStore::new(&memory, &slug, "t");
    mark_log(&table, TableFormat::Iceberg, &RunLease(slug.clone(), 4)).unwrap();
    let last = run_published(&memory, 5, THIRD, false, ICEBERG).unwrap();
    assert_eq!(snapshots(&memory, &last), [last.sequence]);
    assert_eq!((faults(&memory), present(&memory)), (vec![], after_third()));
}

#[test]
fn damaged_metadata_is_found() {
    let memory = MemoryStore::new();
    run_published(&memory, 1, FIRST, false, ICEBERG).unwrap();
    for name in names(&memory) {
        let key = format!("{PREFIX}{name}");
        let bytes = memory.objects()[&(Bucket::Warehouse, key.clone())].bytes.clone();
        memory.put(Bucket::Warehouse, &key, b"x", &WriteOptions::default()).unwrap();
        assert!(faults(&memory).iter().any(|fault| fault.contains(&key)), "{key}: {:?}", faults(&memory));
        memory.put(Bucket::Warehouse, &key, &bytes, &WriteOptions::default()).unwrap();
    }
    let unknown = format!("{PREFIX}notes.txt");
    memory.put(Bucket::Warehouse, &unknown, b"x", &WriteOptions::default()).unwrap();
    assert_eq!(faults(&memory), [format!("unknown {unknown}: ")]);
}

#[test]
fn restored_commit_is_a_snapshot() {
    let memory = MemoryStore::new();
    run_published(&memory, 1, FIRST, true, ICEBERG).unwrap();
    run_published(&memory, 2, SECOND, true, ICEBERG).unwrap();
    let slug = slug();
    let table = TableStore::new(&memory, &slug, "t");
    let FoundRoot::Readable(stored) = table.root().unwrap() else { panic!("no root") };
    let earlier = table.earlier_root(1).unwrap().unwrap();
    let now = chrono::DateTime::UNIX_EPOCH;
    let restored = restore(table, &stored, earlier, &RunLease(slug.clone(), 3), now).unwrap();
    assert_eq!(present(&memory), after_first());
    assert_eq!(snapshots(&memory, &restored), [1, 2, 3]);
    assert_eq!(faults(&memory), [""; 0]);
}
