//! Rules of runs, one at a time.

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};

use lakemill::domain::job::{Progress, RunErrorCode, Stage};
use lakemill::domain::layout::relative_rejects_key;
use lakemill::domain::limits::{REPLANS_MAX, ROOT_BYTES_MAX};
use lakemill::engine::run::LocalLease;
use lakemill::ports::ObjectStore;
use lakemill::ports::observer::{RunObserver, Stop};
use lakemill::ports::store::{Bucket, Lease, WriteOptions};
use lakemill::runtime::Clock;

use crate::faults::sim::Scheduler;
use crate::model::world::{Outage, RunOptions, ShortLease, Style, TableConfig, Unobserved, World};

const CLEAN: RunOptions<'static> = RunOptions { prefix: "", changed: None, clean: true, dry_run: false };
const P: &str = "t/p=p/part";
const Q: &str = "t/p=q/part";
const R: &str = "t/p=r/part";

fn world(sources: &[(&str, &str)]) -> World {
    let world = World::new(Style { content_tags: true, listed_tags: true }, vec![TableConfig::new("t")]);
    sources.iter().for_each(|(source, text)| {
        world.put(source, text);
    });
    world
}

fn ran(sources: &[(&str, &str)]) -> World {
    let world = world(sources);
    world.run(RunOptions::default()).unwrap();
    world.take_log();
    world
}

/// The keys of the warehouse, without hashes of content, each once.
fn keys(world: &World) -> Vec<String> {
    let mut keys: Vec<String> = world.warehouse().keys().map(|key| without_hash(key).to_owned()).collect();
    keys.dedup();
    keys
}

/// `t/p=p/part-0a1b2c3d-0123456789abcdef.parquet` is `t/p=p/part`.
fn without_hash(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(folder, name)| &key[..folder.len() + 1 + name.find('-').unwrap_or(name.len())])
}

/// The texts of all files with this key, hashes ignored.
fn text(world: &World, key: &str) -> String {
    world.warehouse().into_iter().filter(|(found, _)| without_hash(found) == key).map(|(_, text)| text).collect()
}

/// The writes of the warehouse, without hashes.
fn written(writes: &[String]) -> Vec<String> {
    let warehouse = writes.iter().filter(|write| !write.contains("/manifests/"));
    warehouse.map(|write| without_hash(write).to_owned()).collect()
}

#[test]
fn unchanged_second_run_reads_and_writes_nothing() {
    let world = ran(&[("a.csv", "p,1\nq,2\nbad\n-\n")]);
    let result = world.run(RunOptions::default()).unwrap();
    assert_eq!(world.take_log(), (vec![], 0));
    let table = &result.tables["t"];
    assert_eq!((table.rows_written, table.rows_rejected, table.rows_filtered), (2, 1, 1));
    assert_eq!((table.partitions_written, table.partitions_unchanged), (0, 2));
    assert_eq!((table.sources_read, table.sources_skipped), (0, 1));
}

#[test]
fn only_partitions_of_changed_sources_are_written() {
    let world = ran(&[("a.csv", "p,1\n"), ("b.csv", "q,1\n"), ("c.csv", "q,2\nr,1\n")]);
    world.put("b.csv", "q,9\n");
    let result = world.run(RunOptions::default()).unwrap();
    let (writes, reads) = world.take_log();
    assert_eq!(written(&writes), [format!("put pipelines/x/{Q}"), format!("delete pipelines/x/{Q}")]);
    assert_eq!(reads, 1, "`b` which changed; rows of `c`, which shares its partition, are stored");
    assert_eq!(result.tables["t"].planned.write, ["p=q"]);
    assert_eq!(result.tables["t"].partitions_unchanged, 2);
}

#[test]
fn moved_rows_leave_no_copy() {
    let world = ran(&[("a.csv", "p,1\n")]);
    world.put("a.csv", "q,1\n");
    let result = world.run(RunOptions::default()).unwrap();
    assert_eq!(keys(&world), [Q]);
    assert_eq!(result.tables["t"].planned.delete, ["p=p"]);
    let (writes, _) = world.take_log();
    assert_eq!(
        written(&writes),
        [format!("put pipelines/x/{Q}"), format!("delete pipelines/x/{P}")],
        "deletes come last"
    );
}

