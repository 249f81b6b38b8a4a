//! Runs that check only the keys named by events.

use lakemill::domain::job::{RunErrorCode, RunResult};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::Bucket;

use crate::support::lake::{Lake, RunParams, difference, pipeline};

const MAPPING: &str = r#"{ "columns": [ { "name": "p", "type": "string" }, { "name": "n", "type": "int64" } ],
    "partition_by": ["p"] }"#;

/// A table of a few sources.
fn published() -> Lake {
    let lake = Lake::new(MAPPING);
    for at in 0..5 {
        lake.put(&format!("{at}.csv"), format!("p,n\na,{at}\nb,{at}\n"));
    }
    lake.run(RunParams::AMPLE_MEMORY).unwrap();
    lake.store.reset_counts();
    lake
}

fn run(lake: &Lake, keys: &'static [&'static str]) -> RunResult {
    lake.run(RunParams::AMPLE_MEMORY.changed(keys)).unwrap()
}

/// The bytes of a clean run over the same sources.
fn assert_as_clean(lake: &Lake) {
    let fresh = lake.fresh();
    fresh.run(RunParams::AMPLE_MEMORY).unwrap();
    assert_eq!(difference(&fresh.warehouse(), &lake.warehouse()), None);
}

#[test]
fn run_reads_the_keys_that_events_named_without_a_listing() {
    let lake = published();
    lake.put("2.csv", "p,n\na,200\n");
    lake.put("9.csv", "p,n\nc,9\n");
    lake.remove("0.csv");
    let result = run(&lake, &["0.csv", "2.csv", "9.csv", "gone.csv", "1.csv", "other.txt", "folder/"]);
    assert_eq!(lake.store.counts(Bucket::Lake).lists, 0);
    let table = &result.tables["t"];
    assert_eq!((table.sources_read, table.sources_skipped), (2, 3), "0 is gone, 1 is as it was");
    assert_as_clean(&lake);
}

#[test]
fn keys_that_did_not_change_or_never_existed_change_nothing() {
    let lake = published();
    let before = lake.manifest();
    for keys in [&["1.csv", "3.csv"][..], &["never.csv"], &[]] {
        let result = run(&lake, keys);
        assert_eq!(result.tables["t"].sources_read, 0);
        assert_eq!(result.tables["t"].sources_skipped, 5);
    }
    assert_eq!(lake.manifest(), before);
    assert_eq!(lake.store.counts(Bucket::Lake).lists, 0);
}

#[test]
fn change_without_event_is_left_to_a_run_that_lists() {
    let lake = published();
    lake.put("5.csv", "p,n\na,5\n");
    lake.put("6.csv", "p,n\na,6\n");
    assert_eq!(run(&lake, &["6.csv"]).tables["t"].sources_read, 1);
    assert_eq!(lake.run(RunParams::AMPLE_MEMORY).unwrap().tables["t"].sources_read, 1);
    assert_as_clean(&lake);
}

#[test]
fn table_with_unusable_manifest_or_changed_config_is_built_from_a_listing() {
    let mut lake = Lake::new(MAPPING);
    lake.put("0.csv", "p,n\na,0\n");
    lake.put("1.csv", "p,n\nb,1\n");
    assert_eq!(run(&lake, &["1.csv"]).tables["t"].sources_read, 2);

    lake.pipeline = pipeline(&MAPPING.replace("int64", "string"));
    lake.store.reset_counts();
    assert_eq!(run(&lake, &["1.csv"]).tables["t"].sources_read, 2);
    assert!(lake.store.counts(Bucket::Lake).lists > 0);
}

#[test]
fn removal_of_the_last_source_fails_as_with_a_listing() {
    let lake = published();
    (0..5).for_each(|at| lake.remove(&format!("{at}.csv")));
    let failed = lake.run(RunParams::AMPLE_MEMORY.changed(&["0.csv", "1.csv", "2.csv", "3.csv", "4.csv"])).unwrap_err();
    assert_eq!(failed.error.code, RunErrorCode::NoInput);
}

#[test]
fn source_changed_during_read_is_checked_again() {
    let lake = published();
    lake.put("7.csv", "p,n\na,7\n");
    let (memory, key) = (lake.memory.clone(), lake.key("7.csv"));
    let put = key.clone();
    lake.store.before_get_of(&key, move || {
        memory.put(Bucket::Lake, &put, b"p,n\na,70\nb,71\n", &Default::default()).unwrap();
    });
    let result = run(&lake, &["7.csv"]);
    assert_eq!(result.tables["t"].rows_written, 12);
    assert_eq!(lake.store.counts(Bucket::Lake).lists, 0);
    assert_as_clean(&lake);
}
