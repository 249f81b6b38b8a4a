//! Commits of tables: consistent before and after each write, whichever process dies or is late.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lakemill::adapters::fs::FsStore;
use lakemill::domain::digest::sha256_hex;
use lakemill::domain::layout::{manifest_key, pipeline_prefix, relative_data_key};
use lakemill::domain::name::Slug;
use lakemill::domain::pipeline::TableFormat;
use lakemill::domain::table_log::cuts::Cut;
use lakemill::domain::table_log::entries::{GroupEntry, Member, RangeKey, SegmentEntry, StoredFile};
use lakemill::domain::table_log::root::Root;
use lakemill::domain::table_schema::StoredSchema;
use lakemill::pipelines::tables::{
    Commit, Edit, Edited, FoundRoot, IcebergHead, Maps, NewObjects, RootHead, TableError, TableFault, TableResult,
    TableStore, WrittenGroup, mark_log, recover, restore, verify,
};
use lakemill::ports::store::{Bucket, Lease, LeaseLost, WriteOptions};
use lakemill::ports::{IcebergCatalog, ObjectStore};

use crate::support::delta_log::DeltaLog;
use crate::support::faulty_store::{CrashTiming, FaultyStore};
use crate::support::lake::in_memory_folder;
use crate::support::memory_store::{MemoryStore, Object};

/// The contents of a table: each source is a separate group, whose file holds this text.
pub(crate) type Contents = BTreeMap<String, String>;
pub(crate) type Changes<'a> = &'a [(&'a str, Option<&'a str>)];

pub(crate) struct RunLease(pub(crate) Slug, pub(crate) u64);

impl Lease for RunLease {
    fn slug(&self) -> &Slug {
        &self.0
    }

    fn fence(&self) -> u64 {
        self.1
    }

    fn remaining(&self) -> Result<Duration, LeaseLost> {
        Ok(Duration::from_secs(60))
    }
}

pub(crate) fn slug() -> Slug {
    Slug::parse("shop").unwrap()
}

fn contents(of: &[(&str, &str)]) -> Contents {
    of.iter().map(|(source, text)| ((*source).to_owned(), (*text).to_owned())).collect()
}

pub(crate) fn read(store: &dyn ObjectStore, bucket: Bucket, key: &str) -> TableResult<String> {
    let mut text = String::new();
    store.get(bucket, key, None)?.body.read_to_string(&mut text).unwrap();
    Ok(text)
}

/// The contents that `root` names, each file read.
fn contents_of(table: &TableStore<'_>, root: &Root) -> TableResult<Contents> {
    let mut found = Contents::new();
    Maps::of(Some(root)).groups.visit(&mut table.reader(), |key, group| {
        let file = format!("{}{}", pipeline_prefix(table.slug), group.files[0].key);
        found.insert(key.first.clone(), read(table.store, Bucket::Warehouse, &file)?);
        Ok(())
    })?;
    Ok(found)
}

pub(crate) fn present(store: &dyn ObjectStore) -> Contents {
    let slug = slug();
    let table = TableStore::new(store, &slug, "t");
    match table.root().unwrap() {
        FoundRoot::Readable(stored) => contents_of(&table, &stored.root).unwrap(),
        FoundRoot::Absent => Contents::new(),
        FoundRoot::Unusable { error, .. } => panic!("{error}"),
    }
}

fn group_of(source: &str, text: &str) -> WrittenGroup {
    let sha256 = sha256_hex(text.as_bytes());
    let key = relative_data_key("t", "", source, &sha256, 0);
    let source = source.to_owned();
    let members = vec![Member { source: source.clone(), rows: 1, share: 1 }];
    let segment = SegmentEntry { first: source.clone(), last: source, rows: 1, row_groups: 1, cut: Cut::File };
    let file = StoredFile { key, rows: 1, size: text.len() as u64, sha256, row_groups: 1, delta: None, iceberg: None };
    WrittenGroup { files: vec![file], segments: vec![(segment, Some(members))] }
}

/// One run of a table, up to its commit.
struct Prepared {
    before: FoundRoot,
    edited: Edited,
    /// The texts of the files, by key.
    files: BTreeMap<String, String>,
}

