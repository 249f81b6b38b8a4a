//! `…/query`: runs, downloads and cancels user-supplied queries.

mod params;

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::limits::{QUERY_BODY_BYTES_MAX, QUERY_ROWS_BYTES_MAX, QUERY_ROWS_DEFAULT, QUERY_ROWS_MAX};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::sql::sandbox::{Download, ExportFormat};
use crate::sync::{Permit, Semaphore};
use crate::web::access::{clipped, optional_query, slug_param};
use crate::web::endpoint::Endpoint;
use crate::web::failure::acquire;
use crate::web::sql::failure::{SQL_ERRORS, from_sandbox};
use crate::web::sql::{
    DOWNLOAD_MAX, LimitReason, OpenedTables, OtherPipelines, QueryAnnouncement, ResultColumn, RowLimits, Sql,
    TIMEOUTS_MAX, TablesRequest, checked_or_error, may_list_tables, query_id, rows_json, statement,
};
use crate::web::streams::attachment;
use crate::web::tables::catalog::{ConfigStatus, insert_config};

use params::{AsOfParam, Params, parse_body, query};

/// Largest request to cancel, in bytes.
const CANCEL_BYTES_MAX: u64 = 4 << 10;
/// The service.
pub struct QueryService {
    sql: Arc<Sql>,
    downloads: Semaphore,
}

impl QueryService {
    /// At most half of the children serve downloads.
    pub fn new(sql: Arc<Sql>, children_max: usize) -> Self {
        Self { sql, downloads: Semaphore::new(children_max.div_ceil(2)) }
    }
}

pub(super) fn endpoints() -> Vec<Endpoint<QueryService>> {
    let query = "/api/p/{pipeline}/query";
    vec![
        Endpoint::post(query, "query.run", "Runs a statement over the pipeline's tables", run)
            .changing_nothing()
            .takes::<QueryRequest>(QUERY_BODY_BYTES_MAX)
            .response::<QueryAnswer>(200, "the first rows of the result")
            .errors(SQL_ERRORS)
            .errors(&[ErrorCode::AlreadyExists, ErrorCode::VersionNotFound]),
        Endpoint::post(
            "/api/p/{pipeline}/query/download",
            "query.download",
            "Runs a statement and downloads its complete result",
            download,
        )
        .changing_nothing()
        .query::<DownloadFormat>("format", "format of the file; `csv` by default")
        .takes::<DownloadRequest>(QUERY_BODY_BYTES_MAX)
        .bytes_response(200, "*/*", "the file")
        .header("Content-Disposition")
        .errors(SQL_ERRORS)
        .errors(&[ErrorCode::AlreadyExists, ErrorCode::VersionNotFound]),
        Endpoint::post("/api/p/{pipeline}/query/cancel", "query.cancel", "Cancels a running query", cancel)
            .reserved()
            .takes::<CancelRequest>(CANCEL_BYTES_MAX)
            .response::<CancelAnswer>(200, "the query is being cancelled")
            .errors(&[ErrorCode::QueryNotFound]),
    ]
}

/// A statement to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryRequest {
    sql: String,
    /// Values of the parameters, by name or in order.
    #[serde(default)]
    params: Params,
    /// The version of all tables: an RFC 3339 time, or the sequence of a commit if the statement reads one table.
    as_of: Option<AsOfParam>,
    /// Maximum number of rows of the result.
    #[schemars(range(min = 0, max = 10_000))]
    limit: Option<u64>,
    /// An id by which the query can be cancelled.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    query_id: Option<String>,
}

/// A statement whose complete result is downloaded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DownloadRequest {
    sql: String,
    /// Values of the parameters, by name or in order.
    #[serde(default)]
    params: Params,
    /// The version of all tables: an RFC 3339 time, or the sequence of a commit if the statement reads one table.
    as_of: Option<AsOfParam>,
    /// An id by which the query can be cancelled.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    query_id: Option<String>,
}

