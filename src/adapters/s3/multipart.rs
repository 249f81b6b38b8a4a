//! Multipart uploads: many requests without effect, and a small one that takes effect.
//!
//! Invariant: an upload that is not completed is aborted, also when its thread panics. (A killed process, or a lost
//! response to the first request, leaves one behind; a lifecycle rule of the bucket removes these.)

use std::io;
use std::time::Instant;

use ureq::http::Method;

use crate::config::Checksum;
use crate::ports::store::{Bucket, ETag, Lease, Precondition, StoreResult};

use crate::sync::parallel_map;

use super::checksum;
use super::failure::RequestError;
use super::request::{COPY_SOURCE_HEADER, Payload, S3Request, UploadBody, WRITE_ID_HEADER, quoted};
use super::response::WriteResult;
use super::sign::encode_path;
use super::store::S3Store;
use super::xml;

/// Minimum size of all parts but the last. (S3's own minimum is 5 MiB.)
const PART_BYTES_MIN: u64 = 8 << 20;
/// Parts of a copy stay within the store, and may be large.
const COPY_PART_BYTES_MIN: u64 = 1 << 30;
const PARTS_MAX: u64 = 10_000;
/// Concurrent part requests of an upload.
const PARTS_AT_ONCE_MAX: usize = 4;
const RESPONSE_BYTES_MAX: u64 = 64 << 10;

/// A part that the store has.
pub(super) struct SentPart {
    tag: ETag,
    /// The SHA-256 that the store responded with, which it expects again at the end.
    sha256: Option<String>,
}

pub(super) struct MultipartUpload<'a> {
    pub(super) store: &'a S3Store,
    pub(super) bucket: Bucket,
    pub(super) key: String,
    lease: Option<&'a dyn Lease>,
    id: String,
    open: bool,
}

