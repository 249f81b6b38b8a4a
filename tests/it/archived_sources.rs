//! Tables that keep the rows of CSVs that were removed from the lake.

use std::collections::BTreeMap;

use lakemill::domain::job::{ChangedKeys, RunErrorCode, RunResult};
use lakemill::domain::layout::manifest_key;
use lakemill::domain::pipeline::WhenRemoved;
use lakemill::engine::run::{RunFailure, differs};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, WriteOptions};

use crate::model::world::{RunOptions, Style, TableConfig, World, pipeline};
use crate::support::lake::{Lake, MIB, RunParams, difference};

const CLEAN: RunOptions<'static> = RunOptions { prefix: "", changed: None, clean: true, dry_run: false };
const SOURCES: [(&str, &str); 4] =
    [("a.csv", "p,1\nbad\n"), ("b.csv", "p,2\nq,2\n"), ("c.csv", "q,3\n"), ("d.csv", "p,4\nr,4\n")];

fn world(style: Style) -> World {
    let keeps = TableConfig { when_removed: WhenRemoved::KeepRows, ..TableConfig::new("t") };
    let world = World::new(style, vec![keeps]);
    SOURCES.iter().for_each(|(source, text)| world.put(source, text));
    world.run(RunOptions::default()).unwrap();
    world.take_log();
    world
}

const TAGGED: Style = Style { content_tags: true, listed_tags: true };

/// A world in which `b.csv` and `c.csv` are archived, and its files.
fn archived() -> (World, BTreeMap<String, String>) {
    let world = world(TAGGED);
    let before = world.warehouse();
    world.remove("b.csv");
    world.remove("c.csv");
    world.run(RunOptions::default()).unwrap();
    world.take_log();
    (world, before)
}

fn archived_of(world: &World) -> Vec<String> {
    let sources = world.manifest("t").unwrap().sources;
    sources.into_iter().filter(|(_, entry)| entry.archived).map(|(key, _)| key).collect()
}

fn refused(world: &World, ran: Result<RunResult, RunFailure>, parts: &[&str]) {
    let before = world.warehouse();
    let error = ran.unwrap_err().error;
    assert_eq!(error.code, RunErrorCode::ArchivedSourcesMissing, "{error:?}");
    let whole = format!("{} {}", error.message, error.detail.unwrap_or_default());
    parts.iter().for_each(|part| assert!(whole.contains(part), "`{part}` in `{whole}`"));
    assert!(whole.contains("remove_rows"), "{whole}");
    assert_eq!(world.warehouse(), before);
}

#[test]
fn removed_sources_keep_their_rows_and_are_archived() {
    for style in [TAGGED, Style { content_tags: false, listed_tags: false }] {
        let world = world(style);
        let before = world.warehouse();
        world.remove("b.csv");
        world.remove("c.csv");
        let result = world.run(RunOptions::default()).unwrap();
        let table = &result.tables["t"];
        assert_eq!((table.sources_archived, table.sources_read, table.rows_written), (2, 0, 6));
        assert_eq!((table.partitions_written, table.partitions_deleted), (0, 0));
        assert_eq!(archived_of(&world), ["b.csv", "c.csv"]);
        assert_eq!(world.warehouse(), before);
        assert_eq!(world.manifest("t").unwrap().root.totals.archived, 2);
        assert!(!world.take_log().0.iter().any(|write| write.contains("part-")));
        let again = world.run(RunOptions::default()).unwrap();
        assert_eq!((again.tables["t"].sources_archived, world.take_log().0), (2, vec![]));
    }
}

#[test]
fn archived_sources_do_not_count_as_a_difference() {
    let world = world(TAGGED);
    let pipeline = pipeline(&world.tables);
    let differs = |world: &World| differs(&world.store, &world.slug, &pipeline, &std::env::temp_dir()).unwrap();
    world.remove("b.csv");
    assert!(differs(&world), "it is not archived yet");
    world.run(RunOptions::default()).unwrap();
    assert!(!differs(&world));
}

