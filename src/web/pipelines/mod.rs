//! Pipelines as wholes: list, create, import, export, rename, delete.
//!
//! Invariants:
//! - whoever makes, moves or deletes a pipeline holds its run lock, and every write carries the lock's lease ([`hold`]);
//! - what makes a pipeline marks it first and puts its config last, so that a try that was cut off is told from a
//!   pipeline that exists, can be repeated to the end, and is never run half ([`mark`]);
//! - the bytes of objects stay as they are, but for tags in manifests, which are the store's ([`etags`]).

mod copying;
mod create;
mod entries;
mod etags;
mod export;
mod from_csv;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod hold;
mod import;
mod inspect;
pub(in crate::web) mod list;
mod mark;
mod package;
pub(in crate::web) mod recent;
mod remove;
mod rename;
mod unpack;
mod upload;

pub(super) use mark::refuse_unfinished;

use crate::domain::limits::IMPORT_BYTES_MAX;
use crate::http::{ContentType, ErrorCode};
use crate::web::endpoint::Endpoint;

/// Largest body of a create or a rename, in bytes.
const BODY_BYTES_MAX: u64 = 16 << 10;

const PIPELINES: &str = "/api/pipelines";
const PIPELINE: &str = "/api/pipelines/{slug}";

pub(super) fn endpoints() -> Vec<Endpoint> {
    const KV: &[ErrorCode] = &[ErrorCode::PipelineBusy, ErrorCode::KvUnavailable];
    vec![
        Endpoint::get(PIPELINES, "pipelines.list", "Lists the pipelines", list::list)
            .query::<bool>("details", "With `1`: what each is, what it last did and what is next.")
            .query::<u64>(
                "recent",
                "With `details`: tell so many of the last ended jobs of each, at most 30; 0 if missing.",
            )
            .answers::<list::Listed>(200, "the slugs, or with `details` an entry each"),
        Endpoint::post(PIPELINES, "pipelines.create", "Makes a pipeline from a template", create::create)
            .takes::<create::CreateRequest>(BODY_BYTES_MAX)
            .answers::<create::Created>(201, "it is there")
            .header("Location")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::InvalidKey, ErrorCode::AlreadyExists])
            .errors(&[ErrorCode::ObjectNotFound, ErrorCode::InvalidConfig, ErrorCode::PreconditionFailed])
            .errors(KV),
        Endpoint::post("/api/pipelines/import", "pipelines.import", "Takes in an exported archive", import::import)
            .takes_stream(IMPORT_BYTES_MAX, ContentType::OneOf(&["multipart/form-data"]), "multipart/form-data")
            .answers::<import::Imported>(201, "it is there")
            .header("Location")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::InvalidArchive, ErrorCode::AlreadyExists])
            .errors(KV),
        Endpoint::delete(PIPELINE, "pipelines.delete", "Deletes every object of a pipeline", remove::delete)
            .answers::<remove::Deleted>(200, "it is gone")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound])
            // Of an object that no request can name.
            .errors(&[ErrorCode::InvalidKey])
            .errors(KV),
        Endpoint::patch(PIPELINE, "pipelines.rename", "Gives a pipeline another slug", rename::rename)
            .takes::<rename::RenameRequest>(BODY_BYTES_MAX)
            .answers::<rename::Renamed>(200, "it has the new slug")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound, ErrorCode::AlreadyExists])
            // Of an object whose key would be too long, or that no request can name.
            .errors(&[ErrorCode::InvalidKey])
            .errors(KV),
        Endpoint::get("/api/p/{pipeline}/export", "pipelines.export", "Streams all of a pipeline", export::export)
            .answers_bytes(200, "application/zip", "the archive")
            .header("Content-Disposition")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound, ErrorCode::PipelineBusy])
            .errors(&[ErrorCode::PayloadTooLarge, ErrorCode::InvalidArchive, ErrorCode::InvalidKey]),
    ]
}