fn prepare(table: &TableStore<'_>, fence: u64, changes: Changes<'_>) -> TableResult<Prepared> {
    prepare_as(table, fence, changes, &[])
}

fn prepare_as(
    table: &TableStore<'_>,
    fence: u64,
    changes: Changes<'_>,
    formats: &[TableFormat],
) -> TableResult<Prepared> {
    let before = table.root()?;
    let mut edit = Edit::new(*table, &before, false, "j")?;
    let mut files = BTreeMap::new();
    for (source, text) in changes {
        let old = edit.maps.groups.get(&RangeKey::new("", source), &mut table.reader())?.cloned();
        let replaced = old.into_iter().map(|group| ((*source).to_owned(), group)).collect();
        let made = text.map(|text| group_of(source, text));
        for (file, text) in made.iter().flat_map(|group| &group.files).zip(text) {
            files.insert(file.key.clone(), (*text).to_owned());
        }
        edit.replace_groups("", &replaced, made.into_iter().collect())?;
    }
    let head = RootHead {
        fence,
        job_id: format!("job-{fence}"),
        committed_at: "2024-01-01T00:00:00Z".into(),
        fingerprint: "f".into(),
        layout: "l".into(),
        schema: StoredSchema { mapping: String::new(), globs: None, variants: String::new(), columns: vec![] },
        delta: formats.contains(&TableFormat::Delta),
        iceberg: match formats.contains(&TableFormat::Iceberg) {
            true => Some(IcebergHead {
                location: table.location()?,
                partitions: vec![],
                catalog: table.catalog.map(|catalog| catalog.name().to_owned()),
            }),
            false => None,
        },
    };
    Ok(Prepared { edited: edit.finish(&before, head)?, before, files })
}

fn commit(
    table: TableStore<'_>,
    lease: &RunLease,
    prepared: Prepared,
    keep_history: bool,
    expires: bool,
) -> TableResult<Root> {
    let Prepared { before, edited: Edited { root: next, made, retired, unchanged, shards, .. }, files } = prepared;
    let new = made.files.clone();
    let put_files = || {
        for file in &new {
            let key = format!("{}{}", pipeline_prefix(table.slug), file.key);
            let text = files[&file.key].as_bytes();
            table.store.put(Bucket::Warehouse, &key, text, &WriteOptions::leased(lease))?;
        }
        Ok::<_, TableError>(())
    };
    let retained = before.readable().map(|root| root.retained.clone()).unwrap_or_default();
    let expired = if expires { retained } else { Vec::new() };
    Commit {
        table,
        lease,
        before: &before,
        next,
        retired,
        made,
        unchanged,
        returned: Vec::new(),
        keep_history,
        expired,
    }
    .run(NewObjects { shards, put_files: &put_files, files: new.len() }, &|| Ok::<_, TableError>(()))
}

fn run(store: &dyn ObjectStore, fence: u64, changes: Changes<'_>, keep_history: bool) -> TableResult<Root> {
    run_as(store, fence, changes, keep_history, false)
}

fn run_as(
    store: &dyn ObjectStore,
    fence: u64,
    changes: Changes<'_>,
    keep_history: bool,
    delta: bool,
) -> TableResult<Root> {
    let formats: &[TableFormat] = if delta { &[TableFormat::Delta] } else { &[] };
    run_published(store, fence, changes, keep_history, formats)
}

/// A run of a table that is published in these formats.
pub(crate) fn run_published(
    store: &dyn ObjectStore,
    fence: u64,
    changes: Changes<'_>,
    keep_history: bool,
    formats: &[TableFormat],
) -> TableResult<Root> {
    run_in_catalog(store, None, fence, changes, keep_history, formats)
}

/// A run of a table that is published in these formats, and in a catalog.
pub(crate) fn run_in_catalog(
    store: &dyn ObjectStore,
    catalog: Option<&dyn IcebergCatalog>,
    fence: u64,
    changes: Changes<'_>,
    keep_history: bool,
    formats: &[TableFormat],
) -> TableResult<Root> {
    let slug = slug();
    let table = TableStore { catalog, ..TableStore::new(store, &slug, "t") };
    let lease = RunLease(slug.clone(), fence);
    recover(&table, table.root()?.readable(), &lease)?;
    let prepared = prepare_as(&table, fence, changes, formats)?;
    commit(table, &lease, prepared, keep_history, !keep_history)
}