#[test]
fn source_change_without_row_changes_writes_only_the_manifest() {
    let world = World::new(Style { content_tags: false, listed_tags: true }, vec![TableConfig::new("t")]);
    world.put("a.csv", "p,1\n");
    world.run(RunOptions::default()).unwrap();
    world.put("a.csv", "p,1\n");
    world.take_log();
    let result = world.run(RunOptions::default()).unwrap();
    assert_eq!(written(&world.take_log().0), [""; 0]);
    assert_eq!((result.tables["t"].partitions_written, result.tables["t"].partitions_unchanged), (0, 1));
}

#[test]
fn rows_of_removed_sources_are_removed() {
    let world = ran(&[("a.csv", "p,1\n"), ("b.csv", "q,1\nr,1\n"), ("c.csv", "r,2\n")]);
    world.remove("a.csv");
    world.remove("b.csv");
    let result = world.run(RunOptions::default()).unwrap();
    assert_eq!(keys(&world), [R]);
    assert_eq!((result.tables["t"].partitions_deleted, result.tables["t"].sources_read), (2, 0));
    assert!(!text(&world, R).contains("b.csv"));
    world.put("a.csv", "p,1\n");
    world.run(RunOptions::default()).unwrap();
    assert_eq!(keys(&world), [P, R]);
}

#[test]
fn removed_source_outside_the_prefix_keeps_its_rows() {
    let world = ran(&[("b/1.csv", "p,1\nr,1\n")]);
    world.remove("b/1.csv");
    world.put("a/1.csv", "q,1\nr,2\n");
    world.run(RunOptions { prefix: "a/", ..RunOptions::default() }).unwrap();
    assert_eq!(Vec::from_iter(world.manifest("t").unwrap().sources.keys()), ["a/1.csv", "b/1.csv"]);
    assert!(text(&world, R).contains("b/1.csv") && text(&world, R).contains("a/1.csv"));
    world.run(RunOptions::default()).unwrap();
    assert_eq!(keys(&world), [Q, R]);
    assert!(!text(&world, R).contains("b/1.csv"));
}

#[test]
fn prefix_leaves_other_changes_for_a_later_run() {
    let world = ran(&[("a/1.csv", "p,1\n"), ("b/1.csv", "q,1\n")]);
    world.put("a/1.csv", "p,2\n");
    world.put("b/1.csv", "q,2\n");
    world.run(RunOptions { prefix: "a/", ..RunOptions::default() }).unwrap();
    assert!(text(&world, P).contains("|2") && text(&world, Q).contains("|1"));
    world.run(RunOptions::default()).unwrap();
    assert!(text(&world, Q).contains("|2"));
}

#[test]
fn empty_unpartitioned_table_has_no_file() {
    let mut world = world(&[("a.csv", "p,1\n")]);
    world.tables[0].partitioned = false;
    world.run(RunOptions::default()).unwrap();
    assert_eq!(keys(&world), ["t/part"]);
    world.put("a.csv", "-\n");
    world.run(RunOptions::default()).unwrap();
    assert_eq!(keys(&world), [""; 0]);
    assert_eq!(world.manifest("t").unwrap().sources["a.csv"].rows_filtered, 1);
}

#[test]
fn source_feeds_every_table_whose_globs_match_it() {
    let mut world = world(&[("a/1.csv", "p,1\n"), ("b/1.csv", "q,1\n"), ("b/deep/2.csv", "r,1\n")]);
    let u = TableConfig { globs: vec!["b/*.csv"], ..TableConfig::new("u") };
    world.tables.push(u);
    world.run(RunOptions::default()).unwrap();
    assert_eq!(world.manifest("t").unwrap().sources.len(), 3, "`**` crosses folders");
    assert_eq!(world.manifest("u").unwrap().sources.into_keys().collect::<Vec<_>>(), ["b/1.csv"], "`*` does not");
}

#[test]
fn file_that_a_glob_leaves_out_is_not_read_and_its_rows_are_removed() {
    let mut world = ran(&[("a.csv", "p,1\n"), ("b.csv", "q,1\nr,1\n")]);
    world.tables[0].globs = vec!["**/*.csv", "!b.csv"];
    let result = world.run(RunOptions::default()).unwrap();
    assert_eq!((result.tables["t"].sources_read, keys(&world)), (0, vec![P.to_owned()]));
    world.put("b.csv", "q,bad\n");
    world.put("c.csv", "q,2\n");
    world.run(RunOptions::default()).unwrap();
    assert_eq!(Vec::from_iter(world.manifest("t").unwrap().sources.keys()), ["a.csv", "c.csv"]);
}

