//! Tables that keep replaced files, so that earlier versions can be read.

use std::collections::{BTreeMap, BTreeSet};

use lakemill::domain::job::ChangedKeys;
use lakemill::domain::layout::{manifest_objects_prefix, manifest_retired_key, manifest_root_key, manifest_shard_key};
use lakemill::domain::table_log::history::AsOf;
use lakemill::domain::table_log::root::Root;
use lakemill::pipelines::tables::{Comparison, FoundRoot, SourceChange, TableStore, compare};
use lakemill::ports::store::Bucket;

use crate::model::world::{Outage, RunOptions, Style, TableConfig, World};
use crate::support::manifests::Manifest;

const CLEAN: RunOptions<'static> = RunOptions { prefix: "", changed: None, clean: true, dry_run: false };
const STYLE: Style = Style { content_tags: true, listed_tags: true };

/// A world that keeps history for 100 s.
fn world(sources: &[(&str, &str)]) -> World {
    let world = World::new(STYLE, vec![TableConfig { history: 100, ..TableConfig::new("t") }]);
    change(&world, sources);
    world
}

/// Writes sources and runs, ten seconds later.
fn change(world: &World, sources: &[(&str, &str)]) {
    world.clock.advance(10_000);
    sources.iter().for_each(|(source, text)| world.put(source, text));
    world.run(RunOptions::default()).unwrap();
}

fn table(world: &World) -> TableStore<'_> {
    TableStore::new(&*world.memory, &world.slug, "t")
}

fn present(world: &World) -> Root {
    match table(world).root().unwrap() {
        FoundRoot::Readable(stored) => stored.root,
        other => panic!("{other:?}"),
    }
}

/// All readable versions, by sequence: the texts of their files by key.
fn versions(world: &World) -> BTreeMap<u64, BTreeMap<String, String>> {
    let (table, warehouse) = (table(world), world.warehouse());
    let roots = table.commits(&present(world), 0, usize::MAX).unwrap();
    let texts = |root: Root| {
        let manifest = Manifest::try_of(&table, root).unwrap();
        let text = |key: &String| warehouse.get(key).unwrap_or_else(|| panic!("`{key}` is gone")).clone();
        manifest.files().map(|file| (file.key.clone(), text(&file.key))).collect()
    };
    roots.into_iter().map(|root| (root.sequence, texts(root))).collect()
}

/// Every stored object is referenced by a version.
fn nothing_else(world: &World) {
    let (table, root) = (table(world), present(world));
    let named: BTreeSet<String> = versions(world).into_values().flatten().map(|(key, _)| key).collect();
    assert_eq!(world.warehouse().into_keys().collect::<BTreeSet<_>>(), named);
    let mut objects: BTreeSet<String> = BTreeSet::new();
    for root in table.commits(&root, 0, usize::MAX).unwrap() {
        objects.extend(root.shards().map(|shard| manifest_shard_key(&world.slug, "t", shard)));
    }
    objects.extend(root.earlier().map(|sequence| manifest_root_key(&world.slug, "t", sequence)));
    objects.extend(root.retained.iter().map(|retired| manifest_retired_key(&world.slug, "t", retired.sequence)));
    let prefix = manifest_objects_prefix(&world.slug, "t");
    let found = world
        .memory
        .objects()
        .into_keys()
        .filter(|(bucket, key)| *bucket == Bucket::Pipelines && key.starts_with(&prefix));
    assert_eq!(found.map(|(_, key)| key).collect::<BTreeSet<_>>(), objects);
}

#[test]
fn earlier_versions_are_readable_until_they_expire() {
    let world = world(&[("a.csv", "p,1\n"), ("b.csv", "q,1\nbad\n")]);
    let first = world.warehouse();
    change(&world, &[("a.csv", "p,2\n")]);
    change(&world, &[("b.csv", "q,2\nr,2\n")]);
    let all = versions(&world);
    assert_eq!(Vec::from_iter(all.keys()), [&1, &2, &3]);
    assert_eq!(all[&1], first);
    nothing_else(&world);
    world.clock.advance(89_000);
    change(&world, &[]);
    assert_eq!(Vec::from_iter(versions(&world).keys()), [&2, &3], "an unchanged run deletes what expired");
    nothing_else(&world);
    change(&world, &[("c.csv", "r,3\n")]);
    assert_eq!(Vec::from_iter(versions(&world).keys()), [&3, &4], "a commit deletes what expired");
    nothing_else(&world);
    world.clock.advance(200_000);
    world.run(RunOptions::default()).unwrap();
    let clean = world.fresh();
    clean.run(CLEAN).unwrap();
    assert_eq!(world.warehouse(), clean.warehouse());
    nothing_else(&world);
    world.take_log();
    world.run(RunOptions::default()).unwrap();
    assert_eq!(world.take_log(), (vec![], 0));
}

