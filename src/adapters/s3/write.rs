//! Writing an object, in one request or in parts.
//!
//! A request may be sent twice, since a connection can fail after the store has taken it in. For one with a
//! precondition, the second sending would fail because of the first. So each conditional write, and each upload in
//! parts, leaves a mark of its own in the object's metadata; when the outcome is in doubt, the object is looked at, and
//! the mark tells whether it is ours. A write of ours that another has already replaced is told as failed: the object
//! is not in the state that the caller would go on from.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

use chrono::{DateTime, Utc};
use ureq::http::Method;

use crate::ports::store::{
    Bucket, ETag, Lease, ObjectMeta, Precondition, StagedFile, StoreError, StoreResult, WriteOptions,
};

use super::S3Store;
use super::answer::Failure;
use super::client::{Call, Payload};
use super::conditions::conditional;
use super::error::Place;
use super::hold::{Holder, Step};
use super::key;
use super::multipart::Upload;
use super::read::MARK_HEADER;

/// Bodies over this many bytes go in parts where a lease, a time or a precondition guards the write, so that the guarded request
/// is a small one.
const GUARDED_SINGLE_BYTES_MAX: u64 = 256 << 10;
/// Bodies over this many bytes go in parts anyway, several at once.
const SINGLE_BYTES_MAX: u64 = 16 << 20;

/// Where a body comes from.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Bytes(&'a [u8]),
    File { file: &'a File, length: u64 },
}

impl<'a> Source<'a> {
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
        }
    }

    /// `length` bytes from `start` on, which must lie within it.
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

/// The first of two times after which a write must not start.
pub(super) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// An upload whose parts are sent.
struct SentParts<'a> {
    upload: Upload<'a>,
    parts: Vec<ETag>,
    mark: String,
    size: u64,
}

impl SentParts<'_> {
    fn complete(mut self, holder: Holder, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let (store, bucket, key) = (self.upload.store, self.upload.bucket, self.upload.key.clone());
        let place = store.place(bucket, &key, "writing");
        let written = store.finish_upload(&mut self.upload, &self.parts, holder, &place, options)?;
        store.settled(&place, self.size, Some(&self.mark), &options.precondition, written)
    }
}

impl StagedFile for SentParts<'_> {
    fn put(self: Box<Self>, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        if let Some(lease) = options.lease {
            lease.remaining()?;
        }
        let holder = self.upload.store.holder(self.upload.bucket, &options.precondition, Step::Complete)?;
        self.complete(holder, options)
    }
}

/// What an answer to a write says.
pub(super) type Written = (Option<ETag>, Option<DateTime<Utc>>);

impl S3Store {
    pub(super) fn write_file(
        &self,
        bucket: Bucket,
        key: &str,
        path: &Path,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        key::check(bucket, key)?;
        let (file, length) = self.open_to_send(bucket, key, path)?;
        self.write(bucket, key, Source::File { file: &file, length }, options)
    }

