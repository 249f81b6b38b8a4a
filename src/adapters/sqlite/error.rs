//! Failures of a step, and their mapping to the errors of the port.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;

use crate::ports::kv::KvError;

/// Longest wait for another process's transaction, in ms.
pub(super) const BUSY_MS_MAX: u64 = 5_000;

/// Why a step failed; it had no effect, unless the disk failed during the commit.
#[derive(Debug)]
pub(super) enum StepError {
    Sql(rusqlite::Error),
    Io(io::Error),
    Refused(String),
    Malformed { expected: &'static str, found: String },
}

pub(super) type StepResult<T> = Result<T, StepError>;

impl From<rusqlite::Error> for StepError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<io::Error> for StepError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl StepError {
    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Sql(error) => error.sqlite_error_code(),
            Self::Io(_) | Self::Refused(_) | Self::Malformed { .. } => None,
        }
    }

    /// Whether another connection holds the file's lock.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// Whether the connection must not be used again.
    pub(super) fn breaks_connection(&self) -> bool {
        matches!(
            self.code(),
            Some(
                ErrorCode::SystemIoFailure
                    | ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
                    | ErrorCode::CannotOpen
                    | ErrorCode::ReadOnly
                    | ErrorCode::FileLockingProtocolFailed
            )
        )
    }

    pub(super) fn into_kv_error(self, operation: &'static str, path: &Path) -> KvError {
        let path = path.display();
        match self {
            Self::Refused(reason) => KvError::Refused { operation, reason },
            Self::Malformed { expected, found } => KvError::Malformed { operation, expected, found },
            Self::Io(source) => io_error(source, operation, &path.to_string()),
            Self::Sql(error) => sql_error(error, operation, &path.to_string()),
        }
    }
}

fn io_error(source: io::Error, operation: &'static str, path: &str) -> KvError {
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            KvError::Refused { operation, reason: read_only(path) }
        }
        io::ErrorKind::StorageFull => KvError::Refused { operation, reason: full(path) },
        // The enum is non-exhaustive: other kinds count as transient.
        _ => KvError::Unavailable { operation, source: io::Error::new(source.kind(), format!("`{path}`: {source}")) },
    }
}

fn sql_error(error: rusqlite::Error, operation: &'static str, path: &str) -> KvError {
    let unavailable = |kind, text: String| KvError::Unavailable { operation, source: io::Error::new(kind, text) };
    let Some(code) = error.sqlite_error_code() else {
        // A value has a type or range that this program doesn't write.
        return KvError::Malformed { operation, expected: "a valid row", found: format!("`{path}`: {error}") };
    };
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => unavailable(
            io::ErrorKind::TimedOut,
            format!("`{path}`: another process kept the file locked for {} s", BUSY_MS_MAX / 1_000),
        ),
        ErrorCode::DiskFull => KvError::Refused { operation, reason: full(path) },
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
            KvError::Refused { operation, reason: read_only(path) }
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => KvError::Malformed {
            operation,
            expected: "an intact SQLite file; stop every process that uses it, move it away with its `-wal` and `-shm` \
                       files, and start again with a new one",
            found: format!("{path}: {error}"),
        },
        ErrorCode::OutOfMemory | ErrorCode::TooBig => KvError::Refused { operation, reason: error.to_string() },
        // The enum is non-exhaustive: other kinds count as transient.
        _ => unavailable(io::ErrorKind::Other, format!("`{path}`: {error}")),
    }
}

fn full(path: &str) -> String {
    format!("no space left for `{path}`: free some space on its disk")
}

pub(super) fn read_only(path: &str) -> String {
    format!("`{path}` can't be written: give the service's user write access to it and its folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kv_error(code: i32) -> KvError {
        let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        StepError::from(error).into_kv_error("finish", Path::new("kv.db"))
    }

    #[test]
    fn file_system_errors_are_mapped() {
        for (kind, text) in [
            (io::ErrorKind::PermissionDenied, "refused: `kv.db` can't be written"),
            (io::ErrorKind::StorageFull, "refused: no space left for `kv.db`"),
            (io::ErrorKind::NotADirectory, "can't be reached: `kv.db`: "),
        ] {
            let found = StepError::from(io::Error::from(kind)).into_kv_error("open", Path::new("kv.db")).to_string();
            assert!(found.contains(text), "{found}");
        }
    }

    #[test]
    fn errors_have_advice() {
        use rusqlite::ffi;
        for (code, text) in [
            (ffi::SQLITE_FULL, "refused: no space left for `kv.db`: free some space"),
            (ffi::SQLITE_READONLY, "refused: `kv.db` can't be written: give the service's user"),
            (ffi::SQLITE_BUSY, "can't be reached: `kv.db`: another process kept the file locked for 5 s"),
            (ffi::SQLITE_CORRUPT, "expected an intact SQLite file; stop every process"),
            (ffi::SQLITE_NOTADB, "file is not a database`"),
            (ffi::SQLITE_IOERR_FSYNC, "can't be reached: `kv.db`: "),
        ] {
            let found = kv_error(code).to_string();
            assert!(found.contains(text), "{found}");
        }
    }
}
