//! A borrowed child: its folder, its operations, its cancellation.
//!
//! Invariant: after an error other than a refusal the child is dead, and later operations fail.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::de::IgnoredAny;

use super::error::{SandboxError, SqlError, SqlErrorKind};
use super::frame::{FrameKind, MESSAGE_BYTES_MAX, ROWS_BYTES_MAX};
use super::process::{KillHandle, Process};
use super::staged_path::staged_path;
use super::supervisor::Supervisor;
use super::task::{
    Analysis, Confinement, LimitReason, ParameterizedStatement, Relation, Reply, ResultColumn, RowLimits, Task,
};

/// Longest text of a version, in bytes.
pub(super) const VERSION_BYTES_MAX: usize = 4_096;

/// A process for one unit of work; ended when dropped.
pub struct Child {
    /// `None` only during `drop`.
    process: Option<Process>,
    supervisor: Arc<Supervisor>,
    confinement: Option<Confinement>,
}

/// Cancels a child's work from another thread; its operation fails with [`SqlErrorKind::Cancelled`].
#[derive(Clone)]
pub struct CancelHandle(Option<Arc<KillHandle>>);

impl CancelHandle {
    /// Kills the child, unless it has exited.
    pub fn cancel(&self) {
        if let Some(handle) = &self.0 {
            handle.cancel();
        }
    }
}

/// The first rows of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRows {
    pub columns: Vec<ResultColumn>,
    /// JSON: an array of `row_count` arrays of as many values as there are columns.
    pub rows: String,
    pub row_count: u64,
    pub truncated: bool,
    pub limit_reason: Option<LimitReason>,
}

impl Child {
    pub(super) fn new(process: Process, supervisor: Arc<Supervisor>) -> Self {
        Self { process: Some(process), supervisor, confinement: None }
    }

    /// Waits until it is ready.
    pub(super) fn ready(&mut self, deadline: Instant) -> Result<Confinement, SandboxError> {
        self.process()?.receive_greeting(deadline)?;
        match self.reply(deadline)? {
            Reply::Ready { confinement } => {
                self.confinement = Some(confinement);
                Ok(confinement)
            }
            other => Err(self.unexpected_reply(&other, "`ready`")),
        }
    }

    /// The end of its stderr, if it wrote any.
    pub(super) fn stderr(&mut self) -> Option<String> {
        self.process.as_mut().map(Process::stderr_tail).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// The process's id.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// The only folder that it can read.
    pub fn folder(&self) -> Option<&Path> {
        self.process.as_ref().and_then(Process::folder)
    }

    /// Its confinement, as it reported it.
    pub fn confinement(&self) -> Option<Confinement> {
        self.confinement
    }

    /// DuckDB's version, as `1.5.6`.
    ///
    /// # Errors
    /// Same as for [`Child::analyse`].
    pub fn duckdb_version(&mut self, deadline: Instant) -> Result<String, SandboxError> {
        match self.ask(&Task::Version, deadline)? {
            Reply::Version { duckdb, .. } if duckdb.len() <= VERSION_BYTES_MAX => Ok(duckdb),
            other => Err(self.unexpected_reply(&other, "a version")),
        }
    }

    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle(self.process.as_ref().map(Process::handle))
    }

    /// Calls `hook` with its folder after the process exited and before the folder is removed. The hook runs in the thread
    /// that reaps all children, so it must be quick. It isn't called if the sandbox is dropped first.
    pub fn on_exit(&mut self, hook: impl FnOnce(&Path) + Send + 'static) {
        if let Some(process) = &mut self.process {
            process.on_exit(Box::new(hook));
        }
    }

