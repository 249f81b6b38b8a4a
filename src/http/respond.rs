//! Writes responses: tiny_http formats the head and chunks the body, this module decides their content.
//!
//! Invariants: every response has the standard headers, its request id and a defined end of its body; a body whose
//! reader fails is never ended as if it were complete.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::error::{ApiError, ErrorCode};
use super::head::RequestHead;
use super::method::Method;
use super::refusal::RefusedRequest;
use super::request_id::RequestId;
use super::response::{Body, Response, STANDARD_HEADERS};

/// Bytes written to the client at a time.
const WRITE_BYTES: usize = 64 << 10;
/// Headers that the server always sets itself, overriding handlers.
const SERVER_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "transfer-encoding",
    "trailer",
    "upgrade",
    "keep-alive",
    "server",
    "date",
    "x-request-id",
];

/// How the client recognizes the end of a response's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEnd {
    /// There is no body and no length, as with 204, 304 and HEAD of a body of unknown length.
    NoBody,
    Length(u64),
    Chunks,
    /// The connection ends with the body, for HTTP/1.0.
    Close,
}

impl BodyEnd {
    pub(super) fn of(response: &Response, head: &RequestHead) -> Self {
        let is_head = head.method() == Method::Head;
        match response.length() {
            _ if matches!(response.status, 100..200 | 204 | 304) => Self::NoBody,
            Some(length) => Self::Length(length),
            None if is_head => Self::NoBody,
            None if head.http_1_0 => Self::Close,
            None => Self::Chunks,
        }
    }
}

/// The context of a response, apart from its status, headers and body.
pub(super) struct Envelope<'a> {
    pub(super) request_id: &'a RequestId,
    pub(super) end: BodyEnd,
    /// False for HEAD.
    pub(super) with_body: bool,
    pub(super) keep_alive: bool,
}

/// Why a response was not written to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("the client stopped reading: {0}")]
    Client(io::Error),
    #[error("reading the body failed: {0}")]
    Body(io::Error),
    #[error("reading the body panicked")]
    Panic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    None,
    Client,
    Body,
}

/// Writes `response` to `client`. Calls `on_read` after each read of the body.
pub(super) fn send(
    response: Response,
    envelope: &Envelope<'_>,
    client: &mut impl Write,
    on_read: &dyn Fn(),
) -> Result<(), SendError> {
    let failure = Cell::new(Failure::None);
    let Response { status, headers, body } = response;
    let reader: Box<dyn Read + Send> = match body {
        Body::Bytes(bytes) => Box::new(io::Cursor::new(bytes)),
        Body::Reader { reader, .. } => reader,
    };
    let (left, length) = match envelope.end {
        BodyEnd::Length(length) => (Some(length), Some(usize::try_from(length).unwrap_or(usize::MAX - 1))),
        BodyEnd::Chunks => (None, None),
        // tiny_http would read a body of unknown length into memory. The fake length is removed from the head.
        BodyEnd::Close => (None, Some(usize::MAX - 1)),
        BodyEnd::NoBody => (None, Some(0)),
    };
    let reader = BodyReader { reader, left, failure: &failure, on_read };
    let headers = all_headers(headers, envelope.request_id);
    let response = tiny_http::Response::new(tiny_http::StatusCode(status), headers, reader, length, None)
        .with_chunked_threshold(usize::MAX);
    let mut writer = ResponseWriter { client, buffer: Vec::new(), in_head: true, envelope, failure: &failure };
    let with_body = envelope.with_body && envelope.end != BodyEnd::NoBody;
    let version = tiny_http::HTTPVersion(1, 1);
    let printed = catch_unwind(AssertUnwindSafe(|| response.raw_print(&mut writer, version, &[], !with_body, None)));
    let outcome = printed.map_err(|_| SendError::Panic)?.and_then(|()| writer.finish());
    outcome.map_err(|error| match failure.get() {
        Failure::Body => SendError::Body(error),
        Failure::Client | Failure::None => SendError::Client(error),
    })
}

/// The response to a refused head or connection, as bytes.
pub(super) fn refusal_bytes(refusal: RefusedRequest, id: &RequestId) -> Vec<u8> {
    let code = match refusal.status {
        503 => ErrorCode::Overloaded,
        429 => ErrorCode::TooManyRequests,
        _ => ErrorCode::InvalidRequest,
    };
    let mut response = ApiError::new(code, refusal.message).into_response(id);
    response.status = refusal.status;
    let end = response.length().map_or(BodyEnd::NoBody, BodyEnd::Length);
    let envelope = Envelope { request_id: id, end, with_body: true, keep_alive: false };
    let mut bytes = Vec::new();
    if let Err(error) = send(response, &envelope, &mut bytes, &|| {}) {
        tracing::error!(%error, "formatting a response failed");
    }
    bytes
}

/// A handler's headers, the standard ones that it doesn't set, and the request id.
fn all_headers(own: Vec<(String, String)>, id: &RequestId) -> Vec<tiny_http::Header> {
    let is_server_header = |name: &str| SERVER_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header));
    let is_set = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let standard = STANDARD_HEADERS.iter().copied().filter(|(name, _)| !is_set(name));
    let set =
        own.iter().map(|(name, value)| (name.as_str(), value.as_str())).filter(|(name, _)| !is_server_header(name));
    let all = set.chain(standard).chain([("X-Request-Id", id.as_str())]);
    all.filter_map(|(name, value)| tiny_http::Header::from_bytes(name, value).ok()).collect()
}