/// Keys of all objects that no root references; the root itself is referenced.
fn unnamed(store: &MemoryStore) -> Vec<String> {
    let slug = slug();
    let table = TableStore::new(store, &slug, "t");
    let found = table.root().unwrap();
    let mut named: Vec<String> = vec![manifest_key(&slug, "t")];
    if let Some(root) = found.readable() {
        named.extend(root.shards().map(|name| format!("pipelines/shop/manifests/t/{name}.json.zst")));
        Maps::of(Some(root))
            .groups
            .visit(&mut table.reader(), |_, group| {
                named.extend(group.files.iter().map(|file| format!("{}{}", pipeline_prefix(&slug), file.key)));
                Ok(())
            })
            .unwrap();
    }
    store.objects().into_keys().map(|(_, key)| key).filter(|key| !named.contains(key)).collect()
}

pub(crate) const FIRST: Changes<'static> = &[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))];
pub(crate) const SECOND: Changes<'static> = &[("a", None), ("b", Some("4")), ("d", Some("5"))];
pub(crate) const THIRD: Changes<'static> = &[("b", Some("2")), ("e", Some("6"))];

pub(crate) fn after_first() -> Contents {
    contents(&[("a", "1"), ("b", "2"), ("c", "3")])
}

pub(crate) fn after_second() -> Contents {
    contents(&[("b", "4"), ("c", "3"), ("d", "5")])
}

pub(crate) fn after_third() -> Contents {
    contents(&[("b", "2"), ("c", "3"), ("d", "5"), ("e", "6")])
}

#[test]
fn run_that_dies_at_any_write_leaves_a_consistent_table_and_its_objects_are_removed() {
    for dies in [CrashTiming::BeforeWrite, CrashTiming::AfterWrite] {
        for keep_history in [false, true] {
            let mut committed = [0, 0];
            for at in 1.. {
                let memory = Arc::new(MemoryStore::new());
                run(&*memory, 1, FIRST, keep_history).unwrap();
                let store = FaultyStore::new(Arc::clone(&memory) as Arc<dyn ObjectStore>);
                store.crash_at_write(at, dies);
                let died = run(&store, 2, SECOND, keep_history);
                if !store.is_crashed() {
                    assert!(at > 8, "a commit has more writes than {at}");
                    break;
                }
                let seen = present(&*memory);
                assert!(seen == after_first() || seen == after_second(), "write {at}, {dies:?}: {seen:?}");
                assert!(seen == after_second() || died.is_err(), "write {at}, {dies:?}: reported but not committed");
                committed[usize::from(seen == after_second())] += 1;
                // The next run recreates a file that the dead one replaced.
                run(&*memory, 3, SECOND, keep_history).unwrap();
                run(&*memory, 4, THIRD, keep_history).unwrap();
                assert_eq!(present(&*memory), after_third(), "write {at}, {dies:?}");
                run(&*memory, 5, &[], false).unwrap();
                assert_eq!(unnamed(&memory), [""; 0], "write {at}, {dies:?}, keep_history {keep_history}");
                assert_eq!(present(&*memory), after_third());
            }
            assert!(committed.iter().all(|count| *count > 0), "died before and after the commit: {committed:?}");
        }
    }
}

#[test]
fn writer_that_lost_its_lock_cannot_commit_and_its_objects_are_removed() {
    let memory = Arc::new(MemoryStore::new());
    run(&*memory, 1, FIRST, false).unwrap();
    let slug = slug();
    let table = TableStore::new(&*memory, &slug, "t");
    let stale = prepare(&table, 2, &[("z", Some("stale"))]).unwrap();
    run(&*memory, 3, SECOND, false).unwrap();
    // The store doesn't know the fence of the new holder, like an S3 store: only the precondition on the root's tag
    // rejects it.
    memory.forget_fences();
    let refused = commit(table, &RunLease(slug.clone(), 2), stale, false, false);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(present(&*memory), after_second());
    assert_ne!(unnamed(&memory), [""; 0], "what it wrote before it was refused");
    run(&*memory, 4, &[], false).unwrap();
    assert_eq!(unnamed(&memory), [""; 0]);
    assert_eq!(present(&*memory), after_second());
}

