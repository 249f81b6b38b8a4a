//! A request to the store, before it is signed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::time::Instant;

use ureq::http::Method;

use crate::config::{Encryption, RequestStyle};
use crate::ports::store::{Bucket, ETag, Lease, Precondition};

/// A header's name, in lower case, and value.
pub(super) type Header = (&'static str, String);

/// Metadata of an object: the id of the write that created it; see `write`.
pub(super) const WRITE_ID_HEADER: &str = "x-amz-meta-lakemill-write";

/// Names the source object of a copy.
pub(super) const COPY_SOURCE_HEADER: &str = "x-amz-copy-source";

/// A request's body.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    None,
    Bytes(&'a [u8]),
    Section { file: &'a File, start: u64, length: u64 },
}

/// Reads a part of a file without moving its position, so that parts can be read concurrently.
pub(super) struct SectionReader<'a> {
    pub(super) file: &'a File,
    pub(super) at: u64,
    pub(super) left: u64,
}

impl Read for SectionReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let read = self.file.read_at(&mut buffer[..wanted], self.at)?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file was truncated while it was sent"));
        }
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
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

    /// Whether the store must reject it after some time.
    pub(super) fn expires(&self) -> bool {
        self.lease.is_some() || self.deadline.is_some()
    }

    /// Whether the request creates an object, or starts a multipart upload that does.
    pub(super) fn begins_object(&self) -> bool {
        !self.key.is_empty() && (self.method == Method::PUT && !self.has_query("partNumber") || self.starts_upload())
    }

    /// Whether the request starts a multipart upload.
    pub(super) fn starts_upload(&self) -> bool {
        self.has_query("uploads")
    }

    /// Whether the store copies the body from another object.
    pub(super) fn is_copy(&self) -> bool {
        self.headers.iter().any(|(name, _)| *name == COPY_SOURCE_HEADER)
    }

    fn has_query(&self, name: &str) -> bool {
        self.query.iter().any(|(own, _)| *own == name)
    }

    /// The headers that the store's settings add to it.
    pub(super) fn headers_of(&self, style: &RequestStyle) -> Vec<Header> {
        let mut headers: Vec<Header> = Vec::new();
        if style.is_requester_paying {
            headers.push(("x-amz-request-payer", "requester".into()));
        }
        if let Some(owner) = &style.bucket_owner {
            headers.push(("x-amz-expected-bucket-owner", owner.clone()));
            if self.is_copy() {
                headers.push(("x-amz-source-expected-bucket-owner", owner.clone()));
            }
        }
        match style.encryption.as_ref().filter(|_| self.begins_object()) {
            None => {}
            Some(Encryption::Store) => headers.push(("x-amz-server-side-encryption", "AES256".into())),
            Some(Encryption::Kms { key }) => {
                headers.push(("x-amz-server-side-encryption", "aws:kms".into()));
                headers.extend(key.clone().map(|key| ("x-amz-server-side-encryption-aws-kms-key-id", key)));
            }
        }
        headers
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_add_headers_to_the_requests_that_take_them() {
        let style = RequestStyle {
            encryption: Some(Encryption::Kms { key: Some("k".into()) }),
            bucket_owner: Some("123456789012".into()),
            is_requester_paying: true,
            ..RequestStyle::default()
        };
        let names = |request: S3Request<'_>| -> Vec<&str> {
            request.headers_of(&style).into_iter().map(|(name, _)| name).collect()
        };
        let request = |method: Method, key: &'static str| S3Request::new(method, Bucket::Lake, key, "");
        let all = ["x-amz-request-payer", "x-amz-expected-bucket-owner"];
        let encryption = ["x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id"];
        assert_eq!(names(request(Method::GET, "a")), all);
        assert_eq!(names(request(Method::GET, "").query("list-type", "2")), all);
        assert_eq!(names(request(Method::PUT, "").query("notification", "")), all);
        assert_eq!(names(request(Method::PUT, "a")), [all, encryption].concat());
        assert_eq!(names(request(Method::POST, "a").query("uploads", "")), [all, encryption].concat());
        assert_eq!(names(request(Method::PUT, "a").query("partNumber", "1").query("uploadId", "x")), all);
        assert_eq!(names(request(Method::POST, "a").query("uploadId", "x")), all);
        let copy = request(Method::PUT, "a").header(COPY_SOURCE_HEADER, "/b/k");
        assert_eq!(names(copy), [&all[..], &["x-amz-source-expected-bucket-owner"], &encryption].concat());
        assert_eq!(request(Method::PUT, "a").headers_of(&RequestStyle::default()), []);
    }
}
