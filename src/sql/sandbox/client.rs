//! What callers hold of a child: its folder, its operations, a way to stop it.
//!
//! Invariant: after an error that isn't a refusal the child is dead, and every later operation says so.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::de::IgnoredAny;

use super::error::SandboxError;
use super::frame::{Kind, MESSAGE_BYTES_MAX, PIECE_BYTES_MAX, ROWS_BYTES_MAX};
use super::place::placed;
use super::pool::Pool;
use super::process::{Handle, Process};
use super::task::{
    Analysis, Confinement, Format, LimitReason, Relation, Reply, ResultColumn, RowLimits, SqlError, SqlErrorKind,
    Statement, Task,
};

/// Longest text of a version that is believed, in bytes.
pub(super) const VERSION_BYTES_MAX: usize = 4_096;

/// A process for one unit of work; ended when dropped.
pub struct Child {
    /// `None` once it is broken.
    process: Option<Process>,
    pool: Arc<Pool>,
    confinement: Option<Confinement>,
}

/// Ends a child from another thread; its operation fails with [`SqlErrorKind::Cancelled`].
#[derive(Clone)]
pub struct Stopper {
    handle: Option<Arc<Handle>>,
}

impl Stopper {
    /// Ends the child. Nothing happens if it has ended.
    pub fn stop(&self) {
        if let Some(handle) = &self.handle {
            handle.cancel();
        }
    }
}

/// The beginning of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    pub columns: Vec<ResultColumn>,
    /// JSON: an array of `row_count` arrays of as many values as there are columns.
    pub rows: String,
    pub row_count: u64,
    pub truncated: bool,
    pub limit_reason: Option<LimitReason>,
}

impl Child {
    pub(super) fn new(process: Process, pool: Arc<Pool>) -> Self {
        Self { process: Some(process), pool, confinement: None }
    }

    /// Waits for its first word.
    pub(super) fn ready(&mut self, deadline: Instant) -> Result<Confinement, SandboxError> {
        match self.reply(deadline)? {
            Reply::Ready { confinement } => {
                self.confinement = Some(confinement);
                Ok(confinement)
            }
            other => Err(self.odd(&other, "its being ready")),
        }
    }

    pub(super) fn last_words(&mut self) -> Option<String> {
        self.process.as_mut().map(Process::last_words).filter(|words| !words.is_empty()).map(str::to_owned)
    }

    /// The process's id.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// The folder that it can read, and nothing else.
    pub fn folder(&self) -> Option<&Path> {
        self.process.as_ref().and_then(Process::folder)
    }

    /// What confines it, as it told.
    pub fn confinement(&self) -> Option<Confinement> {
        self.confinement
    }

    /// DuckDB's version, as `1.5.6`.
    ///
    /// # Errors
    /// As for [`Child::analyse`].
    pub fn duckdb_version(&mut self, deadline: Instant) -> Result<String, SandboxError> {
        match self.ask(&Task::Version, deadline)? {
            Reply::Version { duckdb, .. } if duckdb.len() <= VERSION_BYTES_MAX => Ok(duckdb),
            other => Err(self.odd(&other, "a version")),
        }
    }

