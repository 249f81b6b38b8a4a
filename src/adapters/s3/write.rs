//! Writing an object, in one request or in parts.
//!
//! A request may be sent twice, since a connection can fail after the store has processed it. With a precondition the
//! second attempt would fail because of the first. So each conditional write, and each multipart upload, stores a write id
//! in the object's metadata: when the outcome is uncertain, the id shows whether the object is ours. A write that another
//! has already replaced counts as failed, since the object is not in the state that the caller expects.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

use chrono::{DateTime, Utc};
use ureq::http::Method;

use crate::ports::store::{
    Bucket, ETag, Lease, ObjectMeta, Precondition, StagedFile, StoreError, StoreResult, WriteOptions,
};

use super::error::OperationContext;
use super::failure::RequestError;
use super::key;
use super::multipart::{MultipartUpload, SentPart};
use super::preconditions::{Enforcement, FinalRequest};
use super::request::{S3Request, UploadBody, WRITE_ID_HEADER};
use super::store::S3Store;

/// Larger bodies go in parts where a lease, a deadline or a precondition guards the write, so that the guarded request is
/// small.
const GUARDED_PUT_BYTES_MAX: u64 = 256 << 10;
/// Larger bodies always go in parts, several at once.
const SINGLE_BYTES_MAX: u64 = 16 << 20;

/// The earlier of two deadlines.
pub(super) fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Tag and time in the response to a write.
pub(super) type Written = (Option<ETag>, Option<DateTime<Utc>>);

/// A multipart upload whose parts are sent.
struct SentParts<'a> {
    upload: MultipartUpload<'a>,
    parts: Vec<SentPart>,
    write_id: String,
    size: u64,
}

impl SentParts<'_> {
    fn complete(mut self, enforcement: Enforcement, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let (store, bucket, key) = (self.upload.store, self.upload.bucket, self.upload.key.clone());
        let context = store.context(bucket, &key, "writing");
        let written = store.complete_upload(&mut self.upload, &self.parts, enforcement, &context, options)?;
        store.resolve_outcome(&context, self.size, Some(&self.write_id), &options.precondition, written)
    }
}

impl StagedFile for SentParts<'_> {
    fn put(self: Box<Self>, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        if let Some(lease) = options.lease {
            lease.remaining()?;
        }
        let MultipartUpload { store, bucket, .. } = self.upload;
        let enforcement = store.enforcement(bucket, &options.precondition, FinalRequest::Complete)?;
        self.complete(enforcement, options)
    }
}

impl S3Store {
    pub(super) fn write_file(
        &self,
        bucket: Bucket,
        key: &str,
        path: &Path,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        key::check(bucket, key)?;
        let (file, length) = self.open_file(bucket, key, path)?;
        self.write(bucket, key, UploadBody::File { file: &file, length }, options)
    }

