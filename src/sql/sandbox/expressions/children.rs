//! The children of expressions: one sandbox for all runs, idle children for each.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::ports::expressions::ExpressionFailure;
use crate::sql::bounds::EVALUATOR_MEMORY_BYTES;
use crate::sql::sandbox::client::{CancelHandle, VERSION_BYTES_MAX};
use crate::sql::sandbox::error::{SandboxError, SqlErrorKind};
use crate::sql::sandbox::task::{Reply, Task};
use crate::sql::sandbox::{Child, Sandbox, SandboxOptions};

/// Largest message of a child, in bytes: problems, or texts of errors.
pub const REPLY_BYTES_MAX: usize = 4 << 20;
/// Timeout for asking a child's version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);
/// Idle children that a run keeps; a start costs as much processor time as some thousand rows.
pub const IDLE_MAX: usize = 2;

/// Limits of a child's tasks. Processor time is the limit, since it doesn't depend on the machine's load; the deadlines
/// only catch a child that hangs.
#[derive(Debug, Clone, Copy)]
pub struct ExpressionLimits {
    /// Base processor time of a check, in s; [`ExpressionLimits::expressions_per_cpu_second`] adds to it.
    pub check_cpu_seconds: u64,
    /// Expressions for each further second of a check.
    pub expressions_per_cpu_second: u64,
    pub check_wall: Duration,
    /// How long after its start a check still replaces ended children: who saves a config waits for it.
    pub replacement_wall: Duration,
    /// Processor time of one batch, in s.
    pub batch_cpu_seconds: u64,
    pub batch_wall: Duration,
    /// Processor time of a part of a batch that is retried to find the row that ended a child, in s.
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
            replacement_wall: Duration::from_secs(3),
            batch_cpu_seconds: 60,
            batch_wall: Duration::from_secs(300),
            part_cpu_seconds: 2,
            part_wall: Duration::from_secs(20),
            child_wait: Duration::from_secs(60),
        }
    }
}

/// The children of checks and evaluators.
pub struct Children {
    pub shared: Arc<SharedChildren>,
    /// `None` outside a run, where each child ends with its task.
    run: Option<Mutex<RunChildren>>,
}

/// The children of one run.
#[derive(Default)]
struct RunChildren {
    idle: Vec<Child>,
    /// Of all children that the run has had.
    handles: Vec<CancelHandle>,
    is_cancelled: bool,
}

/// Shared by all runs.
pub struct SharedChildren {
    options: SandboxOptions,
    pub limits: ExpressionLimits,
    /// Started on first use.
    sandbox: Mutex<Option<Arc<Sandbox>>>,
    version: OnceLock<Versions>,
}

pub struct Versions {
    pub duckdb: String,
    pub expressions: String,
}

impl Children {
    pub fn new(options: SandboxOptions, limits: ExpressionLimits) -> Self {
        let shared = SharedChildren { options, limits, sandbox: Mutex::default(), version: OnceLock::new() };
        Self { shared: Arc::new(shared), run: None }
    }

    /// A view of the same sandbox for one run, which keeps its idle children.
    pub fn run_view(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), run: Some(Mutex::default()) }
    }

    /// An idle child of the run, or a new one.
    pub fn take(&self) -> Result<Child, SandboxError> {
        let idle = || self.run.as_ref()?.lock().idle.pop();
        while let Some(child) = idle() {
            if !child.has_exited() {
                return Ok(child);
            }
        }
        self.child()
    }

    /// A new child.
    pub fn child(&self) -> Result<Child, SandboxError> {
        let child = self.shared.child()?;
        let Some(run) = &self.run else { return Ok(child) };
        let mut run = run.lock();
        if run.is_cancelled {
            return Err(SandboxError::sql(SqlErrorKind::Cancelled, "the run was stopped"));
        }
        run.handles.push(child.cancel_handle());
        Ok(child)
    }

    /// Ends all children of the run, and starts no more.
    pub fn cancel(&self) {
        let Some(run) = &self.run else { return };
        let handles = {
            let mut run = run.lock();
            run.is_cancelled = true;
            std::mem::take(&mut run.handles)
        };
        handles.iter().for_each(CancelHandle::cancel);
    }

    /// A child for a check. A run needs the version next, so its child is asked for it before it sees an expression.
    pub fn take_for_check(&self) -> Result<Child, SandboxError> {
        if self.run.is_none() || self.shared.version.get().is_some() {
            return self.take();
        }
        let mut child = self.child()?;
        self.shared.ask_versions(&mut child)?;
        Ok(child)
    }

    /// Keeps a child that completed its task for the run's next task, or ends it.
    pub fn return_child(&self, child: Child) {
        if let Some(run) = &self.run {
            let mut run = run.lock();
            if run.idle.len() < IDLE_MAX {
                run.idle.push(child);
            }
        }
    }
}

impl SharedChildren {
    pub fn borrowed(&self) -> u64 {
        self.sandbox.lock().as_ref().map_or(0, |sandbox| sandbox.borrowed())
    }

    pub fn versions(&self) -> Result<&Versions, ExpressionFailure> {
        if let Some(known) = self.version.get() {
            return Ok(known);
        }
        let asked = self.child().and_then(|mut child| self.ask_versions(&mut child));
        asked.map_err(|error| ExpressionFailure(format!("asking for DuckDB's version: {error}")))
    }

    /// Asks a child that hasn't received an expression yet.
    fn ask_versions(&self, child: &mut Child) -> Result<&Versions, SandboxError> {
        match child.ask(&Task::Version, Instant::now() + VERSION_TIMEOUT)? {
            Reply::Version { duckdb, expressions } if duckdb.len() + expressions.len() <= VERSION_BYTES_MAX => {
                Ok(self.version.get_or_init(|| Versions { duckdb, expressions }))
            }
            other => Err(child.unexpected_reply(&other, "versions")),
        }
    }

    pub fn child(&self) -> Result<Child, SandboxError> {
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

/// Why a task failed.
pub enum TaskFailure {
    /// DuckDB failed; the child survives.
    Engine(String),
    /// The child crashed, reached a limit, or broke the protocol.
    Ended { cause: String, at_limit: bool },
    /// No child could be borrowed.
    Unavailable(String),
}

impl TaskFailure {
    /// Classifies the error of a task that could use `cpu_seconds`.
    pub fn of(error: SandboxError, cpu_seconds: u64) -> Self {
        let mebibytes = EVALUATOR_MEMORY_BYTES >> 20;
        let ended = |cause: String, at_limit| Self::Ended { cause, at_limit };
        match error {
            SandboxError::Failed { message } => Self::Engine(message),
            error @ SandboxError::Protocol { .. } => ended(error.to_string(), false),
            error @ (SandboxError::Busy { .. }
            | SandboxError::Start { .. }
            | SandboxError::OtherBuild { .. }
            | SandboxError::Folder { .. }) => Self::Unavailable(error.to_string()),
            SandboxError::Sql(error) => match error.kind {
                SqlErrorKind::Timeout => {
                    ended(format!("it exceeded its limit of {cpu_seconds} s of processor time"), true)
                }
                SqlErrorKind::OutOfMemory => {
                    ended(format!("it exceeded its memory limit (DuckDB {mebibytes} MiB)"), false)
                }
                SqlErrorKind::Ended => ended(error.message, false),
                SqlErrorKind::InvalidSql | SqlErrorKind::TooLarge | SqlErrorKind::Failed => Self::Engine(error.message),
                SqlErrorKind::Cancelled => Self::Unavailable(error.message),
            },
        }
    }
}
