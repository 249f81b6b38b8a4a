//! The expressions of mappings, checked and evaluated in child processes, since the texts and the rows of others can end a
//! process or keep it busy for ever.
//!
//! Invariant: a child serves one config: it checks its expressions, or serves one run of it ([`Expressions::for_run`]), one
//! thread at a time; then it ends. Its answers are validated as a stranger's. A child that ends, or is ended at a limit,
//! costs the check or the run that it worked for and nothing else. What all runs share, the version, is asked of a child
//! that has seen no expression.
//!
//! Memory and processor time of a child are bounded by its own limits, its deadlines by this side.

mod checks;
mod evaluator;

use parking_lot::Mutex;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;

use super::client::VERSION_BYTES_MAX;
use super::task::{Reply, SqlErrorKind, Task};
use super::{Child, Sandbox, SandboxError, SandboxOptions};
use crate::ports::arrow_types::arrow_type;
use crate::ports::expressions::{
    Evaluated, EvaluationError, Evaluator, ExpressionFailure, ExpressionProblem, ExpressionSet, Expressions,
};
use evaluator::SandboxEvaluator;

/// Memory that DuckDB may use in one child, in bytes.
pub const EVALUATOR_MEMORY_BYTES: u64 = 256 << 20;
/// Largest message of a child, in bytes: problems, or the words of errors.
const REPLY_BYTES_MAX: usize = 4 << 20;
/// How long a child may take to tell its version.
const VERSION_WALL: Duration = Duration::from_secs(30);
/// Idle children that a run keeps for its next task; a start costs as much processor time as some thousand rows.
pub const IDLE_MAX: usize = 2;

/// What a child may use for one task. Processor time counts, since it doesn't depend on what else the machine does; the
/// deadlines are for a child that does nothing at all.
#[derive(Debug, Clone, Copy)]
pub struct ExpressionLimits {
    /// Processor time of a check, besides [`ExpressionLimits::expressions_per_cpu_second`], in s.
    pub check_cpu_seconds: u64,
    /// Expressions for which a check gets a second more.
    pub expressions_per_cpu_second: u64,
    pub check_wall: Duration,
    /// Processor time of one batch, in s.
    pub batch_cpu_seconds: u64,
    pub batch_wall: Duration,
    /// Processor time of a part of a batch that is tried again to find the row that ended a child, in s.
    pub part_cpu_seconds: u64,
    pub part_wall: Duration,
    /// How long a task waits for a child.
    pub child_wait: Duration,
}

impl Default for ExpressionLimits {
    fn default() -> Self {
        Self {
            check_cpu_seconds: 2,
            expressions_per_cpu_second: 100,
            check_wall: Duration::from_secs(30),
            batch_cpu_seconds: 60,
            batch_wall: Duration::from_secs(300),
            part_cpu_seconds: 2,
            part_wall: Duration::from_secs(20),
            child_wait: Duration::from_secs(60),
        }
    }
}

/// The expressions of mappings, in child processes.
pub struct SandboxExpressions {
    children: Arc<Children>,
}

/// The children of checks and evaluators.
struct Children {
    shared: Arc<Shared>,
    /// Idle ones of the run that this is for; `None`: it is for no run, and each child ends with its task.
    idle: Option<Mutex<Vec<Child>>>,
}

/// What all runs share.
struct Shared {
    options: SandboxOptions,
    limits: ExpressionLimits,
    /// Started at the first need.
    sandbox: Mutex<Option<Arc<Sandbox>>>,
    version: OnceLock<Versions>,
}

struct Versions {
    duckdb: String,
    expressions: String,
}

impl SandboxExpressions {
    /// `program` is this program, `children_max` at least the number of threads that evaluate at a time. Nothing is
    /// started before the first need.
    pub fn new(
        program: PathBuf,
        children_max: usize,
        environment: Vec<(OsString, OsString)>,
        limits: ExpressionLimits,
    ) -> Self {
        let options = SandboxOptions {
            program,
            folder: None,
            memory_bytes: EVALUATOR_MEMORY_BYTES,
            threads: 1,
            warm: 0,
            children_max,
            environment,
        };
        let shared = Shared { options, limits, sandbox: Mutex::default(), version: OnceLock::new() };
        Self { children: Arc::new(Children { shared: Arc::new(shared), idle: None }) }
    }

    /// See [`Expressions::for_run`].
    pub fn of_run(&self) -> Self {
        let shared = Arc::clone(&self.children.shared);
        Self { children: Arc::new(Children { shared, idle: Some(Mutex::default()) }) }
    }

    /// Children that are lent now, idle ones of runs among them.
    pub fn lent(&self) -> u64 {
        let sandbox = self.children.shared.sandbox.lock();
        sandbox.as_ref().map_or(0, |sandbox| sandbox.lent())
    }

    /// DuckDB's version, as `1.5.6`.
    ///
    /// # Errors
    /// No child tells it.
    pub fn duckdb_version(&self) -> Result<String, ExpressionFailure> {
        self.children.shared.versions().map(|versions| versions.duckdb.clone())
    }

    /// Takes a child, for who wants to see how it is confined.
    ///
    /// # Errors
    /// None can be started.
    pub fn child(&self) -> Result<Child, SandboxError> {
        self.children.shared.child()
    }
}

impl Children {
    /// An idle child of the run, or a new one.
    fn take(&self) -> Result<Child, SandboxError> {
        let idle = || self.idle.as_ref()?.lock().pop();
        while let Some(child) = idle() {
            if !child.is_gone() {
                return Ok(child);
            }
        }
        self.shared.child()
    }