#[test]
fn incremental_run_without_sources_fails_and_clean_run_empties_tables() {
    let world = ran(&[("a.csv", "p,1\nbad\n")]);
    world.remove("a.csv");
    world.put("a.txt", "p,1\n");
    let failure = world.run(RunOptions::default()).unwrap_err();
    assert_eq!(failure.error.code, RunErrorCode::NoInput);
    assert!(failure.error.detail.unwrap().contains("**/*.csv"));
    assert_eq!(keys(&world).len(), 2);
    world.run(CLEAN).unwrap();
    assert_eq!(keys(&world), [""; 0]);
}

#[test]
fn clean_run_drops_removed_tables_and_incremental_run_keeps_them() {
    let mut world = world(&[("a.csv", "p,1\nbad\n")]);
    world.tables.push(TableConfig::new("u"));
    world.run(RunOptions::default()).unwrap();
    world.tables.pop();
    world.put("a.csv", "p,2\n");
    world.run(RunOptions::default()).unwrap();
    assert!(keys(&world).contains(&"u/p=p/part".to_owned()));
    let dry = world.run(RunOptions { dry_run: true, ..CLEAN }).unwrap();
    assert_eq!(dry.dropped, ["u"]);
    world.run(CLEAN).unwrap();
    assert_eq!(keys(&world), [P]);
    assert_eq!(world.manifest("u"), None);
}

#[test]
fn too_many_rejects_publish_nothing_and_store_the_rejects() {
    let mut world = ran(&[("a.csv", "p,1\nbad\n")]);
    world.tables[0].max_rejects = 2;
    world.run(RunOptions::default()).unwrap();
    let before = world.warehouse();
    world.put("b.csv", "q,1\nworse\nworst\n");
    let failure = world.run(RunOptions::default()).unwrap_err();
    assert_eq!(failure.error.code, RunErrorCode::TooManyRejects);
    assert!(failure.error.message.contains("3 of 5 rows rejected"), "kept and new: {}", failure.error.message);
    assert_eq!(world.warehouse(), before);
    let kept = failure.error.path.unwrap();
    assert!(kept.ends_with(".rejected.parquet"));
    let text = String::from_utf8(world.memory.objects()[&(Bucket::Pipelines, kept)].bytes.to_vec()).unwrap();
    assert!(text.starts_with("t: ") && text.contains("worst") && !text.contains("|bad"), "{text}");
}

#[test]
fn dry_run_with_too_many_rejects_stores_nothing() {
    let mut world = world(&[("a.csv", "bad\n")]);
    world.tables[0].max_rejects = 0;
    let failure = world.run(RunOptions { dry_run: true, ..RunOptions::default() }).unwrap_err();
    assert_eq!(failure.error.code, RunErrorCode::TooManyRejects);
    assert_eq!(world.take_log().0, [""; 0]);
}

#[test]
fn one_failed_table_prevents_publishing_all_tables() {
    let mut world = world(&[("a.csv", "p,1\n"), ("b/1.csv", "bad\n")]);
    let u = TableConfig { globs: vec!["b/*.csv"], max_rejects: 0, ..TableConfig::new("u") };
    world.tables.push(u);
    assert!(world.run(RunOptions::default()).is_err());
    assert_eq!((keys(&world), world.manifest("t")), (vec![], None));
}

#[test]
fn source_changed_or_deleted_while_read_is_planned_again() {
    for (bytes, expected) in [(Some(b"q,1\n".to_vec()), vec![Q, R]), (None, vec![R])] {
        let world = world(&[("a.csv", "p,1\n"), ("b.csv", "r,1\n")]);
        let (memory, key) = (world.memory.clone(), world.key("a.csv"));
        // The first GET is for the manifest's root, the second for the source.
        world.store.before_get(2, move || match bytes {
            Some(bytes) => drop(memory.put(Bucket::Lake, &key, &bytes, &WriteOptions::default()).unwrap()),
            None => memory.delete(Bucket::Lake, &[key], &WriteOptions::default()).unwrap(),
        });
        world.run(RunOptions::default()).unwrap();
        assert_eq!(keys(&world), expected);
    }
}

