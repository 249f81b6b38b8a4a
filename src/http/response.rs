//! Responses of handlers.
//!
//! Invariant: a body of known length is sent with `Content-Length`, never chunked; an incomplete body is never ended as
//! if it were complete.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use serde::Serialize;

/// Headers of every response, unless its handler sets another value.
pub const STANDARD_HEADERS: &[(&str, &str)] = &[
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
         connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; \
         frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
];

/// The body of a response.
pub enum Body {
    Bytes(Cow<'static, [u8]>),
    /// Read while it is sent. `length`: its length, if known beforehand.
    Reader {
        reader: Box<dyn Read + Send>,
        length: Option<u64>,
    },
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Reader { length, .. } => write!(f, "Reader({length:?})"),
        }
    }
}

/// A status, headers and a body.
#[derive(Debug)]
pub struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
}

impl Response {
    /// A response without body. `status`: 200 to 599.
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Bytes(Cow::Borrowed(&[])) }
    }

    pub fn bytes(status: u16, content_type: &str, bytes: impl Into<Cow<'static, [u8]>>) -> Self {
        let body = Body::Bytes(bytes.into());
        Self { body, ..Self::empty(status) }.with_header("Content-Type", content_type)
    }

    pub fn text(status: u16, text: impl Into<String>) -> Self {
        Self::bytes(status, "text/plain; charset=utf-8", text.into().into_bytes())
    }

    /// `value` as JSON; 500 if it can't be serialized (a map with keys that are not text).
    pub fn json(status: u16, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => Self::bytes(status, "application/json", bytes),
            Err(error) => {
                tracing::error!(%error, "serializing a response failed");
                Self::bytes(
                    500,
                    "application/json",
                    &br#"{"error":"internal","message":"serializing a response failed"}"#[..],
                )
            }
        }
    }

    /// An open file.
    ///
    /// # Errors
    /// The file's size can't be read.
    pub fn file(status: u16, content_type: &str, file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self::reader(status, content_type, file, Some(length)))
    }

    /// A body that is read while it is sent. With `length`, the connection ends if the reader yields fewer bytes;
    /// without, the body is chunked, and stays incomplete if the reader fails.
    pub fn reader(status: u16, content_type: &str, reader: impl Read + Send + 'static, length: Option<u64>) -> Self {
        let body = Body::Reader { reader: Box::new(reader), length };
        Self { body, ..Self::empty(status) }.with_header("Content-Type", content_type)
    }

    /// Adds a header. Name and value must be printable ASCII, else the response becomes a 500. Headers of framing,
    /// connection and request id are set by the server and dropped here.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Bytes of the body, if that is known beforehand.
    pub(super) fn length(&self) -> Option<u64> {
        match &self.body {
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::Reader { length, .. } => *length,
        }
    }

    /// The name of the first malformed header.
    pub(super) fn malformed_header(&self) -> Option<&str> {
        let token = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
        };
        let printable = |value: &str| value.bytes().all(|b| (0x20..0x7f).contains(&b) || b == b'\t');
        self.headers.iter().find(|(name, value)| !token(name) || !printable(value)).map(|(name, _)| name.as_str())
    }
}
