//! What is said about a dashboard's text: each problem with its place in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DashboardProblemKind")]
pub enum ProblemKind {
    /// The text is no YAML.
    Syntax,
    UnsupportedVersion,
    MissingField,
    UnknownField,
    WrongType,
    InvalidValue,
    Duplicate,
    /// More of something than is allowed.
    Limit,
    /// A query that the document doesn't have is named.
    UnknownQuery,
    /// A parameter that the document doesn't have is named.
    UnknownParam,
    /// A column that a query doesn't return is named.
    UnknownColumn,
    /// A column is of no type that is of use where it is named.
    TypeMismatch,
    /// A query can't be bound to the pipeline's tables.
    InvalidSql,
    /// Nothing uses it: a warning.
    Unused,
}

impl ProblemKind {
    /// The name in an answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::UnsupportedVersion => "unsupported_version",
            Self::MissingField => "missing_field",
            Self::UnknownField => "unknown_field",
            Self::WrongType => "wrong_type",
            Self::InvalidValue => "invalid_value",
            Self::Duplicate => "duplicate",
            Self::Limit => "limit",
            Self::UnknownQuery => "unknown_query",
            Self::UnknownParam => "unknown_param",
            Self::UnknownColumn => "unknown_column",
            Self::TypeMismatch => "type_mismatch",
            Self::InvalidSql => "invalid_sql",
            Self::Unused => "unused",
        }
    }
}

/// A place in a text: line and column, in characters, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl Place {
    /// Where every text starts.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// One problem of a dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardProblem")]
pub struct Problem {
    pub kind: ProblemKind,
    pub message: String,
    /// A JSON Pointer (RFC 6901) to the offending node, `""` for the whole document.
    pub path: String,
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
}

impl Problem {
    pub fn new(kind: ProblemKind, path: impl Into<String>, message: impl Into<String>, place: Place) -> Self {
        Self { kind, message: message.into(), path: path.into(), line: place.line, column: place.column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_called_alike_in_answers_and_in_the_terminal() {
        for kind in [ProblemKind::Syntax, ProblemKind::UnknownColumn, ProblemKind::InvalidSql, ProblemKind::Unused] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
