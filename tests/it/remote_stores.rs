//! Runs on a store with high latency: many concurrent requests, no unnecessary ones, and the same tables.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lakemill::domain::job::RunErrorCode;
use lakemill::domain::limits::REPLANS_MAX;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{BodyChanged, Bucket, StoreError, WriteOptions};
use lakemill::runtime::SystemClock;

use crate::support::faulty_store::Counts;
use crate::support::http_proxy::ProxyAction;
use crate::support::lake::{Lake, MIB, Rng, RunParams, difference, in_memory_folder, pipeline, run_on};
use crate::support::s3_server::s3s_fs;

const MAPPING: &str = r#"{ "columns": [ { "name": "p", "type": "string" }, { "name": "n", "type": "int64" } ],
    "partition_by": ["p"] }"#;

fn csv(partition: u64, rows: u64) -> String {
    let rows: String = (0..rows).map(|n| format!("p{partition},{}\n", n * 1_000_003)).collect();
    format!("p,n\n{rows}")
}

fn name(at: u64) -> String {
    format!("{:02}/{at:04}.csv", at / 100)
}

/// Small sources, a partition each.
fn lake(sources: u64) -> Lake {
    let lake = Lake::new(MAPPING);
    (0..sources).for_each(|at| lake.put(&name(at), csv(at, 10 + at % 7)));
    lake
}

fn how() -> RunParams {
    RunParams::new(2, 64 * MIB)
}

fn counts(lake: &Lake) -> BTreeMap<&'static str, Counts> {
    let of = |bucket| lake.store.counts(bucket);
    [("pipelines", of(Bucket::Pipelines)), ("lake", of(Bucket::Lake)), ("warehouse", of(Bucket::Warehouse))].into()
}

fn assert_same_as_local(far: &Lake) {
    let near = far.fresh();
    near.run(how()).unwrap();
    assert_eq!(difference(&near.warehouse(), &far.warehouse()), None);
}

#[test]
fn small_sources_are_fetched_by_many_parallel_requests() {
    for threads in [1, 2] {
        let lake = lake(200).remote(64);
        lake.run(RunParams::new(threads, 64 * MIB)).unwrap();
        assert_eq!(lake.store.most_at_once(), 64);
        assert_same_as_local(&lake);
    }
}

