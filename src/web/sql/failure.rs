//! Maps failures of queries to API errors.

use schemars::JsonSchema;
use serde::Serialize;

use super::types::SqlProblem;
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox::{SandboxError, SqlError, SqlErrorKind};
use crate::web::cache::CacheError;
use crate::web::failure::{RETRY_AFTER, from_store};

/// Most table names in a message.
const NAMES_LISTED_MAX: usize = 20;

/// A problem of a statement, in a response.
#[derive(Debug, Serialize, JsonSchema)]
struct ProblemJson<'a> {
    message: &'a str,
    line: Option<u32>,
    column: Option<u32>,
}

/// The error for a failure of a child.
pub fn from_sandbox(error: SandboxError) -> ApiError {
    match error {
        SandboxError::Sql(error) => from_sql(&error),
        error @ SandboxError::Busy { .. } => {
            ApiError::caused(ErrorCode::Overloaded, error).with_retry_after(RETRY_AFTER)
        }
        error @ (SandboxError::Start { .. }
        | SandboxError::OtherBuild { .. }
        | SandboxError::Folder { .. }
        | SandboxError::Protocol { .. }
        | SandboxError::Failed { .. }) => ApiError::internal(error),
    }
}

fn from_sql(error: &SqlError) -> ApiError {
    let code = match error.kind {
        SqlErrorKind::InvalidSql | SqlErrorKind::Failed => return from_problem(&problem(error)),
        SqlErrorKind::Timeout => ErrorCode::QueryTimeout,
        // Usually killed by the kernel for its memory.
        SqlErrorKind::OutOfMemory | SqlErrorKind::Ended => ErrorCode::QueryOutOfMemory,
        SqlErrorKind::TooLarge => ErrorCode::QueryTooLarge,
        SqlErrorKind::Cancelled => ErrorCode::QueryCancelled,
    };
    ApiError::new(code, error.message.clone())
}

/// A statement's problem.
pub fn problem(error: &SqlError) -> SqlProblem {
    let position = error.position.map(|position| (position.line, position.column));
    SqlProblem { message: error.message.clone(), position }
}

/// `invalid_sql`, with the position if known.
pub fn from_problem(problem: &SqlProblem) -> ApiError {
    let (line, column) = problem.position.unzip();
    let problems = [ProblemJson { message: &problem.message, line, column }];
    ApiError::new(ErrorCode::InvalidSql, problem.message.clone()).with_problems(problems)
}

/// The message that `owner` has no such table.
pub(super) fn no_such_table(owner: &str, name: &str, names: &[&str]) -> String {
    let near = crate::sql::nearest(name, names.iter().copied());
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let listed: Vec<String> = names.iter().take(NAMES_LISTED_MAX).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > NAMES_LISTED_MAX { ", …" } else { "" };
    let name = crate::web::access::clipped(name);
    format!(
        "{owner} has no table `{name}`{near}{} it has {}{more}",
        if near.is_empty() { ";" } else { "" },
        listed.join(", ")
    )
}

/// Error codes of routes that run SQL.
pub const SQL_ERRORS: &[ErrorCode] = &[
    ErrorCode::PipelineNotFound,
    ErrorCode::InvalidConfig,
    ErrorCode::InvalidSql,
    ErrorCode::QueryTimeout,
    ErrorCode::QueryOutOfMemory,
    ErrorCode::QueryTooLarge,
    ErrorCode::QueryCancelled,
    ErrorCode::TableDamaged,
    ErrorCode::Overloaded,
    ErrorCode::S3Error,
    ErrorCode::BucketNotFound,
];

/// Whether a child survives an error: it rejected the statement.
pub fn child_survives(error: &SandboxError) -> bool {
    match error.sql_kind() {
        Some(SqlErrorKind::InvalidSql | SqlErrorKind::Failed | SqlErrorKind::TooLarge) => true,
        Some(SqlErrorKind::Timeout | SqlErrorKind::OutOfMemory | SqlErrorKind::Cancelled | SqlErrorKind::Ended)
        | None => false,
    }
}

/// The error for files that can't be provided.
pub fn from_cache(error: CacheError) -> ApiError {
    match error {
        CacheError::TooLarge { needed, bytes_max } => {
            let message = format!(
                "the query reads {needed} bytes of files; the cache holds {bytes_max} (SVC_CACHE_BYTES); read fewer \
                 tables at a time"
            );
            ApiError::new(ErrorCode::QueryTooLarge, message)
        }
        error @ CacheError::Busy => ApiError::caused(ErrorCode::Overloaded, error).with_retry_after(RETRY_AFTER),
        error @ CacheError::TimedOut => ApiError::new(ErrorCode::QueryTimeout, error.to_string()),
        CacheError::Stopped => cancelled(),
        CacheError::Store(error) => from_store(error),
        error @ (CacheError::Gone { .. } | CacheError::Io { .. }) => ApiError::internal(error),
    }
}

pub fn cancelled() -> ApiError {
    ApiError::of(ErrorCode::QueryCancelled)
}
