//! A pipeline with its store and clock, and how it is run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use lakemill::domain::job::{Progress, RunResult};
use lakemill::domain::layout::pipeline_prefix;
use lakemill::domain::manifest::Manifest;
use lakemill::domain::name::{ColumnName, Slug, TableName};
use lakemill::domain::pipeline::types::DataType;
use lakemill::domain::pipeline::*;
use lakemill::engine::convert::Resources;
use lakemill::engine::run::{LocalLease, RunFailure, RunRequest, run};
use lakemill::ports::expressions::*;
use lakemill::ports::observer::{RunObserver, Stop};
use lakemill::ports::store::{Bucket, Lease, LeaseLost};
use lakemill::ports::{Clock, Expressions};

use super::convert::LineConverter;
use super::store::{MemoryStore, Style, TestClock};

/// The knobs of the config that a test turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableConfig {
    pub name: &'static str,
    pub globs: Vec<&'static str>,
    pub partitioned: bool,
    /// Changes a column's type, and so the layout.
    pub wide: bool,
    /// Changes the bytes alone.
    pub salt: u8,
    pub max_rejects: u64,
}

impl TableConfig {
    pub fn new(name: &'static str) -> Self {
        Self { name, globs: vec!["**/*.csv"], partitioned: true, wide: false, salt: 0, max_rejects: 1000 }
    }

    pub fn mapping(&self) -> Mapping {
        let column = |name: &str, ty| Column {
            name: ColumnName::parse(name).unwrap(),
            ty,
            source: ColumnSource::Header(vec![name.into()]),
            nullable: true,
            on_error: OnError::Reject,
            formats: vec![],
            timezone: None,
        };
        let partition =
            PartitionField { column: 0, transform: Transform::Identity, name: ColumnName::parse("p").unwrap() };
        Mapping {
            table: TableName::parse(self.name).unwrap(),
            files: self.globs.iter().map(|g| (*g).to_owned()).collect(),
            csv: Dialect {
                delimiter: vec![b','],
                quote: None,
                quotes: Quotes::Strict,
                escape: None,
                header: false,
                skip_rows: 0,
                skip_rows_after_header: 0,
                skip_footer_rows: 0,
                record_terminator: RecordTerminator::Auto,
                comment: None,
                encoding: encoding_rs::UTF_8,
                null_values: vec![],
                quoted_nulls: false,
                trim: false,
                decimal: b'.',
                thousands: None,
                true_values: vec![],
                false_values: vec![],
                ragged_rows: RaggedRows::Reject,
                record_bytes_max: 1 << 20,
            },
            columns: vec![
                column("p", DataType::String),
                column("v", if self.wide { DataType::Int64 } else { DataType::Int32 }),
            ],
            filter: None,
            checks: vec![],
            extra_columns: ExtraColumns::Ignore,
            missing_columns: MissingColumns::Fail,
            duplicate_columns: DuplicateColumns::Fail,
            rejects: RejectLimits { max_rows: self.max_rejects, max_ratio: 0.0 },
            partition_by: if self.partitioned { vec![partition] } else { vec![] },
            sort_by: vec![],
            parquet: ParquetOptions { compression: Compression::None, row_group_rows: 1024, file_bytes_max: 1 << 20 },
            canonical: format!("{self:?}"),
            layout: String::new(),
        }
    }
}

pub fn pipeline(tables: &[TableConfig]) -> Pipeline {
    Pipeline {
        title: String::new(),
        description: String::new(),
        auto_run: true,
        mappings: tables.iter().map(TableConfig::mapping).collect(),
    }
}

/// Expressions that no mapping here has.
struct NoExpressions;

impl Expressions for NoExpressions {
    fn check(&self, _: &ExpressionSet) -> Result<Vec<ExpressionProblem>, ExpressionFailure> {
        Ok(vec![])
    }

    fn bind(&self, _: &ExpressionSet) -> Result<Box<dyn Evaluator>, ExpressionFailure> {
        Err(ExpressionFailure("none here".into()))
    }

    fn version(&self) -> String {
        "none".into()
    }
}

pub struct Unobserved;

impl RunObserver for Unobserved {
    fn progress(&self, _: &Progress) {}

    fn check(&self) -> Result<(), Stop> {
        Ok(())
    }
}

/// A run, but for what the world gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ask<'a> {
    pub prefix: &'a str,
    pub clean: bool,
    pub dry_run: bool,
}

