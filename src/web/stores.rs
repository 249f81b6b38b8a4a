//! Access of the services to the stores.

use std::io::Read;
use std::ops::Deref;
use std::sync::Arc;

use super::access::slug_param;
use super::failure::{from_kv, from_store, pipeline_not_found};
use crate::domain::job::ChangedKeys;
use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request};
use crate::ports::ObjectStore;
use crate::ports::schedule::Schedule;
use crate::ports::store::{Bucket, ObjectMeta, StoreError};
use crate::runtime::rfc3339;

/// The object store, with bounded reads. Clones share it.
#[derive(Clone)]
pub struct Objects(Arc<dyn ObjectStore>);

/// An object read up to a limit.
pub enum BoundedRead {
    Whole(ObjectMeta, Vec<u8>),
    Missing,
    Larger,
}

impl Deref for Objects {
    type Target = dyn ObjectStore;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Objects {
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self(store)
    }

    pub fn shared(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.0)
    }

    /// Whether a pipeline has any object in any bucket.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn exists(&self, pipeline: &Slug) -> Result<bool, ApiError> {
        let prefix = pipeline_prefix(pipeline);
        for bucket in Bucket::ALL {
            let page = self.list(bucket, &prefix, None, None, 1).map_err(from_store)?;
            // In a local folder, files without a valid key belong to other programs.
            if !page.objects.is_empty() || (self.is_remote() && !page.skipped.is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The slug in the path, if the pipeline exists.
    ///
    /// # Errors
    /// `invalid_slug`, `pipeline_not_found`, `s3_error`, `bucket_not_found`.
    pub fn existing(&self, request: &Request, name: &str) -> Result<Slug, ApiError> {
        let slug = slug_param(request, name)?;
        if self.exists(&slug)? { Ok(slug) } else { Err(pipeline_not_found(&slug)) }
    }

    /// Reads an object of at most `bytes_max` bytes; `None` if it doesn't exist.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`; `internal` if it is larger, which no object of ours is.
    pub fn read(&self, bucket: Bucket, key: &str, bytes_max: u64) -> Result<Option<(ObjectMeta, Vec<u8>)>, ApiError> {
        match self.read_bounded(bucket, key, bytes_max)? {
            BoundedRead::Whole(meta, bytes) => Ok(Some((meta, bytes))),
            BoundedRead::Missing => Ok(None),
            BoundedRead::Larger => Err(ApiError::internal(format!("`{key}` has more than {bytes_max} bytes"))),
        }
    }

    /// Like [`Objects::read`], but a larger object is logged and treated as missing.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn read_unless_larger(
        &self,
        bucket: Bucket,
        key: &str,
        bytes_max: u64,
    ) -> Result<Option<(ObjectMeta, Vec<u8>)>, ApiError> {
        match self.read_bounded(bucket, key, bytes_max)? {
            BoundedRead::Whole(meta, bytes) => Ok(Some((meta, bytes))),
            BoundedRead::Missing => Ok(None),
            BoundedRead::Larger => {
                tracing::warn!(%bucket, key, bytes_max, "object exceeds size limit; skipped");
                Ok(None)
            }
        }
    }

    /// Reads an object of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn read_bounded(&self, bucket: Bucket, key: &str, bytes_max: u64) -> Result<BoundedRead, ApiError> {
        Ok(match self.read_start(bucket, key, bytes_max)? {
            None => BoundedRead::Missing,
            Some((_, bytes)) if bytes.len() as u64 > bytes_max => BoundedRead::Larger,
            Some((meta, bytes)) => BoundedRead::Whole(meta, bytes),
        })
    }

    /// Reads the first `bytes_max` bytes of an object, and one more if there are more; `None` if it doesn't exist.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn read_start(
        &self,
        bucket: Bucket,
        key: &str,
        bytes_max: u64,
    ) -> Result<Option<(ObjectMeta, Vec<u8>)>, ApiError> {
        let reader = match self.get(bucket, key, None) {
            Ok(reader) => reader,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(from_store(error)),
        };
        let mut bytes = Vec::new();
        let read = reader.body.take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| ApiError::caused(ErrorCode::S3Error, format!("reading `{key}`: {error}")))?;
        Ok(Some((reader.meta, bytes)))
    }
}

/// Extends a pipeline's debounce window and logs the window's name, by which its job's log lines are found.
///
/// # Errors
/// `kv_unavailable`.
pub fn extend_window(kv: &dyn Schedule, pipeline: &Slug) -> Result<(), ApiError> {
    record_changes(kv, &[(pipeline.clone(), ChangedKeys::All)])
}

/// Like [`extend_window`], with the keys that changed in each pipeline.
///
/// # Errors
/// `kv_unavailable`.
pub fn record_changes(kv: &dyn Schedule, changes: &[(Slug, ChangedKeys)]) -> Result<(), ApiError> {
    let opened = kv.record_changes(changes).map_err(from_kv)?;
    for ((pipeline, _), since) in changes.iter().zip(opened) {
        let window = format!("{pipeline}@{}", rfc3339(since));
        tracing::info!(%pipeline, window, "new files; debounce window extended");
    }
    Ok(())
}
