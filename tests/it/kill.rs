//! `kill -9` of `lakemill run` before and after each of its writes, and at random times: the table is always
//! consistent, and the next run completes it, its Delta log and its Iceberg metadata, and leaves nothing else.
//!
//! `LAKEMILL_TEST_KILLS` sets the number of kills; from about 200 on, every write gets one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use lakemill::adapters::fs::{DOT_FILES, FsStore, Mount};
use lakemill::domain::layout::pipeline_prefix;
use lakemill::pipelines::tables::{TableError, TableStore, verify};
use lakemill::ports::store::Bucket;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::children::Reaped as _;
use crate::support::delta_log::DeltaLog;
use crate::support::folders::{config, files, lakemill, published, succeed};
use crate::support::lake::Rng;
use crate::support::manifests::Manifest;
use crate::support::site::slug;

/// Kills at writes in `scripts/test`.
const KILLS: u64 = 14;
/// Writes between kills there.
const STRIDE: u64 = 9;
/// Number of kills at a write per kill at a random time.
const WRITES_PER_MOMENT: u64 = 4;
/// Longest delay of a random kill.
const ALL_KILLS_MAX: Duration = Duration::from_secs(3_600);
const PARTITIONS: u64 = 12;
const SOURCES: u64 = 6;
const ROWS_PER_SOURCE: u64 = 300;
/// The failpoints before and after the store writes or deletes an object.
const WRITE_FAILPOINTS: [&str; 2] = ["fs::before_write", "fs::after_write"];

/// The folder of the Delta log.
const DELTA_LOG: &str = "t/_delta_log/";
/// The folder of the Iceberg metadata.
const ICEBERG: &str = "t/metadata/";

const MAPPING: &str = r#"{ "columns": [
    { "name": "p", "type": "int32" }, { "name": "n", "type": "int64" }, { "name": "s", "type": "string" } ],
    "rejects": { "max_ratio": 1.0 }, "partition_by": ["p"], "publish": ["delta", "iceberg"], "keep_history": "0s", "parquet": { "row_group_rows": 1024 } }"#;

/// Sources of the lake in its state `version`; half of them differ between the states.
fn write_lake(lake: &Path, version: usize) {
    std::fs::create_dir_all(lake).unwrap();
    for n in 0..SOURCES {
        let mut rng = Rng::new(n * 10 + if n % 2 == 0 { version as u64 } else { 0 });
        let mut text = "p,n,s\n".to_owned();
        for _ in 0..ROWS_PER_SOURCE {
            writeln!(text, "{},{},{:x}", rng.below(PARTITIONS), rng.next_u64() >> 1, rng.next_u64()).unwrap();
        }
        text.push_str("none,1,a row that is rejected\n");
        std::fs::write(lake.join(format!("{n}.csv")), text).unwrap();
    }
}

fn rows(file: &Path) -> u64 {
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(file).unwrap()).unwrap();
    let expected = reader.metadata().file_metadata().num_rows();
    let rows: usize = reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(expected, rows as i64);
    rows as u64
}

/// The files of the table, with the hashes of their bytes. Keys of rejected rows contain the run's id.
fn table(output: &Path) -> BTreeMap<String, String> {
    published(output).into_iter().filter(|(name, _)| name.starts_with("t/")).collect()
}

/// An output folder as a store, once there was a run.
fn store(output: &Path) -> Option<FsStore> {
    let mount = |bucket, dir: &Path| Mount {
        bucket,
        prefix: pipeline_prefix(&slug("local")),
        dir: dir.to_owned(),
        writable: false,
        hide: vec![DOT_FILES.to_owned()],
    };
    let state = output.join("_lakemill");
    if !state.is_dir() {
        return None;
    }
    Some(FsStore::mounted(vec![mount(Bucket::Warehouse, output), mount(Bucket::Pipelines, &state)]).unwrap())
}

/// The files in an output folder's manifest.
fn manifest(output: &Path) -> Option<Manifest> {
    Manifest::read(&store(output)?, &slug("local"), "t")
}

/// The files that the manifest names, without rejected rows.
fn named(manifest: &Manifest) -> BTreeMap<String, String> {
    let files = manifest.groups.values().flat_map(|group| &group.files);
    files.map(|file| (file.key.clone(), file.sha256.clone())).collect()
}

/// Checks that the table matches the manifest, and returns its files; none before the first commit.
fn check_whole(output: &Path) -> BTreeMap<String, String> {
    let Some(manifest) = manifest(output) else { return BTreeMap::new() };
    let (named, found) = (named(&manifest), published(output));
    for file in manifest.files() {
        assert_eq!(found.get(&file.key), Some(&file.sha256), "`{}`", file.key);
        assert_eq!(rows(&output.join(&file.key)), file.rows);
    }
    named
}

/// Checks that there are no files but those that the manifest names.
fn check_nothing_left(output: &Path) {
    let manifest = manifest(output).unwrap();
    let mut named: BTreeSet<String> = manifest.files().map(|file| file.key.clone()).collect();
    named.insert("_lakemill/manifests/t.json".into());
    named.extend(manifest.root.shards().map(|shard| format!("_lakemill/manifests/t/{shard}.json.zst")));
    let is_lock = |name: &str| name.contains("/locks/") || name.contains("/fence/") || name.ends_with("/run.lock");
    let is_published = |name: &str| [DELTA_LOG, ICEBERG].iter().any(|folder| name.starts_with(folder));
    let found = files(output).into_keys().filter(|name| !is_lock(name) && !is_published(name));
    let found: BTreeSet<String> = found.collect();
    assert_eq!(found, named);
}

