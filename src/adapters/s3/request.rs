//! A request to the store, before it is signed.

use std::fs::File;
use std::time::Instant;

use ureq::http::Method;

use crate::ports::store::{Bucket, ETag, Lease, Precondition};

/// A header's name, in lower case, and value.
pub(super) type Header = (&'static str, String);

/// Metadata of an object: the id of the write that created it; see `write`.
pub(super) const WRITE_ID_HEADER: &str = "x-amz-meta-lakemill-write";

/// A request's body.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    None,
    Bytes(&'a [u8]),
    Section { file: &'a File, start: u64, length: u64 },
}

/// The body of an object to write.
#[derive(Clone, Copy)]
pub(super) enum UploadBody<'a> {
    Bytes(&'a [u8]),
    File { file: &'a File, length: u64 },
}

impl<'a> UploadBody<'a> {
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
        }
    }

    /// `length` bytes from `start`, which must lie within the body.
    pub(super) fn section(&self, start: u64, length: u64) -> Payload<'a> {
        match *self {
            Self::Bytes(bytes) => {
                let at = |offset: u64| usize::try_from(offset).unwrap_or(bytes.len()).min(bytes.len());
                Payload::Bytes(&bytes[at(start)..at(start + length)])
            }
            Self::File { file, .. } => Payload::Section { file, start, length },
        }
    }
}

pub(super) struct S3Request<'a> {
    pub(super) method: Method,
    pub(super) bucket: Bucket,
    /// `""` for the bucket itself.
    pub(super) key: &'a str,
    pub(super) query: Vec<(&'static str, String)>,
    /// Headers that start with `x-amz-` are signed.
    pub(super) headers: Vec<Header>,
    pub(super) payload: Payload<'a>,
    pub(super) lease: Option<&'a dyn Lease>,
    /// The request must not start later.
    pub(super) deadline: Option<Instant>,
    /// Whether the store does a lot of work before it responds.
    pub(super) slow: bool,
    /// For error texts.
    pub(super) operation: &'static str,
}

impl<'a> S3Request<'a> {
    pub(super) fn new(method: Method, bucket: Bucket, key: &'a str, operation: &'static str) -> Self {
        let (query, headers, payload) = (Vec::new(), Vec::new(), Payload::None);
        Self { method, bucket, key, query, headers, payload, lease: None, deadline: None, slow: false, operation }
    }

    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds the headers of a precondition that the store enforces.
    pub(super) fn precondition(self, precondition: &Precondition) -> Self {
        match precondition {
            Precondition::None => self,
            Precondition::IfMatch(tag) => self.header("if-match", quoted(tag)),
            Precondition::IfNoneMatch => self.header("if-none-match", "*"),
        }
    }

    pub(super) fn if_match(self, tag: Option<&ETag>) -> Self {
        match tag {
            Some(tag) => self.header("if-match", quoted(tag)),
            None => self,
        }
    }

    pub(super) fn payload(mut self, payload: Payload<'a>) -> Self {
        self.payload = payload;
        self
    }

    pub(super) fn leased(mut self, lease: Option<&'a dyn Lease>) -> Self {
        self.lease = lease;
        self
    }

    pub(super) fn deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    pub(super) fn slow(mut self) -> Self {
        self.slow = true;
        self
    }
}

/// A tag as in headers.
pub(super) fn quoted(tag: &ETag) -> String {
    format!("\"{}\"", tag.0)
}
