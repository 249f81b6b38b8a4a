//! `…/tables/{table}/rows`: a page of a table.

use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::catalog::{ConfigStatus, insert_config};
use super::page::Page;
use super::service::{Tables, table_param};
use crate::domain::limits::{PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, QUERY_ROWS_BYTES_MAX};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::sql::identifier;
use crate::sql::sandbox::{RowLimits, SandboxError, SqlErrorKind};
use crate::web::access::{AS_OF, as_of_query, number_query, optional_query, slug_param};
use crate::web::endpoint::Endpoint;
use crate::web::sql::failure::{SQL_ERRORS, from_sandbox};
use crate::web::sql::{
    Cancellation, ResultColumn, Statement, TIMEOUTS_MAX, TablesRequest, push_object_with_rows, statement,
};

/// Maximum number of filters of one page.
const FILTERS_MAX: usize = 32;
/// Largest offset: the largest exact integer in JSON.
const OFFSET_MAX: u64 = 1 << 53;

const FILTER: &str = "`column:operator:value`; all filters must match. Operators: `eq`, `ne`, `lt`, `le`, `gt`, `ge`, \
                      `contains`, `starts_with`, `in` and `not_in` (values between commas, or a JSON array of texts), \
                      `outside` (two values: before the first or after the second), and `is_null` and `is_not_null`, \
                      which take no value. Nulls pass `ne` and `not_in`, and none of the other comparisons.";

pub(super) fn endpoints() -> Vec<Endpoint<Tables>> {
    let path = "/api/p/{pipeline}/tables/{table}/rows";
    vec![
        Endpoint::get(path, "tables.rows", "Shows a page of a table's rows", rows)
            .query::<u64>("limit", "page size: at most 1000, 100 by default")
            .query::<u64>("offset", "rows to skip")
            .query::<String>("sort", "columns, separated by commas; with a leading `-`, descending")
            .query::<String>("filter", FILTER)
            .repeated()
            .query::<String>("as_of", AS_OF)
            .response::<RowsAnswer>(200, "the page")
            .errors(SQL_ERRORS)
            .errors(&[ErrorCode::TableNotFound, ErrorCode::VersionNotFound]),
    ]
}

/// A page of a table.
#[derive(Debug, Serialize, JsonSchema)]
struct RowsAnswer {
    columns: Vec<ResultColumn>,
    /// As many values as there are columns, for each row.
    rows: Vec<Vec<Value>>,
    /// Rows that pass the filters, on all pages.
    total: u64,
    /// Whether the size limit ended the page early.
    truncated: bool,
    /// Present unless the tables were written under the current config.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<ConfigStatus>,
}

fn rows(tables: &Tables, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let page = page(request)?;
    let catalog = tables.catalogs.catalog(&pipeline)?;
    let table = table_param(request, &catalog, &pipeline)?;
    let cancellation = Cancellation::default();
    let permit = tables.sql.permit()?;
    let child = tables.sql.child(&permit, &cancellation)?;
    let named = [table.name.clone()];
    let until = Instant::now() + tables.sql.timeout * TIMEOUTS_MAX;
    let (span, as_of) = (page.span(), as_of_query(request)?);
    let wanted =
        TablesRequest { pipeline: &pipeline, catalog: &catalog, named: &named, others: &[], all: false, span, as_of };
    let (mut borrowed, opened) = tables.sql.open(child, &wanted, until, &cancellation)?;
    let columns = opened.relations.first().map(|relation| relation.columns.as_slice()).unwrap_or_default();
    let statements = page.statements(&table.name, columns, opened.skipped)?;
    let mut one = |asked: &Statement, rows: u64| {
        let limits = RowLimits { rows, bytes: QUERY_ROWS_BYTES_MAX };
        borrowed.child.rows(&statement(asked), limits, Instant::now() + tables.sql.timeout).map_err(query_error)
    };
    let found = one(&statements.rows, page.limit)?;
    let complete = !found.truncated && found.row_count < page.limit && (found.row_count > 0 || page.offset == 0);
    let total = match &statements.count {
        _ if complete => page.offset + found.row_count,
        Some(count) => counted(&one(count, 1)?.rows)?,
        None => match opened.rows.first() {
            Some(rows) => *rows,
            None => counted(&one(&all(&table.name), 1)?.rows)?,
        },
    };
    let columns: Vec<ResultColumn> =
        found.columns.into_iter().map(|column| ResultColumn { name: column.name, ty: column.ty }).collect();
    let mut head = Map::new();
    head.insert("columns".into(), serde_json::to_value(columns).unwrap_or_default());
    head.insert("total".into(), total.into());
    head.insert("truncated".into(), found.truncated.into());
    insert_config(&mut head, &catalog.config);
    let mut body = String::with_capacity(found.rows.len());
    push_object_with_rows(&mut body, head, &found.rows);
    Ok(Response::bytes(200, "application/json", body.into_bytes()))
}

fn page(request: &Request) -> Result<Page, ApiError> {
    let filters: Vec<String> = request.query().all("filter").map(str::to_owned).collect();
    if filters.len() > FILTERS_MAX {
        let message = format!("{} filters, expected at most {FILTERS_MAX}", filters.len());
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    Ok(Page {
        limit: number_query(request, "limit", 0..=PAGE_ROWS_MAX)?.unwrap_or(PAGE_ROWS_DEFAULT),
        offset: number_query(request, "offset", 0..=OFFSET_MAX)?.unwrap_or(0),
        sort: optional_query(request, "sort")?.unwrap_or_default().to_owned(),
        filters,
    })
}

fn all(table: &str) -> Statement {
    Statement { sql: format!("SELECT count(*) AS total FROM {}", identifier(table)), params: Vec::new() }
}

/// The number in the result of a count.
fn counted(rows: &str) -> Result<u64, ApiError> {
    let number = rows.trim_matches(|c: char| !c.is_ascii_digit()).parse();
    number.map_err(|_| ApiError::internal(format!("a count gave `{rows}`")))
}

/// The error of a statement that this service generated: a bug, unless a filter's value caused it.
fn query_error(error: SandboxError) -> ApiError {
    match error {
        SandboxError::Sql(error) if error.kind == SqlErrorKind::Failed => {
            ApiError::new(ErrorCode::InvalidRequest, error.message)
        }
        SandboxError::Sql(error) if error.kind == SqlErrorKind::InvalidSql => ApiError::internal(error),
        error => from_sandbox(error),
    }
}
