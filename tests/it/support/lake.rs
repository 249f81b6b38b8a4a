//! A pipeline over an in-memory lake, run by the real converter with a test's threads and memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::child::DuckExpressions;
use lakemill::domain::job::ChangedKeys;
use lakemill::domain::job::{Progress, RunResult, Stage};
use lakemill::domain::layout::pipeline_prefix;
use lakemill::domain::name::Slug;
use lakemill::domain::pipeline::Pipeline;
use lakemill::engine::convert::Resources;
use lakemill::engine::run::{CsvConverter, LocalLease, RunFailure, RunRequest, run};
use lakemill::engine::validate::validate;
use lakemill::ports::ObjectStore;
use lakemill::ports::observer::{RunObserver, Stop};
use lakemill::ports::store::{Bucket, WriteOptions};
use lakemill::runtime::Clock;

use super::faulty_store::FaultyStore;
use super::manifests::Manifest;
use super::memory_store::MemoryStore;

pub static SQL: LazyLock<DuckExpressions> = LazyLock::new(DuckExpressions::default);

pub const MIB: u64 = 1 << 20;

/// Deterministic pseudo-random numbers.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `sides - 1`.
    pub fn below(&mut self, sides: u64) -> u64 {
        self.next_u64() % sides
    }

    pub fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// Folders on an in-memory file system, where there is one.
pub fn in_memory_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// Parameters of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunParams {
    pub threads: usize,
    pub memory: u64,
    pub clean: bool,
    pub settle: bool,
    /// The keys of events; `None`: all.
    pub changed: Option<&'static [&'static str]>,
}

impl RunParams {
    pub const AMPLE_MEMORY: Self = Self { threads: 1, memory: 1 << 30, clean: false, settle: false, changed: None };

    pub fn new(threads: usize, memory: u64) -> Self {
        Self { threads, memory, clean: false, settle: false, changed: None }
    }

    pub fn clean(self) -> Self {
        Self { clean: true, ..self }
    }

    pub fn changed(self, keys: &'static [&'static str]) -> Self {
        Self { changed: Some(keys), ..self }
    }

    /// Rejects sources that may still be being written.
    pub fn settled(self) -> Self {
        Self { settle: true, ..self }
    }
}

/// Peak scratch usage of a run's conversion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScratchPeak {
    /// Spilled rows, including buffered ones and rejects.
    pub spills: BTreeSet<PathBuf>,
    /// Parquet files, including drafts.
    pub files: BTreeSet<PathBuf>,
    /// Spilled pages that wait for the end of their row group.
    pub pages: BTreeSet<PathBuf>,
}

/// Samples scratch after every chunk.
struct Watcher {
    scratch: PathBuf,
    converts: AtomicBool,
    seen: Mutex<ScratchPeak>,
}

