//! The tables of a pipeline and their columns.
//!
//! Invariant: the columns of a stored table are those of its files, even if the config has changed since.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use serde_json::{Map, Value};

use crate::domain::layout::REJECTED_ROWS_TABLE;
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{Mapping, Pipeline};
use crate::domain::problem::Problem;
use crate::domain::table_schema::{TableColumn, columns_of};
use crate::ports::store::ETag;
use crate::sql::sandbox::RelationColumn;
use crate::web::sql::{ShapeColumn, TableShape};

/// The columns of `_rejected_rows`: name, type, nullable. The first is a partition.
const REJECTED_COLUMNS: &[(&str, DataType, bool)] = &[
    ("table", DataType::String, false),
    ("source", DataType::String, false),
    ("source_sha256", DataType::String, false),
    ("line", DataType::UInt64, false),
    ("byte_offset", DataType::UInt64, false),
    ("column", DataType::String, true),
    ("value", DataType::String, true),
    ("reason", DataType::String, false),
    ("message", DataType::String, false),
    ("raw", DataType::String, false),
    ("job_id", DataType::String, false),
    ("raw_hex", DataType::String, true),
    ("byte_length", DataType::UInt64, true),
];

/// The tables of a pipeline: those of the config in its order, then those removed from it, then `_rejected_rows`.
#[derive(Debug)]
pub struct Catalog {
    pub tables: Vec<CatalogTable>,
    /// The tags of the tables' manifests. The tables are as new as these, or newer.
    pub tags: BTreeMap<String, ETag>,
    pub config: ConfigStatus,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogTable {
    pub name: String,
    pub columns: Vec<TableColumn>,
    pub state: TableState,
}

/// A table's files compared with the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TableState {
    /// They were written under the current config.
    Applied,
    /// They were written under an earlier config; the next run applies the current one.
    Changed,
    /// There are no files yet; the columns are those of the config.
    New,
    /// The config no longer has the table; a clean run deletes it.
    Removed,
    /// The config is invalid or missing.
    Unknown,
}

/// The config compared with the stored tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppliedState {
    /// The stored tables were written under it.
    Applied,
    /// At least one table was written under an earlier config, or is missing; the next run applies the current one.
    Changed,
    /// No table has been written yet.
    NotRun,
    /// It has problems; runs fail until they are fixed.
    Invalid,
    /// There is no `pipeline.json`.
    Missing,
}

/// The config's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfigStatus {
    pub state: AppliedState,
    /// Problems of an invalid config.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

impl ConfigStatus {
    /// The status unless it is `applied` or `not_run`, for responses with rows.
    pub fn unless_applied(&self) -> Option<&Self> {
        match self.state {
            AppliedState::Applied | AppliedState::NotRun => None,
            AppliedState::Changed | AppliedState::Invalid | AppliedState::Missing => Some(self),
        }
    }
}

impl Catalog {
    /// Finds a table, ignoring case as DuckDB does.
    pub fn table(&self, name: &str) -> Option<&CatalogTable> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }

    pub fn names(&self) -> Vec<&str> {
        self.tables.iter().map(|table| table.name.as_str()).collect()
    }

    pub fn shapes(&self) -> Vec<TableShape> {
        self.tables.iter().map(shape).collect()
    }
}

impl CatalogTable {
    pub fn is_system(&self) -> bool {
        self.name == REJECTED_ROWS_TABLE
    }
}

pub fn shape(table: &CatalogTable) -> TableShape {
    let column = |c: &TableColumn| ShapeColumn { name: c.name.clone(), ty: c.ty, nullable: c.nullable };
    TableShape { name: table.name.clone(), columns: table.columns.iter().map(column).collect() }
}

/// The shapes of a config's tables, `_rejected_rows` included.
pub fn shapes_of(pipeline: &Pipeline) -> Vec<TableShape> {
    let new = |mapping: &Mapping| CatalogTable {
        name: mapping.table.as_str().to_owned(),
        columns: columns_of(mapping),
        state: TableState::New,
    };
    pipeline.mappings.iter().map(new).chain([rejected_rows()]).map(|table| shape(&table)).collect()
}

pub fn rejected_rows() -> CatalogTable {
    let columns = REJECTED_COLUMNS.iter().enumerate().map(|(at, (name, ty, nullable))| TableColumn {
        name: (*name).to_owned(),
        ty: *ty,
        nullable: *nullable,
        partition: at == 0,
    });
    CatalogTable { name: REJECTED_ROWS_TABLE.to_owned(), columns: columns.collect(), state: TableState::Applied }
}

/// A table's columns as child processes take them.
pub fn relation_columns(columns: &[TableColumn]) -> Vec<RelationColumn> {
    let column = |column: &TableColumn| RelationColumn {
        name: column.name.clone(),
        ty: column.ty.to_string(),
        nullable: column.nullable,
        partition: column.partition,
    };
    columns.iter().map(column).collect()
}

/// Adds the config's status to a response with rows, if it is notable.
pub fn insert_config(head: &mut Map<String, Value>, config: &ConfigStatus) {
    if let Some(config) = config.unless_applied() {
        head.insert("config".into(), serde_json::to_value(config).unwrap_or_default());
    }
}
