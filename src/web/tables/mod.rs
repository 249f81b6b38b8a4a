//! `…/tables`: what a pipeline's tables are, and their rows.

pub(in crate::web) mod catalog;
mod filter;
mod page;
pub(in crate::web) mod rows;
pub(in crate::web) mod stats;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::web::Web;
use crate::web::access::{clipped, slug_param};
use crate::web::endpoint::Endpoint;
use crate::web::snapshot::manifest::Totals;

use crate::domain::table_schema::TableColumn;
use catalog::{Catalog, CatalogTable, ConfigStatus, TableState};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = vec![
        Endpoint::get("/api/p/{pipeline}/tables", "tables.list", "Lists the pipeline's tables", list)
            .answers::<Tables>(200, "the tables, in the order of the config; then those that it no longer has")
            .errors(&[
                ErrorCode::PipelineNotFound,
                ErrorCode::InvalidConfig,
                ErrorCode::S3Error,
                ErrorCode::BucketNotFound,
            ]),
    ];
    endpoints.extend(rows::endpoints());
    endpoints.extend(stats::endpoints());
    endpoints
}

/// The tables of a pipeline.
#[derive(Debug, Serialize, JsonSchema)]
struct Tables {
    tables: Vec<Table>,
    /// The tables are as their manifests say, whatever the config says by now.
    config: ConfigStatus,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Table {
    name: String,
    /// The columns of the stored files; of a table that has none, those of the config.
    schema: Vec<Column>,
    state: TableState,
    file_count: u64,
    rows: u64,
    /// Of the files.
    bytes: u64,
    /// It is no table of the config: `_rejected_rows`, where there are any.
    system: bool,
    /// A run is publishing it, or one died while it did.
    publishing: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    nullable: bool,
}

fn list(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let catalog = web.catalog(&pipeline)?;
    let (mut tables, mut rejects) = (Vec::new(), Totals::default());
    for (name, found) in web.all_manifests(&pipeline)? {
        rejects = rejects.and(found.value.as_ref().as_ref().map(|known| known.rejects).unwrap_or_default());
        tables.push((name, found.value));
    }
    let of = |table: &CatalogTable| {
        let known = tables.iter().find(|(name, _)| *name == table.name);
        let known = known.and_then(|(_, known)| known.as_ref().as_ref());
        let publishing = known.is_some_and(|known| known.manifest.publishing.is_some());
        let totals = known.map(|known| known.table).unwrap_or_default();
        told(table, if table.is_system() { rejects } else { totals }, publishing)
    };
    let shown = catalog.tables.iter().filter(|table| !table.is_system() || rejects.files > 0);
    Ok(Response::json(200, &Tables { tables: shown.map(of).collect(), config: catalog.config.clone() }))
}

fn told(table: &CatalogTable, totals: Totals, publishing: bool) -> Table {
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
        system: table.is_system(),
        publishing,
    }
}

/// The table that the path names, with its case.
///
/// # Errors
/// `table_not_found`.
pub(in crate::web) fn table_param<'a>(
    request: &Request,
    catalog: &'a Catalog,
    pipeline: &Slug,
) -> Result<&'a CatalogTable, ApiError> {
    let name = request.param("table");
    catalog.tables.iter().find(|table| table.name == name).ok_or_else(|| {
        let message = format!("the pipeline `{pipeline}` has no table `{}`", clipped(name));
        ApiError::new(ErrorCode::TableNotFound, message)
    })
}