    /// A child for a check. That of a run, which needs the version next, is asked for it before it sees an expression.
    fn take_for_check(&self) -> Result<Child, SandboxError> {
        if self.idle.is_none() || self.shared.version.get().is_some() {
            return self.take();
        }
        let mut child = self.shared.child()?;
        self.shared.ask_versions(&mut child)?;
        Ok(child)
    }

    /// Keeps a child that did its task for the run's next, or ends it.
    fn give_back(&self, child: Child) {
        if let Some(idle) = &self.idle {
            let mut idle = idle.lock();
            if idle.len() < IDLE_MAX {
                idle.push(child);
            }
        }
    }
}

impl Shared {
    fn versions(&self) -> Result<&Versions, ExpressionFailure> {
        if let Some(known) = self.version.get() {
            return Ok(known);
        }
        let asked = self.child().and_then(|mut child| self.ask_versions(&mut child));
        asked.map_err(|error| ExpressionFailure(format!("asking for DuckDB's version: {error}")))
    }

    /// Asks a child that has seen no expression.
    fn ask_versions(&self, child: &mut Child) -> Result<&Versions, SandboxError> {
        match child.ask(&Task::Version, Instant::now() + VERSION_WALL)? {
            Reply::Version { duckdb, expressions } if duckdb.len() + expressions.len() <= VERSION_BYTES_MAX => {
                Ok(self.version.get_or_init(|| Versions { duckdb, expressions }))
            }
            other => Err(child.odd(&other, "versions")),
        }
    }

    fn child(&self) -> Result<Child, SandboxError> {
        let sandbox = {
            let mut sandbox = self.sandbox.lock();
            match &*sandbox {
                Some(started) => Arc::clone(started),
                None => Arc::clone(sandbox.insert(Arc::new(Sandbox::start(self.options.clone())?))),
            }
        };
        sandbox.child(self.limits.child_wait)
    }
}

impl Expressions for SandboxExpressions {
    fn check(&self, set: &ExpressionSet) -> Result<Vec<ExpressionProblem>, ExpressionFailure> {
        let outcome = checks::check(&self.children, std::slice::from_ref(set)).pop();
        outcome.unwrap_or_else(|| Ok(Vec::new()))
    }

    fn check_all(&self, sets: &[ExpressionSet]) -> Vec<Result<Vec<ExpressionProblem>, ExpressionFailure>> {
        checks::check(&self.children, sets)
    }

    fn bind(&self, set: &ExpressionSet) -> Result<Box<dyn Evaluator>, EvaluationError> {
        if set.is_empty() {
            return Ok(Box::new(NoExpressions));
        }
        Ok(Box::new(SandboxEvaluator::bind(Arc::clone(&self.children), set.clone())?))
    }

    fn version(&self) -> Result<String, ExpressionFailure> {
        self.children.shared.versions().map(|versions| versions.expressions.clone())
    }

    fn for_run(&self) -> Option<Box<dyn Expressions>> {
        Some(Box::new(self.of_run()))
    }
}

/// Gives what a set without expressions gives; DuckDB isn't needed for it.
pub(super) struct NoExpressions;

impl Evaluator for NoExpressions {
    fn evaluate(&mut self, _: &RecordBatch) -> Result<Evaluated, EvaluationError> {
        Ok(Evaluated { computed: Vec::new(), predicates: Vec::new(), errors: Vec::new() })
    }
}

/// The columns of `batch` at the positions `inputs`, once the batch has exactly the columns of `set`.
pub(super) fn used(
    set: &ExpressionSet,
    inputs: &[usize],
    batch: &RecordBatch,
) -> Result<RecordBatch, ExpressionFailure> {
    if batch.num_columns() != set.inputs.len() {
        let (found, expected) = (batch.num_columns(), set.inputs.len());
        return Err(ExpressionFailure(format!("the batch has {found} columns, expected {expected}")));
    }
    for ((name, ty), column) in set.inputs.iter().zip(batch.columns()) {
        if column.data_type() != &arrow_type(*ty) {
            let found = column.data_type();
            return Err(ExpressionFailure(format!("column `{name}` is {found}, expected {ty}")));
        }
    }
    batch.project(inputs).map_err(|error| ExpressionFailure(format!("choosing columns: {error}")))
}

/// What became of a task.
enum Trouble {
    /// The child did its work, and DuckDB failed as such.
    Failure(String),
    /// The child ended, was ended at a limit, or answered nonsense.
    Ended { cause: String, at_limit: bool },
    /// There was no child.
    Unavailable(String),
}

impl Trouble {
    /// Words what became of a task that may use `cpu_seconds`.
    fn of(error: SandboxError, cpu_seconds: u64) -> Self {
        let mebibytes = EVALUATOR_MEMORY_BYTES >> 20;
        let ended = |cause: String, at_limit| Self::Ended { cause, at_limit };
        match error {
            SandboxError::Failed { message } => Self::Failure(message),
            error @ SandboxError::Protocol { .. } => ended(error.to_string(), false),
            error @ (SandboxError::Busy { .. } | SandboxError::Start { .. } | SandboxError::Folder { .. }) => {
                Self::Unavailable(error.to_string())
            }
            SandboxError::Sql(error) => match error.kind {
                SqlErrorKind::Timeout => {
                    ended(format!("it took more than the {cpu_seconds} s of processor time that it may take"), true)
                }
                SqlErrorKind::OutOfMemory => {
                    ended(format!("it took more memory than it may have (DuckDB {mebibytes} MiB)"), false)
                }
                SqlErrorKind::Ended => ended(error.message, false),
                SqlErrorKind::InvalidSql | SqlErrorKind::TooLarge | SqlErrorKind::Failed => {
                    Self::Failure(error.message)
                }
                SqlErrorKind::Cancelled => Self::Unavailable(error.message),
            },
        }
    }
}
