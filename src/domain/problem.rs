//! Problems of a document, each with the JSON Pointer of its node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::CONFIG_BYTES_MAX;

/// The kinds of problem that `/config/validate` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The text is not JSON.
    Syntax,
    UnsupportedVersion,
    MissingField,
    UnknownField,
    WrongType,
    InvalidValue,
    Duplicate,
    UnknownColumn,
    TypeMismatch,
    InvalidExpression,
    InvalidGlob,
    Limit,
    /// A warning: one of `parquet.readers` refuses a type or an option, or reads it differently.
    Reader,
}

/// One problem; `path` is a JSON Pointer (RFC 6901) to the offending node, `""` for the whole document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    pub kind: ProblemKind,
    pub message: String,
    pub path: String,
}

impl Problem {
    pub fn new(kind: ProblemKind, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), path: path.into() }
    }

    /// A config of more than [`CONFIG_BYTES_MAX`] bytes.
    pub fn config_too_large(bytes: u64) -> Self {
        Self::new(ProblemKind::Limit, "", format!("expected at most {CONFIG_BYTES_MAX} bytes, found {bytes}"))
    }
}
