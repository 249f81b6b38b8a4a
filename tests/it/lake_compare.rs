//! A listing and the manifests show whether the tables match the lake.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use lakemill::domain::job::{RunError, RunErrorCode};
use lakemill::domain::name::Slug;
use lakemill::domain::pipeline::Pipeline;
use lakemill::engine::run::{self, Difference};
use lakemill::pipelines::tables::TableStore;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, WriteOptions};
use lakemill::runtime::SystemClock;

use crate::support::faulty_store::{CrashTiming, FaultyStore};
use crate::support::lake::{Lake, MIB, RunParams, Ticks, in_memory_folder, pipeline, run_on};
use crate::support::memory_store::{MemoryStore, Tags};
use crate::support::moved_clock::MovedClock;

fn difference(store: &dyn ObjectStore, slug: &Slug, pipeline: &Pipeline) -> Result<Option<Difference>, RunError> {
    run::difference(store, slug, pipeline, &std::env::temp_dir())
}

fn differs(store: &dyn ObjectStore, slug: &Slug, pipeline: &Pipeline) -> Result<bool, RunError> {
    run::differs(store, slug, pipeline, &std::env::temp_dir())
}

const MAPPING: &str = r#"{ "columns": [ { "name": "p", "type": "string" }, { "name": "n", "type": "int64" } ],
    "partition_by": ["p"] }"#;

fn how() -> RunParams {
    RunParams::new(1, 64 * MIB)
}

/// Three sources, published.
fn published() -> Lake {
    let lake = Lake::new(MAPPING);
    for name in ["a", "b", "c"] {
        lake.put(&format!("{name}.csv"), format!("p,n\n{name},1\n"));
    }
    lake.run(how()).unwrap();
    assert_eq!(compare(&lake), None);
    lake
}

/// Also checks that no CSV was read and nothing written for it.
fn compare(lake: &Lake) -> Option<Difference> {
    lake.store.reset_counts();
    let found = difference(&lake.store, &lake.slug, &lake.pipeline).unwrap();
    let counts = lake.store.counts(Bucket::Lake);
    assert_eq!((counts.lists, counts.heads, counts.gets), (1, 0, 0));
    assert!((1..=2).contains(&lake.store.counts(Bucket::Pipelines).gets), "a root, and its sources");
    assert_eq!((lake.store.written(), lake.store.counts(Bucket::Warehouse).lists), (vec![], 0));
    assert_eq!(differs(&lake.store, &lake.slug, &lake.pipeline), Ok(found.is_some()));
    found
}

fn put_manifest(lake: &Lake, json: &[u8]) {
    lake.memory.put(Bucket::Pipelines, &lake.key("manifests/t.json"), json, &WriteOptions::default()).unwrap();
}

#[test]
fn new_changed_and_removed_sources_differ_until_a_run() {
    let changes: [fn(&Lake); 3] = [
        |lake| lake.put("sub/d.csv", "p,n\nd,1\n"),
        |lake| lake.put("a.csv", "p,n\na,2\n"),
        |lake| lake.remove("a.csv"),
    ];
    for change in changes {
        let lake = published();
        change(&lake);
        assert!(compare(&lake).is_some());
        lake.run(how()).unwrap();
        assert_eq!(compare(&lake), None);
    }
}

#[test]
fn unused_files_and_equal_bytes_do_not_differ() {
    let lake = published();
    lake.put("notes.txt", "n");
    lake.put("a.csv", "p,n\na,1\n");
    assert_eq!(compare(&lake), None);
}

#[test]
fn lake_without_sources_does_not_differ() {
    let lake = Lake::new(MAPPING);
    assert_eq!(compare(&lake), None);
    lake.put("notes.txt", "n");
    assert_eq!(compare(&lake), None);
    let lake = published();
    ["a.csv", "b.csv", "c.csv"].iter().for_each(|name| lake.remove(name));
    assert_eq!(compare(&lake), None);
    assert_eq!(lake.run(how()).unwrap_err().error.code, RunErrorCode::NoInput);
}

#[test]
fn missing_or_unreadable_manifest_differs() {
    let lake = published();
    put_manifest(&lake, b"{ no manifest");
    assert!(compare(&lake).is_some());
    lake.run(how()).unwrap();
    assert_eq!(compare(&lake), None);
    lake.memory.delete(Bucket::Pipelines, &[lake.key("manifests/t.json")], &WriteOptions::default()).unwrap();
    assert!(compare(&lake).is_some());
}

