//! The marker object of a pipeline that is being created, imported or renamed.
//!
//! Invariant: the marker is written before the pipeline's first object and deleted after its last; so objects without a
//! marker belong to an existing pipeline, and the marker names the operation that an interrupted process left. The same
//! request resumes it; for all others the slug is taken, until the pipeline is deleted.

use serde::{Deserialize, Serialize};

use crate::domain::layout::{config_key, pipeline_prefix, unfinished_key};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::pipelines;
use crate::ports::store::{Bucket, StoreError, WriteOptions};
use crate::runtime::failpoint::reach;
use crate::web::failure::from_store;
use crate::web::locks::LockedPipeline;
use crate::web::stores::Objects;

const MARKER_BYTES_MAX: u64 = 64 << 10;

/// A pending operation and its progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationMarker {
    #[serde(flatten)]
    pub operation: PendingOperation,
    pub stage: OperationStage,
}

/// An operation that was requested and isn't complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum PendingOperation {
    Create {
        template: String,
        /// The lake object from which its config is proposed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    Import {
        /// Digest of the archive.
        sha256: String,
    },
    Rename {
        from: Slug,
    },
    /// The marker on the old name of a rename: from when everything but the config is copied until all old objects are
    /// deleted. It is valid while the new name has the marker of that rename.
    Leave {
        to: Slug,
    },
    /// An unreadable marker.
    #[serde(skip)]
    Unknown,
}

/// Progress of an operation. A config found before `Made` was stored by someone else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationStage {
    /// Objects may be missing.
    Making,
    /// All objects but the config exist.
    Made,
    /// Renames only: the pipeline has its new name; leftovers exist under the old one.
    Moved,
}

/// The state in which an operation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// No object exists.
    New,
    /// An interrupted attempt left objects.
    Resumed,
    /// An interrupted attempt completed everything but the removal of the marker.
    Complete,
}

/// Reads the marker of a slug. An unreadable one is [`PendingOperation::Unknown`].
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub fn read(store: &Objects, slug: &Slug) -> Result<Option<OperationMarker>, ApiError> {
    let key = unfinished_key(slug);
    let unknown = |why: &dyn std::fmt::Display| {
        tracing::warn!(pipeline = %slug, key, why = %why, "marker of an unfinished pipeline is unreadable");
        Some(OperationMarker { operation: PendingOperation::Unknown, stage: OperationStage::Making })
    };
    match store.head(Bucket::Pipelines, &key).map_err(from_store)? {
        None => return Ok(None),
        Some(meta) if meta.size > MARKER_BYTES_MAX => return Ok(unknown(&"it is too large")),
        Some(_) => {}
    }
    let Some((_, bytes)) = store.read(Bucket::Pipelines, &key, MARKER_BYTES_MAX)? else { return Ok(None) };
    Ok(serde_json::from_slice(&bytes).map_or_else(|error| unknown(&error), Some))
}

/// Whether the rename of `from` to `to` has begun to delete `from`.
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub fn is_leaving(store: &Objects, from: &Slug, to: &Slug) -> Result<bool, ApiError> {
    Ok(read(store, from)?.is_some_and(|marker| marker.operation == PendingOperation::Leave { to: to.clone() }))
}

/// Rejects an unfinished pipeline.
///
/// # Errors
/// `pipeline_busy` if an interrupted request left the pipeline unfinished; `s3_error`,
/// `bucket_not_found`.
pub fn refuse_unfinished(store: &Objects, slug: &Slug) -> Result<(), ApiError> {
    let Some(marker) = read(store, slug)? else { return Ok(()) };
    let PendingOperation::Leave { to } = marker.operation else { return Err(unfinished_busy(slug)) };
    let rename = PendingOperation::Rename { from: slug.clone() };
    if read(store, &to)?.is_some_and(|marker| marker.operation == rename) {
        Err(renaming_busy(slug, &to))
    } else {
        Ok(())
    }
}

/// Begins or resumes an operation on the locked pipeline.
///
/// # Errors
/// `already_exists` if the slug is taken.
pub fn begin(store: &Objects, locked: &LockedPipeline, operation: &PendingOperation) -> Result<Begun, ApiError> {
    let slug = locked.slug();
    match read(store, slug)? {
        Some(marker) if marker.operation == *operation => {
            if marker.is_complete(store, slug)? {
                return Ok(Begun::Complete);
            }
            advance(store, locked, operation, OperationStage::Making)?;
            Ok(Begun::Resumed)
        }
        Some(_) => Err(unfinished(slug)),
        None if is_taken(store, slug, operation)? => Err(already_exists(slug)),
        None => {
            put(store, operation, OperationStage::Making, &locked.create(), slug)?;
            reach("make::marked");
            Ok(Begun::New)
        }
    }
}