    fn open_file(&self, bucket: Bucket, key: &str, path: &Path) -> StoreResult<(File, u64)> {
        let open = || -> io::Result<(File, u64)> {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        open().map_err(|error| self.context(bucket, key, "reading the file for").transient(error))
    }

    /// Sends a file's parts in advance if it is too large for one guarded request.
    pub(super) fn stage<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        path: &Path,
        lease: &'s dyn Lease,
        keep_going: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        key::check(bucket, key)?;
        let (file, length) = self.open_file(bucket, key, path)?;
        if length <= GUARDED_PUT_BYTES_MAX {
            return Ok(None);
        }
        lease.remaining()?;
        match self.send_parts(bucket, key, &UploadBody::File { file: &file, length }, Some(lease), keep_going) {
            Ok(sent) => Ok(Some(Box::new(sent))),
            Err(_) if !keep_going() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn send_parts<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        body: &UploadBody<'_>,
        lease: Option<&'s dyn Lease>,
        keep_going: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<SentParts<'s>> {
        let write_id = uuid::Uuid::new_v4().to_string();
        let upload = MultipartUpload::start(self, bucket, key, lease, &write_id)?;
        let parts = upload.send(body, keep_going)?;
        Ok(SentParts { upload, parts, write_id, size: body.length() })
    }

    pub(super) fn write(
        &self,
        bucket: Bucket,
        key: &str,
        body: UploadBody<'_>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        key::check(bucket, key)?;
        if let Some(lease) = options.lease {
            lease.remaining()?;
        }
        let guarded =
            options.lease.is_some() || options.deadline.is_some() || options.precondition != Precondition::None;
        let single_max = if guarded { GUARDED_PUT_BYTES_MAX } else { SINGLE_BYTES_MAX };
        if body.length() <= single_max {
            return self.put_single(bucket, key, body, options);
        }
        let enforcement = self.enforcement(bucket, &options.precondition, FinalRequest::Complete)?;
        self.send_parts(bucket, key, &body, options.lease, &|| true)?.complete(enforcement, options)
    }

    fn put_single(
        &self,
        bucket: Bucket,
        key: &str,
        body: UploadBody<'_>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<ObjectMeta> {
        let context = self.context(bucket, key, "writing");
        let enforcement = self.enforcement(bucket, &options.precondition, FinalRequest::Put)?;
        let lock = self.emulate_precondition(enforcement, &context, &options.precondition)?;
        let write_id = (enforcement == Enforcement::Native).then(|| uuid::Uuid::new_v4().to_string());
        let mut request = S3Request::new(Method::PUT, bucket, key, context.operation)
            .payload(body.section(0, body.length()))
            .leased(options.lease)
            .deadline(earliest(options.deadline, lock.deadline));
        if let Some(write_id) = &write_id {
            request = request.precondition(&options.precondition).header(WRITE_ID_HEADER, write_id.as_str());
        }
        let written = self.client.send(&request, |response| {
            let written = (response.etag(), response.date());
            response.drain().map(|()| written)
        });
        drop(lock);
        self.resolve_outcome(&context, body.length(), write_id.as_deref(), &options.precondition, written)
    }

    /// Completes an upload under the precondition.
    pub(super) fn complete_upload(
        &self,
        upload: &mut MultipartUpload<'_>,
        parts: &[SentPart],
        enforcement: Enforcement,
        context: &OperationContext<'_>,
        options: &WriteOptions<'_>,
    ) -> StoreResult<Result<Written, RequestError>> {
        let native = match enforcement {
            Enforcement::Native => &options.precondition,
            Enforcement::NotNeeded | Enforcement::Emulated => &Precondition::None,
        };
        let lock = self.emulate_precondition(enforcement, context, &options.precondition)?;
        let tag = upload.complete(parts, native, earliest(options.deadline, lock.deadline));
        Ok(tag.map(|tag| (tag, None)))
    }

    /// Determines the result of a write. `write_id`: the id that it stored, if any.
    pub(super) fn resolve_outcome(
        &self,
        context: &OperationContext<'_>,
        size: u64,
        write_id: Option<&str>,
        precondition: &Precondition,
        written: Result<Written, RequestError>,
    ) -> StoreResult<ObjectMeta> {
        match written {
            Ok((Some(etag), date)) => {
                let modified = date.unwrap_or_else(|| self.client.clock().now());
                Ok(ObjectMeta { key: context.key.to_owned(), size, etag: Some(etag), modified })
            }
            Ok((None, _)) => match self.head_object(context.bucket, context.key)? {
                Some(head) => Ok(head.meta),
                None => Err(context.not_found()),
            },
            Err(failure) => {
                if failure.is_uncertain()
                    && write_id.is_some()
                    && let Ok(Some(head)) = self.head_object(context.bucket, context.key)
                    && head.write_id.as_deref() == write_id
                {
                    return Ok(head.meta);
                }
                Err(match context.error(failure) {
                    // Some stores respond that the object to replace is missing.
                    StoreError::NotFound { .. } if matches!(precondition, Precondition::IfMatch(_)) => {
                        context.precondition_failed()
                    }
                    error => error,
                })
            }
        }
    }
}
