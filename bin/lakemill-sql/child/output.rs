//! The pipe to the parent.

use std::io::{self, Write};
use std::os::fd::AsFd;

use lakemill::sql::sandbox::error::{SqlError, SqlErrorKind};
use lakemill::sql::sandbox::frame::{self, FrameKind};
use lakemill::sql::sandbox::task::Reply;

use super::failure::TaskError;

/// Writes frames to stdout without a buffer.
pub struct Output;

impl Output {
    pub fn reply(&mut self, reply: &Reply) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(reply).map_err(io::Error::other)?;
        if bytes.len() > frame::MESSAGE_BYTES_MAX {
            let error = SqlError::new(SqlErrorKind::TooLarge, "the response to this query is too large");
            bytes = serde_json::to_vec(&Reply::Refused { error }).map_err(io::Error::other)?;
        }
        frame::write(self, FrameKind::Message, &bytes)
    }

    /// Sends a reply, or the error in its place.
    ///
    /// # Errors
    /// The pipe fails.
    pub fn result(&mut self, result: Result<Reply, TaskError>) -> io::Result<()> {
        self.reply(&match result {
            Ok(reply) => reply,
            Err(TaskError::Sql(error)) => Reply::Refused { error },
            Err(TaskError::Internal(message)) => Reply::Failed { message },
            Err(TaskError::Pipe(error)) => return Err(error),
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stdout().as_fd(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