    /// A way to end it from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper { handle: self.process.as_ref().map(Process::handle) }
    }

    /// Does something with its folder once the process is dead and before the folder is removed, in the thread that
    /// ends all children: it must be quick. Dropped undone if the process has ended, or the sandbox goes before.
    pub fn at_end(&mut self, at_end: impl FnOnce(&Path) + Send + 'static) {
        if let Some(process) = &mut self.process {
            process.at_end(Box::new(at_end));
        }
    }

    /// Puts the file `source` into its folder as a hard link. `key` is the file's key below its pipeline,
    /// `<table>/<col>=<value>/part-00000.parquet`; the answer is its name for [`Relation::files`].
    ///
    /// # Errors
    /// The key is none that a table has, or the link can't be made.
    pub fn place(&self, key: &str, source: &Path) -> Result<String, SandboxError> {
        let fail =
            |source| SandboxError::Folder { what: "putting into a query's folder", path: key.to_owned(), source };
        let name = placed(key).ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
        let folder = self.folder().ok_or_else(ended)?;
        let target: PathBuf = folder.join(&name);
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).map_err(fail)?;
        }
        std::fs::hard_link(source, &target).map_err(fail)?;
        Ok(name)
    }

    /// Which tables and parameters each text names, or why it isn't allowed. Runs and binds nothing. `known` are the
    /// tables there are; a name that isn't among them may be refused here or be told.
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
            other => Err(self.odd(&other, "an analysis of each text")),
        }
    }

    /// Makes tables of files in its folder.
    ///
    /// # Errors
    /// As for [`Child::analyse`]; a file can't be read as the declared columns.
    pub fn define(&mut self, relations: &[Relation], deadline: Instant) -> Result<(), SandboxError> {
        match self.ask(&Task::Define { relations: relations.to_vec() }, deadline)? {
            Reply::Defined => Ok(()),
            other => Err(self.odd(&other, "the tables' being defined")),
        }
    }

    /// The columns that a statement gives, by binding it; nothing of it runs.
    ///
    /// # Errors
    /// As for [`Child::analyse`]; the statement isn't allowed or doesn't bind.
    pub fn describe(&mut self, statement: &Statement, deadline: Instant) -> Result<Vec<ResultColumn>, SandboxError> {
        match self.ask(&Task::Describe { statement: statement.clone() }, deadline)? {
            Reply::Described { columns } => Ok(columns),
            other => Err(self.odd(&other, "columns")),
        }
    }

    /// Runs a statement and gives its first rows.
    ///
    /// # Errors
    /// As for [`Child::describe`]; the statement fails, or its process dies of it.
    pub fn rows(&mut self, statement: &Statement, limits: RowLimits, deadline: Instant) -> Result<Rows, SandboxError> {
        let limits = RowLimits { bytes: limits.bytes.min(ROWS_BYTES_MAX), ..limits };
        match self.ask(&Task::Rows { statement: statement.clone(), limits }, deadline)? {
            Reply::Rows { columns, row_count, limit_reason } if row_count <= limits.rows => {
                let bound = usize::try_from(limits.bytes).unwrap_or(usize::MAX);
                let process = self.process.as_mut().ok_or_else(ended)?;
                let (_, bytes) = process.receive(&[(Kind::Rows, bound)], deadline)?;
                let rows = checked(bytes, columns.len(), row_count)
                    .ok_or_else(|| process.nonsense("text that is not its rows".to_owned(), "rows as JSON"))?;
                Ok(Rows { columns, rows, row_count, truncated: limit_reason.is_some(), limit_reason })
            }
            other => Err(self.odd(&other, "rows")),
        }
    }

    /// Runs a statement and gives its whole result as a file's bytes. Whoever reads slowly holds it up, until
    /// `deadline`.
    ///
    /// # Errors
    /// As for [`Child::rows`] until the first byte is there; afterwards the reader fails.
    pub fn download(
        mut self,
        statement: &Statement,
        format: Format,
        deadline: Instant,
    ) -> Result<Download, SandboxError> {
        match self.ask(&Task::Download { statement: statement.clone(), format }, deadline)? {
            Reply::Started => Ok(Download { child: self, deadline, piece: Vec::new(), read: 0, state: State::Going }),
            other => Err(self.odd(&other, "a download's start")),
        }
    }

    /// Asks an operation that the program gave its children.
    ///
    /// # Errors
    /// As for [`Child::analyse`]; [`SandboxError::Failed`] with what the operation says.
    pub fn call(
        &mut self,
        name: &str,
        payload: &serde_json::Value,
        deadline: Instant,
    ) -> Result<serde_json::Value, SandboxError> {
        match self.ask(&Task::Call { name: name.to_owned(), payload: payload.clone() }, deadline)? {
            Reply::Called { value } => Ok(value),
            other => Err(self.odd(&other, "an operation's value")),
        }
    }

    /// Whether its process has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.process.as_ref().is_none_or(Process::is_gone)
    }

    pub(super) fn process(&mut self) -> Result<&mut Process, SandboxError> {
        self.process.as_mut().ok_or_else(ended)
    }

    /// Sends a task, whose answers are taken by [`Child::reply`].
    pub(super) fn send(&mut self, task: &Task, deadline: Instant) -> Result<(), SandboxError> {
        let bytes =
            serde_json::to_vec(task).map_err(|error| SandboxError::Failed { message: format!("asking: {error}") })?;
        self.process()?.send(Kind::Message, &bytes, deadline)
    }

    /// Asks and takes the answer; a refusal is an error, and leaves the child alive.
    pub(super) fn ask(&mut self, task: &Task, deadline: Instant) -> Result<Reply, SandboxError> {
        self.send(task, deadline)?;
        match self.reply(deadline)? {
            Reply::Refused { error } => Err(error.into()),
            Reply::Failed { message } => Err(SandboxError::Failed { message }),
            reply => Ok(reply),
        }
    }

    pub(super) fn reply(&mut self, deadline: Instant) -> Result<Reply, SandboxError> {
        self.reply_within(MESSAGE_BYTES_MAX, deadline)
    }

    /// Takes an answer of at most `bytes_max` bytes.
    pub(super) fn reply_within(&mut self, bytes_max: usize, deadline: Instant) -> Result<Reply, SandboxError> {
        let process = self.process.as_mut().ok_or_else(ended)?;
        let (_, bytes) = process.receive(&[(Kind::Message, bytes_max)], deadline)?;
        parsed(process, &bytes)
    }

    pub(super) fn odd(&mut self, found: &Reply, expected: &'static str) -> SandboxError {
        let found = format!("{found:?}").chars().take(80).collect();
        match &self.process {
            Some(process) => process.nonsense(found, expected),
            None => SandboxError::Protocol { found, expected },
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            self.pool.give_back(process);
        }
    }
}

