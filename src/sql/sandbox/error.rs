//! Errors of sandboxes and statements.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::greeting::BUILD;
use crate::domain::text::Position;

/// The error of an operation on a sandbox or a child.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// All children were in use for the whole wait.
    #[error("all {children_max} SQL processes are busy; waited {} ms", waited.as_millis())]
    Busy { children_max: usize, waited: Duration },
    /// A child can't be started or doesn't become ready.
    #[error("starting an SQL process: {reason}")]
    Start { reason: String },
    /// `lakemill-sql` is of another build than this program, as when one of them was upgraded.
    #[error(
        "`{program}` is of build `{found}`, and this process of build `{BUILD}`; install `lakemill` and `lakemill-sql` of \
         one build, and restart the services"
    )]
    OtherBuild { program: String, found: String },
    /// The folder of the children can't be created or used.
    #[error("{what} `{path}`: {source}")]
    Folder { what: &'static str, path: String, source: io::Error },
    /// The child broke the protocol.
    #[error("an SQL process sent {found}, expected {expected}")]
    Protocol { found: String, expected: &'static str },
    /// The child failed, not a statement.
    #[error("an SQL process failed: {message}")]
    Failed { message: String },
    /// The statement failed or was ended.
    #[error(transparent)]
    Sql(#[from] SqlError),
}

impl SandboxError {
    pub(super) fn sql(kind: SqlErrorKind, message: impl Into<String>) -> Self {
        Self::Sql(SqlError::new(kind, message))
    }

    /// The kind, if the statement failed or was ended.
    pub fn sql_kind(&self) -> Option<SqlErrorKind> {
        match self {
            Self::Sql(error) => Some(error.kind),
            Self::Busy { .. }
            | Self::Start { .. }
            | Self::OtherBuild { .. }
            | Self::Folder { .. }
            | Self::Protocol { .. }
            | Self::Failed { .. } => None,
        }
    }
}

/// Why a statement gave no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    pub kind: SqlErrorKind,
    pub message: String,
    pub position: Option<Position>,
}

/// The cause of a [`SqlError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SqlErrorKind {
    /// The text doesn't parse or bind, isn't allowed, or doesn't match its parameters.
    InvalidSql,
    /// The deadline or the limit of processor time was exceeded.
    Timeout,
    OutOfMemory,
    /// A text, file or result exceeds a limit.
    TooLarge,
    Cancelled,
    /// A value can't be processed: a failed conversion, a division by zero, an overflow.
    Failed,
    /// The process exited for an unknown reason.
    Ended,
}

impl SqlError {
    pub fn new(kind: SqlErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), position: None }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(SqlErrorKind::InvalidSql, message)
    }
}