#[test]
fn all_sources_may_be_archived() {
    let world = world(TAGGED);
    let before = world.warehouse();
    SOURCES.iter().for_each(|(source, _)| world.remove(source));
    assert!(differs(&world.store, &world.slug, &pipeline(&world.tables), &std::env::temp_dir()).unwrap());
    let result = world.run(RunOptions::default()).unwrap();
    assert_eq!((result.tables["t"].sources_archived, world.warehouse()), (4, before));
    let keeps = TableConfig { when_removed: WhenRemoved::KeepRows, ..TableConfig::new("t") };
    let empty = World::new(TAGGED, vec![keeps]);
    assert_eq!(empty.run(RunOptions::default()).unwrap_err().error.code, RunErrorCode::NoInput);
}

#[test]
fn returned_source_is_unmarked_without_being_read() {
    let (world, before) = archived();
    world.put("b.csv", SOURCES[1].1);
    world.run(RunOptions::default()).unwrap();
    assert_eq!((archived_of(&world), world.warehouse(), world.take_log().1), (vec!["c.csv".to_owned()], before, 0));
}

#[test]
fn run_with_a_prefix_unmarks_only_sources_that_have_it() {
    let (world, _) = archived();
    SOURCES[1..3].iter().for_each(|(source, text)| world.put(source, text));
    world.run(RunOptions { prefix: "c", ..RunOptions::default() }).unwrap();
    assert_eq!(archived_of(&world), ["b.csv"]);
    world.run(RunOptions::default()).unwrap();
    assert!(archived_of(&world).is_empty());
}

#[test]
fn source_that_returns_changed_replaces_its_rows() {
    let (world, _) = archived();
    world.put("b.csv", "p,9\n");
    world.run(RunOptions::default()).unwrap();
    assert_eq!((archived_of(&world), world.take_log().1), (vec!["c.csv".to_owned()], 1));
    world.put("c.csv", SOURCES[2].1);
    world.run(RunOptions::default()).unwrap();
    let clean = world.fresh();
    clean.run(CLEAN).unwrap();
    assert_eq!(world.warehouse(), clean.warehouse());
}

#[test]
fn changes_merge_with_rows_of_archived_sources() {
    let (world, _) = archived();
    for (source, text) in [("a.csv", "p,8\nq,8\n"), ("bb.csv", "q,7\n"), ("e.csv", "p,5\nq,5\n")] {
        world.put(source, text);
        world.run(RunOptions::default()).unwrap();
    }
    assert_eq!(archived_of(&world), ["b.csv", "c.csv"]);
    let clean = world.fresh();
    clean.put("b.csv", SOURCES[1].1);
    clean.put("c.csv", SOURCES[2].1);
    clean.run(CLEAN).unwrap();
    assert_eq!(world.warehouse(), clean.warehouse(), "as if their CSVs were still there");
}

#[test]
fn source_that_no_glob_matches_any_more_is_removed() {
    let mut world = world(TAGGED);
    world.tables[0].globs = vec!["[abd].csv"];
    world.remove("b.csv");
    world.run(RunOptions::default()).unwrap();
    assert_eq!(Vec::from_iter(world.manifest("t").unwrap().sources.into_keys()), ["a.csv", "b.csv", "d.csv"]);
    assert_eq!(archived_of(&world), ["b.csv"]);
}

#[test]
fn run_that_must_read_archived_sources_is_refused() {
    let (mut world, _) = archived();
    refused(&world, world.run(CLEAN), &["3 rows of 2 sources", "first `b.csv`", "clean run"]);
    world.tables[0].salt = 1;
    refused(&world, world.run(RunOptions::default()), &["3 rows of 2 sources", "config changed"]);
    let dry = RunOptions { dry_run: true, ..RunOptions::default() };
    refused(&world, world.run(dry), &["3 rows of 2 sources"]);
    world.put("b.csv", SOURCES[1].1);
    refused(&world, world.run(RunOptions::default()), &["1 rows of 1 source ", "first `c.csv`"]);
    world.put("c.csv", SOURCES[2].1);
    world.run(RunOptions::default()).unwrap();
    assert_eq!(archived_of(&world), [""; 0]);
}

#[test]
fn source_that_leaves_with_a_config_change_is_not_lost() {
    let mut world = world(TAGGED);
    world.remove("b.csv");
    world.tables[0].wide = true;
    refused(&world, world.run(RunOptions::default()), &["2 rows of 1 source ", "first `b.csv`"]);
}

