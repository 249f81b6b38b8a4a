//! Reads a whole result from a child.

use std::io::{self, Read};
use std::time::Instant;

use super::client::{CancelHandle, Child, parse_reply};
use super::error::SandboxError;
use super::frame::{FrameKind, MESSAGE_BYTES_MAX, PIECE_BYTES_MAX};
use super::task::{ExportFormat, ParameterizedStatement, Reply, Task};

impl Child {
    /// Runs a statement and streams its whole result as a file. A slow reader blocks it, until `deadline`.
    ///
    /// # Errors
    /// Same as for [`Child::rows`] until the first byte is there; afterwards the reader fails.
    pub fn download(
        mut self,
        statement: &ParameterizedStatement,
        format: ExportFormat,
        deadline: Instant,
    ) -> Result<Download, SandboxError> {
        match self.ask(&Task::Download { statement: statement.clone(), format }, deadline)? {
            Reply::Started => Ok(Download::new(self, deadline)),
            other => Err(self.unexpected_reply(&other, "a download's start")),
        }
    }
}

/// Reads the bytes of a result. End of file means that the result is complete.
pub struct Download {
    child: Child,
    deadline: Instant,
    piece: Vec<u8>,
    read: usize,
    state: State,
}

enum State {
    Streaming,
    Complete,
    Broken,
}

impl Download {
    pub(super) fn new(child: Child, deadline: Instant) -> Self {
        Self { child, deadline, piece: Vec::new(), read: 0, state: State::Streaming }
    }

    pub fn cancel_handle(&self) -> CancelHandle {
        self.child.cancel_handle()
    }

    fn next(&mut self) -> Result<bool, SandboxError> {
        let process = self.child.process()?;
        let expected = [(FrameKind::Piece, PIECE_BYTES_MAX), (FrameKind::Message, MESSAGE_BYTES_MAX)];
        let (kind, bytes) = process.receive(&expected, self.deadline)?;
        if kind == FrameKind::Piece {
            (self.piece, self.read) = (bytes, 0);
            return Ok(true);
        }
        match parse_reply(process, &bytes)?.into_result()? {
            Reply::Complete => Ok(false),
            other => Err(self.child.unexpected_reply(&other, "a download's end")),
        }
    }
}

impl Read for Download {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.len() {
            match self.state {
                State::Complete => return Ok(0),
                State::Broken => return Err(io::Error::other("the download failed before")),
                State::Streaming => match self.next() {
                    Ok(true) => {}
                    Ok(false) => self.state = State::Complete,
                    Err(error) => {
                        self.state = State::Broken;
                        return Err(io::Error::other(error));
                    }
                },
            }
        }
        let count = into.len().min(self.piece.len() - self.read);
        into[..count].copy_from_slice(&self.piece[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}