/// Checks that the Delta log has each commit once, and that it and the Iceberg metadata have the table's files.
fn check_published(output: &Path) {
    let read = |(name, path): (String, PathBuf)| {
        Some((name.strip_prefix(DELTA_LOG)?.to_owned(), std::fs::read(path).unwrap()))
    };
    let objects: Vec<(String, Vec<u8>)> = files(output).into_iter().filter_map(read).collect();
    let log = DeltaLog::replay(objects.iter().map(|(name, bytes)| (name.as_str(), &**bytes))).unwrap().unwrap();
    let manifest = manifest(output).unwrap();
    assert_eq!(log.sequences, Vec::from_iter(1..=manifest.root.sequence));
    let named = named(&manifest).into_keys().map(|key| key["t/".len()..].to_owned());
    assert_eq!(log.files, named.collect::<BTreeSet<_>>());
    let (store, slug) = (store(output).unwrap(), slug("local"));
    let mut faults = Vec::new();
    let verified = verify(&TableStore::new(&store, &slug, "t"), &mut |found| {
        faults.extend_from_slice(found);
        Ok::<_, TableError>(())
    });
    assert_eq!((verified.unwrap().files, faults), (manifest.files().count() as u64, vec![]));
}

/// Kinds of runs, which differ in their writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A run into an empty folder.
    First,
    /// A run after half of the sources changed.
    Change,
    /// A clean run of unchanged sources.
    Clean,
}

struct Killing<'a> {
    config: &'a Path,
    lake: &'a Path,
    output: &'a Path,
    /// The output of a clean run for each state of the lake.
    expected: [BTreeMap<String, String>; 2],
    version: usize,
}

impl Killing<'_> {
    fn command(&self) -> Command {
        lakemill(self.config, self.lake, self.output)
    }

    /// Prepares a run of a kind.
    fn prepare(&mut self, kind: Kind) -> Command {
        match kind {
            Kind::First => drop(std::fs::remove_dir_all(self.output)),
            Kind::Change => self.version = 1 - self.version,
            Kind::Clean => {}
        }
        write_lake(self.lake, self.version);
        let mut command = self.command();
        if kind == Kind::Clean {
            command.arg("--clean");
        }
        command
    }

    /// Checks the state after a kill, and after the next run.
    fn check(&self) {
        let found = check_whole(self.output);
        assert!(found.is_empty() || self.expected.contains(&found), "neither the old nor the new table: {found:?}");
        succeed(&mut self.command());
        assert_eq!(check_whole(self.output), self.expected[self.version]);
        assert_eq!(table(self.output), self.expected[self.version]);
        check_nothing_left(self.output);
        check_published(self.output);
    }
}

/// Whether the process was killed.
fn run_until_crash(mut command: Command, place: &str, nth: u64) -> bool {
    command.env("FAILPOINTS", format!("{place}={nth}*off->return(kill)"));
    let status = command.stderr(std::process::Stdio::null()).output_reaped().unwrap().status;
    assert!(status.success() || status.code().is_none(), "{status}");
    !status.success()
}

#[test]
fn run_killed_at_any_write_leaves_a_consistent_table_and_the_next_run_completes_it() {
    let wanted = std::env::var("LAKEMILL_TEST_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let stride = if wanted > KILLS { 1 } else { STRIDE };
    let folder = tempfile::tempdir().unwrap();
    let (lake, output) = (folder.path().join("lake"), folder.path().join("out"));
    let config = config(folder.path(), MAPPING);
    let mut longest = Duration::ZERO;
    let expected = [0, 1].map(|version| {
        write_lake(&lake, version);
        std::fs::remove_dir_all(&output).ok();
        let started = Instant::now();
        succeed(&mut lakemill(&config, &lake, &output));
        longest = longest.max(started.elapsed());
        assert_eq!(manifest(&output).unwrap().rows(), SOURCES * ROWS_PER_SOURCE);
        table(&output)
    });
    assert_ne!(expected[0], expected[1]);
    let mut killing = Killing { config: &config, lake: &lake, output: &output, expected, version: 1 };
    let (mut rng, mut kills, mut moments) = (Rng::new(11), 0, 0);
    let mut points: BTreeMap<(Kind, &str), u64> = BTreeMap::new();
    let until = Instant::now() + ALL_KILLS_MAX;
    'all: loop {
        assert!(Instant::now() < until, "{kills} kills of {wanted}");
        for kind in [Kind::First, Kind::Change, Kind::Clean] {
            for place in WRITE_FAILPOINTS {
                let at = points.entry((kind, place)).or_insert_with(|| rng.below(stride));
                let nth = *at;
                *at += stride;
                if run_until_crash(killing.prepare(kind), place, nth) {
                    kills += 1;
                } else {
                    // All its writes are covered.
                    assert!(nth > PARTITIONS, "{kind:?} has at least a write for each partition");
                    points.insert((kind, place), rng.below(stride));
                }
                killing.check();
                if kills / WRITES_PER_MOMENT > moments {
                    let mut child = killing.prepare(kind).stderr(std::process::Stdio::null()).spawn_reaped().unwrap();
                    std::thread::sleep(Duration::from_micros(rng.below(longest.as_micros() as u64)));
                    // It may have exited before the kill.
                    let _ = child.kill();
                    child.wait().unwrap();
                    killing.check();
                    moments += 1;
                }
                if kills >= wanted {
                    break 'all;
                }
            }
        }
    }
    println!("{kills} kills at writes, {moments} at other moments; the next writes: {points:?}");
}