/// The first rows of a result.
#[derive(Debug, Serialize, JsonSchema)]
struct QueryAnswer {
    columns: Vec<ResultColumn>,
    /// A value per column for each row.
    rows: Vec<Vec<Value>>,
    row_count: u64,
    truncated: bool,
    limit_reason: Option<LimitReason>,
    elapsed_ms: u64,
    /// Present unless the tables were written under the current config.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<ConfigStatus>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CancelRequest {
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    query_id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CancelAnswer {
    cancelled: bool,
}

/// The format of a download.
#[derive(Debug, Clone, Copy, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a parameter")]
enum DownloadFormat {
    Csv,
    Parquet,
    Json,
}

fn run(queries: &QueryService, request: &mut Request) -> Result<Response, ApiError> {
    let started = Instant::now();
    let pipeline = slug_param(request, "pipeline")?;
    let query_request: QueryRequest = parse_body(request)?;
    let rows = query_request.limit.unwrap_or(QUERY_ROWS_DEFAULT);
    if rows > QUERY_ROWS_MAX {
        let message = format!("`limit` is {rows}, expected at most {QUERY_ROWS_MAX}");
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    let limits = RowLimits { rows, bytes: QUERY_ROWS_BYTES_MAX };
    let statement = query(query_request.sql, query_request.params)?;
    let as_of = query_request.as_of.map(AsOfParam::parse).transpose()?;
    let ran = queries.sql.run(&pipeline, &[statement], limits, as_of, query_request.query_id.as_deref())?;
    let outcome =
        ran.outcomes.into_iter().next().ok_or_else(|| ApiError::internal("the statement returned no result"))?;
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut more = Map::from_iter([("elapsed_ms".to_owned(), elapsed_ms.into())]);
    insert_config(&mut more, &ran.catalog.config);
    Ok(Response::bytes(200, "application/json", rows_json(&outcome?, &more).into_bytes()))
}

fn cancel(queries: &QueryService, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let CancelRequest { query_id: id } = request.json()?;
    queries.sql.registry.cancel(&pipeline, &query_id(&id)?)?;
    Ok(Response::json(200, &CancelAnswer { cancelled: true }))
}

fn download(queries: &QueryService, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let (format, extension, content_type) = format(request)?;
    let DownloadRequest { sql: text, params, as_of, query_id: id } = parse_body(request)?;
    let as_of = as_of.map(AsOfParam::parse).transpose()?;
    let query = query(text, params)?;
    let sql = &queries.sql;
    let announcement = id.map(|id| sql.registry.announce(&pipeline, &query_id(&id)?)).transpose()?;
    let cancellation = announcement.as_ref().map(|query| query.cancellation.clone()).unwrap_or_default();
    let catalog = sql.catalogs.catalog(&pipeline)?;
    let download_permit = acquire(&queries.downloads)?;
    let permit = sql.permit()?;
    let mut borrowed = sql.child(&permit, &cancellation)?;
    let analyses = borrowed.analyse(&[&query.sql], &catalog.names())?;
    let analysis =
        analyses.into_iter().next().ok_or_else(|| ApiError::internal("the analysis of the statement is missing"))?;
    let tables = checked_or_error(analysis, &catalog.names())?.tables;
    let until = Instant::now() + sql.timeout * TIMEOUTS_MAX;
    let all = may_list_tables(&query.sql);
    let others = OtherPipelines::new(&sql.catalogs).tables(&tables)?;
    let wanted = TablesRequest {
        pipeline: &pipeline,
        catalog: &catalog,
        named: &tables,
        others: &others,
        all,
        span: None,
        as_of,
    };
    let (borrowed, opened) = sql.open(borrowed, &wanted, until, &cancellation)?;
    let (child, permit) = borrowed.into_parts();
    let deadline = Instant::now() + DOWNLOAD_MAX.max(sql.timeout);
    let download = child.download(&statement(&query), format, deadline).map_err(from_sandbox)?;
    let body = Body { download, _opened: opened, _announcement: announcement, _permits: (permit, download_permit) };
    let name = attachment(&format!("{pipeline}-query.{extension}"));
    Ok(Response::reader(200, content_type, body, None).with_header("Content-Disposition", name))
}

fn format(request: &Request) -> Result<(ExportFormat, &'static str, &'static str), ApiError> {
    match optional_query(request, "format")? {
        None | Some("csv") => Ok((ExportFormat::Csv, "csv", "text/csv; charset=utf-8")),
        Some("parquet") => Ok((ExportFormat::Parquet, "parquet", "application/vnd.apache.parquet")),
        Some("json") => Ok((ExportFormat::Json, "json", "application/json")),
        Some(other) => {
            let message =
                format!("query parameter `format` is `{}`, expected `csv`, `parquet` or `json`", clipped(other));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// A download, with the resources it holds until its last byte is sent or its client disconnects.
struct Body {
    download: Download,
    _opened: OpenedTables,
    _announcement: Option<QueryAnnouncement>,
    _permits: (Arc<Permit>, Permit),
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.download.read(into)
    }
}
