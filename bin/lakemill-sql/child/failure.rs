//! Why a child can't start, and why a task has no result.

use std::io;

use lakemill::sql::errors::EngineFailure;
use lakemill::sql::sandbox::error::{SqlError, SqlErrorKind};

/// Why a child can't continue; the parent reads it on stderr.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    #[error("confining the process: {what}: {reason}")]
    Confine { what: &'static str, reason: String },
    #[error("DuckDB doesn't use the given time-zone data: {0}")]
    Zones(String),
    #[error("opening DuckDB: {0}")]
    Open(String),
    #[error("reading or writing the pipes to the parent: {0}")]
    Pipe(#[from] io::Error),
}

/// Why a task has no result.
pub enum TaskError {
    /// The statement is invalid or failed.
    Sql(SqlError),
    /// A bug in this program.
    Internal(String),
    /// The parent closed its pipe.
    Pipe(io::Error),
}

impl TaskError {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Sql(SqlError::new(SqlErrorKind::InvalidSql, message))
    }
}

impl From<SqlError> for TaskError {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<io::Error> for TaskError {
    fn from(error: io::Error) -> Self {
        Self::Pipe(error)
    }
}

impl From<EngineFailure> for TaskError {
    fn from(failure: EngineFailure) -> Self {
        match failure {
            // The expressions exhausted the memory.
            EngineFailure::OutOfMemory => SqlError::new(SqlErrorKind::OutOfMemory, failure.to_string()).into(),
            EngineFailure::Other(message) => Self::Internal(message),
        }
    }
}