#[test]
fn other_versions_rebuild_the_rest_and_keep_archived_rows() {
    let (mut world, before) = archived();
    world.versions = "newer";
    let result = world.run(RunOptions::default()).unwrap();
    assert_eq!((result.tables["t"].sources_read, result.tables["t"].sources_archived), (2, 2));
    assert_eq!((world.warehouse(), archived_of(&world)), (before, vec!["b.csv".to_owned(), "c.csv".to_owned()]));
    world.take_log();
    world.run(RunOptions::default()).unwrap();
    assert_eq!(world.take_log(), (vec![], 0));
}

#[test]
fn lost_files_with_archived_rows_are_refused() {
    let mapping = r#"{ "columns": [{ "name": "n", "type": "int32" }], "when_removed": "keep_rows" }"#;
    let how = || RunParams::new(2, 16 * MIB);
    let lake = Lake::new(mapping);
    lake.put("a.csv", "n\n1\n");
    lake.put("b.csv", "n\n2\n");
    lake.run(how()).unwrap();
    lake.remove("b.csv");
    lake.run(how()).unwrap();
    let file = lake.manifest().unwrap().files().next().unwrap().key.clone();
    lake.store.delete(Bucket::Warehouse, &[format!("pipelines/x/{file}")], &WriteOptions::default()).unwrap();
    lake.put("c.csv", "n\n3\n");
    let error = lake.run(how()).unwrap_err().error;
    assert_eq!(error.code, RunErrorCode::ArchivedSourcesMissing, "{error:?}");
    assert!(error.message.contains("1 rows of 1 source ") && error.message.contains("missing or damaged"), "{error:?}");
    lake.put("b.csv", "n\n2\n");
    lake.run(how()).unwrap();
    assert_eq!(lake.manifest().unwrap().rows(), 3);
}

#[test]
fn unreadable_manifest_is_refused() {
    let (world, _) = archived();
    world.seed(Bucket::Pipelines, &manifest_key(&world.slug, "t"), b"no manifest");
    refused(&world, world.run(RunOptions::default()), &["restore the manifest"]);
}

#[test]
fn archived_sources_are_removed_once_the_config_says_so() {
    let (mut world, _) = archived();
    world.tables[0].when_removed = WhenRemoved::RemoveRows;
    assert!(differs(&world.store, &world.slug, &pipeline(&world.tables), &std::env::temp_dir()).unwrap());
    let result = world.run(RunOptions::default()).unwrap();
    assert_eq!((result.tables["t"].sources_archived, result.tables["t"].sources_read), (0, 0));
    let clean = world.fresh();
    clean.run(CLEAN).unwrap();
    assert_eq!(world.warehouse(), clean.warehouse());
}

#[test]
fn sorted_archived_segment_is_reused_only_for_later_sources() {
    let mapping = r#"{ "columns": [{ "name": "n", "type": "int32" }], "sort_by": ["n"], "when_removed": "keep_rows" }"#;
    let how = || RunParams::new(2, 16 * MIB);
    let lake = Lake::new(mapping);
    lake.put("b.csv", "n\n3\n1\n");
    lake.run(how()).unwrap();
    lake.remove("b.csv");
    lake.put("c.csv", "n\n2\n");
    lake.run(how()).unwrap();
    let clean = lake.fresh();
    clean.put("b.csv", "n\n3\n1\n");
    clean.run(how().clean()).unwrap();
    assert_eq!(difference(&clean.warehouse(), &lake.warehouse()), None);
    lake.put("a.csv", "n\n2\n");
    let error = lake.run(how()).unwrap_err().error;
    assert_eq!(error.code, RunErrorCode::ArchivedSourcesMissing, "{error:?}");
    assert!(error.message.contains("sort_by"), "{error:?}");
    lake.put("b.csv", "n\n3\n1\n");
    lake.run(how()).unwrap();
}

#[test]
fn removal_that_an_event_names_archives_the_source() {
    let world = world(TAGGED);
    let before = world.warehouse();
    world.remove("b.csv");
    let keys = ChangedKeys::Only(["b.csv".to_owned()].into());
    let result = world.run(RunOptions { changed: Some(&keys), ..RunOptions::default() }).unwrap();
    assert_eq!((result.tables["t"].sources_archived, world.warehouse()), (1, before));
    assert_eq!(archived_of(&world), ["b.csv"]);
    let mut world = world;
    world.tables[0].when_removed = WhenRemoved::RemoveRows;
    world.run(RunOptions { changed: Some(&keys), ..RunOptions::default() }).unwrap();
    assert_eq!(world.manifest("t").unwrap().sources.len(), 3);
}