#[test]
fn recreated_file_stays_for_earlier_versions() {
    let world = world(&[("a.csv", "p,1\n"), ("b.csv", "q,1\n")]);
    change(&world, &[("a.csv", "p,2\n")]);
    change(&world, &[("a.csv", "p,1\n")]);
    change(&world, &[("a.csv", "p,3\n")]);
    let all = versions(&world);
    assert_eq!(all[&1], all[&3]);
    world.clock.advance(71_000);
    change(&world, &[]);
    assert_eq!(Vec::from_iter(versions(&world).keys()), [&2, &3, &4]);
    assert_eq!(versions(&world)[&3], all[&3]);
    nothing_else(&world);
}

#[test]
fn clean_run_keeps_history() {
    let world = world(&[("a.csv", "p,1\n"), ("b.csv", "q,1\nbad\n")]);
    change(&world, &[("a.csv", "p,2\n")]);
    let before = versions(&world);
    world.seed(Bucket::Warehouse, &world.key("t/p=p/part-00000.parquet"), b"of others");
    world.run(CLEAN).unwrap();
    let after = versions(&world);
    assert_eq!((&after[&1], &after[&2], &after[&3]), (&before[&1], &before[&2], &before[&2]));
    world.clock.advance(200_000);
    world.run(RunOptions::default()).unwrap();
    nothing_else(&world);
}

#[test]
fn history_ends_with_the_field() {
    let mut world = world(&[("a.csv", "p,1\n")]);
    change(&world, &[("a.csv", "p,2\n")]);
    world.tables[0].history = 0;
    let dry = RunOptions { dry_run: true, ..RunOptions::default() };
    world.run(dry).unwrap();
    assert_eq!(versions(&world).len(), 2);
    world.run(RunOptions::default()).unwrap();
    assert_eq!(versions(&world).len(), 1);
    nothing_else(&world);
}

#[test]
fn versions_are_found_by_sequence_and_time() {
    let world = world(&[("a.csv", "p,1\n")]);
    change(&world, &[("a.csv", "p,2\n")]);
    change(&world, &[("a.csv", "p,3\n")]);
    let (table, root) = (table(&world), present(&world));
    let as_of = |text: &str| table.root_as_of(&root, AsOf::parse(text).unwrap()).unwrap().map(|root| root.sequence);
    for sequence in 1..=3 {
        assert_eq!(as_of(&sequence.to_string()), Ok(sequence));
        let at = table.root_as_of(&root, AsOf::Sequence(sequence)).unwrap().unwrap().committed_at;
        assert_eq!(as_of(&at), Ok(sequence));
    }
    let none = as_of("2000-01-01T00:00:00Z").unwrap_err();
    assert_eq!((none.oldest, none.committed_at.is_empty()), (1, false));
    assert_eq!(as_of("4").unwrap_err().oldest, 1);
}

#[test]
fn interrupted_runs_leave_no_version_in_part() {
    for last_applied in [false, true] {
        for writes in 0.. {
            let world = world(&[("a.csv", "p,1\n"), ("b.csv", "q,1\n")]);
            change(&world, &[("a.csv", "p,2\n")]);
            change(&world, &[("a.csv", "p,1\n")]);
            // The next run expires the first version, and recreates a file of the second.
            world.clock.advance(95_000);
            world.put("a.csv", "p,2\n");
            world.set_outage(Some(Outage { writes, last_applied }));
            let died = world.run(RunOptions::default()).is_err();
            world.set_outage(None);
            versions(&world).into_keys().for_each(drop);
            world.run(RunOptions::default()).unwrap();
            assert_eq!(Vec::from_iter(versions(&world).keys()), [&2, &3, &4], "{writes} {last_applied}");
            nothing_else(&world);
            if !died {
                break;
            }
        }
    }
}

#[test]
fn interrupted_expiry_is_completed() {
    for writes in 0.. {
        let world = world(&[("a.csv", "p,1\n")]);
        change(&world, &[("a.csv", "p,2\n"), ("b.csv", "q,1\n")]);
        world.clock.advance(200_000);
        world.set_outage(Some(Outage { writes, last_applied: true }));
        let died = world.run(RunOptions::default()).is_err();
        world.set_outage(None);
        world.run(RunOptions::default()).unwrap();
        assert_eq!(Vec::from_iter(versions(&world).keys()), [&2]);
        nothing_else(&world);
        if !died {
            break;
        }
    }
}

