//! The body of a request, read from the client within its limits.
//!
//! Invariant: the end is reported only after every byte that the head promised (or the last chunk) came; a body that
//! breaks off, is too long, too slow or malformed is an error at that read and at all later reads.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use super::buffered::{BufferedConnection, ClientWriter};
use super::chunked::ChunkDecoder;
use super::connection::Connection;
use super::error::{ApiError, ErrorCode};
use super::head::Framing;
use super::limits::GuardLimits;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Why a body could not be read to its end. Wrapped in the `io::Error` of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("the body ended after {received} bytes")]
    Truncated { received: u64 },
    #[error("the body was sent too slowly")]
    TooSlow,
    #[error("the chunks of the body are malformed")]
    Malformed,
    #[error("the connection failed while the body was read")]
    Connection,
}

impl BodyError {
    /// The error inside `error`, if it came from a request's body.
    pub fn within(error: &io::Error) -> Option<Self> {
        error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()).copied()
    }

    /// The status of the response: 408 has no error code of its own.
    pub(super) fn status(self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::TooSlow => 408,
            Self::Truncated { .. } | Self::Malformed | Self::Connection => 400,
        }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        let code = match error {
            BodyError::TooLarge { .. } => ErrorCode::PayloadTooLarge,
            BodyError::Truncated { .. } | BodyError::TooSlow | BodyError::Malformed | BodyError::Connection => {
                ErrorCode::InvalidRequest
            }
        };
        Self::new(code, error.to_string())
    }
}

impl From<BodyError> for io::Error {
    fn from(error: BodyError) -> Self {
        let kind = match error {
            BodyError::TooLarge { .. } => ErrorKind::FileTooLarge,
            BodyError::Truncated { .. } => ErrorKind::UnexpectedEof,
            BodyError::TooSlow => ErrorKind::TimedOut,
            BodyError::Malformed => ErrorKind::InvalidData,
            BodyError::Connection => ErrorKind::ConnectionReset,
        };
        Self::new(kind, error)
    }
}

#[derive(Debug)]
enum Progress {
    Left(u64),
    Chunks(ChunkDecoder),
}

/// A body that is read from its client.
#[derive(Debug)]
pub struct ClientBody {
    connection: BufferedConnection,
    progress: Progress,
    limit: u64,
    received: u64,
    error: Option<BodyError>,
    continue_due: bool,
    limits: Arc<GuardLimits>,
}

impl ClientBody {
    /// `limit`: the route's body limit, in bytes. With `continue_due`, the first read sends `100 Continue`.
    /// `anonymous`: whether the sender has no credentials.
    pub(super) fn new(
        mut connection: BufferedConnection,
        framing: Framing,
        limit: u64,
        continue_due: bool,
        anonymous: bool,
        limits: Arc<GuardLimits>,
    ) -> Self {
        let (progress, declared) = match framing {
            Framing::None => (Progress::Left(0), 0),
            Framing::Length(length) => (Progress::Left(length), length),
            Framing::Chunked => (Progress::Chunks(ChunkDecoder::new()), 0),
        };
        let error = (declared > limit).then_some(BodyError::TooLarge { limit });
        connection.begin_body(declared, anonymous, Arc::clone(&limits));
        Self { connection, progress, limit, received: 0, error, continue_due, limits }
    }

    /// The connection, and whether the body was read to its end.
    pub(super) fn into_connection(mut self) -> (BufferedConnection, bool) {
        self.connection.end_body();
        let complete = self.is_complete();
        (self.connection, complete)
    }

    fn is_complete(&self) -> bool {
        self.error.is_none()
            && match &self.progress {
                Progress::Left(left) => *left == 0,
                Progress::Chunks(decoder) => decoder.is_done(),
            }
    }

    fn read_once(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let connection = &mut self.connection;
        if self.continue_due && !matches!(self.progress, Progress::Left(0)) {
            self.continue_due = false;
            // A client that doesn't wait has already begun to send.
            if connection.buffered().is_empty() {
                ClientWriter::new(connection.stream(), &self.limits).write_all(CONTINUE)?;
            }
        }
        match &mut self.progress {
            Progress::Left(0) => Ok(0),
            Progress::Left(left) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX).min(out.len());
                let read = connection.read(&mut out[..most])?;
                if read == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                *left -= read as u64;
                Ok(read)
            }
            Progress::Chunks(decoder) => decoder.read(connection, out),
        }
    }

    fn error_of(&self, error: &io::Error) -> BodyError {
        match error.kind() {
            ErrorKind::UnexpectedEof => BodyError::Truncated { received: self.received },
            ErrorKind::TimedOut => BodyError::TooSlow,
            ErrorKind::InvalidData => BodyError::Malformed,
            _ => BodyError::Connection,
        }
    }
}

impl Read for ClientBody {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        if out.is_empty() {
            return Ok(0);
        }
        let outcome = match self.read_once(out) {
            Ok(read) => {
                self.received += read as u64;
                let over = self.received > self.limit;
                if over { Err(BodyError::TooLarge { limit: self.limit }) } else { Ok(read) }
            }
            Err(error) => Err(self.error_of(&error)),
        };
        self.error = outcome.err();
        outcome.map_err(io::Error::from)
    }
}

/// The body as handlers receive it.
#[derive(Debug)]
pub(super) enum RequestBody {
    /// Complete and in memory.
    Bytes(io::Cursor<Vec<u8>>),
    /// Read from the client by the handler.
    Stream(ClientBody),
}

impl RequestBody {
    /// Returns the reader to its connection, and whether the body was read to its end.
    pub(super) fn return_to(self, connection: &mut Connection) -> bool {
        match self {
            Self::Bytes(_) => true,
            Self::Stream(body) => {
                let (stream, complete) = body.into_connection();
                connection.stream = stream;
                complete
            }
        }
    }
}

impl Read for RequestBody {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Bytes(bytes) => bytes.read(out),
            Self::Stream(body) => body.read(out),
        }
    }
}
