//! Metadata and content of objects.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::Ordering;

use ureq::http::Method;

use crate::ports::store::{Bucket, ETag, ObjectMeta, ObjectReader, StoreError, StoreResult};

use super::error::OperationContext;
use super::failure::RequestError;
use super::key;
use super::request::{S3Request, WRITE_ID_HEADER};
use super::response::StoreResponse;
use super::store::S3Store;

/// Maximum initial capacity of a range's buffer.
const RANGE_AT_ONCE_BYTES_MAX: u64 = 16 << 20;

/// The response to HEAD.
pub(super) struct HeadResult {
    pub(super) meta: ObjectMeta,
    pub(super) write_id: Option<String>,
}

impl S3Store {
    pub(super) fn head_object(&self, bucket: Bucket, key: &str) -> StoreResult<Option<HeadResult>> {
        let context = self.context(bucket, key, "reading the metadata of");
        let request = S3Request::new(Method::HEAD, bucket, key, context.operation);
        let head = self.client.send(&request, |response| {
            Ok((meta_of(&response, key), response.header(WRITE_ID_HEADER).map(str::to_owned)))
        });
        match head {
            Ok((meta, write_id)) => {
                self.seen(bucket).store(true, Ordering::Relaxed);
                let meta = meta.ok_or_else(|| context.missing(REQUIRED_HEADERS))?;
                Ok(Some(HeadResult { meta, write_id }))
            }
            Err(failure) if failure.status() == Some(404) => {
                self.check_bucket(bucket)?;
                Ok(None)
            }
            Err(failure) => Err(context.error(failure)),
        }
    }

    /// HEAD has no body that distinguishes a missing bucket from a missing object, so the bucket is probed once.
    fn check_bucket(&self, bucket: Bucket) -> StoreResult<()> {
        if !self.seen(bucket).load(Ordering::Relaxed) {
            self.probe_bucket(bucket)?;
            self.seen(bucket).store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(super) fn get_object(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        key::check(bucket, key)?;
        let context = self.context(bucket, key, "reading");
        let request = S3Request::new(Method::GET, bucket, key, context.operation).if_match(if_match);
        let response = self.client.send(&request, Ok).map_err(|failure| self.read_error(&context, failure))?;
        let meta = meta_of(&response, key).ok_or_else(|| context.missing(REQUIRED_HEADERS))?;
        // Some stores ignore preconditions on reads.
        if if_match.is_some() && meta.etag.as_ref() != if_match {
            return Err(context.precondition_failed());
        }
        let body = Box::new(WholeBody { body: response.into_reader(), left: meta.size });
        Ok(ObjectReader { meta, body })
    }

    pub(super) fn get_object_range(
        &self,
        bucket: Bucket,
        key: &str,
        range: Range<u64>,
        if_match: Option<&ETag>,
    ) -> StoreResult<Vec<u8>> {
        key::check(bucket, key)?;
        let context = self.context(bucket, key, "reading");
        if range.is_empty() {
            return self.empty_range(&context, if_match);
        }
        let request = S3Request::new(Method::GET, bucket, key, context.operation)
            .header("range", range_header(&range))
            .if_match(if_match);
        let read = self.client.send(&request, |response| {
            let tag = response.etag();
            read_range(response, &range).map(|bytes| (tag, bytes))
        });
        match read {
            Ok((tag, _)) if if_match.is_some() && tag.as_ref() != if_match => Err(context.precondition_failed()),
            Ok((_, bytes)) => Ok(bytes),
            Err(failure) if failure.status() == Some(416) => self.empty_range(&context, if_match),
            Err(failure) => Err(self.read_error(&context, failure)),
        }
    }

    /// No bytes, after a check that the object exists and matches.
    fn empty_range(&self, context: &OperationContext<'_>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        match self.head_object(context.bucket, context.key)? {
            None => Err(context.not_found()),
            Some(head) if if_match.is_some() && head.meta.etag.as_ref() != if_match => {
                Err(context.precondition_failed())
            }
            Some(_) => Ok(Vec::new()),
        }
    }

    /// Some stores report a missing object as one that doesn't match.
    fn read_error(&self, context: &OperationContext<'_>, failure: RequestError) -> StoreError {
        match context.error(failure) {
            StoreError::PreconditionFailed { bucket, key } => match self.head_object(bucket, &key) {
                Ok(Some(_)) => StoreError::PreconditionFailed { bucket, key },
                Ok(None) => context.not_found(),
                Err(error) => error,
            },
            error => error,
        }
    }
}

const REQUIRED_HEADERS: &str = "`Content-Length`, `ETag` and `Last-Modified`";

fn meta_of(response: &StoreResponse, key: &str) -> Option<ObjectMeta> {
    let (size, etag, modified) = (response.length()?, response.etag()?, response.last_modified()?);
    Some(ObjectMeta { key: key.to_owned(), size, etag: Some(etag), modified })
}

/// Omits an end that stores can't represent.
fn range_header(range: &Range<u64>) -> String {
    match i64::try_from(range.end) {
        Ok(end) => format!("bytes={}-{}", range.start, end - 1),
        Err(_) => format!("bytes={}-", range.start),
    }
}

fn read_range(response: StoreResponse, range: &Range<u64>) -> Result<Vec<u8>, RequestError> {
    let wanted = range.end - range.start;
    let partial = response.status.as_u16() == 206;
    let length =
        response.length().ok_or_else(|| RequestError::invalid_response("expected a `Content-Length`, found none"))?;
    // Some stores ignore the range and send the whole object.
    let skip = if partial { 0 } else { range.start.min(length) };
    let expected = if partial { length } else { (length - skip).min(wanted) };
    if expected > wanted {
        return Err(RequestError::invalid_response(format!("expected at most {wanted} bytes, found {length}")));
    }
    let mut body = WholeBody { body: response.into_reader(), left: length };
    let mut read = || -> io::Result<Vec<u8>> {
        io::copy(&mut (&mut body).take(skip), &mut io::sink())?;
        let mut bytes = Vec::with_capacity(usize::try_from(expected.min(RANGE_AT_ONCE_BYTES_MAX)).unwrap_or(0));
        (&mut body).take(expected).read_to_end(&mut bytes)?;
        // Reads to the end of a partial response, so that the connection can be reused.
        if partial { body.read(&mut [0; 1]).map(|_| bytes) } else { Ok(bytes) }
    };
    read().map_err(RequestError::body)
}

/// A body of known length: a shorter or longer one is an error.
struct WholeBody<R> {
    body: R,
    left: u64,
}

impl<R: Read> Read for WholeBody<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.body.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) if read > 0 || left == 0 => {
                self.left = left;
                Ok(read)
            }
            Some(left) => {
                let text = format!("the object was truncated: {left} bytes are missing");
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, text))
            }
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "the object is longer than its `Content-Length`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_must_match_its_content_length() {
        let read = |bytes: &'static [u8], left| {
            let mut out = Vec::new();
            WholeBody { body: bytes, left }.read_to_end(&mut out).map(|_| out).map_err(|error| error.kind())
        };
        assert_eq!(read(b"abc", 3), Ok(b"abc".to_vec()));
        assert_eq!(read(b"", 0), Ok(Vec::new()));
        assert_eq!(read(b"abc", 4), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(read(b"abc", 2), Err(io::ErrorKind::InvalidData));
    }

    #[test]
    fn unrepresentable_range_end_is_omitted() {
        assert_eq!(range_header(&(3..7)), "bytes=3-6");
        assert_eq!(range_header(&(5..u64::MAX)), "bytes=5-");
    }
}
