//! Problems of a dashboard, each with its position in the text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::text::Position;

/// The kinds of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DashboardProblemKind {
    /// The text isn't YAML.
    Syntax,
    UnsupportedVersion,
    MissingField,
    UnknownField,
    WrongType,
    InvalidValue,
    Duplicate,
    /// More of something than the limit.
    Limit,
    /// The document has no such query.
    UnknownQuery,
    /// The document has no such parameter.
    UnknownParam,
    /// The query doesn't return such a column.
    UnknownColumn,
    /// A column's type doesn't fit its use.
    TypeMismatch,
    /// A query can't be bound to the pipeline's tables.
    InvalidSql,
    /// It is unused: a warning.
    Unused,
}

impl DashboardProblemKind {
    /// The name in an API response.
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

/// One problem of a dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DashboardProblem {
    pub kind: DashboardProblemKind,
    pub message: String,
    /// A JSON Pointer (RFC 6901) to the offending node, `""` for the whole document.
    pub path: String,
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
}

impl DashboardProblem {
    pub fn new(
        kind: DashboardProblemKind,
        path: impl Into<String>,
        message: impl Into<String>,
        position: Position,
    ) -> Self {
        Self { kind, message: message.into(), path: path.into(), line: position.line, column: position.column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_one_name_in_api_and_terminal() {
        for kind in [
            DashboardProblemKind::Syntax,
            DashboardProblemKind::UnknownColumn,
            DashboardProblemKind::InvalidSql,
            DashboardProblemKind::Unused,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
