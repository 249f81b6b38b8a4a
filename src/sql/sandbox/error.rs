//! Why a child gave no answer.

use std::io;
use std::time::Duration;

use super::task::{SqlError, SqlErrorKind};

/// What a sandbox and its children fail with.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Every child was taken for the whole wait.
    #[error("all {children_max} processes for queries are busy; waited {} ms", waited.as_millis())]
    Busy { children_max: usize, waited: Duration },
    /// A child can't be started, or doesn't get ready.
    #[error("starting a process for queries: {reason}")]
    Start { reason: String },
    /// The folder of the children can't be made or used.
    #[error("{what} `{path}`: {source}")]
    Folder { what: &'static str, path: String, source: io::Error },
    /// The child said what no child says.
    #[error("a process for queries sent {found}, expected {expected}")]
    Protocol { found: String, expected: &'static str },
    /// The child failed at what is not a person's statement.
    #[error("a process for queries failed: {message}")]
    Failed { message: String },
    /// A statement's fault or fate.
    #[error(transparent)]
    Sql(#[from] SqlError),
}

impl SandboxError {
    pub(super) fn sql(kind: SqlErrorKind, message: impl Into<String>) -> Self {
        Self::Sql(SqlError::new(kind, message))
    }

    /// Why, if it is a statement's fault or fate.
    pub fn sql_kind(&self) -> Option<SqlErrorKind> {
        match self {
            Self::Sql(error) => Some(error.kind),
            Self::Busy { .. }
            | Self::Start { .. }
            | Self::Folder { .. }
            | Self::Protocol { .. }
            | Self::Failed { .. } => None,
        }
    }
}
