//! Runs users' SQL in child processes, started ahead, each used for one unit of work.
//!
//! Invariant: no user's statement is parsed, bound or run in this process, and everything that a child sends is
//! validated. A slow, dead, oversized or compromised child affects only its own query.
//!
//! Must not: know where a table's files come from; callers put them into the child's folder.
//!
//! [`supervisor`] starts and reaps children, [`pool`] lends them, [`Child`] is a borrowed one, [`process`] its pipes. The
//! other end is the program `lakemill-sql`, which [`ChildProgram`] finds. Both ends share the protocol: [`greeting`],
//! [`task`], [`frame`], [`columns`].

mod client;
pub mod columns;
mod download;
pub mod error;
pub mod expressions;
mod folders;
pub mod frame;
pub mod greeting;
pub mod json;
pub mod landlock;
mod pool;
mod process;
mod program;
pub mod staged_path;
mod supervisor;
pub mod task;
pub mod zones;

use std::ffi::OsString;
use std::path::PathBuf;

pub use client::{CancelHandle, Child, ResultRows};
pub use download::Download;
pub use error::{SandboxError, SqlError, SqlErrorKind};
pub use expressions::{ExpressionLimits, SandboxExpressions};
pub use folders::StagingFolder;
pub use frame::ROWS_BYTES_MAX;
pub use json::json_value;
pub use pool::Sandbox;
pub use program::ChildProgram;
pub use staged_path::staged_path;
pub use task::{
    Analysis, Confined, Confinement, ExportFormat, LimitReason, ParameterizedStatement, Relation, RelationColumn,
    ResultColumn, RowLimits, StatementParams, Value,
};

pub use crate::domain::text::Position;

/// An operation that `lakemill-sql` adds to its own: maps its payload to its value, or an error text.
pub type OpFn = fn(&serde_json::Value) -> Result<serde_json::Value, String>;

/// The configuration of a sandbox.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    pub program: ChildProgram,
    /// Parent of the children's folders, on the file system of the tables' files, which are hard-linked. `None` for children
    /// that read no files and evaluate expressions.
    pub folder: Option<PathBuf>,
    /// Memory limit of DuckDB in one child, in bytes; the address space is limited slightly above.
    pub memory_bytes: u64,
    /// Threads of one child, at least one.
    pub threads: usize,
    /// Children started ahead.
    pub warm: usize,
    /// Children in use at a time, at least one.
    pub children_max: usize,
    /// The children's whole environment: what the loader needs.
    pub environment: Vec<(OsString, OsString)>,
}