#[test]
fn large_source_is_fetched_in_parallel_parts() {
    let lake = Lake::new(r#"{ "columns": [ { "name": "p", "type": "string" }, { "name": "n", "type": "int64" } ] }"#);
    lake.put("a.csv", csv(1, 600_000));
    lake.put("b.csv", csv(2, 300));
    let lake = lake.remote(8);
    lake.run(how()).unwrap();
    let size = lake.memory.contents(Bucket::Lake).values().next().unwrap().len() as u64;
    // As many parts of half a MiB as fit into the memory of this run.
    assert_eq!(lake.store.most_at_once(), 8);
    assert_eq!(lake.store.counts(Bucket::Lake).gets, size.div_ceil(MIB / 2) + 1);
    assert_same_as_local(&lake);
}

#[test]
fn each_source_takes_one_get_and_each_partition_one_put() {
    let lake = lake(150).remote(1);
    lake.run(how()).unwrap();
    let found = counts(&lake);
    assert_eq!(found["lake"], Counts { lists: 1, gets: 150, ..Counts::default() });
    // A table that is rebuilt is listed, with its rejects.
    assert_eq!(found["warehouse"], Counts { lists: 2, puts: 150, ..Counts::default() });
    // An intent, one shard each of sources, groups and members, and the root.
    assert_eq!((found["pipelines"].puts, found["pipelines"].heads), (5, 0));
}

#[test]
fn requests_of_a_second_run_are_independent_of_unchanged_sources() {
    let mut found = Vec::new();
    for sources in [20, 300] {
        let lake = lake(sources).remote(1);
        lake.run(how()).unwrap();
        lake.store.reset_counts();
        lake.run(how()).unwrap();
        let nothing = counts(&lake);
        lake.put(&name(7), csv(7, 99));
        lake.store.reset_counts();
        lake.run(how()).unwrap();
        assert_same_as_local(&lake);
        found.push((nothing, counts(&lake)));
    }
    assert_eq!(found[0], found[1]);
    let (nothing, one) = &found[0];
    assert_eq!(nothing["lake"], Counts { lists: 1, ..Counts::default() });
    assert_eq!(nothing["warehouse"], Counts::default());
    // The listings are the lease's and the intents'.
    assert_eq!((nothing["pipelines"].puts, nothing["pipelines"].heads, nothing["pipelines"].lists), (0, 0, 2));
    assert_eq!(one["lake"], Counts { lists: 1, gets: 1, ..Counts::default() });
    assert_eq!(one["warehouse"], Counts { puts: 1, deletes: 1, ..Counts::default() });
    // Shards of groups and members are read too; some of them twice.
    assert_eq!(one["pipelines"].puts, 5);
    assert!(one["pipelines"].gets <= nothing["pipelines"].gets + 7, "{one:?}");
}

#[test]
fn remote_sources_give_the_same_bytes_as_local_ones() {
    let mut rng = Rng::new(11);
    for memory in [64, 512] {
        let lake = Lake::new(MAPPING);
        lake.put("header.csv", "p,n\n");
        for at in 0..60 {
            let rows = if rng.one_in(12) { 200_000 } else { rng.below(3_000) };
            lake.put(&name(at), csv(rng.below(5), rows));
        }
        let lake = lake.remote(1);
        lake.run(RunParams::new(2, memory * MIB)).unwrap();
        assert_same_as_local(&lake);
        lake.put(&name(3), csv(1, 150_000));
        lake.remove(&name(4));
        lake.run(RunParams::new(3, memory * MIB)).unwrap();
        assert_same_as_local(&lake);
    }
}

#[test]
fn empty_remote_source_has_no_rows() {
    let lake = Lake::new(MAPPING);
    lake.put("a.csv", "");
    lake.put("b.csv", csv(1, 3));
    let lake = lake.remote(1);
    let result = lake.run(how()).unwrap();
    let rows: Vec<_> =
        result.tables["t"].sources.iter().map(|source| (source.rows_read, source.note.is_some())).collect();
    assert_eq!(rows, [(0, true), (3, false)]);
    assert_same_as_local(&lake);
}

#[test]
fn source_changed_between_parts_is_planned_again() {
    // The first GET is for the manifest's root, which doesn't exist yet.
    for get in [2, 3, 5] {
        let lake = Lake::new(MAPPING);
        lake.put("a.csv", csv(1, 300_000));
        let lake = lake.remote(1);
        let (memory, key) = (lake.memory.clone(), lake.key("a.csv"));
        lake.store.before_get(get, move || {
            memory.put(Bucket::Lake, &key, csv(2, 200_000).as_bytes(), &WriteOptions::default()).unwrap();
        });
        lake.run(how()).unwrap();
        assert!(lake.manifest().unwrap().partitions().contains("p=p2"), "{get}");
        assert_same_as_local(&lake);
    }
}

#[test]
fn remote_source_changing_at_every_read_fails_the_run() {
    let lake = Lake::new(MAPPING);
    lake.put("a.csv", csv(1, 100));
    let lake = lake.remote(1);
    for get in 1..60 {
        lake.store.during_get(get, 0, || Err(BodyChanged.into()));
    }
    // The first failure is the manifest's, which doesn't exist yet.
    let failure = lake.run(how()).unwrap_err();
    assert_eq!(failure.error.code, RunErrorCode::SourceChanged);
    assert!(failure.error.detail.unwrap().contains(&format!("planned {} times", REPLANS_MAX + 1)));
    assert_eq!(lake.store.written(), [""; 0]);
}

#[test]
fn failed_part_fails_the_run_with_the_store_error() {
    for get in [3, 5] {
        let lake = Lake::new(MAPPING);
        lake.put("a.csv", csv(1, 300_000));
        let lake = lake.remote(1);
        lake.store.during_get(get, 0, || Err(std::io::ErrorKind::ConnectionReset.into()));
        let failure = lake.run(how()).unwrap_err();
        assert_eq!(failure.error.code, RunErrorCode::S3Error, "{get}: {:?}", failure.error);
        assert_eq!(failure.error.path.as_deref(), Some("pipelines/x/a.csv"));
        assert_eq!(lake.store.written(), [""; 0]);
        lake.run(how()).unwrap();
        assert_same_as_local(&lake);
    }
}

#[test]
fn failed_parallel_write_publishes_nothing_and_the_next_run_everything() {
    let lake = lake(100).remote(1);
    lake.store.fail_write(40, |bucket, key| StoreError::Transient {
        bucket,
        key: key.to_owned(),
        operation: "writing",
        source: std::io::ErrorKind::ConnectionReset.into(),
    });
    let failure = lake.run(how()).unwrap_err();
    assert!(!failure.partially_published);
    assert_eq!(lake.manifest(), None);
    lake.run(how()).unwrap();
    assert_eq!(lake.store.list(Bucket::Warehouse, &lake.key("t/"), None, None, 1_000).unwrap().objects.len(), 100);
    assert_same_as_local(&lake);
}

#[test]
fn s3_run_reuses_connections() {
    const SOURCES: u64 = 200;
    let (requests, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counters = (Arc::clone(&requests), Arc::clone(&connections));
    let proxy = s3s_fs().behind(move |passing| {
        counters.0.fetch_add(1, Ordering::Relaxed);
        counters.1.fetch_add(usize::from(passing.earlier == 0), Ordering::Relaxed);
        ProxyAction::Forward
    });
    let store = s3s_fs().store_at(&proxy);
    for at in 0..SOURCES {
        store
            .put(Bucket::Lake, &format!("pipelines/x/{}", name(at)), csv(at, 10).as_bytes(), &WriteOptions::default())
            .unwrap();
    }
    let scratch = in_memory_folder();
    let (result, _) = run_on(&store, &pipeline(MAPPING), &SystemClock, scratch.path(), how());
    assert_eq!(result.unwrap().tables["t"].partitions_written, SOURCES);
    // A PUT, a GET and a PUT each; at most one connection per concurrent request.
    assert!(requests.load(Ordering::Relaxed) as u64 >= 3 * SOURCES);
    assert!(connections.load(Ordering::Relaxed) <= 80, "{connections:?} connections");
}