pub struct World {
    pub store: MemoryStore,
    pub clock: Arc<TestClock>,
    pub slug: Slug,
    pub tables: Vec<TableConfig>,
    scratch: Arc<tempfile::TempDir>,
    jobs: AtomicU64,
}

impl World {
    pub fn new(style: Style, tables: Vec<TableConfig>) -> Self {
        let clock = Arc::new(TestClock::default());
        let memory = Path::new("/dev/shm");
        let scratch = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self {
            store: MemoryStore::new(style, clock.clone()),
            clock,
            slug: Slug::parse("x").unwrap(),
            tables,
            scratch: Arc::new(scratch.unwrap()),
            jobs: AtomicU64::new(0),
        }
    }

    /// The same world with a copy of the store.
    pub fn fork(&self) -> Self {
        Self {
            store: self.store.fork(),
            clock: self.clock.clone(),
            slug: self.slug.clone(),
            tables: self.tables.clone(),
            scratch: self.scratch.clone(),
            jobs: AtomicU64::new(self.jobs.load(Ordering::Relaxed)),
        }
    }

    /// The same lake and config, and nothing published.
    pub fn fresh(&self) -> Self {
        let fresh = Self { store: MemoryStore::new(self.store.style, self.clock.clone()), ..self.fork() };
        for ((bucket, key), object) in self.store.objects() {
            if bucket == Bucket::Lake {
                fresh.store.seed(bucket, &key, &object.bytes);
            }
        }
        fresh
    }

    pub fn key(&self, relative: &str) -> String {
        format!("{}{relative}", pipeline_prefix(&self.slug))
    }

    pub fn put(&self, source: &str, text: &str) -> String {
        self.store.seed(Bucket::Lake, &self.key(source), text.as_bytes())
    }

    pub fn remove(&self, source: &str) {
        self.store.unseed(Bucket::Lake, &self.key(source));
    }

    pub fn run(&self, ask: Ask<'_>) -> Result<RunResult, RunFailure> {
        self.run_observed(ask, &Unobserved)
    }

    pub fn run_observed(&self, ask: Ask<'_>, observer: &dyn RunObserver) -> Result<RunResult, RunFailure> {
        let lease = LocalLease::next(&self.store, &self.slug)?;
        self.run_leased(ask, observer, &lease)
    }

    pub fn run_leased(
        &self,
        ask: Ask<'_>,
        observer: &dyn RunObserver,
        lease: &dyn Lease,
    ) -> Result<RunResult, RunFailure> {
        let job_id = format!("job-{}", self.jobs.fetch_add(1, Ordering::Relaxed));
        let resources = Resources { threads: 1, memory_bytes: 1 << 20, scratch: self.scratch.path().to_owned() };
        let request = RunRequest {
            pipeline: &pipeline(&self.tables),
            job_id: &job_id,
            prefix: ask.prefix,
            clean: ask.clean,
            dry_run: ask.dry_run,
            versions: "test",
            store: &self.store,
            expressions: &NoExpressions,
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
        let key = self.key(&format!("manifests/{table}.json"));
        let object = self.store.objects().remove(&(Bucket::Pipelines, key))?;
        Some(Manifest::parse(&object.bytes).expect("manifests are readable"))
    }

    /// The texts of the warehouse, by key relative to the pipeline's prefix.
    pub fn warehouse(&self) -> BTreeMap<String, String> {
        let prefix = pipeline_prefix(&self.slug);
        let objects = self.store.objects().into_iter().filter(|((bucket, _), _)| *bucket == Bucket::Warehouse);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        objects.map(|((_, key), o)| (key.strip_prefix(&prefix).unwrap().to_owned(), text(&o.bytes))).collect()
    }
}

/// A lease that is over after a number of looks at it.
pub struct ShortLease {
    pub slug: Slug,
    pub looks: AtomicI64,
}

impl Lease for ShortLease {
    fn slug(&self) -> &Slug {
        &self.slug
    }

    fn fence(&self) -> u64 {
        7
    }

    fn remaining(&self) -> Result<Duration, LeaseLost> {
        match self.looks.fetch_sub(1, Ordering::Relaxed) {
            i64::MIN..=0 => Err(LeaseLost),
            1.. => Ok(Duration::from_secs(1)),
        }
    }
}
