//! A pipeline with its store and clock, and its runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use lakemill::domain::job::ChangedKeys;
use lakemill::domain::job::{Progress, RunResult};
use lakemill::domain::layout::pipeline_prefix;
use lakemill::domain::name::{ColumnName, Slug, TableName};
use lakemill::domain::pipeline::types::DataType;
use lakemill::domain::pipeline::*;
use lakemill::domain::table_log::cuts::CutTargets;
use lakemill::domain::table_log::history::AsOf;
use lakemill::domain::table_log::root::Root;
use lakemill::engine::convert::Resources;
use lakemill::engine::run::{LocalLease, RunFailure, RunRequest, run};
use lakemill::pipelines::tables::{
    FoundRoot, TableError, TableFault, TableFaultKind, TableStore, mark_for_rebuild, mark_lost, recover, restore,
    verify,
};
use lakemill::ports::expressions::*;
use lakemill::ports::observer::{RunObserver, Stop};
use lakemill::ports::store::{Bucket, Lease, LeaseLost, WriteOptions};
use lakemill::ports::{Expressions, ObjectStore};
use lakemill::runtime::Clock;

use super::convert::LineConverter;
use crate::support::faulty_store::{CrashTiming, FaultyStore};
use crate::support::manifests::Manifest;
use crate::support::memory_store::{MemoryStore, Tags};

/// Settings of the config that tests change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableConfig {
    pub name: &'static str,
    pub globs: Vec<&'static str>,
    pub partitioned: bool,
    /// Changes a column's type, and with it the layout.
    pub wide: bool,
    /// Changes the bytes alone.
    pub salt: u8,
    pub max_rejects: u64,
    pub when_removed: WhenRemoved,
    /// Seconds.
    pub history: u64,
    /// Whether it has a Delta log.
    pub delta: bool,
}

impl TableConfig {
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            globs: vec!["**/*.csv"],
            partitioned: true,
            wide: false,
            salt: 0,
            max_rejects: 1000,
            when_removed: WhenRemoved::RemoveRows,
            history: 0,
            delta: false,
        }
    }

    pub fn keeps_rows(&self) -> bool {
        self.when_removed == WhenRemoved::KeepRows
    }

    pub fn mapping(&self) -> Mapping {
        let column = |name: &str, ty| Column {
            name: ColumnName::parse(name).unwrap(),
            ty,
            source: ColumnSource::Header(vec![name.into()]),
            nullable: true,
            on_error: OnError::Reject,
            formats: vec![],
            number_format: None,
            timezone: None,
        };
        let partition = PartitionField {
            column: 0,
            transform: Transform::Identity,
            name: ColumnName::parse("p").unwrap(),
            inferable_texts: InferableTexts::Reject,
        };
        Mapping {
            table: TableName::parse(self.name).unwrap(),
            files: self.globs.iter().map(|g| (*g).to_owned()).collect(),
            csv: Dialect { quote: None, header: false, null_values: vec![], ..Dialect::default() },
            variants: Variants::default(),
            columns: vec![
                column("p", DataType::String),
                column("v", if self.wide { DataType::Int64 } else { DataType::Int32 }),
            ],
            filter: None,
            checks: vec![],
            extra_columns: ExtraColumns::Ignore,
            missing_columns: MissingColumns::Fail,
            empty_files: EmptyFiles::Load,
            duplicate_columns: DuplicateColumns::Fail,
            rejects: RejectLimits { max_rows: self.max_rejects, max_ratio: 0.0 },
            partition_by: if self.partitioned { vec![partition] } else { vec![] },
            sort_by: vec![],
            when_removed: self.when_removed,
            keep_history: Duration::from_secs(self.history),
            freshness: None,
            publish: self.delta.then_some(TableFormat::Delta).into_iter().collect(),
            parquet: ParquetOptions {
                compression: Compression::None,
                encodings: Encodings::Compatible,
                row_group_rows: 1024,
                file_bytes_max: 1 << 20,
                cuts: CutTargets { file_text_bytes: 60, tail_text_bytes: 12 },
            },
            canonical: format!("{:?}", (self.name, self.partitioned, self.wide, self.salt, self.max_rejects)),
        }
    }
}