#[test]
fn constantly_changing_source_fails_the_run() {
    let world = ran(&[("a.csv", "p,1\n")]);
    world.put("a.csv", "p,2\n");
    for get in 1..99 {
        let (memory, key) = (world.memory.clone(), world.key("a.csv"));
        world.store.before_get(get, move || {
            let text = format!("q,{get}\n");
            memory.put(Bucket::Lake, &key, text.as_bytes(), &WriteOptions::default()).unwrap();
        });
    }
    let failure = world.run(RunOptions::default()).unwrap_err();
    assert_eq!(failure.error.code, RunErrorCode::SourceChanged);
    assert!(failure.error.code.is_transient() && !failure.partially_published);
    assert_eq!(world.take_log().1, u64::from(REPLANS_MAX) + 1, "GETs");
}

#[test]
fn same_size_change_soon_after_a_run_is_detected_without_etags() {
    let world = World::new(Style { content_tags: true, listed_tags: false }, vec![TableConfig::new("t")]);
    world.put("a.csv", "p,1\n");
    world.run(RunOptions::default()).unwrap();
    world.put("a.csv", "p,2\n");
    world.run(RunOptions::default()).unwrap();
    assert!(text(&world, P).contains("|2"));
}

/// Two changes within a second, with a run between them: the file's tag is the same.
#[test]
fn change_within_a_second_of_a_read_is_detected_with_whole_second_etags() {
    let world = World::with_whole_seconds(vec![TableConfig::new("t")]);
    world.put("a.csv", "p,1\n");
    world.run(RunOptions::default()).unwrap();
    world.put("a.csv", "p,2\n");
    world.put("b.csv", "p,3\n");
    world.run(RunOptions::default()).unwrap();
    assert!(text(&world, P).contains("|2"));
    world.clock.advance(5_000);
    world.run(RunOptions::default()).unwrap();
    world.take_log();
    world.run(RunOptions::default()).unwrap();
    assert_eq!(world.take_log(), (vec![], 0), "what was read after its second is not read again");
}

#[test]
fn interrupted_commit_leaves_the_table_as_before_or_after_it() {
    let mut committed = [0, 0];
    for writes in 0.. {
        for last_applied in [false, true] {
            let world = ran(&[("a.csv", "p,1\n"), ("b.csv", "q,1\n")]);
            let before = world.manifest("t").unwrap().root.sequence;
            world.put("a.csv", "q,1\nr,1\n");
            world.set_outage(Some(Outage { writes, last_applied }));
            let result = world.run(RunOptions::default());
            let is_over = !world.store.is_crashed();
            world.set_outage(None);
            let is_committed = world.manifest("t").unwrap().root.sequence > before;
            committed[usize::from(is_committed)] += 1;
            assert!(result.is_err() || is_committed, "after {writes} writes");
            if let Err(failure) = result {
                assert_eq!(failure.error.code, RunErrorCode::S3Error);
                assert!(failure.partially_published || !is_committed);
            }
            world.run(RunOptions::default()).unwrap();
            let fresh = world.fresh();
            fresh.run(CLEAN).unwrap();
            assert_eq!(world.warehouse(), fresh.warehouse(), "after {writes} writes");
            if is_over {
                assert!(committed.iter().all(|count| *count > 1), "{committed:?}");
                return;
            }
        }
    }
}

#[test]
fn changed_config_rebuilds_the_table_and_deletes_the_old_layout() {
    let mut world = ran(&[("a.csv", "p,1\nq,1\n")]);
    world.tables[0].partitioned = false;
    world.run(RunOptions::default()).unwrap();
    assert_eq!(keys(&world), ["t/part"]);
}

#[test]
fn unreadable_manifest_is_ignored_and_newer_one_fails_the_run() {
    let world = ran(&[("a.csv", "p,1\nbad\n")]);
    let before = world.warehouse();
    let key = world.key("manifests/t.json");
    let larger_than_allowed = vec![b' '; ROOT_BYTES_MAX as usize + 1];
    for unusable in [&b"{\"version\":2,"[..], b"{\"version\":1,\"table\":\"t\"}", &larger_than_allowed] {
        world.seed(Bucket::Warehouse, &world.key("t/p=old/part-00000.parquet"), b"x");
        world.seed(Bucket::Pipelines, &key, unusable);
        world.run(RunOptions::default()).unwrap();
        assert_eq!(world.warehouse(), before);
    }
    world.seed(Bucket::Pipelines, &key, b"{\"version\":3}");
    let failure = world.run(RunOptions::default()).unwrap_err();
    assert!(failure.error.message.contains("newer Lakemill"), "{}", failure.error.message);
    assert_eq!(failure.error.path, Some(key));
}

