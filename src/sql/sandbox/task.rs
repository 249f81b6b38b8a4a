//! The protocol between the service and a child, and its types that callers see.
//!
//! Must not: be stored or shown to people; both ends are always of the same build, which [`super::greeting`] checks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::columns::ColumnShape;
use super::error::{SandboxError, SqlError};
use crate::ports::expressions::{ExpressionProblem, ExpressionSet};

/// A statement with the values of its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParameterizedStatement {
    pub sql: String,
    pub params: StatementParams,
}

impl ParameterizedStatement {
    /// A statement without parameters.
    pub fn plain(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), params: StatementParams::default() }
    }
}

/// Values for `$name`, or for `?` and `$1` in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementParams {
    Named(BTreeMap<String, Value>),
    Positional(Vec<Value>),
}

impl Default for StatementParams {
    fn default() -> Self {
        Self::Positional(Vec::new())
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Beyond the range of `Integer`.
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

/// A table of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    /// A table's name; for one of another pipeline, `<pipeline>.<table>`.
    pub name: String,
    pub columns: Vec<RelationColumn>,
    /// Names from [`super::Child::stage`]; none for an empty table.
    pub files: Vec<String>,
}

/// A column of a [`Relation`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationColumn {
    pub name: String,
    /// A type of a config (`decimal(10,2)`) or of DuckDB.
    pub ty: String,
    pub nullable: bool,
    /// Whether its values are in the files' paths instead of the files.
    pub partition: bool,
}

/// The names in a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// Tables, in lower case, sorted; they may not exist. With a dot: `<pipeline>.<table>`.
    pub tables: Vec<String>,
    /// Whether its result may differ between runs over the same tables.
    pub changes: bool,
    /// Parameters without `$`, as first written; `1`, `2`, … for positional ones.
    pub parameters: Vec<String>,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultColumn {
    pub name: String,
    /// Lakemill's name of the type (`int64`, `decimal(10,2)`), or DuckDB's in lower case if there is none.
    #[serde(rename = "type")]
    pub ty: String,
}

/// Limits of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowLimits {
    pub rows: u64,
    /// Maximum size of the rows' JSON text.
    pub bytes: u64,
}

/// Why a result is truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitReason {
    Rows,
    Bytes,
}

/// The form of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    Csv,
    Parquet,
    Json,
}

/// A request to a child, one at a time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Task {
    Analyse {
        texts: Vec<String>,
        known: Vec<String>,
    },
    Define {
        relations: Vec<Relation>,
    },
    Describe {
        statement: ParameterizedStatement,
    },
    Rows {
        statement: ParameterizedStatement,
        limits: RowLimits,
    },
    Download {
        statement: ParameterizedStatement,
        format: ExportFormat,
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
    /// Evaluates the bound set; its input columns follow as one frame.
    Evaluate {
        rows: usize,
        shapes: Vec<ColumnShape>,
        cpu_seconds: u64,
    },
    Version,
}

/// A child's reply.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// The first message of a child after its greeting.
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
    /// The bytes follow in frames, then `Complete`, `Refused` or `Failed`.
    Started,
    Complete,
    Called {
        value: serde_json::Value,
    },
    /// Progress of a check: with `n` expressions, `0..n` are checked, `n..2n` prepared, and at `2n` all are prepared
    /// together. Other replies follow.
    Checking {
        number: usize,
    },
    Checked {
        problems: Vec<ExpressionProblem>,
    },
    /// Indices of the inputs that the set uses, ascending.
    Bound {
        inputs: Vec<usize>,
    },
    /// The columns and the errors follow as one frame. Predicates come after the computed columns.
    Evaluated {
        shapes: Vec<ColumnShape>,
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
    /// The child failed.
    Failed {
        message: String,
    },
}

impl Reply {
    /// Turns a refusal or failure into an error.
    ///
    /// # Errors
    /// The reply is a refusal or failure.
    pub fn into_result(self) -> Result<Self, SandboxError> {
        match self {
            Self::Refused { error } => Err(error.into()),
            Self::Failed { message } => Err(SandboxError::Failed { message }),
            reply => Ok(reply),
        }
    }
}

/// The confinement of a child besides its limits, its empty environment and DuckDB's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub landlock: Confined,
    /// The newest version of Landlock's rules that the kernel and this program know; `None` without Landlock.
    #[serde(default)]
    pub landlock_abi: Option<u8>,
    /// Whether a filter refuses the system calls that it doesn't need.
    pub syscalls: bool,
    /// Whether it has its own namespaces of users, network and shared memory.
    pub namespaces: bool,
}

impl Confinement {
    /// Whether Landlock and the filter of system calls are in force. Namespaces add little to these.
    pub fn is_full(self) -> bool {
        self.landlock == Confined::Fully && self.syscalls
    }
}

/// How far Landlock confines a child's files, sockets and signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confined {
    /// With all rules that this program knows.
    Fully,
    /// With the fewer rules of an older kernel.
    Partly,
    /// The kernel has no Landlock; limits, the empty environment and DuckDB's settings remain.
    Not,
}