pub fn pipeline(tables: &[TableConfig]) -> Pipeline {
    Pipeline {
        title: String::new(),
        description: String::new(),
        auto_run: true,
        notify: std::collections::BTreeSet::new(),
        mappings: tables.iter().map(TableConfig::mapping).collect(),
    }
}

/// No mapping here has expressions.
struct NoExpressions;

impl Expressions for NoExpressions {
    fn check(&self, _: &ExpressionSet) -> Result<Vec<ExpressionProblem>, CheckError> {
        Ok(vec![])
    }

    fn bind(&self, _: &ExpressionSet) -> Result<Box<dyn Evaluator>, EvaluationError> {
        Err(ExpressionFailure("none here".into()).into())
    }

    fn version(&self) -> Result<String, ExpressionFailure> {
        unreachable!("no mapping here has expressions, so no fingerprint depends on their engine")
    }
}

pub struct Unobserved;

impl RunObserver for Unobserved {
    fn progress(&self, _: &Progress) {}

    fn check(&self) -> Result<(), Stop> {
        Ok(())
    }
}

/// Parameters of a run, without the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunOptions<'a> {
    pub prefix: &'a str,
    /// The keys of events; `None`: all keys are checked.
    pub changed: Option<&'a ChangedKeys>,
    pub clean: bool,
    pub dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Equal bytes get equal tags; otherwise every write gets a new one.
    pub content_tags: bool,
    pub listed_tags: bool,
}

/// After the first `writes` writes every call fails; the first failing write may still be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    pub writes: u64,
    pub last_applied: bool,
}

/// A clock set by tests.
#[derive(Debug, Default)]
pub struct TestClock(AtomicI64);

impl TestClock {
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::milliseconds(1_700_000_000_000 + self.0.load(Ordering::Relaxed))
    }

    fn since_boot(&self) -> Duration {
        (self.now() - DateTime::UNIX_EPOCH).to_std().unwrap()
    }
}

/// A microsecond later at every call, since no two runs begin at the same time.
#[derive(Debug, Default)]
struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::microseconds(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn since_boot(&self) -> Duration {
        (self.now() - DateTime::UNIX_EPOCH).to_std().unwrap()
    }
}

pub struct World {
    pub style: Style,
    /// The store's content, bypassing its faults.
    pub memory: Arc<MemoryStore>,
    /// The store of a run.
    pub store: FaultyStore,
    pub clock: Arc<TestClock>,
    pub slug: Slug,
    pub tables: Vec<TableConfig>,
    /// Everything else that the bytes of tables depend on.
    pub versions: &'static str,
    ticks: Ticks,
    scratch: Arc<tempfile::TempDir>,
    jobs: AtomicU64,
}

impl World {
    pub fn new(style: Style, tables: Vec<TableConfig>) -> Self {
        let clock = Arc::new(TestClock::default());
        let memory = Path::new("/dev/shm");
        let scratch = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let memory = Arc::new(Self::empty(style, clock.clone()));
        Self {
            style,
            store: FaultyStore::new(memory.clone()),
            memory,
            clock,
            slug: Slug::parse("x").unwrap(),
            tables,
            versions: "test",
            ticks: Ticks::default(),
            scratch: Arc::new(scratch.unwrap()),
            jobs: AtomicU64::new(0),
        }
    }

    /// A world whose store has tags like those of file systems with times in whole seconds.
    pub fn with_whole_seconds(tables: Vec<TableConfig>) -> Self {
        let world = Self::new(Style { content_tags: false, listed_tags: true }, tables);
        world.with_store(MemoryStore::with(Tags::MtimeSecond, true).timed_by(world.clock.clone()))
    }

    fn empty(style: Style, clock: Arc<TestClock>) -> MemoryStore {
        let tags = if style.content_tags { Tags::Content } else { Tags::Counter };
        MemoryStore::with(tags, style.listed_tags).timed_by(clock)
    }

