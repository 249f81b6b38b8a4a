//! People's SQL in processes of its own: a pool of them started ahead, each used for one unit of work and ended.
//!
//! Invariant: no statement of a person is parsed, bound or run in this process, and nothing that a child sends is
//! believed unchecked. A child that is slow, dead, too large or out of its mind costs its own query and no other.
//!
//! Must not: know where a table's files come from; whoever asks puts them into the child's folder.
//!
//! [`pool`](self) keeps children ready, [`process`] speaks with one, [`Child`] is what callers hold; [`child`] is the
//! other end.

pub mod child;
mod client;
mod columns;
mod error;
pub mod expressions;
mod folders;
mod frame;
mod place;
mod pool;
mod process;
mod task;
mod zones;

use std::ffi::OsString;
use std::path::PathBuf;

pub use child::json_value;
pub use client::{Child, Download, Rows, Stopper};
pub use error::SandboxError;
pub use expressions::{ExpressionLimits, SandboxExpressions};
pub use folders::Staging;
pub use frame::ROWS_BYTES_MAX;
pub use place::placed;
pub use pool::Sandbox;
pub use task::{
    Analysis, Confined, Confinement, Format, LimitReason, Params, Position, Relation, RelationColumn, ResultColumn,
    RowLimits, SqlError, SqlErrorKind, Statement, Value,
};

/// How a sandbox is set up.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// The program whose `sql-child` is started.
    pub program: PathBuf,
    /// Where each child gets a folder. On the file system of the tables' files, so that these can be hard links. `None`:
    /// they read no files, and check and evaluate expressions.
    pub folder: Option<PathBuf>,
    /// What DuckDB may use in one child, in bytes. The child's address space ends not far above.
    pub memory_bytes: u64,
    /// Threads of one child, at least one.
    pub threads: usize,
    /// Children that are kept ready.
    pub warm: usize,
    /// Children that work at a time, at least one.
    pub children_max: usize,
    /// The children's whole environment; at most what the loader needs.
    pub environment: Vec<(OsString, OsString)>,
}
