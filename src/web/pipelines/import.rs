//! Takes in a pipeline that was exported, here or elsewhere.
//!
//! The archive is received whole, looked at whole, and then written: all of it, or nothing.

use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;

use super::hold::{Held, holding};
use super::inspect::{Inspected, inspect};
use super::mark::{self, Begun, Stage, Wish};
use super::remove::{delete_others, undo};
use super::unpack::{Unpacking, check_keys};
use super::upload::{Upload, receive};
use crate::domain::layout::is_csv;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::Bucket;
use crate::runtime::failpoint::reach;
use crate::sync::Semaphore;
use crate::system::ProcessFolder;
use crate::web::Web;
use crate::web::failure::{acquire, from_kv};

#[derive(Serialize, JsonSchema)]
pub(super) struct Imported {
    slug: String,
    /// Objects that were written.
    objects: u64,
    /// Of all of them, once inflated.
    bytes: u64,
}

/// `POST /api/pipelines/import`
pub(super) fn import(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let bytes_max = web.import_bytes_max;
    if request.body_length().is_some_and(|length| length > bytes_max.saturating_add(FORM_BYTES)) {
        let message = format!("the archive is larger than {bytes_max} bytes");
        return Err(ApiError::new(ErrorCode::PayloadTooLarge, message));
    }
    let Some(_place) = CALLS.try_acquire() else {
        return Err(ApiError::caused(ErrorCode::Overloaded, format!("{AT_A_TIME_MAX} archives are taken in already")));
    };
    let name = format!("import-{}", uuid::Uuid::new_v4().simple());
    let scratch = ProcessFolder::make(&web.scratch_dir, &name).map_err(ApiError::internal)?;
    let permit = acquire(&web.streams)?;
    check_room(scratch.path(), request.body_length().unwrap_or(0))?;
    let upload = receive(request, scratch.path(), bytes_max)?;
    drop(permit);
    let inspected = inspect(&upload.archive, bytes_max)?;
    let slug = upload.slug.clone().unwrap_or_else(|| inspected.slug.clone());
    check_keys(&*web.store, &slug, &inspected)?;
    let import = Import { web, upload: &upload, inspected: &inspected, scratch: &scratch };
    import.begin(&slug)?;
    let request_id = request.id().as_str();
    tracing::info!(pipeline = %slug, objects = inspected.objects.len(), request_id, "the pipeline is imported");
    let objects = inspected.objects.len() as u64;
    let imported = Imported { slug: slug.to_string(), objects, bytes: inspected.size };
    Ok(Response::json(201, &imported).with_header("Location", format!("/api/p/{slug}/config")))
}

/// What a form has besides its file, at most.
const FORM_BYTES: u64 = 64 << 10;
/// Archives that are taken in at a time: each lies on the disk.
const AT_A_TIME_MAX: usize = 2;
/// Room that an import leaves on the disk, in bytes.
const ROOM_LEFT_MIN: u64 = 256 << 20;

static CALLS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(AT_A_TIME_MAX));

/// Looks for room before the sending, as far as it can be told.
fn check_room(folder: &Path, bytes: u64) -> Result<(), ApiError> {
    let disk = rustix::fs::statvfs(folder).map_err(ApiError::internal)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= bytes.saturating_add(ROOM_LEFT_MIN) {
        return Ok(());
    }
    Err(ApiError::caused(ErrorCode::Overloaded, format!("{free} bytes are free for an archive of {bytes}")))
}

struct Import<'a> {
    web: &'a Web,
    upload: &'a Upload,
    inspected: &'a Inspected,
    scratch: &'a ProcessFolder,
}

impl Import<'_> {
    fn begin(&self, slug: &Slug) -> Result<(), ApiError> {
        let wish = Wish::Import { sha256: self.upload.sha256.clone() };
        let work = |held: &[Held]| match mark::begin(self.web, &held[0], &wish)? {
            Begun::Whole => self.finish(&held[0]),
            begun @ (Begun::Anew | Begun::Again) => self.write(&held[0], begun, &wish),
        };
        holding(self.web, &[slug], work).map_err(|error| mark::taken_if_busy(self.web, slug, error))
    }

    fn write(&self, held: &Held, begun: Begun, wish: &Wish) -> Result<(), ApiError> {
        let mut unpacking = Unpacking {
            store: &*self.web.store,
            held,
            archive: &self.upload.archive,
            inspected: self.inspected,
            folder: self.scratch.path(),
            written: Vec::new(),
        };
        // The mark of a deletion would have the jobs of the new pipeline dropped.
        let revived = self.web.kv.revive_pipeline(held.slug()).map_err(from_kv);
        let written = revived
            .and_then(|()| unpacking.write())
            .and_then(|()| if begun == Begun::Again { self.sweep(held) } else { Ok(()) })
            .and_then(|()| mark::advance(self.web, held, wish, Stage::Made))
            .and_then(|()| {
                reach("make::made");
                unpacking.write_config()
            });
        match written {
            Ok(()) => self.finish(held),
            Err(error) => {
                // What an earlier try left can be told from nothing; the mark stays on it.
                Err(match begun {
                    Begun::Anew => undo(self.web, held, &unpacking.written, true, error),
                    Begun::Again | Begun::Whole => error,
                })
            }
        }
    }

    /// In the lake there may be what somebody has uploaded since.
    fn sweep(&self, held: &Held) -> Result<(), ApiError> {
        let wanted: HashSet<(Bucket, &str)> =
            self.inspected.objects.iter().map(|object| (object.bucket, object.key.as_str())).collect();
        for bucket in [Bucket::Pipelines, Bucket::Warehouse] {
            delete_others(self.web, held, bucket, |key| wanted.contains(&(bucket, key)))?;
        }
        Ok(())
    }

    /// The files are news to whoever runs the pipeline, though its tables know them.
    fn finish(&self, held: &Held) -> Result<(), ApiError> {
        let slug = held.slug();
        if self.inspected.objects.iter().any(|object| object.bucket == Bucket::Lake && is_csv(&object.key)) {
            self.web.extend_window(slug)?;
        }
        mark::remove(self.web, held)
    }
}
