//! What the service and a child say to each other, and what callers see of it.
//!
//! Must not: be stored or shown to people; both ends are always the same program.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::columns::Shape;
use crate::ports::expressions::{ExpressionProblem, ExpressionSet};

/// A statement of a person with the values of its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    pub sql: String,
    pub params: Params,
}

impl Statement {
    /// A statement without parameters.
    pub fn plain(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), params: Params::default() }
    }
}

/// Values for `$name`, or for `?` and `$1` in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Params {
    Named(BTreeMap<String, Value>),
    Positional(Vec<Value>),
}

impl Default for Params {
    fn default() -> Self {
        Self::Positional(Vec::new())
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond what `Int` holds.
    Unsigned(u64),
    /// As bits, since JSON has no NaN.
    Float(#[serde(with = "bits")] f64),
    Text(String),
    /// `2013-01-31`.
    Date(String),
    /// `2013-01-31T05:00:00`, with a fraction or without; no zone.
    Timestamp(String),
    /// Values of one kind and nulls; no lists.
    List(Vec<Value>),
}

mod bits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(value.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// A table as a statement sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    pub name: String,
    pub columns: Vec<RelationColumn>,
    /// As [`super::Child::place`] gave them. None: an empty table.
    pub files: Vec<String>,
}

/// A column of a [`Relation`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationColumn {
    pub name: String,
    /// A type of a config (`decimal(10,2)`) or of DuckDB.
    pub ty: String,
    pub nullable: bool,
    /// Whether its values stand in the files' paths instead of in the files.
    pub partition: bool,
}

/// What is known of a statement before it is bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// Tables that it names, in lower case, sorted. Not every one need be there.
    pub tables: Vec<String>,
    /// Names of its parameters without `$`, as first written; `1`, `2`, … where they go by position.
    pub parameters: Vec<String>,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultColumn {
    pub name: String,
    /// A config's name of the type where there is one, else DuckDB's in lower case.
    #[serde(rename = "type")]
    pub ty: String,
}

/// How much of a result is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowLimits {
    pub rows: u64,
    /// Of the rows' JSON text.
    pub bytes: u64,
}

/// What ended a result before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitReason {
    Rows,
    Bytes,
}

/// The form of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Csv,
    Parquet,
    Json,
}

/// Why a statement gave no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    pub kind: SqlErrorKind,
    pub message: String,
    pub position: Option<Position>,
}

/// What a [`SqlError`] comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SqlErrorKind {
    /// The text: it doesn't parse or bind, isn't allowed, or doesn't fit its parameters.
    InvalidSql,
    /// The deadline, or the last resort of processor time.
    Timeout,
    OutOfMemory,
    /// More text, files or result than fits.
    TooLarge,
    Cancelled,
    /// A value: a conversion, a division, a range.
    Failed,
    /// The process ended for a reason that can't be told.
    Ended,
}

/// A place in a statement's text, both counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl SqlError {
    pub(super) fn new(kind: SqlErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), position: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(SqlErrorKind::InvalidSql, message)
    }
}

/// What the service asks of a child, one at a time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Task {
    Analyse {
        texts: Vec<String>,
        known: Vec<String>,
    },
    Define {
        relations: Vec<Relation>,
    },
    Describe {
        statement: Statement,
    },
    Rows {
        statement: Statement,
        limits: RowLimits,
    },
    Download {
        statement: Statement,
        format: Format,
    },
    Call {
        name: String,
        payload: serde_json::Value,
    },
    /// Checks the expressions of `set`, without those whose numbers are in `skip`.
    Check {
        set: ExpressionSet,
        skip: Vec<usize>,
        cpu_seconds: u64,
    },
    /// Prepares a set for `Evaluate`.
    Bind {
        set: ExpressionSet,
        cpu_seconds: u64,
    },
    /// Evaluates the set that was bound; the columns that it uses follow as one frame.
    Evaluate {
        rows: usize,
        shapes: Vec<Shape>,
        cpu_seconds: u64,
    },
    Version,
}

/// What a child answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(super) enum Reply {
    /// The first word of a child.
    Ready {
        confinement: Confinement,
    },
    Analysed {
        results: Vec<Result<Analysis, SqlError>>,
    },
    Defined,
    Described {
        columns: Vec<ResultColumn>,
    },
    /// The rows follow as one frame of text.
    Rows {
        columns: Vec<ResultColumn>,
        row_count: u64,
        limit_reason: Option<LimitReason>,
    },
    /// The bytes follow in frames, then another reply: `Complete` or `Refused`.
    Started,
    Complete,
    Called {
        value: serde_json::Value,
    },
    /// The expression of this number is looked at next; from the number of expressions on, it is prepared, and then all
    /// are together. Other replies follow.
    Checking {
        number: usize,
    },
    Checked {
        problems: Vec<ExpressionProblem>,
    },
    /// The positions of the inputs that the set uses, ascending.
    Bound {
        inputs: Vec<usize>,
    },
    /// The columns and the errors follow as one frame. Predicates come after the computed columns.
    Evaluated {
        shapes: Vec<Shape>,
        errors: usize,
        messages: Vec<String>,
    },
    Version {
        duckdb: String,
        expressions: String,
    },
    Refused {
        error: SqlError,
    },
    /// A failure of the child's own.
    Failed {
        message: String,
    },
}

/// What confines a child besides its limits, its empty environment and DuckDB's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub landlock: Confined,
    /// The newest version of Landlock's rules that the kernel and this program know; `None` without Landlock.
    #[serde(default)]
    pub landlock_abi: Option<u8>,
    /// A filter leaves it the system calls that it needs, and no other.
    pub syscalls: bool,
    /// It has namespaces of its own: of users, of the network, and of shared memory.
    pub namespaces: bool,
}

impl Confinement {
    /// Whether Landlock and the filter of system calls hold it. Namespaces add little to these.
    pub fn is_full(self) -> bool {
        self.landlock == Confined::Fully && self.syscalls
    }
}

/// How far Landlock confines a child's files, sockets and signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confined {
    /// As far as is known to be possible.
    Fully,
    /// By an older kernel, which knows fewer rules.
    Partly,
    /// The kernel has no Landlock; limits, the empty environment and DuckDB's settings remain.
    Not,
}