/// Whether the slug is taken. A pipeline that is created from a file may have files in the lake already.
fn is_taken(store: &Objects, slug: &Slug, operation: &PendingOperation) -> Result<bool, ApiError> {
    let is_in_use = |buckets: &[Bucket]| pipelines::is_in_use(&**store, slug, buckets).map_err(from_store);
    match operation {
        PendingOperation::Create { key: Some(key), .. } if key.starts_with(&pipeline_prefix(slug)) => {
            is_in_use(&[Bucket::Pipelines, Bucket::Warehouse])
        }
        PendingOperation::Create { .. } => is_in_use(&Bucket::ALL),
        PendingOperation::Import { .. }
        | PendingOperation::Rename { .. }
        | PendingOperation::Leave { .. }
        | PendingOperation::Unknown => store.exists(slug),
    }
}

/// Updates the marker's stage.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub fn advance(
    store: &Objects,
    locked: &LockedPipeline,
    operation: &PendingOperation,
    stage: OperationStage,
) -> Result<(), ApiError> {
    put(store, operation, stage, &locked.options(), locked.slug())
}

fn put(
    store: &Objects,
    operation: &PendingOperation,
    stage: OperationStage,
    options: &WriteOptions<'_>,
    slug: &Slug,
) -> Result<(), ApiError> {
    let body =
        serde_json::to_vec(&OperationMarker { operation: operation.clone(), stage }).map_err(ApiError::internal)?;
    match store.put(Bucket::Pipelines, &unfinished_key(slug), &body, options) {
        Err(StoreError::PreconditionFailed { .. }) => Err(unfinished(slug)),
        put => put.map(drop).map_err(from_store),
    }
}

impl OperationMarker {
    /// Whether only the marker, and leftovers of a rename, remain to be deleted.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn is_complete(&self, store: &Objects, slug: &Slug) -> Result<bool, ApiError> {
        match self.stage {
            OperationStage::Making => Ok(false),
            OperationStage::Made => {
                let config = store.head(Bucket::Pipelines, &config_key(slug)).map_err(from_store)?;
                Ok(config.is_some())
            }
            OperationStage::Moved => Ok(true),
        }
    }
}

/// Deletes the marker: the pipeline is complete.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub fn remove(store: &Objects, locked: &LockedPipeline) -> Result<(), ApiError> {
    let key = unfinished_key(locked.slug());
    store.delete(Bucket::Pipelines, &[key], &locked.options()).map_err(from_store)?;
    reach("make::unmarked");
    Ok(())
}

/// Marks the old name of a rename, which takes no writes from now on.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub fn mark_leaving(store: &Objects, from: &LockedPipeline, to: &Slug) -> Result<(), ApiError> {
    advance(store, from, &PendingOperation::Leave { to: to.clone() }, OperationStage::Made)?;
    reach("rename::leaving");
    Ok(())
}

/// Deletes the marker of [`mark_leaving`], once nothing else is left.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `pipeline_busy`.
pub fn unmark_leaving(store: &Objects, from: &LockedPipeline) -> Result<(), ApiError> {
    let key = unfinished_key(from.slug());
    store.delete(Bucket::Pipelines, &[key], &from.options()).map_err(from_store)?;
    reach("rename::left");
    Ok(())
}

pub fn already_exists(slug: &Slug) -> ApiError {
    ApiError::new(ErrorCode::AlreadyExists, format!("there is already a pipeline `{slug}`"))
}

pub fn unfinished(slug: &Slug) -> ApiError {
    let message =
        format!("an interrupted create, import or rename left `{slug}` unfinished: repeat it, or delete `{slug}`");
    ApiError::new(ErrorCode::AlreadyExists, message)
}

/// The error for changing, renaming or exporting an unfinished pipeline.
pub fn unfinished_busy(slug: &Slug) -> ApiError {
    let message = format!(
        "an interrupted create, import or rename left `{slug}` unfinished: repeat it first, or delete `{slug}`"
    );
    ApiError::new(ErrorCode::PipelineBusy, message)
}

fn renaming_busy(from: &Slug, to: &Slug) -> ApiError {
    let message = format!("the rename of `{from}` to `{to}` was interrupted: repeat it first");
    ApiError::new(ErrorCode::PipelineBusy, message)
}

/// Replaces `pipeline_busy` of a create by `already_exists` if the pipeline exists.
pub fn already_exists_if_busy(store: &Objects, slug: &Slug, error: ApiError) -> ApiError {
    let exists_unmarked = || matches!(read(store, slug), Ok(None)) && matches!(store.exists(slug), Ok(true));
    if error.code() == ErrorCode::PipelineBusy && exists_unmarked() { already_exists(slug) } else { error }
}