    fn open_to_send(&self, bucket: Bucket, key: &str, path: &Path) -> StoreResult<(File, u64)> {
        let open = || -> io::Result<(File, u64)> {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        open().map_err(|error| self.place(bucket, key, "reading the file for").transient(error))
    }

    /// Sends a file in parts if its write is to be a guarded one.
    pub(super) fn stage<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        path: &Path,
        lease: &'s dyn Lease,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        key::check(bucket, key)?;
        let (file, length) = self.open_to_send(bucket, key, path)?;
        if length <= GUARDED_SINGLE_BYTES_MAX {
            return Ok(None);
        }
        lease.remaining()?;
        match self.send_parts(bucket, key, &Source::File { file: &file, length }, Some(lease), go_on) {
            Ok(sent) => Ok(Some(Box::new(sent))),
            Err(_) if !go_on() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn send_parts<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        source: &Source<'_>,
        lease: Option<&'s dyn Lease>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<SentParts<'s>> {
        let mark = uuid::Uuid::new_v4().to_string();
        let upload = Upload::start(self, bucket, key, lease, &mark)?;
        let parts = upload.send(source, go_on)?;
        Ok(SentParts { upload, parts, mark, size: source.length() })
    }

    pub(super) fn write(
        &self,
        bucket: Bucket,
        key: &str,
        source: Source<'_>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        key::check(bucket, key)?;
        if let Some(lease) = options.lease {
            lease.remaining()?;
        }
        let guarded = options.lease.is_some() || options.until.is_some() || options.precondition != Precondition::None;
        let single_max = if guarded { GUARDED_SINGLE_BYTES_MAX } else { SINGLE_BYTES_MAX };
        if source.length() <= single_max {
            self.put_at_once(bucket, key, source, options)
        } else {
            self.put_in_parts(bucket, key, source, options)
        }
    }

    fn put_at_once(
        &self,
        bucket: Bucket,
        key: &str,
        source: Source<'_>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let place = self.place(bucket, key, "writing");
        let holder = self.holder(bucket, &options.precondition, Step::Put)?;
        let held = match holder {
            Holder::StandIn => Some(self.stand_in(&place, &options.precondition)?),
            Holder::Nobody | Holder::Store => None,
        };
        let mark = uuid::Uuid::new_v4().to_string();
        let mut call = Call::new(Method::PUT, bucket, key, place.operation)
            .payload(source.section(0, source.length()))
            .leased(options.lease)
            .until(earlier(options.until, held.as_ref().and_then(|held| held.until)));
        if holder == Holder::Store {
            call = conditional(call, &options.precondition).header(MARK_HEADER, mark.as_str());
        }
        let written = self.client.send(&call, |answer| {
            let written = (answer.etag(), answer.date());
            answer.drained().map(|()| written)
        });
        drop(held);
        let mark = (holder == Holder::Store).then_some(mark.as_str());
        self.settled(&place, source.length(), mark, &options.precondition, written)
    }

    fn put_in_parts(
        &self,
        bucket: Bucket,
        key: &str,
        source: Source<'_>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let holder = self.holder(bucket, &options.precondition, Step::Complete)?;
        self.send_parts(bucket, key, &source, options.lease, &|| true)?.complete(holder, options)
    }

    /// Completes an upload under the precondition, whoever holds it.
    pub(super) fn finish_upload(
        &self,
        upload: &mut Upload<'_>,
        parts: &[ETag],
        holder: Holder,
        place: &Place<'_>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<Result<Written, Failure>> {
        let tag = match holder {
            Holder::Nobody => upload.complete(parts, &Precondition::None, options.until),
            Holder::Store => upload.complete(parts, &options.precondition, options.until),
            Holder::StandIn => {
                let held = self.stand_in(place, &options.precondition)?;
                upload.complete(parts, &Precondition::None, earlier(options.until, held.until))
            }
        };
        Ok(tag.map(|tag| (tag, None)))
    }

    /// Finds out what became of a write. `mark` is what it left, if anything.
    pub(super) fn settled(
        &self,
        place: &Place<'_>,
        size: u64,
        mark: Option<&str>,
        when: &Precondition,
        written: Result<Written, Failure>,
    ) -> StoreResult<ObjectMeta> {
        match written {
            Ok((Some(etag), date)) => {
                let modified = date.unwrap_or_else(|| self.client.clock().now());
                Ok(ObjectMeta { key: place.key.to_owned(), size, etag: Some(etag), modified })
            }
            Ok((None, _)) => match self.look(place.bucket, place.key)? {
                Some(looked) => Ok(looked.meta),
                None => Err(place.not_found()),
            },
            Err(failure) => {
                if in_doubt(&failure)
                    && mark.is_some()
                    && let Ok(Some(looked)) = self.look(place.bucket, place.key)
                    && looked.mark.as_deref() == mark
                {
                    return Ok(looked.meta);
                }
                Err(match place.error(failure) {
                    // Some stores say of a missing object that it can't be replaced.
                    StoreError::NotFound { .. } if matches!(when, Precondition::IfMatch(_)) => {
                        place.precondition_failed()
                    }
                    error => error,
                })
            }
        }
    }
}

/// Whether looking at the object may tell more. After a timeout it would be one more thing to wait for.
fn in_doubt(failure: &Failure) -> bool {
    match failure {
        Failure::Refused { repeated, .. } => *repeated,
        Failure::Lost { sent, quick, .. } => *sent && *quick,
        Failure::LeaseLost => false,
    }
}