    /// Hard-links the file `source` into its folder. `key` is the file's key below its pipeline,
    /// `<table>/<col>=<value>/part-00000.parquet`. Returns its name for [`Relation::files`].
    ///
    /// # Errors
    /// The key isn't that of a table's file; the link can't be created.
    pub fn stage(&self, key: &str, source: &Path) -> Result<String, SandboxError> {
        let fail =
            |source| SandboxError::Folder { what: "linking into a query's folder", path: key.to_owned(), source };
        let name = staged_path(key).ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
        let folder = self.folder().ok_or_else(ended)?;
        let target: PathBuf = folder.join(&name);
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).map_err(fail)?;
        }
        std::fs::hard_link(source, &target).map_err(fail)?;
        Ok(name)
    }

    /// The tables and parameters that each text names, or why it isn't allowed. Runs and binds nothing. `known` are the
    /// names of all tables; another name is refused or returned.
    ///
    /// # Errors
    /// The child fails, dies, or takes longer than `deadline`.
    pub fn analyse(
        &mut self,
        texts: &[&str],
        known: &[&str],
        deadline: Instant,
    ) -> Result<Vec<Result<Analysis, SqlError>>, SandboxError> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let task = Task::Analyse { texts: owned(texts), known: owned(known) };
        match self.ask(&task, deadline)? {
            Reply::Analysed { results } if results.len() == texts.len() => Ok(results),
            other => Err(self.unexpected_reply(&other, "an analysis of each text")),
        }
    }

    /// Defines tables over files in its folder.
    ///
    /// # Errors
    /// Same as for [`Child::analyse`]; a file can't be read as the declared columns.
    pub fn define(&mut self, relations: &[Relation], deadline: Instant) -> Result<(), SandboxError> {
        match self.ask(&Task::Define { relations: relations.to_vec() }, deadline)? {
            Reply::Defined => Ok(()),
            other => Err(self.unexpected_reply(&other, "`defined`")),
        }
    }

    /// The columns of a statement's result. Binds the statement without running it.
    ///
    /// # Errors
    /// Same as for [`Child::analyse`]; the statement isn't allowed or doesn't bind.
    pub fn describe(
        &mut self,
        statement: &ParameterizedStatement,
        deadline: Instant,
    ) -> Result<Vec<ResultColumn>, SandboxError> {
        match self.ask(&Task::Describe { statement: statement.clone() }, deadline)? {
            Reply::Described { columns } => Ok(columns),
            other => Err(self.unexpected_reply(&other, "columns")),
        }
    }

    /// Runs a statement and returns its first rows.
    ///
    /// # Errors
    /// Same as for [`Child::describe`]; the statement fails, or it crashes the process.
    pub fn rows(
        &mut self,
        statement: &ParameterizedStatement,
        limits: RowLimits,
        deadline: Instant,
    ) -> Result<ResultRows, SandboxError> {
        let limits = RowLimits { bytes: limits.bytes.min(ROWS_BYTES_MAX), ..limits };
        match self.ask(&Task::Rows { statement: statement.clone(), limits }, deadline)? {
            Reply::Rows { columns, row_count, limit_reason } if row_count <= limits.rows => {
                let bound = usize::try_from(limits.bytes).unwrap_or(usize::MAX);
                let process = self.process()?;
                let (_, bytes) = process.receive(&[(FrameKind::Rows, bound)], deadline)?;
                let rows = check_rows(bytes, columns.len(), row_count)
                    .ok_or_else(|| process.protocol_error("text that is not its rows".to_owned(), "rows as JSON"))?;
                Ok(ResultRows { columns, rows, row_count, truncated: limit_reason.is_some(), limit_reason })
            }
            other => Err(self.unexpected_reply(&other, "rows")),
        }
    }

    /// Runs an operation that the program added.
    ///
    /// # Errors
    /// Same as for [`Child::analyse`]; [`SandboxError::Failed`] with the operation's message.
    pub fn call(
        &mut self,
        name: &str,
        payload: &serde_json::Value,
        deadline: Instant,
    ) -> Result<serde_json::Value, SandboxError> {
        match self.ask(&Task::Call { name: name.to_owned(), payload: payload.clone() }, deadline)? {
            Reply::Called { value } => Ok(value),
            other => Err(self.unexpected_reply(&other, "an operation's value")),
        }
    }

    pub(super) fn has_exited(&self) -> bool {
        self.process.as_ref().is_none_or(Process::has_exited)
    }

    pub(super) fn process(&mut self) -> Result<&mut Process, SandboxError> {
        self.process.as_mut().ok_or_else(ended)
    }

    /// Sends a task; [`Child::reply`] receives its replies.
    pub(super) fn send(&mut self, task: &Task, deadline: Instant) -> Result<(), SandboxError> {
        let bytes = serde_json::to_vec(task)
            .map_err(|error| SandboxError::Failed { message: format!("encoding a task: {error}") })?;
        self.process()?.send(FrameKind::Message, &bytes, deadline)
    }

    /// Sends a task and receives its reply. A refusal is an error that leaves the child alive.
    pub(super) fn ask(&mut self, task: &Task, deadline: Instant) -> Result<Reply, SandboxError> {
        self.send(task, deadline)?;
        self.reply(deadline)?.into_result()
    }

    pub(super) fn reply(&mut self, deadline: Instant) -> Result<Reply, SandboxError> {
        self.reply_within(MESSAGE_BYTES_MAX, deadline)
    }

    /// Receives a reply of at most `bytes_max` bytes.
    pub(super) fn reply_within(&mut self, bytes_max: usize, deadline: Instant) -> Result<Reply, SandboxError> {
        let process = self.process()?;
        let (_, bytes) = process.receive(&[(FrameKind::Message, bytes_max)], deadline)?;
        parse_reply(process, &bytes)
    }

    pub(super) fn unexpected_reply(&mut self, found: &Reply, expected: &'static str) -> SandboxError {
        let found = format!("{found:?}").chars().take(80).collect();
        match &self.process {
            Some(process) => process.protocol_error(found, expected),
            None => SandboxError::Protocol { found, expected },
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            self.supervisor.reap_process(process);
        }
    }
}

fn ended() -> SandboxError {
    SandboxError::sql(SqlErrorKind::Ended, "the query's process has already ended")
}

pub(super) fn parse_reply(process: &Process, bytes: &[u8]) -> Result<Reply, SandboxError> {
    serde_json::from_slice(bytes).map_err(|error| process.protocol_error(format!("a message ({error})"), "a reply"))
}

/// The text, if it is a JSON array of `count` arrays of `width` values.
fn check_rows(bytes: Vec<u8>, width: usize, count: u64) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let rows: Vec<Vec<IgnoredAny>> = serde_json::from_str(&text).ok()?;
    (rows.len() as u64 == count && rows.iter().all(|row| row.len() == width)).then_some(text)
}
