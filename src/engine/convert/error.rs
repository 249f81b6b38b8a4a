//! Why a conversion failed.

use std::path::Path;

use arrow::error::ArrowError;

use crate::domain::job::{RunError, RunErrorCode};
use crate::engine::read::reader::ReadError;
use crate::engine::run_error::{self, store_error};
use crate::ports::observer::Stop;
use crate::ports::store::{BodyChanged, StoreError};

/// Why a conversion has no result.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// A source differs from the listing (another ETag, or deleted); the run must plan again.
    #[error("source `{key}` changed while it was read")]
    SourceChanged { key: String },
    #[error("the run was stopped")]
    Stopped(Stop),
    #[error(transparent)]
    Failed(#[from] RunError),
}

/// An internal error: a bug or a lack of memory, never the fault of the input.
pub(super) fn internal(error: impl std::fmt::Display) -> ConvertError {
    RunError::new(RunErrorCode::Internal, error.to_string()).into()
}

/// A panic of an engine thread.
pub(super) fn panicked(what: &str, panic: &Box<dyn std::any::Any + Send>) -> ConvertError {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        (None, None) => "no message".to_owned(),
    };
    internal(format!("a {what} thread panicked: {text}"))
}

pub(super) fn opening_failed(key: &str, error: StoreError) -> ConvertError {
    match error {
        StoreError::NotFound { .. } | StoreError::PreconditionFailed { .. } => {
            ConvertError::SourceChanged { key: key.to_owned() }
        }
        error => store_error(error).into(),
    }
}

pub(super) fn reading_failed(key: &str, error: ReadError) -> ConvertError {
    match error {
        ReadError::Io { source: io, .. } if BodyChanged::is_in(&io) => {
            ConvertError::SourceChanged { key: key.to_owned() }
        }
        ReadError::Io { source: io, .. } => {
            // A failed prefetch carries its own error.
            let io = match io.downcast::<ConvertError>() {
                Ok(error) => return error,
                Err(io) => io,
            };
            let error = RunError::new(RunErrorCode::S3Error, format!("reading `{key}`: {io}"));
            error.detail("the object store failed while the source was read; run again").path(key).into()
        }
        ReadError::HeaderUnclosedQuote { .. }
        | ReadError::HeaderTooLong { .. }
        | ReadError::HeaderLoneCr { .. }
        | ReadError::LoneCr { .. }
        | ReadError::HeaderEncoding { .. } => {
            let code = RunErrorCode::HeaderMismatch;
            let detail = "correct the source, or set `csv.quote`, `csv.encoding` or `csv.record_terminator`";
            RunError::new(code, error.to_string()).detail(detail).path(key).into()
        }
        ReadError::Truncated { .. }
        | ReadError::Corrupt { .. }
        | ReadError::InflatesTooMuch { .. }
        | ReadError::WrongMagic { .. }
        | ReadError::Undecodable { .. } => {
            let detail = "nothing of this run was published; replace the source, or remove it from the lake";
            RunError::new(RunErrorCode::UnreadableSource, error.to_string()).detail(detail).path(key).into()
        }
    }
}

/// A failed operation on scratch.
pub(super) fn scratch_error(path: &Path, error: &std::io::Error) -> ConvertError {
    run_error::scratch_error(path, error).into()
}

/// Like [`scratch_error`], for errors of Arrow.
pub(super) fn arrow_error(path: &Path, error: ArrowError) -> ConvertError {
    match error {
        ArrowError::IoError(_, error) => scratch_error(path, &error),
        error => internal(error),
    }
}
