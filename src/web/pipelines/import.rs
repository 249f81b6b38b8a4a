//! Imports an exported pipeline.
//!
//! The archive is received and inspected completely before any object is written; all of it is written, or nothing.

use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;

use super::inspect::{Inspected, inspect};
use super::marker::{self, Begun, OperationStage, PendingOperation};
use super::remove::{delete_others, undo};
use super::service::Pipelines;
use super::unpack::{Unpacking, check_keys};
use super::upload::{Upload, receive};
use crate::domain::name::Slug;
use crate::domain::source_name::is_text;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::Bucket;
use crate::runtime::failpoint::reach;
use crate::sync::Semaphore;
use crate::system::ProcessFolder;
use crate::web::failure::{acquire, from_kv};
use crate::web::locks::LockedPipeline;
use crate::web::stores::extend_window;

#[derive(Serialize, JsonSchema)]
pub(super) struct Imported {
    slug: String,
    /// Objects written.
    objects: u64,
    /// Size of all objects, inflated.
    bytes: u64,
}

/// `POST /api/pipelines/import`
pub(super) fn import(pipelines: &Pipelines, request: &mut Request) -> Result<Response, ApiError> {
    let bytes_max = pipelines.options.import_bytes_max;
    if request.body_length().is_some_and(|length| length > bytes_max.saturating_add(FORM_BYTES)) {
        let message = format!("the archive is larger than {bytes_max} bytes");
        return Err(ApiError::new(ErrorCode::PayloadTooLarge, message));
    }
    let _permit = acquire(&CALLS)?;
    let name = format!("import-{}", uuid::Uuid::new_v4().simple());
    let scratch = ProcessFolder::make(&pipelines.options.scratch_dir, &name).map_err(ApiError::internal)?;
    let stream = acquire(&pipelines.streams)?;
    check_disk_space(scratch.path(), request.body_length().unwrap_or(0))?;
    let upload = receive(request, scratch.path(), bytes_max)?;
    drop(stream);
    let inspected = inspect(&upload.archive, bytes_max)?;
    let slug = upload.slug.clone().unwrap_or_else(|| inspected.slug.clone());
    check_keys(&*pipelines.store, &slug, &inspected)?;
    let import = Import { pipelines, upload: &upload, inspected: &inspected, scratch: &scratch };
    import.begin(&slug)?;
    let request_id = request.id().as_str();
    tracing::info!(pipeline = %slug, objects = inspected.objects.len(), request_id, "pipeline imported");
    let objects = inspected.objects.len() as u64;
    let imported = Imported { slug: slug.to_string(), objects, bytes: inspected.size };
    Ok(Response::json(201, &imported).with_header("Location", format!("/api/p/{slug}/config")))
}

/// Maximum size of a form without its file, in bytes.
const FORM_BYTES: u64 = 64 << 10;
/// Concurrent imports: each archive is on the disk.
const CONCURRENT_MAX: usize = 2;
/// Disk space that an import leaves free, in bytes.
const FREE_BYTES_MIN: u64 = 256 << 20;

static CALLS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(CONCURRENT_MAX));

/// Checks for disk space before the upload, if its length is known.
fn check_disk_space(folder: &Path, bytes: u64) -> Result<(), ApiError> {
    let disk = rustix::fs::statvfs(folder).map_err(ApiError::internal)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= bytes.saturating_add(FREE_BYTES_MIN) {
        return Ok(());
    }
    Err(ApiError::caused(
        ErrorCode::Overloaded,
        format!("{free} bytes of disk space are free for an archive of {bytes}"),
    ))
}

struct Import<'a> {
    pipelines: &'a Pipelines,
    upload: &'a Upload,
    inspected: &'a Inspected,
    scratch: &'a ProcessFolder,
}

impl Import<'_> {
    fn begin(&self, slug: &Slug) -> Result<(), ApiError> {
        let operation = PendingOperation::Import { sha256: self.upload.sha256.clone() };
        let work = |locked: &[LockedPipeline]| match marker::begin(&self.pipelines.store, &locked[0], &operation)? {
            Begun::Complete => self.finish(&locked[0]),
            begun @ (Begun::New | Begun::Resumed) => self.write(&locked[0], begun, &operation),
        };
        self.pipelines
            .locks
            .with_pipeline_locks(&[slug], work)
            .map_err(|error| marker::already_exists_if_busy(&self.pipelines.store, slug, error))
    }

    fn write(&self, locked: &LockedPipeline, begun: Begun, operation: &PendingOperation) -> Result<(), ApiError> {
        let mut unpacking = Unpacking {
            store: &*self.pipelines.store,
            locked,
            archive: &self.upload.archive,
            inspected: self.inspected,
            folder: self.scratch.path(),
            written: Vec::new(),
        };
        // The deletion mark of an earlier pipeline would drop the new one's jobs.
        let revived = self.pipelines.ports.registry.revive_pipeline(locked.slug()).map_err(from_kv);
        let written = revived
            .and_then(|()| unpacking.write())
            .and_then(|()| if begun == Begun::Resumed { self.delete_stale(locked) } else { Ok(()) })
            .and_then(|()| marker::advance(&self.pipelines.store, locked, operation, OperationStage::Made))
            .and_then(|()| {
                reach("make::made");
                unpacking.write_config()
            });
        match written {
            Ok(()) => self.finish(locked),
            Err(error) => {
                // Objects of an earlier attempt can't be distinguished; the marker stays.
                Err(match begun {
                    Begun::New => undo(&self.pipelines.store, locked, &unpacking.written, true, error),
                    Begun::Resumed | Begun::Complete => error,
                })
            }
        }
    }

    /// Deletes objects of an earlier attempt that the archive lacks, except in the lake, which may have new uploads.
    fn delete_stale(&self, locked: &LockedPipeline) -> Result<(), ApiError> {
        let wanted: HashSet<(Bucket, &str)> =
            self.inspected.objects.iter().map(|object| (object.bucket, object.key.as_str())).collect();
        for bucket in [Bucket::Pipelines, Bucket::Warehouse] {
            delete_others(&self.pipelines.store, locked, bucket, |key| wanted.contains(&(bucket, key)))?;
        }
        Ok(())
    }

    /// Extends the debounce window, since the files are new here though the tables contain them.
    fn finish(&self, locked: &LockedPipeline) -> Result<(), ApiError> {
        let slug = locked.slug();
        if self.inspected.objects.iter().any(|object| object.bucket == Bucket::Lake && is_text(&object.key)) {
            extend_window(&*self.pipelines.ports.schedule, slug)?;
        }
        marker::remove(&self.pipelines.store, locked)
    }
}