impl<'a> MultipartUpload<'a> {
    /// Starts an upload; the object will have this write id.
    pub(super) fn start(
        store: &'a S3Store,
        bucket: Bucket,
        key: &str,
        lease: Option<&'a dyn Lease>,
        write_id: &str,
    ) -> StoreResult<Self> {
        let context = store.context(bucket, key, "starting the upload of");
        let request = S3Request::new(Method::POST, bucket, key, context.operation)
            .query("uploads", "")
            .header(WRITE_ID_HEADER, write_id)
            .payload(Payload::Bytes(b""))
            .leased(lease);
        let started =
            store.client.send(&request, |response| response.xml(RESPONSE_BYTES_MAX, "InitiateMultipartUploadResult"));
        let started: WriteResult = started.map_err(|failure| context.error(failure))?;
        let id = started.upload_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| context.missing("an `UploadId`"))?.to_owned();
        Ok(Self { store, bucket, key: key.to_owned(), lease, id, open: true })
    }

    /// Sends the body, several parts at once; returns the parts in order. Fails if `keep_going` returns false
    /// before all are sent.
    pub(super) fn send(
        &self,
        body: &UploadBody<'_>,
        keep_going: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Vec<SentPart>> {
        let context = self.store.context(self.bucket, &self.key, "sending a part of");
        self.parts(body.length(), PART_BYTES_MIN, keep_going, |number, start, length| {
            let request = self.part(number, context.operation).payload(body.section(start, length));
            let sent = self.store.client.send(&request, |response| {
                let sha256 = response.header(checksum::header_name(Checksum::Sha256)).map(str::to_owned);
                let part = response.etag().map(|tag| SentPart { tag, sha256 });
                response.drain().map(|()| part)
            });
            sent.map_err(|failure| context.error(failure))?.ok_or_else(|| context.missing("an `ETag`"))
        })
    }

    /// Copies the body from another object ([`copy_source`]) of `size`, while that has `tag`.
    pub(super) fn copy_from(&self, from: &str, size: u64, tag: &ETag) -> StoreResult<Vec<SentPart>> {
        let context = self.store.context(self.bucket, &self.key, "copying a part to");
        self.parts(size, COPY_PART_BYTES_MIN, &|| true, |number, start, length| {
            let request = self
                .part(number, context.operation)
                .header(COPY_SOURCE_HEADER, from)
                .header("x-amz-copy-source-if-match", quoted(tag))
                .header("x-amz-copy-source-range", format!("bytes={start}-{}", start + length - 1))
                .payload(Payload::Bytes(b""))
                .slow();
            let copied =
                self.store.client.send(&request, |response| response.xml(RESPONSE_BYTES_MAX, "CopyPartResult"));
            let copied: WriteResult = copied.map_err(|failure| context.error(failure))?;
            let tag = copied.etag().ok_or_else(|| context.missing("an `ETag`"))?;
            Ok(SentPart { tag, sha256: copied.sha256 })
        })
    }

    fn part(&self, number: u64, operation: &'static str) -> S3Request<'_> {
        S3Request::new(Method::PUT, self.bucket, &self.key, operation)
            .query("partNumber", number.to_string())
            .query("uploadId", self.id.as_str())
            .leased(self.lease)
    }

    /// Calls `send(number, start, length)` for every part, several at once, until an error or `keep_going` returns
    /// false.
    fn parts(
        &self,
        size: u64,
        part_bytes_min: u64,
        keep_going: &(dyn Fn() -> bool + Sync),
        send: impl Fn(u64, u64, u64) -> StoreResult<SentPart> + Sync,
    ) -> StoreResult<Vec<SentPart>> {
        let part_bytes = part_bytes(size, part_bytes_min);
        let starts: Vec<u64> = (0..size.div_ceil(part_bytes)).map(|index| index * part_bytes).collect();
        parallel_map(&starts, PARTS_AT_ONCE_MAX, |start| {
            if !keep_going() {
                let stopped = io::Error::new(io::ErrorKind::Interrupted, "stopped before all parts were sent");
                return Err(self.store.context(self.bucket, &self.key, "sending the parts of").transient(stopped));
            }
            send(start / part_bytes + 1, *start, part_bytes.min(size - start))
        })
    }

    /// Completes the upload under a precondition that the store enforces. Returns the object's tag, if the response has
    /// it.
    pub(super) fn complete(
        &mut self,
        parts: &[SentPart],
        precondition: &Precondition,
        deadline: Option<Instant>,
    ) -> Result<Option<ETag>, RequestError> {
        let mut document = String::from("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        for (index, SentPart { tag, sha256 }) in parts.iter().enumerate() {
            let tag = xml::escape(&quoted(tag));
            let number = index + 1;
            let sha256 = sha256.as_deref().map(xml::escape);
            let checksum = sha256.map(|sum| format!("<ChecksumSHA256>{sum}</ChecksumSHA256>")).unwrap_or_default();
            document.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag>{checksum}</Part>"));
        }
        document.push_str("</CompleteMultipartUpload>");
        let request = S3Request::new(Method::POST, self.bucket, &self.key, "completing the upload of")
            .query("uploadId", self.id.as_str())
            .header("content-type", "application/xml")
            .payload(Payload::Bytes(document.as_bytes()))
            .leased(self.lease)
            .deadline(deadline)
            .slow()
            .precondition(precondition);
        let completed: WriteResult = self
            .store
            .client
            .send(&request, |response| response.xml(RESPONSE_BYTES_MAX, "CompleteMultipartUploadResult"))?;
        self.open = false;
        Ok(completed.etag())
    }
}

impl Drop for MultipartUpload<'_> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        // Without the lease, so that uploads are aborted after it expired too: that changes no object.
        let request = S3Request::new(Method::DELETE, self.bucket, &self.key, "aborting the upload of")
            .query("uploadId", self.id.as_str());
        match self.store.client.send(&request, |response| response.drain()) {
            Ok(()) => {}
            Err(failure) if failure.status() == Some(404) => {}
            Err(failure) => {
                tracing::warn!(bucket = %self.bucket, key = self.key.as_str(), %failure, "upload not aborted");
            }
        }
    }
}

/// The header `x-amz-copy-source` for a key in the named bucket.
pub(super) fn copy_source((bucket, key): (&str, &str)) -> String {
    format!("/{}/{}", encode_path(bucket), encode_path(key))
}

/// The size of all parts but the last, in whole MiB, so that there are at most [`PARTS_MAX`].
fn part_bytes(size: u64, min: u64) -> u64 {
    size.div_ceil(PARTS_MAX).next_multiple_of(1 << 20).max(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_count_never_exceeds_the_limit() {
        const MIB: u64 = 1 << 20;
        assert_eq!(part_bytes(1, PART_BYTES_MIN), 8 * MIB);
        assert_eq!(part_bytes(80_000 * MIB, PART_BYTES_MIN), 8 * MIB);
        assert_eq!(part_bytes(80_000 * MIB + 1, PART_BYTES_MIN), 9 * MIB);
        for size in [1, 5 << 30, 5 << 40, (5 << 40) + 1] {
            assert!(u64::div_ceil(size, part_bytes(size, PART_BYTES_MIN)) <= PARTS_MAX);
        }
    }

    #[test]
    fn copy_source_is_encoded_except_slashes() {
        assert_eq!(copy_source(("svc-lake", "a b/c+%.csv")), "/svc-lake/a%20b/c%2B%25.csv");
    }
}