pub(super) fn ended() -> SandboxError {
    SandboxError::sql(SqlErrorKind::Ended, "the query's process has ended before")
}

fn parsed(process: &Process, bytes: &[u8]) -> Result<Reply, SandboxError> {
    serde_json::from_slice(bytes).map_err(|error| process.nonsense(format!("a message ({error})"), "a reply"))
}

/// The text, if it is an array of `count` arrays of `width` values.
fn checked(bytes: Vec<u8>, width: usize, count: u64) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let rows: Vec<Vec<IgnoredAny>> = serde_json::from_str(&text).ok()?;
    (rows.len() as u64 == count && rows.iter().all(|row| row.len() == width)).then_some(text)
}

/// The bytes of a download. It ends cleanly only if the result did.
pub struct Download {
    child: Child,
    deadline: Instant,
    piece: Vec<u8>,
    read: usize,
    state: State,
}

enum State {
    Going,
    Complete,
    Broken,
}

impl Download {
    /// A way to end it from another thread.
    pub fn stopper(&self) -> Stopper {
        self.child.stopper()
    }

    fn next(&mut self) -> Result<bool, SandboxError> {
        let process = self.child.process.as_mut().ok_or_else(ended)?;
        let expected = [(Kind::Piece, PIECE_BYTES_MAX), (Kind::Message, MESSAGE_BYTES_MAX)];
        let (kind, bytes) = process.receive(&expected, self.deadline)?;
        if kind == Kind::Piece {
            (self.piece, self.read) = (bytes, 0);
            return Ok(true);
        }
        match parsed(process, &bytes)? {
            Reply::Complete => Ok(false),
            Reply::Refused { error } => Err(error.into()),
            Reply::Failed { message } => Err(SandboxError::Failed { message }),
            other => Err(self.child.odd(&other, "a download's end")),
        }
    }
}

impl Read for Download {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.len() {
            match self.state {
                State::Complete => return Ok(0),
                State::Broken => return Err(io::Error::other("the download broke off before")),
                State::Going => match self.next() {
                    Ok(true) => {}
                    Ok(false) => self.state = State::Complete,
                    Err(error) => {
                        self.state = State::Broken;
                        return Err(io::Error::other(error));
                    }
                },
            }
        }
        let count = into.len().min(self.piece.len() - self.read);
        into[..count].copy_from_slice(&self.piece[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}
