//! Writes of a run: none starts after its lease has ended, or after a later run has written.

use std::path::Path;

use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, Precondition, StoreError, StoreResult, WriteOptions};

use super::{Fixture, stage};
use crate::support::TestLease;

const WAREHOUSE: Bucket = Bucket::Warehouse;

/// Tries every kind of write on an object `t/k` that contains `old`.
fn writes(f: &Fixture, store: &dyn ObjectStore, lease: &TestLease) -> [StoreResult<()>; 5] {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("spool");
    std::fs::write(&path, "new").unwrap();
    let staged = place.path().join("staged");
    std::fs::write(&staged, vec![b'n'; 300_000]).unwrap();
    f.put(Bucket::Lake, "from", b"new");
    let (key, options) = (f.key("t/k"), WriteOptions::leased(lease));
    [
        store.put(WAREHOUSE, &key, b"new", &options).map(drop),
        store.put_file(WAREHOUSE, &key, &path, &options).map(drop),
        stage_and_put(store, &key, &staged, lease),
        store.copy((Bucket::Lake, &f.key("from")), (WAREHOUSE, &key), &options).map(drop),
        store.delete(WAREHOUSE, &[key], &options),
    ]
}

/// Where staging isn't possible, the file is put directly.
fn stage_and_put(store: &dyn ObjectStore, key: &str, file: &Path, lease: &TestLease) -> StoreResult<()> {
    let options = WriteOptions::leased(lease);
    let put = match stage(store, key, file, lease)? {
        Some(staged) => staged.put(&options),
        None => store.put_file(WAREHOUSE, key, file, &options),
    };
    put.map(drop)
}

fn all_lost(results: [StoreResult<()>; 5]) -> bool {
    results.iter().all(|result| matches!(result, Err(StoreError::LeaseLost(_))))
}

pub fn lost_lease_writes_nothing(f: &Fixture) {
    f.put(WAREHOUSE, "t/k", b"old");
    let lease = TestLease::new("local", 7);
    lease.lose();
    assert!(all_lost(writes(f, &*f.store, &lease)));
    assert_eq!(f.read(WAREHOUSE, "t/k").unwrap(), b"old");
    assert_eq!(f.names(WAREHOUSE, ""), ["t/k"]);
    // It didn't raise the fence either.
    let lower = TestLease::new("local", 3);
    f.store.put(WAREHOUSE, &f.key("t/k"), b"3", &WriteOptions::leased(&lower)).unwrap();
}

pub fn lower_fence_writes_nothing_after_a_higher_one(f: &Fixture) {
    if !f.fences {
        return;
    }
    let (old, new) = (TestLease::new("local", 1_763_724_000_000_000), TestLease::new("local", 1_763_724_000_000_001));
    for result in writes(f, &*f.store, &old) {
        result.unwrap();
    }
    // The new holder's first write is to another key, in another process.
    (f.open)().put(Bucket::Pipelines, &f.key("manifests/t.json"), b"{}", &WriteOptions::leased(&new)).unwrap();
    f.put(WAREHOUSE, "t/k", b"old");
    assert!(all_lost(writes(f, &*f.store, &old)));
    assert!(all_lost(writes(f, &*(f.open)(), &old)));
    assert_eq!(f.read(WAREHOUSE, "t/k").unwrap(), b"old");
    for result in writes(f, &*f.store, &new) {
        result.unwrap();
    }
    assert_eq!(f.read(WAREHOUSE, "t/k"), None);
}

pub fn fences_are_per_pipeline(f: &Fixture) {
    let (high, low) = (TestLease::new("other", 900), TestLease::new("local", 1));
    for lease in [&high, &low, &high] {
        for result in writes(f, &*f.store, lease) {
            result.unwrap();
        }
    }
}

pub fn precondition_applies_with_a_lease(f: &Fixture) {
    let lease = TestLease::new("local", 5);
    let options = |when| WriteOptions::leased(&lease).with(when);
    let put = |when| f.store.put(WAREHOUSE, &f.key("k"), b"1", &options(when));
    let tag = put(Precondition::IfNoneMatch).unwrap().etag.unwrap();
    assert!(matches!(put(Precondition::IfNoneMatch), Err(StoreError::PreconditionFailed { .. })));
    put(Precondition::IfMatch(tag)).unwrap();
    lease.lose();
    assert!(matches!(put(Precondition::None), Err(StoreError::LeaseLost(_))));
}
