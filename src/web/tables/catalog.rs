//! The tables that a pipeline has, by its config.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use globset::{GlobSet, GlobSetBuilder};

use crate::domain::layout::{REJECTED_ROWS_TABLE, config_key};
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::name::Slug;
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::validate::parse as parse_config;
use crate::domain::pipeline::{Mapping, Pipeline, Transform, compile_glob};
use crate::domain::plan::layout;
use crate::domain::problem::{Problem, ProblemKind};
use crate::http::{ApiError, ErrorCode};
use crate::web::Web;
use crate::web::sql::{ShapeColumn, TableShape};

/// The columns of `_rejected_rows`, with whether they may be null. The first stands in the paths of the files.
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
];

/// The tables of a pipeline, in the order of its config; `_rejected_rows` is the last.
#[derive(Debug, Clone)]
pub struct Catalog {
    pub tables: Vec<CatalogTable>,
    /// By table of the config: the globs of its sources.
    files: Vec<Vec<String>>,
    /// Of all of them, with the table that each glob is of; made when it is needed, `None` if they are too many.
    globs: OnceLock<Option<(GlobSet, Vec<usize>)>>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogTable {
    pub name: String,
    pub columns: Vec<CatalogColumn>,
    /// What its manifest says if the files are as the config has it now; `None`: they always are.
    pub layout: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogColumn {
    pub name: String,
    pub ty: DataType,
    pub nullable: bool,
    /// Its values stand in the files' paths.
    pub partition: bool,
}

impl Catalog {
    pub fn of(pipeline: &Pipeline) -> Self {
        let tables = pipeline.mappings.iter().map(of_mapping).chain([rejected_rows()]).collect();
        let files = pipeline.mappings.iter().map(|mapping| mapping.files.clone()).collect();
        Self { tables, files, globs: OnceLock::new() }
    }

    /// The tables that read a source, in their order; `None` if that can't be told. `key`: relative to the pipeline's
    /// prefix.
    pub fn reading(&self, key: &str) -> Option<Vec<String>> {
        let (globs, of) = self.globs.get_or_init(|| compile(&self.files)).as_ref()?;
        if key.is_empty() || key.ends_with('/') {
            return Some(Vec::new());
        }
        let tables: BTreeSet<usize> = globs.matches(key).into_iter().filter_map(|glob| of.get(glob).copied()).collect();
        Some(tables.into_iter().filter_map(|at| self.tables.get(at)).map(|table| table.name.clone()).collect())
    }

    /// Names compare as DuckDB compares them, without regard to case.
    pub fn table(&self, name: &str) -> Option<&CatalogTable> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }

    pub fn names(&self) -> Vec<&str> {
        self.tables.iter().map(|table| table.name.as_str()).collect()
    }

    pub fn shapes(&self) -> Vec<TableShape> {
        let column = |c: &CatalogColumn| ShapeColumn { name: c.name.clone(), ty: c.ty, nullable: c.nullable };
        let shape = |table: &CatalogTable| TableShape {
            name: table.name.clone(),
            columns: table.columns.iter().map(column).collect(),
        };
        self.tables.iter().map(shape).collect()
    }
}

impl CatalogTable {
    pub fn is_system(&self) -> bool {
        self.name == REJECTED_ROWS_TABLE
    }
}

/// The globs of all tables, with the table that each is of.
fn compile(files: &[Vec<String>]) -> Option<(GlobSet, Vec<usize>)> {
    let (mut set, mut of) = (GlobSetBuilder::new(), Vec::new());
    for (table, globs) in files.iter().enumerate() {
        for glob in globs {
            set.add(compile_glob(glob).ok()?);
            of.push(table);
        }
    }
    Some((set.build().ok()?, of))
}

/// The columns of the config in their order, where an identity partition stands under its own name; the other
/// partitions follow.
fn of_mapping(mapping: &Mapping) -> CatalogTable {
    let mut columns: Vec<CatalogColumn> = Vec::new();
    for (at, column) in mapping.columns.iter().enumerate() {
        let identity: Vec<_> = mapping
            .partition_by
            .iter()
            .filter(|field| field.transform == Transform::Identity && field.column == at)
            .collect();
        let one = |name: &str, partition| CatalogColumn {
            name: name.to_owned(),
            ty: column.ty,
            nullable: column.nullable,
            partition,
        };
        if identity.is_empty() {
            columns.push(one(column.name.as_str(), false));
        }
        columns.extend(identity.into_iter().map(|field| one(field.name.as_str(), true)));
    }
    for field in &mapping.partition_by {
        let ty = match field.transform {
            Transform::Identity => continue,
            Transform::Year => DataType::Int32,
            // `2013-01`, and `2013-01-01-05`: no type of ours reads these.
            Transform::Month | Transform::Hour => DataType::String,
            Transform::Day => DataType::Date,
        };
        let nullable = mapping.columns.get(field.column).is_none_or(|column| column.nullable);
        columns.push(CatalogColumn { name: field.name.as_str().to_owned(), ty, nullable, partition: true });
    }
    CatalogTable { name: mapping.table.as_str().to_owned(), columns, layout: Some(layout(mapping)) }
}

fn rejected_rows() -> CatalogTable {
    let columns = REJECTED_COLUMNS.iter().enumerate().map(|(at, (name, ty, nullable))| CatalogColumn {
        name: (*name).to_owned(),
        ty: *ty,
        nullable: *nullable,
        partition: at == 0,
    });
    CatalogTable { name: REJECTED_ROWS_TABLE.to_owned(), columns: columns.collect(), layout: None }
}

/// Largest config that is read, in bytes.
pub const CONFIG_READ_MAX: u64 = CONFIG_BYTES_MAX as u64;

/// A config's text as a catalog.
///
/// # Errors
/// `invalid_config` with every problem.
pub fn parse(bytes: &[u8]) -> Result<Catalog, ApiError> {
    let text = String::from_utf8_lossy(bytes);
    parse_config(&text).map(|pipeline| Catalog::of(&pipeline)).map_err(|problems| {
        let message = "the pipeline's config has problems, so its tables are not known; mend the config";
        ApiError::new(ErrorCode::InvalidConfig, message).with_problems(problems)
    })
}

/// A config that is larger than any may be.
///
/// # Errors
/// `invalid_config`, always.
pub fn larger(bytes_max: u64) -> Result<Catalog, ApiError> {
    let problem = Problem::new(ProblemKind::Limit, "", format!("expected at most {bytes_max} bytes, found more"));
    let message = "the pipeline's config is too large, so its tables are not known; mend the config";
    Err(ApiError::new(ErrorCode::InvalidConfig, message).with_problems([problem]))
}

impl Web {
    /// The tables of a pipeline.
    ///
    /// # Errors
    /// `pipeline_not_found`, `pipeline_config_not_found`, `invalid_config`, `s3_error`, `bucket_not_found`.
    pub fn catalog(&self, pipeline: &Slug) -> Result<Arc<Catalog>, ApiError> {
        if let Some(found) = self.catalogs.get(self, &config_key(pipeline))? {
            return Ok(found.value);
        }
        if self.exists(pipeline)? {
            let message = format!("the pipeline `{pipeline}` has no `pipeline.json`");
            return Err(ApiError::new(ErrorCode::PipelineConfigNotFound, message));
        }
        Err(ApiError::new(ErrorCode::PipelineNotFound, format!("there is no pipeline `{pipeline}`")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog(mapping: serde_json::Value) -> Catalog {
        parse(json!({ "version": 1, "mappings": [mapping] }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn partition_columns_have_their_own_names_and_types() {
        let catalog = catalog(json!({
            "table": "t", "files": ["*.csv"],
            "columns": [
                { "name": "at", "type": "timestamp" },
                { "name": "vendor", "type": "int16" },
                { "name": "x", "type": "string" }
            ],
            "partition_by": [
                { "column": "at", "transform": "year", "name": "y" }, { "column": "at", "transform": "day", "name": "d" },
                { "column": "vendor", "name": "by_vendor" }
            ]
        }));
        let told: Vec<String> = catalog.tables[0]
            .columns
            .iter()
            .map(|c| format!("{} {}{}", c.name, c.ty, if c.partition { " in the path" } else { "" }))
            .collect();
        let expected =
            ["at timestamp", "by_vendor int16 in the path", "x string", "y int32 in the path", "d date in the path"];
        assert_eq!(told, expected);
        assert_eq!(catalog.table("_REJECTED_rows").unwrap().columns.len(), 11);
        assert!(catalog.tables[1].is_system() && !catalog.tables[0].is_system());
    }

    #[test]
    fn a_config_with_problems_tells_them() {
        let error = parse(b"{}").unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidConfig);
    }
}