#[test]
fn expired_lease_blocks_writes() {
    for looks in 0..8 {
        let world = world(&[("a.csv", "p,1\nq,1\n")]);
        let lease = ShortLease { slug: world.slug.clone(), looks: AtomicI64::new(looks as i64), fence: 7 };
        // Without real threads files are written one after the other.
        let run = || world.run_leased(RunOptions::default(), &Unobserved, &lease);
        let failure = Scheduler::new(0).drive(run).unwrap_err();
        assert_eq!(failure.error.code, RunErrorCode::LeaseLost);
        let (writes, _) = world.take_log();
        // The store itself rejects the last one.
        assert!(writes.len() <= looks as usize + 1, "after {looks} looks: {writes:?}");
        assert_eq!(world.manifest("t"), None);
    }
}

#[test]
fn concurrently_written_manifest_stops_the_run() {
    /// Writes the manifest just before publishing begins.
    struct RivalWriter<'a>(&'a World);
    impl RunObserver for RivalWriter<'_> {
        fn progress(&self, _: &Progress) {}
        fn check(&self) -> Result<(), Stop> {
            Ok(())
        }
        fn begin_publishing(&self) -> Result<(), Stop> {
            self.0.seed(Bucket::Pipelines, &self.0.key("manifests/t.json"), b"{}");
            Ok(())
        }
    }
    let world = world(&[("a.csv", "p,1\n")]);
    let failure = world.run_observed(RunOptions::default(), &RivalWriter(&world)).unwrap_err();
    assert_eq!(failure.error.code, RunErrorCode::LeaseLost);
    let root = (Bucket::Pipelines, world.key("manifests/t.json"));
    assert_eq!(*world.memory.objects()[&root].bytes, *b"{}", "the rival's manifest stays");
    // Files written before the root was rejected stay unused until the next run deletes them.
    let fresh = world.fresh();
    world.run(RunOptions::default()).unwrap();
    fresh.run(RunOptions::default()).unwrap();
    assert_eq!(world.warehouse(), fresh.warehouse());
}

#[test]
fn cancelled_run_writes_nothing_unless_publishing() {
    #[derive(Default)]
    struct Watch {
        cancelled_from: Option<Stage>,
        stage: Mutex<Stage>,
        seen: Arc<Mutex<Vec<Stage>>>,
    }
    impl RunObserver for Watch {
        fn progress(&self, progress: &Progress) {
            *self.stage.lock().unwrap() = progress.stage;
            let mut seen = self.seen.lock().unwrap();
            if seen.last() != Some(&progress.stage) {
                seen.push(progress.stage);
            }
        }
        fn check(&self) -> Result<(), Stop> {
            let stage = *self.stage.lock().unwrap();
            if self.cancelled_from.is_some_and(|from| stage >= from) { Err(Stop::Cancelled) } else { Ok(()) }
        }
    }
    let world = world(&[("a.csv", "p,1\n")]);
    for from in [Stage::Planning, Stage::Converting] {
        let failure = world
            .run_observed(RunOptions::default(), &Watch { cancelled_from: Some(from), ..Watch::default() })
            .unwrap_err();
        assert_eq!(failure.error.code, RunErrorCode::Cancelled);
        assert_eq!(world.take_log().0, [""; 0]);
    }
    let watch = Watch { cancelled_from: Some(Stage::Publishing), ..Watch::default() };
    world.run_observed(RunOptions::default(), &watch).unwrap();
    assert_eq!(keys(&world), [P]);
    assert_eq!(*watch.seen.lock().unwrap(), [Stage::Planning, Stage::Converting, Stage::Publishing, Stage::Finishing]);
}

#[test]
fn local_lease_fence_exceeds_clock_and_manifests() {
    let world = ran(&[("a.csv", "p,1\n")]);
    let next = |world: &World| LocalLease::next(&*world.memory, &world.slug, &*world.clock).unwrap().fence();
    let now = next(&world);
    assert_eq!(now, world.clock.now().timestamp_micros() as u64);
    let lease = |fence| ShortLease { slug: world.slug.clone(), looks: AtomicI64::new(99), fence };
    world.put("a.csv", "-\n");
    world.run_leased(RunOptions::default(), &Unobserved, &lease(now + 5)).unwrap();
    assert_eq!(next(&world), now + 6, "though the table has no partition any more");
    world.put("a.csv", "p,2\n");
    world.run_leased(RunOptions::default(), &Unobserved, &lease(now + 8)).unwrap();
    assert_eq!(next(&world), now + 9);
}

