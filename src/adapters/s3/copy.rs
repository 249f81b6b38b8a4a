//! Copying within the store.
//!
//! Few stores enforce preconditions on a copy. A conditional copy therefore uses requests where they do: a small object is
//! read and put, a larger one copied in parts, whose completion carries the precondition. Where the store enforces none,
//! the precondition of a plain copy is emulated.

use std::io::Read;

use ureq::http::Method;

use crate::ports::store::{BodyChanged, Bucket, ETag, ObjectMeta, Precondition, StoreError, StoreResult, WriteOptions};

use super::error::OperationContext;
use super::failure::RequestError;
use super::key;
use super::list::parse_time;
use super::multipart::{MultipartUpload, copy_source};
use super::preconditions::{Enforcement, FinalRequest};
use super::request::{COPY_SOURCE_HEADER, Payload, S3Request, UploadBody, quoted};
use super::response::WriteResult;
use super::store::S3Store;
use super::write::earliest;

/// S3's limit of a copy in one request.
const COPY_BYTES_MAX: u64 = 5 << 30;
/// Larger objects are copied in parts where a precondition guards the copy.
const READ_AND_PUT_BYTES_MAX: u64 = 256 << 10;
/// Attempts of a copy whose source changes meanwhile.
const TRIES_MAX: usize = 3;
const RESPONSE_BYTES_MAX: u64 = 64 << 10;

/// The version of the source that is copied.
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
        let source = self.context(from.0, from.1, "copying");
        for _ in 0..TRIES_MAX {
            let meta = self.head_object(from.0, from.1)?.ok_or_else(|| source.not_found())?.meta;
            if from == to {
                return self.copy_to_itself(&source, meta, &options.precondition);
            }
            let tag = meta.etag.ok_or_else(|| source.missing("an `ETag`"))?;
            let from = Original { bucket: from.0, key: from.1, size: meta.size, tag };
            match self.copy_version(&from, to, options) {
                Err(StoreError::Transient { source, .. }) if BodyChanged::is_in(&source) => {}
                result => return result,
            }
        }
        Err(source.transient(BodyChanged.into()))
    }

    /// Stores reject this request; there is nothing to do but check the precondition.
    fn copy_to_itself(
        &self,
        context: &OperationContext<'_>,
        meta: ObjectMeta,
        precondition: &Precondition,
    ) -> StoreResult<ObjectMeta> {
        let holds = match precondition {
            Precondition::None => true,
            Precondition::IfNoneMatch => false,
            Precondition::IfMatch(tag) => meta.etag.as_ref() == Some(tag),
        };
        if holds { Ok(meta) } else { Err(context.precondition_failed()) }
    }

    /// Fails with [`BodyChanged`] inside if the source has another version.
    fn copy_version(
        &self,
        from: &Original<'_>,
        to: (Bucket, &str),
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let context = self.context(to.0, to.1, "copying to");
        let is_small = from.size <= READ_AND_PUT_BYTES_MAX;
        let request = if is_small { FinalRequest::Put } else { FinalRequest::Complete };
        let enforcement = self.enforcement(to.0, &options.precondition, request)?;
        match enforcement {
            Enforcement::Native if is_small => {
                let body = self.read_version(from, &context)?;
                self.write(to.0, to.1, UploadBody::Bytes(&body), options)
            }
            Enforcement::NotNeeded if from.size <= COPY_BYTES_MAX => {
                self.copy_single(from, &context, enforcement, options)
            }
            Enforcement::Emulated if is_small => self.copy_single(from, &context, enforcement, options),
            Enforcement::NotNeeded | Enforcement::Native | Enforcement::Emulated => {
                self.copy_multipart(from, &context, enforcement, options)
            }
        }
    }

    fn copy_single(
        &self,
        from: &Original<'_>,
        context: &OperationContext<'_>,
        enforcement: Enforcement,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let lock = self.emulate_precondition(enforcement, context, &options.precondition)?;
        let request = S3Request::new(Method::PUT, context.bucket, context.key, context.operation)
            .header(COPY_SOURCE_HEADER, self.source_of(from))
            .header("x-amz-copy-source-if-match", quoted(&from.tag))
            .payload(Payload::Bytes(b""))
            .leased(options.lease)
            .deadline(earliest(options.deadline, lock.deadline))
            .slow();
        let copied = self.client.send(&request, |response| response.xml(RESPONSE_BYTES_MAX, "CopyObjectResult"));
        drop(lock);
        let copied: WriteResult = copied.map_err(|failure| self.copy_error(from, context, failure))?;
        let modified = copied.last_modified.as_deref().map(str::trim).and_then(parse_time);
        self.resolve_outcome(context, from.size, None, &options.precondition, Ok((copied.etag(), modified)))
    }

    fn copy_multipart(
        &self,
        from: &Original<'_>,
        context: &OperationContext<'_>,
        enforcement: Enforcement,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let write_id = uuid::Uuid::new_v4().to_string();
        let mut upload = MultipartUpload::start(self, context.bucket, context.key, options.lease, &write_id)?;
        let parts = upload.copy_from(&self.source_of(from), from.size, &from.tag).map_err(|error| match error {
            // The target's precondition is not checked yet: it is the source's.
            StoreError::PreconditionFailed { .. } | StoreError::NotFound { .. } => {
                context.transient(BodyChanged.into())
            }
            error => error,
        })?;
        let written = self.complete_upload(&mut upload, &parts, enforcement, context, options)?;
        self.resolve_outcome(context, from.size, Some(&write_id), &options.precondition, written)
    }

    fn source_of(&self, from: &Original<'_>) -> String {
        let options = &self.client.options;
        copy_source((options.name_of(from.bucket), &options.mounts.stored_key(from.bucket, from.key)))
    }

    fn read_version(&self, from: &Original<'_>, context: &OperationContext<'_>) -> StoreResult<Vec<u8>> {
        let reader = match self.get_object(from.bucket, from.key, Some(&from.tag)) {
            Err(StoreError::PreconditionFailed { .. } | StoreError::NotFound { .. }) => {
                return Err(context.transient(BodyChanged.into()));
            }
            result => result?,
        };
        let mut body = Vec::new();
        reader.body.take(READ_AND_PUT_BYTES_MAX).read_to_end(&mut body).map_err(|error| context.transient(error))?;
        Ok(body)
    }

    /// The request's own precondition is the source's version.
    fn copy_error(&self, from: &Original<'_>, context: &OperationContext<'_>, failure: RequestError) -> StoreError {
        match context.error(failure) {
            StoreError::PreconditionFailed { .. } => context.transient(BodyChanged.into()),
            StoreError::NotFound { .. } => self.context(from.bucket, from.key, "copying").not_found(),
            StoreError::BucketNotFound { bucket, name } => match self.probe_bucket(from.bucket) {
                Err(error @ StoreError::BucketNotFound { .. }) => error,
                Ok(()) | Err(_) => StoreError::BucketNotFound { bucket, name },
            },
            error => error,
        }
    }
}