#[test]
fn manifest_of_a_newer_version_is_an_error() {
    let lake = published();
    put_manifest(&lake, br#"{ "version": 99 }"#);
    let error = differs(&lake.store, &lake.slug, &lake.pipeline).unwrap_err();
    assert_eq!(error.code, RunErrorCode::Internal);
    assert!(error.message.contains("newer"), "{error}");
}

#[test]
fn leftover_intent_is_a_difference_until_a_run_removes_it() {
    let lake = published();
    lake.put("a.csv", "p,n\na,2\n");
    // Writes the intent and a shard, then dies before the root.
    lake.store.crash_at_write(lake.store.writes() + 2, CrashTiming::AfterWrite);
    lake.run(how()).unwrap_err();
    let lake = lake.with_a_sound_store();
    let table = TableStore::new(&lake.store, &lake.slug, "t");
    assert!(table.needs_recovery().unwrap());
    // As if only the intent were left.
    lake.put("a.csv", "p,n\na,1\n");
    assert!(compare(&lake).is_some());
    lake.run(how()).unwrap();
    assert_eq!(compare(&lake), None);
}

#[test]
fn difference_is_stable_until_lake_or_manifests_change() {
    let lake = published();
    lake.put("a.csv", "p,n\na,not a number\n");
    let first = compare(&lake);
    assert_eq!(lake.run(how()).unwrap_err().error.code, RunErrorCode::TooManyRejects);
    assert_eq!(compare(&lake), first, "the run changed nothing, and another would fail as well");
    lake.put("a.csv", "p,n\na,none either\n");
    let second = compare(&lake);
    assert!(second.is_some() && second != first);
    lake.remove("b.csv");
    let third = compare(&lake);
    assert!(third.is_some() && third != second);
}

#[test]
fn only_doubtful_sources_are_checked_without_tags_in_listings() {
    let slug = Slug::parse("x").unwrap();
    let put = |store: &dyn ObjectStore, name: &str, text: &str| {
        store.put(Bucket::Lake, &format!("pipelines/x/{name}"), text.as_bytes(), &WriteOptions::default()).unwrap();
    };
    // The memory store's time is years behind the runs' time; the shared clock makes every source as new as its run.
    for shared_clock in [false, true] {
        let ticks = Arc::new(Ticks::default());
        let memory = MemoryStore::with(Tags::Content, false);
        let memory = Arc::new(if shared_clock { memory.timed_by(ticks.clone()) } else { memory });
        let store = FaultyStore::new(memory.clone());
        let pipeline = pipeline(MAPPING);
        let scratch = in_memory_folder();
        let compare = || {
            store.reset_counts();
            let found = differs(&store, &slug, &pipeline).unwrap();
            (found, store.counts(Bucket::Lake).heads)
        };
        put(&*memory, "a.csv", "p,n\na,1\n");
        put(&*memory, "b.csv", "p,n\nb,1\n");
        assert_eq!(compare(), (true, 0), "they are new");
        run_on(&store, &pipeline, &*ticks, scratch.path(), how()).0.unwrap();
        let in_doubt = if shared_clock { 2 } else { 0 };
        assert_eq!(compare(), (false, in_doubt));
        put(&*memory, "c.csv", "p,n\nc,1\n");
        assert_eq!(compare(), (true, in_doubt));
        memory.delete(Bucket::Lake, &["pipelines/x/c.csv".to_owned()], &WriteOptions::default()).unwrap();
        put(&*memory, "a.csv", "p,n\na,2\n");
        // The size and, by the memory store's clock, the age are equal, so the change is not detectable.
        assert_eq!(compare(), (shared_clock, in_doubt));
        put(&*memory, "a.csv", "p,n\na,22\n");
        assert!(compare().0);
    }
}

#[test]
fn changes_are_seen_without_tags_despite_clock_skew() {
    let slug = Slug::parse("x").unwrap();
    for (ahead, back) in [(0, 10), (0, 0), (10, 0)] {
        let clock = MovedClock::default();
        clock.advance(Duration::from_mins(ahead));
        clock.set_back(Duration::from_mins(back));
        let minutes = ahead.cast_signed() - back.cast_signed();
        let memory = MemoryStore::with(Tags::Content, false).timed_by(Arc::new(SystemClock));
        let store = FaultyStore::new(Arc::new(memory.skewed(TimeDelta::minutes(minutes))));
        let (pipeline, scratch) = (pipeline(MAPPING), in_memory_folder());
        let run = || run_on(&store, &pipeline, &clock, scratch.path(), how()).0.unwrap();
        for n in 1..=3 {
            let text = format!("p,n\na,{n}\n");
            store.put(Bucket::Lake, "pipelines/x/a.csv", text.as_bytes(), &WriteOptions::default()).unwrap();
            assert!(differs(&store, &slug, &pipeline).unwrap(), "{minutes} minutes ahead, change {n}");
            assert_eq!(run().tables["t"].sources_read, 1, "{minutes} minutes ahead, change {n}");
            assert!(!differs(&store, &slug, &pipeline).unwrap());
        }
    }
}
