//! Copying within the store.
//!
//! Few stores hold preconditions on a copy. So a copy under one is made of steps that hold them: a small object is read
//! and put, a larger one copied in parts, whose completion carries the precondition. Where the store holds none of
//! these, the stand-in guards a plain copy.

use std::io::Read;

use ureq::http::Method;

use crate::ports::store::{BodyChanged, Bucket, ETag, ObjectMeta, Precondition, StoreError, StoreResult, WriteOptions};

use super::S3Store;
use super::answer::{Failure, unquoted};
use super::client::{Call, Payload, quoted};
use super::error::Place;
use super::hold::{Holder, Step};
use super::key;
use super::list::parse_time;
use super::multipart::{Upload, copy_source};
use super::write::{Source, Written, earlier};

/// The most that one request copies.
const COPY_BYTES_MAX: u64 = 5 << 30;
/// Objects up to this size are read and put where a precondition guards the copy.
const READ_AND_PUT_BYTES_MAX: u64 = 256 << 10;
/// Times that a copy is begun anew when its source changes under it.
const TRIES_MAX: usize = 3;
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// What is copied: an object as it was when it was looked at.
struct Original<'a> {
    bucket: Bucket,
    key: &'a str,
    size: u64,
    tag: ETag,
}

impl S3Store {
    pub(super) fn copy_object(
        &self,
        from: (Bucket, &str),
        to: (Bucket, &str),
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        key::check(from.0, from.1)?;
        key::check(to.0, to.1)?;
        if let Some(lease) = options.lease {
            lease.remaining()?;
        }
        let source = self.place(from.0, from.1, "copying");
        for _ in 0..TRIES_MAX {
            let meta = self.look(from.0, from.1)?.ok_or_else(|| source.not_found())?.meta;
            if from == to {
                return self.copy_to_itself(&source, meta, &options.precondition);
            }
            let tag = meta.etag.ok_or_else(|| source.lacking("an `ETag`"))?;
            let from = Original { bucket: from.0, key: from.1, size: meta.size, tag };
            match self.copy_version(&from, to, options) {
                Err(StoreError::Transient { source, .. }) if BodyChanged::is_in(&source) => {}
                result => return result,
            }
        }
        Err(source.transient(BodyChanged.into()))
    }

    /// Stores refuse it; nothing is to be done.
    fn copy_to_itself(&self, place: &Place<'_>, meta: ObjectMeta, when: &Precondition) -> StoreResult<ObjectMeta> {
        let holds = match when {
            Precondition::None => true,
            Precondition::IfAbsent => false,
            Precondition::IfMatch(tag) => meta.etag.as_ref() == Some(tag),
        };
        if holds { Ok(meta) } else { Err(place.precondition_failed()) }
    }

    /// Fails with [`BodyChanged`] inside if the source is no longer that version.
    fn copy_version(
        &self,
        from: &Original<'_>,
        to: (Bucket, &str),
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let place = self.place(to.0, to.1, "copying to");
        let is_small = from.size <= READ_AND_PUT_BYTES_MAX;
        let step = if is_small { Step::Put } else { Step::Complete };
        let holder = self.holder(to.0, &options.precondition, step)?;
        match holder {
            Holder::Store if is_small => {
                let body = self.read_version(from, &place)?;
                self.write(to.0, to.1, Source::Bytes(&body), options)
            }
            Holder::Nobody if from.size <= COPY_BYTES_MAX => self.copy_plainly(from, &place, holder, options),
            Holder::StandIn if is_small => self.copy_plainly(from, &place, holder, options),
            Holder::Nobody | Holder::Store | Holder::StandIn => self.copy_in_parts(from, &place, holder, options),
        }
    }

    fn copy_plainly(
        &self,
        from: &Original<'_>,
        place: &Place<'_>,
        holder: Holder,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let held = match holder {
            Holder::StandIn => Some(self.stand_in(place, &options.precondition)?),
            Holder::Nobody | Holder::Store => None,
        };
        let call = Call::new(Method::PUT, place.bucket, place.key, place.operation)
            .header("x-amz-copy-source", self.source_of(from))
            .header("x-amz-copy-source-if-match", quoted(&from.tag))
            .payload(Payload::Bytes(b""))
            .leased(options.lease)
            .until(earlier(options.until, held.as_ref().and_then(|held| held.until)))
            .slow();
        let copied = self.copy_at_once(&call);
        drop(held);
        let copied = copied.map_err(|failure| self.copy_error(from, place, failure))?;
        self.settled(place, from.size, None, &options.precondition, Ok(copied))
    }

    fn copy_at_once(&self, call: &Call<'_>) -> Result<Written, Failure> {
        let node = self.client.send(call, |answer| answer.xml(ANSWER_BYTES_MAX, "CopyObjectResult"))?;
        let modified = node.text_of("LastModified").map(str::trim).and_then(parse_time);
        Ok((node.text_of("ETag").and_then(unquoted), modified))
    }

    fn copy_in_parts(
        &self,
        from: &Original<'_>,
        place: &Place<'_>,
        holder: Holder,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let mark = uuid::Uuid::new_v4().to_string();
        let mut upload = Upload::start(self, place.bucket, place.key, options.lease, &mark)?;
        let name = self.client.options.name_of(from.bucket);
        let parts = upload.copy_from((name, from.key), from.size, &from.tag).map_err(|error| match error {
            // No precondition of the target is in play yet.
            StoreError::PreconditionFailed { .. } | StoreError::NotFound { .. } => place.transient(BodyChanged.into()),
            error => error,
        })?;
        let written = self.finish_upload(&mut upload, &parts, holder, place, options)?;
        self.settled(place, from.size, Some(&mark), &options.precondition, written)
    }

    fn source_of(&self, from: &Original<'_>) -> String {
        copy_source((self.client.options.name_of(from.bucket), from.key))
    }

    fn read_version(&self, from: &Original<'_>, place: &Place<'_>) -> StoreResult<Vec<u8>> {
        let reader = match self.get_object(from.bucket, from.key, Some(&from.tag)) {
            Err(StoreError::PreconditionFailed { .. } | StoreError::NotFound { .. }) => {
                return Err(place.transient(BodyChanged.into()));
            }
            result => result?,
        };
        let mut body = Vec::new();
        reader.body.take(READ_AND_PUT_BYTES_MAX).read_to_end(&mut body).map_err(|error| place.transient(error))?;
        Ok(body)
    }

    /// A copy has no precondition but that its source is as it was.
    fn copy_error(&self, from: &Original<'_>, place: &Place<'_>, failure: Failure) -> StoreError {
        match place.error(failure) {
            StoreError::PreconditionFailed { .. } => place.transient(BodyChanged.into()),
            StoreError::NotFound { .. } => self.place(from.bucket, from.key, "copying").not_found(),
            StoreError::BucketNotFound { bucket, name } => match self.probe_bucket(from.bucket) {
                Err(error @ StoreError::BucketNotFound { .. }) => error,
                Ok(()) | Err(_) => StoreError::BucketNotFound { bucket, name },
            },
            error => error,
        }
    }
}
