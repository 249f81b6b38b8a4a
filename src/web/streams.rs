//! Bodies that last as long as their client makes them: few at a time, so that slow clients leave handlers for others.

use std::io::{self, Read};

use crate::http::Response;
use crate::sync::Permit;

/// Bodies of any length that are sent or taken at a time.
pub const STREAMS_MAX: usize = 16;

/// A body that holds its place until it is sent, or its client is gone.
struct Streamed<R> {
    inner: R,
    _place: Permit,
}

impl<R: Read> Read for Streamed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.inner.read(into)
    }
}

/// A response whose body is read as it is sent; see [`Response::reader`].
pub fn streamed(
    status: u16,
    content_type: &str,
    body: impl Read + Send + 'static,
    length: Option<u64>,
    place: Permit,
) -> Response {
    Response::reader(status, content_type, Streamed { inner: body, _place: place }, length)
}
