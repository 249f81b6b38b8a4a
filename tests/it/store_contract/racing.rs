//! Concurrent writers and readers, each with its own handle, like processes.

use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, Precondition, StoreError, StoreResult, WriteOptions};

use super::{Fixture, read};
use crate::support::concurrent::{self, Body, with_background};

const LAKE: Bucket = Bucket::Lake;
const RACERS: usize = 32;

/// Like [`concurrent::race`], each thread with its own store.
fn race<T: Send>(f: &Fixture, act: impl Fn(usize, &dyn ObjectStore) -> T + Sync) -> Vec<T> {
    concurrent::race(RACERS, || (f.open)(), |racer, store| act(racer, &**store))
}

/// The winner; all others must have been rejected.
fn winner<T>(results: &[StoreResult<T>]) -> usize {
    let winners: Vec<usize> = (0..results.len()).filter(|i| results[*i].is_ok()).collect();
    assert_eq!(winners.len(), 1, "{winners:?} won");
    for error in results.iter().filter_map(|result| result.as_ref().err()) {
        assert!(matches!(error, StoreError::PreconditionFailed { .. }), "{error}");
    }
    winners[0]
}

fn put(store: &dyn ObjectStore, key: &str, body: &str, when: Precondition) -> StoreResult<()> {
    store.put(LAKE, key, body.as_bytes(), &WriteOptions::default().with(when)).map(drop)
}

pub fn one_of_many_creates_wins(f: &Fixture) {
    for round in 0..4 {
        let name = format!("new{round}/k");
        let results = race(f, |racer, store| put(store, &f.key(&name), &racer.to_string(), Precondition::IfNoneMatch));
        assert_eq!(f.read(LAKE, &name).unwrap(), winner(&results).to_string().as_bytes());
    }
}

pub fn one_of_many_replaces_wins(f: &Fixture) {
    for round in 0..4 {
        let name = format!("old{round}");
        let tag = f.put(LAKE, &name, b"old").etag.unwrap();
        let results =
            race(f, |racer, store| put(store, &f.key(&name), &racer.to_string(), Precondition::IfMatch(tag.clone())));
        assert_eq!(f.read(LAKE, &name).unwrap(), winner(&results).to_string().as_bytes());
    }
}

pub fn conditional_counters_lose_no_update(f: &Fixture) {
    let key = f.key("counter");
    put(&*f.store, &key, "0", Precondition::None).unwrap();
    race(f, |_, store| {
        for _ in 0..2 {
            loop {
                let reader = store.get(LAKE, &key, None).unwrap();
                let count: u64 = std::io::read_to_string(reader.body).unwrap().parse().unwrap();
                match put(store, &key, &(count + 1).to_string(), Precondition::IfMatch(reader.meta.etag.unwrap())) {
                    Ok(()) => break,
                    Err(StoreError::PreconditionFailed { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    });
    assert_eq!(f.read(LAKE, "counter").unwrap(), (2 * RACERS).to_string().as_bytes());
}

pub fn readers_see_whole_objects_during_races(f: &Fixture) {
    let body = |racer: usize| format!("{racer:>4}").repeat(20_000 + racer);
    put(&*f.store, &f.key("k"), &body(0), Precondition::None).unwrap();
    let whole = |bytes: &[u8]| {
        let racer = std::str::from_utf8(&bytes[..4]).unwrap().trim().parse().unwrap();
        assert!(bytes == body(racer).as_bytes());
    };
    race(f, |racer, store| {
        for _ in 0..3 {
            match racer % 4 {
                0 => put(store, &f.key("k"), &body(racer), Precondition::None).unwrap(),
                1 => assert!(store.head(LAKE, &f.key("k")).unwrap().unwrap().size >= 80_000),
                2 => assert_eq!(store.list(LAKE, f.prefix, None, None, 9).unwrap().objects.len(), 1),
                _ => whole(&read(store, LAKE, &f.key("k")).unwrap()),
            }
        }
    });
    whole(&f.read(LAKE, "k").unwrap());
}

pub fn puts_and_deletes_in_one_folder_do_not_interfere(f: &Fixture) {
    // Empties the folder repeatedly, so that it is created and removed.
    let empties = |_, body: &Body| {
        let store = (f.open)();
        while body.is_running() {
            put(&*store, &f.key("x/y/z/other"), "", Precondition::None).unwrap();
            store.delete(LAKE, &[f.key("x/y/z/other")], &WriteOptions::default()).unwrap();
        }
    };
    with_background(1, empties, || {
        race(f, |racer, store| {
            let key = f.key(&format!("x/y/z/{racer}"));
            for _ in 0..3 {
                put(store, &key, "body", Precondition::IfNoneMatch).unwrap();
                assert_eq!(read(store, LAKE, &key).unwrap(), b"body");
                store.delete(LAKE, std::slice::from_ref(&key), &WriteOptions::default()).unwrap();
                assert_eq!(store.head(LAKE, &key).unwrap(), None);
            }
        });
    });
    assert!(f.names(LAKE, "").is_empty());
}

pub fn one_of_racing_create_copy_and_upload_wins(f: &Fixture) {
    let place = tempfile::tempdir().unwrap();
    f.put(Bucket::Warehouse, "from", b"copied");
    let create = || WriteOptions::default().with(Precondition::IfNoneMatch);
    let results = race(f, |racer, store| {
        let to = f.key("k");
        match racer % 3 {
            0 => store.put(LAKE, &to, b"put", &create()),
            1 => store.copy((Bucket::Warehouse, &f.key("from")), (LAKE, &to), &create()),
            _ => {
                let path = place.path().join(racer.to_string());
                std::fs::write(&path, "file").unwrap();
                store.put_file(LAKE, &to, &path, &create())
            }
        }
    });
    let expected = ["put", "copied", "file"][winner(&results) % 3];
    assert_eq!(f.read(LAKE, "k").unwrap(), expected.as_bytes());
}
