//! Uploads in parts: many requests that change nothing, and one small one that does.
//!
//! Invariant: an upload that is not completed is aborted, also when its thread panics. (What stays is one whose beginning
//! was answered into a broken connection, nameless, and those of a process that was killed; a rule of the bucket's life
//! cycle sweeps such.)

use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use ureq::http::Method;

use crate::ports::store::{Bucket, ETag, Lease, Precondition, StoreResult};

use super::S3Store;
use super::answer::{Failure, unquoted};
use super::client::{Call, Payload};
use super::conditions::conditional;
use super::read::MARK_HEADER;
use super::sign::encode_path;
use super::write::Source;
use super::xml;

/// Least size of a part but the last. (S3's own bound is 5 MiB.)
const PART_BYTES_MIN: u64 = 8 << 20;
/// Parts of a copy are made within the store, and may be large.
const COPY_PART_BYTES_MIN: u64 = 1 << 30;
const PARTS_MAX: u64 = 10_000;
/// Parts that are under way at once.
const PARTS_AT_ONCE_MAX: usize = 4;
/// An answer about an upload.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

pub(super) struct Upload<'a> {
    pub(super) store: &'a S3Store,
    pub(super) bucket: Bucket,
    pub(super) key: String,
    lease: Option<&'a dyn Lease>,
    id: String,
    open: bool,
}