#[test]
fn one_of_two_concurrent_writers_commits_and_stale_ones_never_do() {
    let stale_and_present = [[("x", "stale")], [("y", "stale too")], [("z", "present")]];
    for round in 0..20 {
        let memory = Arc::new(MemoryStore::new());
        run(&*memory, 1, FIRST, false).unwrap();
        let slug = slug();
        let table = TableStore::new(&*memory, &slug, "t");
        let prepared = |fence: u64| {
            let changes = stale_and_present[fence as usize - 2].map(|(source, text)| (source, Some(text)));
            (fence, prepare(&table, fence, &changes).unwrap())
        };
        // In even rounds the third holder of the lock has committed before the other two wake up.
        let (mut writers, mut committed) = (vec![prepared(2), prepared(3)], Vec::new());
        let last = prepared(4);
        memory.forget_fences();
        if round % 2 == 0 {
            let (fence, prepared) = last;
            commit(table, &RunLease(slug.clone(), fence), prepared, false, false).unwrap();
            committed.push(fence);
        } else {
            writers.push(last);
        }
        std::thread::scope(|scope| {
            let start = |(fence, prepared): (u64, Prepared)| {
                let lease = RunLease(slug.clone(), fence);
                scope.spawn(move || commit(table, &lease, prepared, false, false).is_ok().then_some(fence))
            };
            let threads: Vec<_> = writers.into_iter().map(start).collect();
            committed.extend(threads.into_iter().filter_map(|thread| thread.join().unwrap()));
        });
        assert_eq!(committed.len(), 1, "round {round}: {committed:?}");
        let [(source, text)] = stale_and_present[committed[0] as usize - 2];
        let expected: Contents = after_first().into_iter().chain([(source.to_owned(), text.to_owned())]).collect();
        assert_eq!(present(&*memory), expected);
        run(&*memory, 5, &[], false).unwrap();
        assert_eq!(unnamed(&memory), [""; 0]);
        assert_eq!(present(&*memory), expected);
    }
}

/// The longest time from one publish to the next.
const PUBLISH_MAX: Duration = Duration::from_secs(60);

/// Each table's sources contain its sequence; a reader sees one of them.
fn read_whole(store: &dyn ObjectStore) -> u64 {
    let slug = slug();
    let table = TableStore::new(store, &slug, "t");
    loop {
        let FoundRoot::Readable(stored) = table.root().unwrap() else { return 0 };
        let contents = match contents_of(&table, &stored.root) {
            Ok(contents) => contents,
            // A later commit deleted it: retried from the new root.
            Err(error) if error.is_gone() => continue,
            Err(error) => panic!("{error}"),
        };
        let sequence = stored.root.sequence;
        assert!(contents.values().all(|text| *text == sequence.to_string()), "{sequence}: {contents:?}");
        assert_eq!(contents.len(), 5);
        return sequence;
    }
}

/// `LAKEMILL_TEST_PUBLISHES` sets the number of publishes.
#[test]
fn reader_during_publishes_sees_each_table_complete() {
    let publishes = std::env::var("LAKEMILL_TEST_PUBLISHES").map_or(60, |text| text.parse().unwrap());
    let folder = in_memory_folder();
    let stores: [Arc<dyn ObjectStore>; 2] =
        [Arc::new(MemoryStore::new()), Arc::new(FsStore::create(folder.path()).unwrap())];
    for store in stores {
        let seen = AtomicU64::new(0);
        let (mut reads, mut tables) = (0_u64, BTreeSet::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for sequence in 1..=publishes {
                    let text = sequence.to_string();
                    let changes = ["a", "b", "c", "d", "e"].map(|source| (source, Some(text.as_str())));
                    run(&*store, sequence, &changes, false).unwrap();
                    // The reader continues meanwhile, and through the next publish.
                    let until = Instant::now() + PUBLISH_MAX;
                    while seen.load(Ordering::SeqCst) < sequence {
                        assert!(Instant::now() < until, "table {sequence} was not seen");
                        std::thread::yield_now();
                    }
                }
            });
            let until = Instant::now() + PUBLISH_MAX * publishes as u32;
            while seen.load(Ordering::SeqCst) < publishes {
                assert!(Instant::now() < until, "{reads} reads");
                let sequence = read_whole(&*store);
                reads += 1;
                tables.insert(sequence);
                seen.store(sequence, Ordering::SeqCst);
            }
        });
        tables.remove(&0);
        assert_eq!(tables.len() as u64, publishes);
        println!("{} whole tables of {publishes} publishes, in {reads} reads", tables.len());
    }
}

