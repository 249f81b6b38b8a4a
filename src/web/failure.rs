//! Maps failures of the stores to API errors.

use std::time::Duration;

use crate::domain::name::Slug;
use crate::domain::table_log::history::AsOf;
use crate::http::{ApiError, ErrorCode};
use crate::pipelines::history::HistoryError;
use crate::pipelines::tables::{NotRetained, TableError};
use crate::ports::kv::KvError;
use crate::ports::store::StoreError;
use crate::sync::{Permit, Semaphore};

/// `Retry-After` of `overloaded`.
pub const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Acquires a permit for a request.
///
/// # Errors
/// `overloaded` if none is available.
pub fn acquire(semaphore: &Semaphore) -> Result<Permit, ApiError> {
    semaphore.try_acquire().ok_or_else(|| {
        let cause = format!("all {} permits are in use", semaphore.total());
        ApiError::caused(ErrorCode::Overloaded, cause).with_retry_after(RETRY_AFTER)
    })
}

/// The error for a failure of the object store. Callers match missing objects and failed preconditions first if these
/// need another response.
pub fn from_store(error: StoreError) -> ApiError {
    let code = match &error {
        StoreError::NotFound { .. } => ErrorCode::ObjectNotFound,
        StoreError::BucketNotFound { .. } => ErrorCode::BucketNotFound,
        StoreError::PreconditionFailed { .. } => ErrorCode::PreconditionFailed,
        StoreError::InvalidKey { key, reason, .. } => {
            return ApiError::new(ErrorCode::InvalidKey, format!("the key `{key}` can't be stored: {reason}"));
        }
        StoreError::LeaseLost(_) => ErrorCode::PipelineBusy,
        StoreError::AccessDenied { .. } | StoreError::DiskFull { .. } | StoreError::Transient { .. } => {
            ErrorCode::S3Error
        }
    };
    ApiError::caused(code, error)
}

/// The error for a failure of the key-value store.
pub fn from_kv(error: KvError) -> ApiError {
    let code = match &error {
        KvError::Unavailable { .. } | KvError::Refused { .. } => ErrorCode::KvUnavailable,
        KvError::Malformed { .. } => ErrorCode::Internal,
    };
    ApiError::caused(code, error)
}

/// The error for a failure to read job history.
pub fn from_history(error: HistoryError) -> ApiError {
    match error {
        HistoryError::Store(error) => from_store(error),
        HistoryError::Kv(error) => from_kv(error),
    }
}

pub fn pipeline_not_found(slug: &Slug) -> ApiError {
    ApiError::new(ErrorCode::PipelineNotFound, format!("there is no pipeline `{slug}`"))
}

/// The error for a version of a table that isn't retained.
pub fn version_not_found(table: &str, as_of: AsOf, found: &NotRetained) -> ApiError {
    let NotRetained { oldest, committed_at } = found;
    let message = format!(
        "table `{table}` can't be read as of `{as_of}`; the oldest version is {oldest}, of {committed_at}. \
         `keep_history` of the table says how long versions stay"
    );
    ApiError::new(ErrorCode::VersionNotFound, message)
}

/// An error of a table's manifest.
pub fn from_table(error: TableError) -> ApiError {
    match error {
        TableError::Store(error) => from_store(error),
        error @ TableError::Catalog { .. } => ApiError::internal(error.to_string()),
        error @ (TableError::Manifest { .. } | TableError::Shard { .. } | TableError::Log { .. }) => {
            ApiError::new(ErrorCode::TableDamaged, format!("{error}; do a clean run"))
        }
    }
}