/// The body as tiny_http reads it: truncated to its length; an error if it is shorter.
struct BodyReader<'a> {
    reader: Box<dyn Read + Send>,
    left: Option<u64>,
    failure: &'a Cell<Failure>,
    on_read: &'a dyn Fn(),
}

impl Read for BodyReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = self.left.map_or(out.len(), |left| usize::try_from(left).unwrap_or(usize::MAX).min(out.len()));
        if most == 0 {
            return Ok(0);
        }
        // Set beforehand, so that it is set after a panic as well.
        self.failure.set(Failure::Body);
        let read = self.reader.read(&mut out[..most]);
        (self.on_read)();
        match &read {
            Ok(0) if self.left.is_some() => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => self.left = self.left.map(|left| left - *read as u64),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return read,
        }
        self.failure.set(Failure::None);
        read
    }
}

/// Edits the head that tiny_http writes, and passes the body on. Writes nothing after a failure: tiny_http ends the
/// chunks of every body.
struct ResponseWriter<'a, W> {
    client: &'a mut W,
    buffer: Vec<u8>,
    in_head: bool,
    envelope: &'a Envelope<'a>,
    failure: &'a Cell<Failure>,
}

impl<W: Write> ResponseWriter<'_, W> {
    fn edit_head(&mut self) {
        let dropped: &[&[u8]] = match self.envelope.end {
            BodyEnd::NoBody | BodyEnd::Close => &[b"Server:", b"Content-Length:"],
            BodyEnd::Length(_) | BodyEnd::Chunks => &[b"Server:"],
        };
        let lines = self.buffer[..self.buffer.len() - 2].split_inclusive(|byte| *byte == b'\n');
        let kept = lines.filter(|line| !dropped.iter().any(|name| line.starts_with(name)));
        let mut head = kept.collect::<Vec<_>>().concat();
        if !self.envelope.keep_alive {
            head.extend_from_slice(b"Connection: close\r\n");
        }
        head.extend_from_slice(b"\r\n");
        self.buffer = head;
    }

    fn send_buffer(&mut self) -> io::Result<()> {
        if self.failure.get() != Failure::None {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let sent = self.client.write_all(&self.buffer);
        self.buffer.clear();
        if sent.is_err() {
            self.failure.set(Failure::Client);
        }
        sent
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.send_buffer() }
    }
}

impl<W: Write> Write for ResponseWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.in_head {
            if self.buffer.ends_with(b"\r\n\r\n") {
                self.in_head = false;
                self.edit_head();
            }
        } else if self.buffer.len() >= WRITE_BYTES || self.envelope.end == BodyEnd::Chunks {
            // Sends a chunk immediately, since the next one may be delayed.
            self.send_buffer()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(response: Response, end: BodyEnd, with_body: bool, keep_alive: bool) -> (String, bool) {
        let id = RequestId::accept(Some(b"id-1"));
        let mut out = Vec::new();
        let envelope = Envelope { request_id: &id, end, with_body, keep_alive };
        let whole = send(response, &envelope, &mut out, &|| {}).is_ok();
        (String::from_utf8(out).unwrap(), whole)
    }

    #[test]
    fn standard_headers_are_sent_unless_the_handler_sets_them() {
        let response = Response::text(200, "abc").with_header("cache-control", "max-age=60").with_header("Server", "x");
        let (text, whole) = sent(response, BodyEnd::Length(3), true, false);
        assert!(whole && text.starts_with("HTTP/1.1 200 OK\r\nDate: "), "{text}");
        assert!(
            text.contains("\r\nContent-Type: text/plain; charset=utf-8\r\ncache-control: max-age=60\r\n"),
            "{text}"
        );
        let end = "X-Request-Id: id-1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
        assert!(text.ends_with(end) && !text.contains("Server"), "{text}");
        assert!(text.contains("X-Content-Type-Options: nosniff\r\n") && !text.contains("no-store"), "{text}");
        assert!(text.contains("frame-ancestors 'none'") && !text.contains("unsafe-"), "{text}");
    }

    #[test]
    fn framing_headers_match_the_end_of_the_body() {
        let body = || Response::reader(200, "a/b", &b"abc"[..], None);
        let (text, _) = sent(body(), BodyEnd::Chunks, true, true);
        assert!(text.ends_with("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "{text}");
        for (end, with_body, expected) in [(BodyEnd::Close, true, "\r\n\r\nabc"), (BodyEnd::NoBody, false, "\r\n\r\n")]
        {
            let (text, _) = sent(body(), end, with_body, true);
            assert!(
                text.ends_with(expected) && !text.contains("Content-Length") && !text.contains("chunked"),
                "{text}"
            );
        }
        let (text, _) = sent(body(), BodyEnd::Length(3), false, true);
        assert!(text.ends_with("Content-Length: 3\r\n\r\n"), "{text}");
    }

    #[test]
    fn failed_bodies_are_not_ended() {
        struct Failing(bool);
        impl Read for Failing {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                match std::mem::replace(&mut self.0, false) {
                    true => {
                        out[..3].copy_from_slice(b"abc");
                        Ok(3)
                    }
                    false => Err(io::Error::other("lost")),
                }
            }
        }
        let (text, whole) = sent(Response::reader(200, "a/b", Failing(true), None), BodyEnd::Chunks, true, true);
        assert!(!whole && !text.ends_with("0\r\n\r\n"), "{text}");
        let short = Response::reader(200, "a/b", &b"ab"[..], Some(3));
        assert!(!sent(short, BodyEnd::Length(3), true, true).1);
    }
}