#[test]
fn earlier_commits_are_readable_while_they_are_retained() {
    let memory = MemoryStore::new();
    run(&memory, 1, FIRST, true).unwrap();
    run(&memory, 2, SECOND, true).unwrap();
    let third = run(&memory, 3, THIRD, true).unwrap();
    let slug = slug();
    let table = TableStore::new(&memory, &slug, "t");
    for (sequence, expected) in [(1, after_first()), (2, after_second())] {
        let root = table.earlier_root(sequence).unwrap().unwrap();
        assert_eq!(contents_of(&table, &root).unwrap(), expected, "commit {sequence}");
    }
    assert_eq!((third.totals.files, third.totals.rows, third.totals.bytes), (4, 4, 4));
    assert_eq!(third.retained.iter().map(|one| one.sequence).collect::<Vec<_>>(), [2, 3]);
    // A file of the first commit, which the second retired, is in the third again.
    run(&memory, 4, &[], false).unwrap();
    assert_eq!(table.earlier_root(2).unwrap(), None);
    assert_eq!(present(&memory), after_third());
    assert_eq!(unnamed(&memory), [""; 0]);
}

/// The Delta log as a reader replays it: the files by path, and the sequence in each version. Its metadata stays.
fn replayed(store: &MemoryStore) -> (BTreeSet<String>, Vec<u64>) {
    let all = store.objects();
    let of_log = |((_, key), object): (&(Bucket, String), &Object)| {
        Some((key.strip_prefix("pipelines/shop/t/_delta_log/")?.to_owned(), object.bytes.clone()))
    };
    let all: Vec<_> = all.iter().filter_map(of_log).collect();
    let log = DeltaLog::replay(all.iter().map(|(name, bytes)| (name.as_str(), &**bytes))).unwrap().unwrap_or_default();
    assert!(log.metadata.len() <= 1, "{:?}", log.metadata);
    (log.files, log.sequences)
}

/// The paths of the files that the current root names.
fn named_paths(store: &MemoryStore) -> BTreeSet<String> {
    let slug = slug();
    let table = TableStore::new(store, &slug, "t");
    let (found, mut paths) = (table.root().unwrap(), BTreeSet::new());
    let visited = Maps::of(found.readable()).groups.visit(&mut table.reader(), |_, group: &GroupEntry| {
        paths.extend(group.files.iter().map(|file| file.key["t/".len()..].to_owned()));
        Ok::<_, TableError>(())
    });
    visited.unwrap();
    paths
}

pub(crate) fn faults(store: &dyn ObjectStore) -> Vec<String> {
    let slug = slug();
    let table = TableStore::new(store, &slug, "t");
    let mut found = Vec::new();
    let mut report = |faults: &[TableFault]| {
        found.extend(faults.iter().map(|fault| format!("{} {}: {}", fault.kind, fault.key, fault.found)));
        Ok::<_, TableError>(())
    };
    verify(&table, &mut report).unwrap();
    found
}

#[test]
fn delta_log_has_each_commit_once_whenever_a_run_dies() {
    for dies in [CrashTiming::BeforeWrite, CrashTiming::AfterWrite] {
        for keep_history in [false, true] {
            for at in 1.. {
                let memory = Arc::new(MemoryStore::new());
                run_as(&*memory, 1, FIRST, keep_history, true).unwrap();
                for fence in 2..=10 {
                    run_as(&*memory, fence, &[], keep_history, true).unwrap();
                }
                let store = FaultyStore::new(Arc::clone(&memory) as Arc<dyn ObjectStore>);
                store.crash_at_write(at, dies);
                // Version 10, with a checkpoint.
                let _ = run_as(&store, 11, SECOND, keep_history, true);
                if !store.is_crashed() {
                    assert!(at > 10, "a commit has more writes than {at}");
                    break;
                }
                run_as(&*memory, 12, SECOND, keep_history, true).unwrap();
                let last = run_as(&*memory, 13, THIRD, keep_history, true).unwrap();
                assert_eq!(present(&*memory), after_third(), "write {at}, {dies:?}");
                let (files, sequences) = replayed(&memory);
                assert_eq!(sequences, Vec::from_iter(1..=last.sequence), "write {at}, {dies:?}");
                assert_eq!(files, named_paths(&memory), "write {at}, {dies:?}");
                assert_eq!(faults(&*memory), [""; 0], "write {at}, {dies:?}, keep_history {keep_history}");
            }
        }
    }
}

