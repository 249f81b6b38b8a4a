//! People's SQL over a pipeline's tables, run in child processes: what the query routes, dashboards and the impact of a
//! config on them stand on.

mod child;
mod describe;
pub(in crate::web) mod failure;
mod run;
mod values;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::name::Slug;
use crate::domain::pipeline::types::DataType;
use crate::http::ApiError;
use crate::sql::sandbox::Sandbox;
use crate::web::Web;
use crate::web::cache::Cache;

pub(in crate::web) use child::{Opened, Wanted, may_list_tables, tables_or_error};
pub(in crate::web) use run::{TIMEOUTS_MAX, query_id};
pub(in crate::web) use values::statement;

/// What people's SQL is run with.
pub struct SqlParts {
    pub sandbox: Sandbox,
    /// As many as the sandbox lends at a time.
    pub children_max: usize,
    /// Of the warehouse's files; on the file system of the children's folders.
    pub cache: Arc<Cache>,
    /// Longest time of one statement.
    pub timeout: Duration,
}

/// Where in the folder of the cache the children have theirs, and the files lie.
pub fn folders(cache: &std::path::Path) -> (PathBuf, PathBuf) {
    (cache.join("queries"), cache.join("files"))
}

/// One statement with its parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Statement {
    pub sql: String,
    /// By name, without `$`; always bound, never put into the text.
    pub params: Vec<(String, Param)>,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Param {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Beyond what `Integer` holds.
    Unsigned(u64),
    Float(f64),
    Text(String),
    /// `2013-01-31`.
    Date(chrono::NaiveDate),
    List(Vec<Param>),
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultColumn {
    pub name: String,
    /// Our own name of the type where there is one (`int64`, `decimal(10,2)`), else DuckDB's.
    #[serde(rename = "type")]
    pub ty: String,
}

/// The rows of a result, as far as limits allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    pub columns: Vec<ResultColumn>,
    /// A JSON array of arrays, as text.
    pub rows: String,
    pub row_count: u64,
    pub limit_reason: Option<LimitReason>,
    /// The tables were being published while they were read, for longer than is waited.
    pub publishing: bool,
}

/// Why rows are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitReason {
    Rows,
    Bytes,
}

/// How much of a result is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLimits {
    pub rows: u64,
    /// Of the rows as JSON.
    pub bytes: u64,
}

/// A table as statements see it, without its rows.
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

/// Why a statement can't be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlProblem {
    pub message: String,
    /// Line and column, from 1, if the place is known.
    pub position: Option<(u32, u32)>,
}

impl Web {
    /// The shapes of the tables that a pipeline has.
    ///
    /// # Errors
    /// `pipeline_not_found`, `s3_error`, `bucket_not_found`.
    pub fn shapes(&self, pipeline: &Slug) -> Result<Vec<TableShape>, ApiError> {
        Ok(self.catalog(pipeline)?.shapes())
    }
}

/// Bytes that the fields around rows commonly take.
const HEAD_BYTES: usize = 1 << 10;

/// Extra fields of an answer around rows: `columns`, `rows` and what else is told of them, without reading the rows.
pub fn rows_json(rows: &Rows, more: &Map<String, Value>) -> String {
    let mut text = String::with_capacity(rows.rows.len() + HEAD_BYTES);
    push_rows(&mut text, rows, more);
    text
}

/// As [`rows_json`], at the end of `text`.
pub fn push_rows(text: &mut String, rows: &Rows, more: &Map<String, Value>) {
    let mut head = Map::new();
    head.insert("columns".into(), serde_json::to_value(&rows.columns).unwrap_or_default());
    head.insert("row_count".into(), rows.row_count.into());
    head.insert("truncated".into(), rows.limit_reason.is_some().into());
    head.insert("limit_reason".into(), serde_json::to_value(rows.limit_reason).unwrap_or_default());
    if rows.publishing {
        head.insert("publishing".into(), true.into());
    }
    head.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
    push_object_with_rows(text, head, &rows.rows);
}

/// A JSON object of `head`, which isn't empty, and `rows`, which is JSON already, at the end of `text`.
pub(in crate::web) fn push_object_with_rows(text: &mut String, head: Map<String, Value>, rows: &str) {
    text.push_str(&Value::Object(head).to_string());
    text.pop();
    text.push_str(",\"rows\":");
    text.push_str(rows);
    text.push('}');
}