    /// The same world over another store.
    pub fn with_store(&self, memory: MemoryStore) -> Self {
        let memory = Arc::new(memory);
        Self {
            style: self.style,
            store: FaultyStore::new(memory.clone()),
            memory,
            clock: self.clock.clone(),
            slug: self.slug.clone(),
            tables: self.tables.clone(),
            versions: self.versions,
            ticks: Ticks(AtomicI64::new(self.ticks.0.load(Ordering::Relaxed))),
            scratch: self.scratch.clone(),
            jobs: AtomicU64::new(self.jobs.load(Ordering::Relaxed)),
        }
    }

    /// The same world with a copy of the store.
    pub fn fork(&self) -> Self {
        self.with_store(self.memory.fork())
    }

    /// The same config, and an empty store.
    pub fn empty_store(&self) -> Self {
        self.with_store(Self::empty(self.style, self.clock.clone()))
    }

    /// The same lake and config, and nothing published.
    pub fn fresh(&self) -> Self {
        let fresh = self.empty_store();
        for ((bucket, key), object) in self.memory.objects() {
            if bucket == Bucket::Lake {
                fresh.seed(bucket, &key, &object.bytes);
            }
        }
        fresh
    }

    /// Writes a source as a user would.
    pub fn seed(&self, bucket: Bucket, key: &str, bytes: &[u8]) {
        self.memory.put(bucket, key, bytes, &WriteOptions::default()).unwrap();
    }

    pub fn unseed(&self, bucket: Bucket, key: &str) {
        self.memory.delete(bucket, &[key.to_owned()], &WriteOptions::default()).unwrap();
    }

    pub fn set_outage(&self, outage: Option<Outage>) {
        self.store.restart();
        if let Some(Outage { writes, last_applied }) = outage {
            let dies = if last_applied { CrashTiming::AfterWrite } else { CrashTiming::BeforeWrite };
            self.store.crash_at_write(self.store.writes() + writes + 1, dies);
        }
    }

    /// The attempted writes (`put key`, `delete key`) and the number of GETs from the lake since the last call.
    pub fn take_log(&self) -> (Vec<String>, u64) {
        let gets = self.store.counts(Bucket::Lake).gets;
        let writes = self.store.written();
        self.store.reset_counts();
        (writes, gets)
    }

    pub fn key(&self, relative: &str) -> String {
        format!("{}{relative}", pipeline_prefix(&self.slug))
    }

    pub fn put(&self, source: &str, text: &str) {
        self.seed(Bucket::Lake, &self.key(source), text.as_bytes());
    }

    /// The text of a source.
    pub fn text(&self, source: &str) -> Option<String> {
        let object = self.memory.objects().remove(&(Bucket::Lake, self.key(source)))?;
        Some(String::from_utf8_lossy(&object.bytes).into_owned())
    }

    pub fn remove(&self, source: &str) {
        self.unseed(Bucket::Lake, &self.key(source));
    }

    /// The objects after the nth write from now has completed.
    pub fn verify_and_repair(&self, write: u64) -> Arc<Mutex<Option<MemoryStore>>> {
        let (seen, memory) = (Arc::new(Mutex::new(None)), self.memory.clone());
        let sight = Arc::clone(&seen);
        self.store.after_write(write, move || *sight.lock().unwrap() = Some(memory.fork()));
        seen
    }

    /// Verifies the tables, marks damaged files for the next run, and deletes unknown objects. Returns the keys of the
    /// faults: of those that the next run repairs, and of files whose CSVs are gone, which stay as they are.
    pub fn repair(&self) -> (Vec<String>, BTreeSet<String>) {
        let lease = LocalLease::next(&self.store, &self.slug, &self.ticks).unwrap();
        let (mut repaired, mut stay) = (Vec::new(), BTreeSet::new());
        for config in &self.tables {
            let table = TableStore::new(&self.store, &self.slug, config.name);
            recover(&table, table.root().unwrap().readable(), &lease).unwrap();
            let mut faults: Vec<TableFault> = Vec::new();
            let verified = verify(&table, &mut |found: &[TableFault]| {
                faults.extend_from_slice(found);
                Ok::<_, TableError>(())
            });
            let is_unknown = |fault: &&TableFault| fault.kind == TableFaultKind::Unknown;
            for fault in faults.iter().filter(is_unknown) {
                let options = WriteOptions::leased(&lease);
                self.store.delete(fault.bucket, std::slice::from_ref(&fault.key), &options).unwrap();
            }
            let mut archived = Vec::new();
            if verified.unwrap().is_broken {
                mark_for_rebuild(&table, &lease).unwrap();
            } else {
                let lost: BTreeSet<_> = faults.iter().filter_map(|fault| fault.owner.clone()).collect();
                archived = mark_lost(table, &lost, &lease).unwrap().archived;
            }
            for fault in faults {
                let relative = fault.key.strip_prefix(&self.key("")).unwrap_or(&fault.key).to_owned();
                if archived.contains(&relative) {
                    stay.insert(relative);
                } else {
                    repaired.push(relative);
                }
            }
        }
        (repaired, stay)
    }