impl<'a> Upload<'a> {
    /// Begins an upload; the object will carry `mark`.
    pub(super) fn start(
        store: &'a S3Store,
        bucket: Bucket,
        key: &str,
        lease: Option<&'a dyn Lease>,
        mark: &str,
    ) -> StoreResult<Self> {
        let place = store.place(bucket, key, "beginning the upload of");
        let call = Call::new(Method::POST, bucket, key, place.operation)
            .query("uploads", "")
            .header(MARK_HEADER, mark)
            .payload(Payload::Bytes(b""))
            .leased(lease);
        let node = store.client.send(&call, |answer| answer.xml(ANSWER_BYTES_MAX, "InitiateMultipartUploadResult"));
        let node = node.map_err(|failure| place.error(failure))?;
        let id = node.text_of("UploadId").map(str::trim).filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| place.lacking("an `UploadId`"))?.to_owned();
        Ok(Self { store, bucket, key: key.to_owned(), lease, id, open: true })
    }

    /// Sends the body, several parts at once, and gives the parts' tags in order. Fails if `go_on` says no before all are
    /// sent.
    pub(super) fn send(&self, source: &Source<'_>, go_on: &(dyn Fn() -> bool + Sync)) -> StoreResult<Vec<ETag>> {
        let place = self.store.place(self.bucket, &self.key, "sending a part of");
        self.parts(source.length(), PART_BYTES_MIN, go_on, |number, start, length| {
            let call = self.part(number, place.operation).payload(source.section(start, length));
            let tag = self.store.client.send(&call, |answer| {
                let tag = answer.etag();
                answer.drained().map(|()| tag)
            });
            tag.map_err(|failure| place.error(failure))?.ok_or_else(|| place.lacking("an `ETag`"))
        })
    }

    /// Copies the body from another object of `size`, as long as it has `tag`.
    pub(super) fn copy_from(&self, from: (&str, &str), size: u64, tag: &ETag) -> StoreResult<Vec<ETag>> {
        let place = self.store.place(self.bucket, &self.key, "copying a part to");
        self.parts(size, COPY_PART_BYTES_MIN, &|| true, |number, start, length| {
            let call = self
                .part(number, place.operation)
                .header("x-amz-copy-source", copy_source(from))
                .header("x-amz-copy-source-if-match", super::client::quoted(tag))
                .header("x-amz-copy-source-range", format!("bytes={start}-{}", start + length - 1))
                .payload(Payload::Bytes(b""))
                .slow();
            let node = self.store.client.send(&call, |answer| answer.xml(ANSWER_BYTES_MAX, "CopyPartResult"));
            let node = node.map_err(|failure| place.error(failure))?;
            node.text_of("ETag").and_then(unquoted).ok_or_else(|| place.lacking("an `ETag`"))
        })
    }

    fn part(&self, number: u64, operation: &'static str) -> Call<'_> {
        Call::new(Method::PUT, self.bucket, &self.key, operation)
            .query("partNumber", number.to_string())
            .query("uploadId", self.id.as_str())
            .leased(self.lease)
    }

    /// Runs `send(number, start, length)` for every part, in threads if there are several. The first error stops all, as
    /// does `go_on`.
    fn parts(
        &self,
        size: u64,
        part_bytes_min: u64,
        go_on: &(dyn Fn() -> bool + Sync),
        send: impl Fn(u64, u64, u64) -> StoreResult<ETag> + Sync,
    ) -> StoreResult<Vec<ETag>> {
        let part_bytes = part_bytes(size, part_bytes_min);
        let count = usize::try_from(size.div_ceil(part_bytes)).unwrap_or(usize::MAX);
        let results: Mutex<Vec<(usize, StoreResult<ETag>)>> = Mutex::new(Vec::new());
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            while !stop.load(Ordering::Relaxed) && go_on() {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return;
                }
                let start = index as u64 * part_bytes;
                let result = send(index as u64 + 1, start, part_bytes.min(size - start));
                if result.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                results.lock().push((index, result));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..count.min(PARTS_AT_ONCE_MAX) {
                scope.spawn(work);
            }
            work();
        });
        let mut results = results.into_inner();
        results.sort_by_key(|(index, _)| *index);
        let sent = results.into_iter().map(|(_, result)| result).collect::<StoreResult<Vec<ETag>>>()?;
        if sent.len() < count {
            let stopped = io::Error::new(io::ErrorKind::Interrupted, "told to stop before all parts were sent");
            return Err(self.store.place(self.bucket, &self.key, "sending the parts of").transient(stopped));
        }
        Ok(sent)
    }

    /// Puts the parts together under a precondition that the store holds. Gives the object's tag, if the store told it.
    pub(super) fn complete(
        &mut self,
        parts: &[ETag],
        when: &Precondition,
        until: Option<Instant>,
    ) -> Result<Option<ETag>, Failure> {
        let mut document = String::from("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        for (index, tag) in parts.iter().enumerate() {
            let tag = xml::escape(&super::client::quoted(tag));
            let number = index + 1;
            document.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"));
        }
        document.push_str("</CompleteMultipartUpload>");
        let call = Call::new(Method::POST, self.bucket, &self.key, "completing the upload of")
            .query("uploadId", self.id.as_str())
            .header("content-type", "application/xml")
            .payload(Payload::Bytes(document.as_bytes()))
            .leased(self.lease)
            .until(until)
            .slow();
        let call = conditional(call, when);
        let node =
            self.store.client.send(&call, |answer| answer.xml(ANSWER_BYTES_MAX, "CompleteMultipartUploadResult"));
        let tag = node?.text_of("ETag").and_then(unquoted);
        self.open = false;
        Ok(tag)
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        // Without the lease: what it began is cleared away also after its end, and no object changes by it.
        let call = Call::new(Method::DELETE, self.bucket, &self.key, "aborting the upload of")
            .query("uploadId", self.id.as_str());
        match self.store.client.send(&call, |answer| answer.drained()) {
            Ok(()) => {}
            Err(failure) if failure.status() == Some(404) => {}
            Err(failure) => {
                tracing::warn!(bucket = %self.bucket, key = self.key.as_str(), %failure, "an upload could not be aborted");
            }
        }
    }
}

/// `x-amz-copy-source` of a key in a bucket of that name.
pub(super) fn copy_source((bucket, key): (&str, &str)) -> String {
    format!("/{}/{}", encode_path(bucket), encode_path(key))
}

/// The size of all parts but the last: whole MiB, so many that there are not too many.
fn part_bytes(size: u64, min: u64) -> u64 {
    size.div_ceil(PARTS_MAX).next_multiple_of(1 << 20).max(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_too_many_parts() {
        const MIB: u64 = 1 << 20;
        assert_eq!(part_bytes(1, PART_BYTES_MIN), 8 * MIB);
        assert_eq!(part_bytes(80_000 * MIB, PART_BYTES_MIN), 8 * MIB);
        assert_eq!(part_bytes(80_000 * MIB + 1, PART_BYTES_MIN), 9 * MIB);
        for size in [1, 5 << 30, 5 << 40, (5 << 40) + 1] {
            assert!(u64::div_ceil(size, part_bytes(size, PART_BYTES_MIN)) <= PARTS_MAX);
        }
    }

    #[test]
    fn a_copy_source_is_encoded_but_for_its_slashes() {
        assert_eq!(copy_source(("svc-lake", "a b/c+%.csv")), "/svc-lake/a%20b/c%2B%25.csv");
    }
}
