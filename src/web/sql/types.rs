//! Statements, results and table shapes, and their conversion to what child processes take.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::pipeline::types::DataType;
use crate::sql::sandbox::{self, StatementParams};
pub use crate::sql::sandbox::{LimitReason, ResultColumn, RowLimits, Value as Param};

/// One statement with its parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Statement {
    pub sql: String,
    /// By name, without `$`; bound, never part of the text.
    pub params: Vec<(String, Param)>,
}

/// The rows of a result, up to limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    pub columns: Vec<ResultColumn>,
    /// A JSON array of arrays, as text.
    pub rows: String,
    pub row_count: u64,
    pub limit_reason: Option<LimitReason>,
}

/// A table's name and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableShape {
    pub name: String,
    pub columns: Vec<ShapeColumn>,
}

/// A column of a [`TableShape`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeColumn {
    pub name: String,
    pub ty: DataType,
    pub nullable: bool,
}

/// A problem of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlProblem {
    pub message: String,
    /// Line and column, from 1, if known.
    pub position: Option<(u32, u32)>,
}

/// Converts a statement. Parameters named `1`, `2`, … without gaps are positional.
pub fn statement(statement: &Statement) -> sandbox::ParameterizedStatement {
    let mut by_position: BTreeMap<usize, Param> = BTreeMap::new();
    for (name, param) in &statement.params {
        if let Some(position) = name.parse::<usize>().ok().filter(|position| position.to_string() == *name) {
            by_position.insert(position, param.clone());
        }
    }
    let count = statement.params.len();
    let params = if by_position.len() == count && by_position.keys().copied().eq(1..=count) {
        StatementParams::Positional(by_position.into_values().collect())
    } else {
        StatementParams::Named(statement.params.iter().map(|(name, param)| (name.clone(), param.clone())).collect())
    };
    sandbox::ParameterizedStatement { sql: statement.sql.clone(), params }
}

/// Typical size of the fields around rows.
const HEAD_BYTES: usize = 1 << 10;

/// A response with rows and the fields `more`, written without parsing the rows.
pub fn rows_json(rows: &Rows, more: &Map<String, Value>) -> String {
    let mut text = String::with_capacity(rows.rows.len() + HEAD_BYTES);
    push_rows(&mut text, rows, more);
    text
}

/// Like [`rows_json`], appended to `text`.
pub fn push_rows(text: &mut String, rows: &Rows, more: &Map<String, Value>) {
    let mut head = Map::new();
    head.insert("columns".into(), serde_json::to_value(&rows.columns).unwrap_or_default());
    head.insert("row_count".into(), rows.row_count.into());
    head.insert("truncated".into(), rows.limit_reason.is_some().into());
    head.insert("limit_reason".into(), serde_json::to_value(rows.limit_reason).unwrap_or_default());
    head.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
    push_object_with_rows(text, head, &rows.rows);
}

/// Appends a JSON object of `head`, which isn't empty, and `rows`, which is JSON.
pub fn push_object_with_rows(text: &mut String, head: Map<String, Value>, rows: &str) {
    text.push_str(&Value::Object(head).to_string());
    text.pop();
    text.push_str(",\"rows\":");
    text.push_str(rows);
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_names_are_positions() {
        let params = |names: &[&str]| {
            let params = names.iter().map(|name| ((*name).to_owned(), Param::Text((*name).to_owned()))).collect();
            statement(&Statement { sql: String::new(), params }).params
        };
        let text = |text: &str| Param::Text(text.to_owned());
        assert_eq!(params(&["2", "1"]), StatementParams::Positional(vec![text("1"), text("2")]));
        assert_eq!(params(&[]), StatementParams::Positional(Vec::new()));
        for named in [&["1", "3"][..], &["1", "a"], &["01"]] {
            assert!(matches!(params(named), StatementParams::Named(_)), "{named:?}");
        }
    }
}