/// Three versions: of the first sources, with `a.csv` changed, and with `c.csv` added and `b.csv` removed.
fn three_versions() -> World {
    let world = world(&[("a.csv", "p,1\n"), ("b.csv", "q,1\nbad\n")]);
    change(&world, &[("a.csv", "p,2\n")]);
    world.remove("b.csv");
    change(&world, &[("c.csv", "r,3\n")]);
    world
}

#[test]
fn restored_version_is_the_next_one_and_outlives_its_time() {
    let world = three_versions();
    let before = versions(&world);
    let root = world.restore("t", 1).unwrap();
    assert_eq!((root.sequence, root.restored), (4, Some(1)));
    let after = versions(&world);
    assert_eq!(after[&4], before[&1]);
    assert!([1, 2, 3].iter().all(|sequence| after[sequence] == before[sequence]));
    nothing_else(&world);
    // The retention of objects retired by the second commit ends; the restored version still uses some.
    world.clock.advance(95_000);
    let root = world.restore("t", 3).unwrap();
    assert_eq!(root.restored, Some(3));
    world.restore("t", 4).unwrap();
    world.run(RunOptions { dry_run: true, ..RunOptions::default() }).unwrap();
    assert_eq!(versions(&world)[&6], before[&1]);
    nothing_else(&world);
}

#[test]
fn run_after_a_restore_rebuilds_the_table_from_the_lake() {
    let hint = ChangedKeys::from_iter(["other.csv"]);
    for changed in [None, Some(&hint)] {
        let world = three_versions();
        let before = versions(&world);
        world.restore("t", 1).unwrap();
        world.put("other.csv", "s,4\n");
        world.run(RunOptions { changed, ..RunOptions::default() }).unwrap();
        let clean = world.fresh();
        clean.run(CLEAN).unwrap();
        let after = versions(&world);
        assert_eq!(after[&5], versions(&clean)[&1], "whatever keys events named");
        assert_eq!(after[&4], before[&1]);
        assert_eq!(present(&world).restored, None);
        nothing_else(&world);
    }
}

#[test]
fn interrupted_restore_leaves_the_table_before_or_after_it() {
    for last_applied in [false, true] {
        for writes in 0.. {
            let world = three_versions();
            let before = versions(&world);
            world.set_outage(Some(Outage { writes, last_applied }));
            let died = world.restore("t", 1).is_err();
            world.set_outage(None);
            let root = present(&world);
            let expected = if root.sequence == 4 { &before[&1] } else { &before[&3] };
            assert_eq!(&versions(&world)[&root.sequence], expected);
            world.run(RunOptions::default()).unwrap();
            let clean = world.fresh();
            clean.run(CLEAN).unwrap();
            assert_eq!(versions(&world)[&present(&world).sequence], versions(&clean)[&1]);
            nothing_else(&world);
            if !died && root.sequence == 4 {
                break;
            }
        }
    }
}

#[test]
fn commits_are_compared_by_what_differs() {
    let world = three_versions();
    let table = table(&world);
    let root = |sequence| table.root_as_of(&present(&world), AsOf::Sequence(sequence)).unwrap().unwrap();
    let compared = |before, after, most| compare(&table, &root(before), &root(after), most).unwrap();
    let sources = |found: &Comparison| -> Vec<(String, SourceChange, u64, u64)> {
        let one = |source: &lakemill::pipelines::tables::ChangedSource| {
            (source.key.clone(), source.change, source.before, source.after)
        };
        found.sources.iter().map(one).collect()
    };
    let found = compared(2, 3, 10);
    let expected = [("b.csv".into(), SourceChange::Removed, 1, 0), ("c.csv".into(), SourceChange::Added, 0, 1)];
    assert_eq!(sources(&found), expected);
    let partitions: Vec<(&str, u64, u64)> =
        found.partitions.iter().map(|one| (one.partition.as_str(), one.before, one.after)).collect();
    assert_eq!(partitions, [("p=q", 1, 0), ("p=r", 0, 1)]);
    assert_eq!((found.added.files, found.added.rows, found.removed.files, found.removed.rows), (1, 1, 1, 1));
    let found = compared(1, 3, 1);
    assert_eq!((found.sources.len(), found.sources_changed), (1, 3));
    assert_eq!((found.partitions.len(), found.partitions_changed), (1, 3));
    assert_eq!(sources(&found), [("a.csv".into(), SourceChange::Changed, 1, 1)]);
    assert_eq!(compared(2, 2, 10), Comparison::default());
}
