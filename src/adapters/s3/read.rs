//! Looking at objects and reading them.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::Ordering;

use ureq::http::Method;

use crate::ports::store::{Bucket, ETag, ObjectMeta, ObjectReader, StoreError, StoreResult};

use super::S3Store;
use super::answer::{Answer, Failure};
use super::client::Call;
use super::error::Place;
use super::key;

/// The header in which a conditional write leaves its mark; see `write`.
pub(super) const MARK_HEADER: &str = "x-amz-meta-lakemill-write";

/// Room is made at once for as much of a range; beyond it, as it comes.
const RANGE_AT_ONCE_BYTES_MAX: u64 = 16 << 20;

/// What HEAD tells.
pub(super) struct Looked {
    pub(super) meta: ObjectMeta,
    pub(super) mark: Option<String>,
}

impl S3Store {
    pub(super) fn look(&self, bucket: Bucket, key: &str) -> StoreResult<Option<Looked>> {
        let place = self.place(bucket, key, "looking at");
        let call = Call::new(Method::HEAD, bucket, key, place.operation);
        let looked = self.client.send(&call, |answer| {
            let mark = answer.header(MARK_HEADER).map(str::to_owned);
            Ok((meta_of(&answer, key), mark))
        });
        match looked {
            Ok((meta, mark)) => {
                self.seen(bucket).store(true, Ordering::Relaxed);
                let meta = meta.ok_or_else(|| place.lacking("`Content-Length`, `ETag` and `Last-Modified`"))?;
                Ok(Some(Looked { meta, mark }))
            }
            Err(failure) if failure.status() == Some(404) => {
                self.bucket_is_there(bucket)?;
                Ok(None)
            }
            Err(failure) => Err(place.error(failure)),
        }
    }

    pub(super) fn head_object(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        key::check(bucket, key)?;
        Ok(self.look(bucket, key)?.map(|looked| looked.meta))
    }

    /// HEAD has no body that would tell a missing bucket from a missing object, so the first time that one is missing
    /// the bucket is asked for.
    fn bucket_is_there(&self, bucket: Bucket) -> StoreResult<()> {
        if !self.seen(bucket).load(Ordering::Relaxed) {
            self.probe_bucket(bucket)?;
            self.seen(bucket).store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(super) fn get_object(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        key::check(bucket, key)?;
        let place = self.place(bucket, key, "reading");
        let mut call = Call::new(Method::GET, bucket, key, place.operation);
        if let Some(tag) = if_match {
            call = call.if_match(tag);
        }
        let answer = self.client.send(&call, Ok).map_err(|failure| self.read_error(&place, failure))?;
        let meta =
            meta_of(&answer, key).ok_or_else(|| place.lacking("`Content-Length`, `ETag` and `Last-Modified`"))?;
        // Some stores ignore conditions on reading.
        if if_match.is_some() && meta.etag.as_ref() != if_match {
            return Err(place.precondition_failed());
        }
        let body = Box::new(WholeBody { body: answer.into_reader(), left: meta.size });
        Ok(ObjectReader { meta, body })
    }

    /// Reads a range of an object, cut at its end.
    pub(super) fn get_object_range(
        &self,
        bucket: Bucket,
        key: &str,
        range: Range<u64>,
        if_match: Option<&ETag>,
    ) -> StoreResult<Vec<u8>> {
        key::check(bucket, key)?;
        let place = self.place(bucket, key, "reading");
        if range.is_empty() {
            return self.nothing_of(&place, if_match);
        }
        let mut call = Call::new(Method::GET, bucket, key, place.operation).header("range", range_header(&range));
        if let Some(tag) = if_match {
            call = call.if_match(tag);
        }
        let read = self.client.send(&call, |answer| {
            let tag = answer.etag();
            read_range(answer, &range).map(|bytes| (tag, bytes))
        });
        match read {
            Ok((tag, _)) if if_match.is_some() && tag.as_ref() != if_match => Err(place.precondition_failed()),
            Ok((_, bytes)) => Ok(bytes),
            Err(failure) if failure.status() == Some(416) => self.nothing_of(&place, if_match),
            Err(failure) => Err(self.read_error(&place, failure)),
        }
    }

    /// No bytes of an object that must be there all the same.
    fn nothing_of(&self, place: &Place<'_>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        match self.look(place.bucket, place.key)? {
            None => Err(place.not_found()),
            Some(looked) if if_match.is_some() && looked.meta.etag.as_ref() != if_match => {
                Err(place.precondition_failed())
            }
            Some(_) => Ok(Vec::new()),
        }
    }

    /// Some stores say of a missing object that it doesn't match.
    fn read_error(&self, place: &Place<'_>, failure: Failure) -> StoreError {
        match place.error(failure) {
            StoreError::PreconditionFailed { bucket, key } => match self.look(bucket, &key) {
                Ok(Some(_)) => StoreError::PreconditionFailed { bucket, key },
                Ok(None) => place.not_found(),
                Err(error) => error,
            },
            error => error,
        }
    }
}

fn meta_of(answer: &Answer, key: &str) -> Option<ObjectMeta> {
    let (size, etag, modified) = (answer.length()?, answer.etag()?, answer.last_modified()?);
    Some(ObjectMeta { key: key.to_owned(), size, etag: Some(etag), modified })
}

/// Without an end where it is beyond what stores count to.
fn range_header(range: &Range<u64>) -> String {
    match i64::try_from(range.end) {
        Ok(end) => format!("bytes={}-{}", range.start, end - 1),
        Err(_) => format!("bytes={}-", range.start),
    }
}

fn read_range(answer: Answer, range: &Range<u64>) -> Result<Vec<u8>, Failure> {
    let wanted = range.end - range.start;
    let partial = answer.status.as_u16() == 206;
    let length = answer.length().ok_or_else(|| Failure::garbage("expected a `Content-Length`, found none".into()))?;
    // A store may ignore the range and send everything.
    let skip = if partial { 0 } else { range.start.min(length) };
    let expected = if partial { length } else { (length - skip).min(wanted) };
    if expected > wanted {
        return Err(Failure::garbage(format!("expected at most {wanted} bytes, found {length}")));
    }
    let mut body = WholeBody { body: answer.into_reader(), left: length };
    let mut read = || -> io::Result<Vec<u8>> {
        io::copy(&mut (&mut body).take(skip), &mut io::sink())?;
        let mut bytes = Vec::with_capacity(usize::try_from(expected.min(RANGE_AT_ONCE_BYTES_MAX)).unwrap_or(0));
        (&mut body).take(expected).read_to_end(&mut bytes)?;
        // To the end, if that is all, so that the connection can be used again.
        if partial { body.read(&mut [0; 1]).map(|_| bytes) } else { Ok(bytes) }
    };
    read().map_err(Failure::broken)
}

/// A body of known length: one that ends before it is an error, as is one that goes on after it.
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
                let text = format!("the object broke off: {left} bytes more were to come");
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, text))
            }
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "the object is longer than the store said")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_as_long_as_it_was_said_to_be() {
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
    fn ranges_beyond_what_stores_count_to_have_no_end() {
        assert_eq!(range_header(&(3..7)), "bytes=3-6");
        assert_eq!(range_header(&(5..u64::MAX)), "bytes=5-");
    }
}
