//! Calls operations on Parquet files in a child process.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::http::ApiError;
use crate::sql::sandbox::{Child, SandboxError, SqlErrorKind};
use crate::web::access::clipped;
use crate::web::sql::failure::from_sandbox;

/// Timeout of an operation.
const OPERATION_TIME_MAX: Duration = Duration::from_secs(10);
/// The file's name in a child's folder.
pub(super) const FILE: &str = "file.parquet";
pub(super) const CRASHED: &str = "its reader crashed, or exceeded its memory or time limit";

/// Why a file couldn't be read.
#[derive(Debug)]
pub enum ParquetReadError {
    /// The file is invalid; a description of the problem.
    Unreadable(String),
    Failed(ApiError),
}

/// Calls an operation of a child with the file in its folder.
///
/// # Errors
/// [`ParquetReadError::Unreadable`] if the child rejects the file, crashes, or times out.
pub fn call<A: DeserializeOwned>(
    child: &mut Child,
    operation: &str,
    request: &impl Serialize,
) -> Result<A, ParquetReadError> {
    let payload = serde_json::to_value(request).map_err(|error| ParquetReadError::Failed(ApiError::internal(error)))?;
    let answer = child.call(operation, &payload, Instant::now() + OPERATION_TIME_MAX).map_err(|error| match error {
        SandboxError::Failed { message } => ParquetReadError::Unreadable(clipped(&message)),
        SandboxError::Protocol { .. } => ParquetReadError::Unreadable(CRASHED.to_owned()),
        SandboxError::Sql(error) if error.kind != SqlErrorKind::Cancelled => {
            ParquetReadError::Unreadable(CRASHED.to_owned())
        }
        error @ (SandboxError::Sql(_)
        | SandboxError::Busy { .. }
        | SandboxError::Start { .. }
        | SandboxError::OtherBuild { .. }
        | SandboxError::Folder { .. }) => ParquetReadError::Failed(from_sandbox(error)),
    })?;
    serde_json::from_value(answer).map_err(|_| ParquetReadError::Unreadable(CRASHED.to_owned()))
}