impl RunObserver for Watcher {
    fn progress(&self, progress: &Progress) {
        self.converts.store(progress.stage == Stage::Converting, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), Stop> {
        if !self.converts.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut seen = self.seen.lock().unwrap();
        let mut folders = vec![self.scratch.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = entry.file_name().into_string().unwrap();
                if name.starts_with("spill-") {
                    seen.spills.insert(path);
                } else if name.starts_with("file-") {
                    seen.files.insert(path);
                } else if name.starts_with("pages-") {
                    seen.pages.insert(path);
                } else if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        Ok(())
    }
}

/// A clock that advances by a microsecond at every call.
#[derive(Debug, Default)]
pub struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::microseconds(1_700_000_000_000_000 + self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn since_boot(&self) -> Duration {
        (self.now() - DateTime::UNIX_EPOCH).to_std().unwrap()
    }
}

/// A pipeline with its lake, and its runs.
pub struct Lake {
    pub memory: Arc<MemoryStore>,
    pub store: FaultyStore,
    pub pipeline: Pipeline,
    pub slug: Slug,
    ticks: Ticks,
    scratch: Arc<tempfile::TempDir>,
    seen: Mutex<ScratchPeak>,
}

impl Lake {
    /// `mapping`: one mapping as JSON, without `table` and `files`.
    pub fn new(mapping: &str) -> Self {
        Self::of(pipeline(mapping), Arc::new(in_memory_folder()))
    }

    fn of(pipeline: Pipeline, scratch: Arc<tempfile::TempDir>) -> Self {
        let memory = Arc::new(MemoryStore::new());
        Self {
            store: FaultyStore::new(memory.clone()),
            memory,
            pipeline,
            slug: Slug::parse("x").unwrap(),
            ticks: Ticks::default(),
            scratch,
            seen: Mutex::default(),
        }
    }

    /// The same sources, and nothing published.
    pub fn fresh(&self) -> Self {
        let fresh = Self::of(self.pipeline.clone(), Arc::clone(&self.scratch));
        for (key, bytes) in self.memory.contents(Bucket::Lake) {
            fresh.memory.put(Bucket::Lake, &key, &bytes, &WriteOptions::default()).unwrap();
        }
        fresh
    }

    /// The same objects in a store without faults.
    pub fn with_a_sound_store(self) -> Self {
        Self { store: FaultyStore::new(self.memory.clone()), ..self }
    }

    /// The same objects in a remote store; see [`FaultyStore::remote`].
    pub fn remote(self, wanted: usize) -> Self {
        Self { store: FaultyStore::remote(self.memory.clone(), wanted), ..self }
    }

    pub fn key(&self, source: &str) -> String {
        format!("{}{source}", pipeline_prefix(&self.slug))
    }

    pub fn put(&self, source: &str, text: impl AsRef<[u8]>) {
        self.memory.put(Bucket::Lake, &self.key(source), text.as_ref(), &WriteOptions::default()).unwrap();
    }

    pub fn remove(&self, source: &str) {
        self.memory.delete(Bucket::Lake, &[self.key(source)], &WriteOptions::default()).unwrap();
    }

    pub fn run(&self, how: RunParams) -> Result<RunResult, RunFailure> {
        let (result, seen) = run_on(&self.store, &self.pipeline, &self.ticks, self.scratch.path(), how);
        *self.seen.lock().unwrap() = seen;
        result
    }

    /// Scratch usage of the last run.
    pub fn seen(&self) -> ScratchPeak {
        self.seen.lock().unwrap().clone()
    }

    pub fn warehouse(&self) -> BTreeMap<String, Arc<[u8]>> {
        self.memory.contents(Bucket::Warehouse)
    }

    /// The manifest of table `t`.
    pub fn manifest(&self) -> Option<Manifest> {
        Manifest::read(&*self.memory, &self.slug, "t")
    }
}

/// Runs `pipeline` as `x`; also returns the scratch usage.
pub fn run_on(
    store: &dyn ObjectStore,
    pipeline: &Pipeline,
    clock: &dyn Clock,
    scratch: &Path,
    how: RunParams,
) -> (Result<RunResult, RunFailure>, ScratchPeak) {
    let lease = match LocalLease::next(store, &Slug::parse("x").unwrap(), clock) {
        Ok(lease) => lease,
        Err(error) => return (Err(error.into()), ScratchPeak::default()),
    };
    let folder = tempfile::tempdir_in(scratch).unwrap();
    let resources = Resources { threads: how.threads, memory_bytes: how.memory, scratch: folder.path().to_owned() };
    let watcher =
        Watcher { scratch: folder.path().to_owned(), converts: AtomicBool::new(false), seen: Mutex::default() };
    let request = RunRequest {
        pipeline,
        // Rejects contain the id: equal bytes need equal ids.
        job_id: "job",
        prefix: "",
        changed: &how.changed.map_or(ChangedKeys::All, |keys| keys.iter().copied().collect()),
        clean: how.clean,
        dry_run: false,
        settle: how.settle,
        versions: "test",
        store,
        expressions: &*SQL,
        catalog: None,
        clock,
        lease: &lease,
        observer: &watcher,
        resources: &resources,
    };
    let result = run(&request, &CsvConverter);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "scratch is empty after a run");
    (result, watcher.seen.into_inner().unwrap())
}

/// A pipeline of one table `t` over all CSVs.
pub fn pipeline(mapping: &str) -> Pipeline {
    let mapping = mapping.trim().strip_prefix('{').unwrap();
    let text = format!(r#"{{ "version": 1, "mappings": [ {{ "table": "t", "files": ["**/*.csv"], {mapping} ] }}"#);
    validate(&text, &*SQL).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

/// The first key whose bytes differ between the two, if any.
pub fn difference(left: &BTreeMap<String, Arc<[u8]>>, right: &BTreeMap<String, Arc<[u8]>>) -> Option<String> {
    let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let differs = keys.into_iter().find(|key| left.get(*key) != right.get(*key))?;
    let size = |side: &BTreeMap<String, Arc<[u8]>>| side.get(differs).map(|b| b.len());
    Some(format!("{differs}: {:?} and {:?} bytes", size(left), size(right)))
}