#[test]
fn rejects_file_is_named_after_its_source() {
    let world = ran(&[("a.csv", "p,1\nbad\n"), ("b.csv", "p,2\n")]);
    let key = relative_rejects_key("t", "a.csv", "");
    assert_eq!(keys(&world), [without_hash(&key).to_owned(), P.to_owned()]);
    world.put("a.csv", "p,1\n");
    world.run(RunOptions::default()).unwrap();
    assert_eq!(keys(&world), [P]);
}

/// Keys that remote stores accept, but folders don't.
#[test]
fn keys_with_empty_segments_are_sources() {
    let sources =
        [("in/a.csv", "p,1\n"), ("in//a.csv", "p,2\nq,1\nbad\n"), ("/a.csv", "q,2\n"), ("in//b//c.csv", "r,1\n")];
    let world = world(&sources);
    let result = world.run(RunOptions::default()).unwrap();
    assert_eq!(result.skipped_files, [""; 0]);
    let table = &result.tables["t"];
    assert_eq!((table.sources_read, table.rows_written, table.rows_rejected), (4, 5, 1));
    let manifest = world.manifest("t").unwrap();
    assert_eq!(Vec::from_iter(manifest.sources.keys()), ["/a.csv", "in//a.csv", "in//b//c.csv", "in/a.csv"]);
    assert!(text(&world, P).contains("in//a.csv|0|p|2") && text(&world, P).contains("in/a.csv|0|p|1"));
    let rejects = relative_rejects_key("t", "in//a.csv", "");
    let rejects = without_hash(&rejects);
    assert!(text(&world, rejects).contains("in//a.csv|2|bad"));
    world.take_log();
    world.run(RunOptions::default()).unwrap();
    assert_eq!(world.take_log(), (vec![], 0));
    // Only the table that matches one of them is rebuilt; its neighbour without the empty segment isn't.
    world.put("in//a.csv", "p,3\n");
    world.run(RunOptions { prefix: "in//", ..RunOptions::default() }).unwrap();
    assert!(text(&world, P).contains("in//a.csv|0|p|3") && text(&world, P).contains("in/a.csv|0|p|1"));
    assert!(!keys(&world).contains(&rejects.to_owned()));
    world.remove("in//a.csv");
    world.run(RunOptions::default()).unwrap();
    assert!(!text(&world, P).contains("in//a.csv"));
    assert_eq!(Vec::from_iter(world.manifest("t").unwrap().sources.keys()), ["/a.csv", "in//b//c.csv", "in/a.csv"]);
}

#[test]
fn files_missed_because_of_empty_segments_are_reported() {
    let mut world =
        world(&[("in/a.csv", "p,1\n"), ("in//b.csv", "p,2\n"), ("/in/c.csv", "p,3\n"), ("other//d.csv", "p,4\n")]);
    world.tables[0].globs = vec!["in/*.csv"];
    for marker in ["", "in/", "in//", "out/"] {
        world.put(marker, "");
    }
    world.put("in/folder.csv/", "p,5\n");
    let result = world.run(RunOptions::default()).unwrap();
    assert_eq!(result.tables["t"].sources_read, 1);
    assert_eq!(result.skipped_files, ["/in/c.csv", "in//b.csv", "in/folder.csv/"]);
    world.remove("in/a.csv");
    world.remove("in/folder.csv/");
    let error = world.run(RunOptions::default()).unwrap_err().error;
    assert_eq!(error.code, RunErrorCode::NoInput);
    assert!(error.detail.as_ref().unwrap().contains("such as `/in/c.csv`"), "{error:?}");
}

#[test]
fn folder_markers_among_table_files_are_kept() {
    let world = ran(&[("a.csv", "p,1\n")]);
    for marker in ["", "t/", "t/p=p/", "t//", "_rejected_rows/", "_rejected_rows/table=t/"] {
        world.seed(Bucket::Warehouse, &world.key(marker), b"");
    }
    let before = world.warehouse();
    world.run(RunOptions::default()).unwrap();
    assert_eq!(world.take_log(), (vec![], 0));
    world.run(CLEAN).unwrap();
    assert_eq!(world.warehouse(), before);
}