#[test]
fn delta_log_ends_when_it_is_switched_off_and_begins_with_all_files_when_switched_on() {
    let memory = MemoryStore::new();
    run(&memory, 1, FIRST, false).unwrap();
    let begun = run_as(&memory, 2, &[], false, true).unwrap();
    assert_eq!(replayed(&memory), (named_paths(&memory), vec![begun.sequence]));
    run_as(&memory, 3, SECOND, false, true).unwrap();
    run(&memory, 4, &[], false).unwrap();
    assert_eq!(replayed(&memory), (BTreeSet::new(), vec![]));
    let again = run_as(&memory, 5, THIRD, false, true).unwrap();
    assert_eq!(replayed(&memory), (named_paths(&memory), vec![again.sequence]));
    assert_ne!(begun.delta.unwrap().id, again.delta.unwrap().id);
    assert_eq!(faults(&memory), [""; 0]);
}

#[test]
fn version_of_another_program_is_replaced_only_on_request() {
    let memory = MemoryStore::new();
    run_as(&memory, 1, FIRST, false, true).unwrap();
    let foreign = "pipelines/shop/t/_delta_log/00000000000000000001.json";
    memory.put(Bucket::Warehouse, foreign, b"{}", &WriteOptions::default()).unwrap();
    assert_eq!(faults(&memory).len(), 1, "{:?}", faults(&memory));
    let refused = run_as(&memory, 2, SECOND, false, true).unwrap_err();
    assert!(matches!(refused, TableError::Log { .. }), "{refused}");
    assert!(matches!(run_as(&memory, 3, THIRD, false, true), Err(TableError::Log { .. })));
    assert_eq!(read(&memory, Bucket::Warehouse, foreign).unwrap(), "{}");
    assert_eq!(present(&memory), after_second(), "the table itself is published");
    let slug = slug();
    let table = TableStore::new(&memory, &slug, "t");
    mark_log(&table, TableFormat::Delta, &RunLease(slug.clone(), 4)).unwrap();
    let last = run_as(&memory, 5, THIRD, false, true).unwrap();
    assert_eq!(replayed(&memory), (named_paths(&memory), vec![last.sequence]));
    assert_eq!((faults(&memory), present(&memory)), (vec![], after_third()));
}

#[test]
fn publish_to_a_delta_log_takes_two_more_requests() {
    let requests = |delta: bool| {
        let memory = Arc::new(MemoryStore::new());
        run_as(&*memory, 1, FIRST, false, delta).unwrap();
        let store = FaultyStore::new(Arc::clone(&memory) as Arc<dyn ObjectStore>);
        run_as(&store, 2, SECOND, false, delta).unwrap();
        let of = |bucket| {
            let counts = store.counts(bucket);
            counts.gets + counts.puts + counts.heads + counts.lists
        };
        of(Bucket::Pipelines) + of(Bucket::Warehouse)
    };
    assert_eq!(requests(true) - requests(false), 2);
}

#[test]
fn restored_commit_is_a_version_of_the_delta_log() {
    let memory = MemoryStore::new();
    run_as(&memory, 1, FIRST, true, true).unwrap();
    run_as(&memory, 2, SECOND, true, true).unwrap();
    let slug = slug();
    let table = TableStore::new(&memory, &slug, "t");
    let FoundRoot::Readable(stored) = table.root().unwrap() else { panic!("no root") };
    let earlier = table.earlier_root(1).unwrap().unwrap();
    restore(table, &stored, earlier, &RunLease(slug.clone(), 3), chrono::DateTime::UNIX_EPOCH).unwrap();
    assert_eq!(present(&memory), after_first());
    assert_eq!(replayed(&memory), (named_paths(&memory), vec![1, 2, 3]));
    assert_eq!(faults(&memory), [""; 0]);
}
