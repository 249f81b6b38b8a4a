//! A sandbox of the real program over generated files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, RecordBatch};
use lakemill::sql::sandbox::{
    Child, ChildProgram, ParameterizedStatement, Relation, RelationColumn, ResultRows, RowLimits, Sandbox,
    SandboxError, SandboxOptions, SqlError, StatementParams, Value,
};
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;

pub const MIB: u64 = 1 << 20;
pub const LIMITS: RowLimits = RowLimits { rows: 1_000, bytes: 16 * MIB };

/// A deadline that no test should reach.
pub fn far_deadline() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

pub fn options(folder: &Path) -> SandboxOptions {
    SandboxOptions {
        program: ChildProgram::at(env!("CARGO_BIN_EXE_lakemill-sql")),
        folder: Some(folder.join("queries")),
        memory_bytes: 256 * MIB,
        threads: 2,
        warm: 1,
        children_max: 4,
        environment: Vec::new(),
    }
}

/// A sandbox in a temporary folder.
pub struct Site {
    pub sandbox: Sandbox,
    pub folder: TempDir,
}

impl Site {
    pub fn new() -> Self {
        Self::with(|options| options)
    }

    pub fn with(change: impl FnOnce(SandboxOptions) -> SandboxOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { sandbox: Sandbox::start(change(options(folder.path()))).unwrap(), folder }
    }

    pub fn child(&self) -> Child {
        self.sandbox.child(Duration::from_secs(30)).unwrap()
    }

    /// The rows of a statement that runs in a new child.
    pub fn rows(&self, sql: &str) -> Result<ResultRows, SandboxError> {
        self.child().rows(&ParameterizedStatement::plain(sql), LIMITS, far_deadline())
    }

    pub fn json(&self, sql: &str) -> serde_json::Value {
        json(self.rows(sql))
    }

    /// Checks that the next query succeeds.
    pub fn works(&self) {
        assert_eq!(self.json("SELECT 42"), serde_json::json!([[42]]));
    }
}

pub fn json(rows: Result<ResultRows, SandboxError>) -> serde_json::Value {
    serde_json::from_str(&rows.unwrap().rows).unwrap()
}

pub fn refusal<T: std::fmt::Debug>(outcome: Result<T, SandboxError>) -> SqlError {
    match outcome {
        Err(SandboxError::Sql(error)) => error,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

pub fn named(sql: &str, values: &[(&str, Value)]) -> ParameterizedStatement {
    let values: BTreeMap<String, Value> =
        values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    ParameterizedStatement { sql: sql.to_owned(), params: StatementParams::Named(values) }
}

pub fn positional(sql: &str, values: &[Value]) -> ParameterizedStatement {
    ParameterizedStatement { sql: sql.to_owned(), params: StatementParams::Positional(values.to_vec()) }
}

pub fn column(name: &str, ty: &str, partition: bool) -> RelationColumn {
    RelationColumn { name: name.to_owned(), ty: ty.to_owned(), nullable: true, partition }
}

/// Writes a file of the columns and returns its path.
pub fn parquet(path: &Path, columns: &[(&str, ArrayRef)]) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let batch = RecordBatch::try_from_iter(columns.iter().map(|(name, array)| (*name, Arc::clone(array)))).unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path.to_owned()
}

/// Defines a table of (key, file) in the child.
pub fn define(child: &mut Child, name: &str, columns: Vec<RelationColumn>, files: &[(&str, &Path)]) {
    let files = files.iter().map(|(key, path)| child.stage(key, path).unwrap()).collect();
    child.define(&[Relation { name: name.to_owned(), columns, files }], far_deadline()).unwrap();
}