    /// Makes an earlier version of a table the current one.
    pub fn restore(&self, table: &str, sequence: u64) -> Result<Root, TableError> {
        let lease = LocalLease::next(&self.store, &self.slug, &self.ticks).unwrap();
        let table = TableStore::new(&self.store, &self.slug, table);
        let FoundRoot::Readable(present) = table.root()? else { panic!("the table has no manifest") };
        let earlier = table.root_as_of(&present.root, AsOf::Sequence(sequence))?.unwrap();
        restore(table, &present, earlier, &lease, self.clock.now())
    }

    pub fn run(&self, params: RunOptions<'_>) -> Result<RunResult, RunFailure> {
        self.run_observed(params, &Unobserved)
    }

    pub fn run_observed(&self, params: RunOptions<'_>, observer: &dyn RunObserver) -> Result<RunResult, RunFailure> {
        let lease = LocalLease::next(&self.store, &self.slug, &self.ticks)?;
        self.run_leased(params, observer, &lease)
    }

    pub fn run_leased(
        &self,
        params: RunOptions<'_>,
        observer: &dyn RunObserver,
        lease: &dyn Lease,
    ) -> Result<RunResult, RunFailure> {
        let job_id = format!("job-{}", self.jobs.fetch_add(1, Ordering::Relaxed));
        let resources = Resources { threads: 1, memory_bytes: 1 << 20, scratch: self.scratch.path().to_owned() };
        let request = RunRequest {
            pipeline: &pipeline(&self.tables),
            job_id: &job_id,
            prefix: params.prefix,
            changed: params.changed.unwrap_or(&ChangedKeys::All),
            clean: params.clean,
            dry_run: params.dry_run,
            settle: false,
            versions: self.versions,
            store: &self.store,
            expressions: &NoExpressions,
            catalog: None,
            clock: &*self.clock as &dyn Clock,
            lease,
            observer,
            resources: &resources,
        };
        let result = run(&request, &LineConverter);
        let left = std::fs::read_dir(self.scratch.path()).unwrap().count();
        assert_eq!(left, 0, "scratch is empty after a run");
        result
    }

    pub fn manifest(&self, table: &str) -> Option<Manifest> {
        Manifest::read(&*self.memory, &self.slug, table)
    }

    /// The texts of the warehouse, by key relative to the pipeline's prefix.
    pub fn warehouse(&self) -> BTreeMap<String, String> {
        let prefix = pipeline_prefix(&self.slug);
        let objects = self.memory.objects().into_iter().filter(|((bucket, _), _)| *bucket == Bucket::Warehouse);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        objects.map(|((_, key), o)| (key.strip_prefix(&prefix).unwrap().to_owned(), text(&o.bytes))).collect()
    }
}

/// A lease that ends after a number of checks.
pub struct ShortLease {
    pub slug: Slug,
    pub looks: AtomicI64,
    pub fence: u64,
}

impl Lease for ShortLease {
    fn slug(&self) -> &Slug {
        &self.slug
    }

    fn fence(&self) -> u64 {
        self.fence
    }

    fn remaining(&self) -> Result<Duration, LeaseLost> {
        match self.looks.fetch_sub(1, Ordering::Relaxed) {
            i64::MIN..=0 => Err(LeaseLost),
            1.. => Ok(Duration::from_secs(1)),
        }
    }
}
