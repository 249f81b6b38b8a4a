//! People's SQL over a pipeline's tables, run in child processes: what the query routes, dashboards and the impact of a
//! config on them stand on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Web;
use crate::domain::name::Slug;
use crate::domain::pipeline::Pipeline;
use crate::domain::pipeline::types::DataType;
use crate::http::ApiError;

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

/// Turns a pipeline into the shapes of the tables that it would make, `_rejected_rows` included.
pub fn shapes_of(_pipeline: &Pipeline) -> Vec<TableShape> {
    Vec::new()
}

impl Web {
    /// The shapes of the tables that a pipeline has, by its config and manifests.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn shapes(&self, _pipeline: &Slug) -> Result<Vec<TableShape>, ApiError> {
        Err(ApiError::internal("the tables can't be read yet"))
    }

    /// Binds statements against empty tables of these shapes, without running any.
    ///
    /// # Errors
    /// `overloaded`, `internal`; a statement's own error is its result.
    pub fn describe(
        &self,
        _tables: &[TableShape],
        _statements: &[Statement],
    ) -> Result<Vec<Result<Vec<ResultColumn>, SqlProblem>>, ApiError> {
        Err(ApiError::internal("statements can't be bound yet"))
    }

    /// Runs statements over the pipeline's tables. One that fails, runs away or is killed doesn't take the others down.
    /// `query_id`: by which they can be cancelled, all at once.
    ///
    /// # Errors
    /// `overloaded`, `s3_error`, `bucket_not_found`; a statement's own error is its result.
    pub fn run(
        &self,
        _pipeline: &Slug,
        _statements: &[Statement],
        _limits: RowLimits,
        _query_id: Option<&str>,
    ) -> Result<Vec<Result<Rows, ApiError>>, ApiError> {
        Err(ApiError::internal("statements can't be run yet"))
    }
}

/// Extra fields of an answer around rows: `columns`, `rows` and what else is told of them, without reading the rows.
pub fn rows_json(rows: &Rows, more: &Map<String, Value>) -> String {
    let mut head = Map::new();
    head.insert("columns".into(), serde_json::to_value(&rows.columns).unwrap_or_default());
    head.insert("row_count".into(), rows.row_count.into());
    head.insert("truncated".into(), rows.limit_reason.is_some().into());
    head.insert("limit_reason".into(), serde_json::to_value(rows.limit_reason).unwrap_or_default());
    if rows.publishing {
        head.insert("publishing".into(), true.into());
    }
    head.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
    let mut text = Value::Object(head).to_string();
    text.pop();
    format!("{text},\"rows\":{}}}", rows.rows)
}
