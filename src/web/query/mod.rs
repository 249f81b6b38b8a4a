//! `…/query`: people's SQL over a pipeline's tables.

mod download;
mod params;
pub(in crate::web) mod running;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::limits::{QUERY_BODY_BYTES_MAX, QUERY_ROWS_BYTES_MAX, QUERY_ROWS_DEFAULT, QUERY_ROWS_MAX};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::web::Web;
use crate::web::access::slug_param;
use crate::web::endpoint::Endpoint;
use crate::web::sql::{LimitReason, ResultColumn, RowLimits, TIMEOUTS_MAX, query_id, rows_json};
use crate::web::tables::catalog::ConfigStatus;
use crate::web::tables::rows::insert_config;

use params::{Params, query};

/// Largest body of a wish to cancel, in bytes.
const CANCEL_BYTES_MAX: u64 = 4 << 10;
/// What any route that runs SQL may answer besides the rest.
pub(in crate::web) const SQL_ERRORS: &[ErrorCode] = &[
    ErrorCode::PipelineNotFound,
    ErrorCode::InvalidConfig,
    ErrorCode::InvalidSql,
    ErrorCode::QueryTimeout,
    ErrorCode::QueryOutOfMemory,
    ErrorCode::QueryTooLarge,
    ErrorCode::QueryCancelled,
    ErrorCode::Overloaded,
    ErrorCode::S3Error,
    ErrorCode::BucketNotFound,
];

pub(super) fn endpoints() -> Vec<Endpoint> {
    let query = "/api/p/{pipeline}/query";
    vec![
        Endpoint::post(query, "query.run", "Runs one statement over the pipeline's tables", run)
            .takes::<QueryRequest>(QUERY_BODY_BYTES_MAX)
            .answers::<QueryAnswer>(200, "the first rows of the result")
            .errors(SQL_ERRORS)
            .errors(&[ErrorCode::AlreadyExists]),
        Endpoint::post(
            "/api/p/{pipeline}/query/download",
            "query.download",
            "Runs one statement and gives its whole result as a file",
            download::download,
        )
        .query::<DownloadFormat>("format", "the form of the file; `csv` unless it is told")
        .takes::<DownloadRequest>(QUERY_BODY_BYTES_MAX)
        .answers_bytes(200, "*/*", "the file")
        .header("Content-Disposition")
        .errors(SQL_ERRORS)
        .errors(&[ErrorCode::AlreadyExists]),
        Endpoint::post(
            "/api/p/{pipeline}/query/cancel",
            "query.cancel",
            "Ends a running query, whichever process runs it",
            cancel,
        )
        .light()
        .takes::<CancelRequest>(CANCEL_BYTES_MAX)
        .answers::<CancelAnswer>(200, "the query's end is wished")
        .errors(&[ErrorCode::QueryNotFound]),
    ]
}

/// How long a query may be at work, at most: waiting, fetching, running, and being sent. After it, one whose process
/// died is forgotten.
pub(in crate::web) fn life(timeout: Duration) -> Duration {
    // Twice: until its files are there, and until it has run.
    timeout * TIMEOUTS_MAX * 2 + download::DOWNLOAD_MAX
}

/// A statement to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryRequest {
    sql: String,
    /// Values of the parameters: by name, or in their order.
    #[serde(default)]
    params: Params,
    /// Rows that are wanted.
    #[schemars(range(min = 0, max = 10_000))]
    limit: Option<u64>,
    /// An id under which it can be cancelled while it runs.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    query_id: Option<String>,
}

/// A statement of which the whole result is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DownloadRequest {
    sql: String,
    /// Values of the parameters: by name, or in their order.
    #[serde(default)]
    params: Params,
    /// An id under which it can be cancelled while it runs.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    query_id: Option<String>,
}

/// The first rows of a result. Written as text, without reading the rows; this describes it.
#[derive(Debug, Serialize, JsonSchema)]
struct QueryAnswer {
    columns: Vec<ResultColumn>,
    /// As many values as there are columns, for each row.
    rows: Vec<Vec<Value>>,
    row_count: u64,
    truncated: bool,
    limit_reason: Option<LimitReason>,
    elapsed_ms: u64,
    /// The tables were being published while they were read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    publishing: bool,
    /// Unless the tables were written under the config as it is.
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

/// The form of a download.
#[derive(Debug, Clone, Copy, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a parameter")]
enum DownloadFormat {
    Csv,
    Parquet,
    Json,
}

fn run(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let started = Instant::now();
    let pipeline = slug_param(request, "pipeline")?;
    let asked: QueryRequest = params::asked(request)?;
    let rows = asked.limit.unwrap_or(QUERY_ROWS_DEFAULT);
    if rows > QUERY_ROWS_MAX {
        let message = format!("`limit` is {rows}, expected at most {QUERY_ROWS_MAX}");
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    let limits = RowLimits { rows, bytes: QUERY_ROWS_BYTES_MAX };
    let statement = query(asked.sql, asked.params)?;
    let ran = web.run(&pipeline, &[statement], limits, asked.query_id.as_deref())?;
    let outcome = ran.outcomes.into_iter().next().ok_or_else(|| ApiError::internal("one statement gave no result"))?;
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut more = Map::from_iter([("elapsed_ms".to_owned(), elapsed_ms.into())]);
    insert_config(&mut more, &ran.catalog.config);
    Ok(Response::bytes(200, "application/json", rows_json(&outcome?, &more).into_bytes()))
}

fn cancel(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let asked: CancelRequest = request.json()?;
    web.running.cancel(&pipeline, &query_id(&asked.query_id)?)?;
    Ok(Response::json(200, &CancelAnswer { cancelled: true }))
}
