//! `…/tables`: a pipeline's tables, their rows and statistics.

pub mod catalog;
pub mod catalogs;
mod commits;
mod filter;
pub mod footers;
mod page;
mod rows;
mod service;
mod stats;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::table_log::root::Root;
use crate::domain::table_schema::TableColumn;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::web::access::slug_param;
use crate::web::endpoint::Endpoint;
use crate::web::snapshot::manifest::FileTotals;

use catalog::{CatalogTable, ConfigStatus, TableState};
use catalogs::DeclaredTable;
pub use service::{Tables, table_param};

pub(super) fn endpoints() -> Vec<Endpoint<Tables>> {
    let mut endpoints = vec![
        Endpoint::get("/api/p/{pipeline}/tables", "tables.list", "Lists the pipeline's tables", list)
            .response::<TableList>(200, "the tables in the config's order, then those removed from it")
            .errors(&[
                ErrorCode::PipelineNotFound,
                ErrorCode::InvalidConfig,
                ErrorCode::S3Error,
                ErrorCode::BucketNotFound,
            ]),
    ];
    endpoints.extend(rows::endpoints());
    endpoints.extend(commits::endpoints());
    endpoints.extend(stats::endpoints());
    endpoints
}

/// The tables of a pipeline.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tables")]
struct TableList {
    tables: Vec<Table>,
    /// The config's status; the tables are those of the manifests.
    config: ConfigStatus,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Table {
    name: String,
    /// The columns of the stored files; if there are none, those of the config.
    schema: Vec<Column>,
    state: TableState,
    file_count: u64,
    rows: u64,
    /// Size of the files.
    bytes: u64,
    /// Columns that CSVs of the table have and its config doesn't, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    extra_columns: Vec<ExtraColumn>,
    /// Whether it is a system table: `_rejected_rows`.
    system: bool,
}

/// A column that the config doesn't have.
#[derive(Debug, Serialize, JsonSchema)]
struct ExtraColumn {
    /// As spelled in the header.
    name: String,
    /// CSVs that have it.
    files: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    nullable: bool,
}

fn list(service: &Tables, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let catalog = service.catalogs.catalog(&pipeline)?;
    let declared = service.catalogs.declared(&pipeline)?;
    let (mut tables, mut rejects) = (Vec::new(), FileTotals::default());
    for (name, found) in service.manifests.all(&pipeline)? {
        rejects = rejects.and(found.value.as_ref().as_ref().map(FileTotals::for_rejects).unwrap_or_default());
        tables.push((name, found.value));
    }
    let of = |table: &CatalogTable| {
        let known = tables.iter().find(|(name, _)| *name == table.name);
        let known = known.and_then(|(_, known)| known.as_ref().as_ref());
        let totals = known.map(FileTotals::of).unwrap_or_default();
        let declared = declared.as_ref().and_then(|declared| declared.table(&table.name));
        summarize(table, if table.is_system() { rejects } else { totals }, known, declared)
    };
    let shown = catalog.tables.iter().filter(|table| !table.is_system() || rejects.files > 0);
    Ok(Response::json(200, &TableList { tables: shown.map(of).collect(), config: catalog.config.clone() }))
}

fn summarize(table: &CatalogTable, totals: FileTotals, root: Option<&Root>, declared: Option<&DeclaredTable>) -> Table {
    // Counted by the run under the config of that time; the current one may have added some of them.
    let is_extra = |name: &str| declared.is_none_or(|declared| !declared.reads_header(name));
    let extra = root.iter().flat_map(|root| &root.extra_columns).filter(|(name, _)| is_extra(name));
    let mut extra_columns: Vec<ExtraColumn> =
        extra.map(|(name, files)| ExtraColumn { name: name.clone(), files: *files }).collect();
    extra_columns.sort_by_key(|column| std::cmp::Reverse(column.files));
    let column = |column: &TableColumn| Column {
        name: column.name.clone(),
        ty: column.ty.to_string(),
        nullable: column.nullable,
    };
    Table {
        name: table.name.clone(),
        schema: table.columns.iter().map(column).collect(),
        state: table.state,
        file_count: totals.files,
        rows: totals.rows,
        bytes: totals.bytes,
        extra_columns,
        system: table.is_system(),
    }
}
