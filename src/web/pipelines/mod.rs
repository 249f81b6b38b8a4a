//! Operations on whole pipelines: list, create, import, export, rename, delete.
//!
//! Invariants:
//! - an operation holds the pipeline's run lock, and every write carries the lock's lease ([`crate::web::locks`]);
//! - an operation that creates a pipeline writes a marker first and the config last, so that an interrupted one is
//!   distinguishable from an existing pipeline, can be resumed, and is never run ([`marker`]);
//! - objects keep their bytes, except for tags in manifests, which the store assigns ([`copying`]).

mod copying;
mod create;
mod entries;
mod export;
mod import;
mod inspect;
mod list;
mod marker;
mod package;
mod recent;
mod remove;
mod rename;
mod service;
mod unpack;
mod upload;

#[cfg(any(test, feature = "fuzzing"))]
pub use inspect::fuzz_archive;
pub use marker::refuse_unfinished;

use crate::domain::limits::IMPORT_BYTES_MAX;
use crate::http::{ContentType, ErrorCode};
use crate::web::endpoint::Endpoint;

pub use service::{PipelineOptions, PipelinePorts, Pipelines};

/// Largest body of a create or a rename, in bytes.
const BODY_BYTES_MAX: u64 = 16 << 10;

const PIPELINES: &str = "/api/pipelines";
const PIPELINE: &str = "/api/pipelines/{slug}";

pub(super) fn endpoints() -> Vec<Endpoint<Pipelines>> {
    const KV: &[ErrorCode] = &[ErrorCode::PipelineBusy, ErrorCode::KvUnavailable];
    vec![
        Endpoint::get(PIPELINES, "pipelines.list", "Lists the pipelines", list::list)
            .query::<bool>("details", "Whether to include the state of each pipeline.")
            .query::<u64>("recent", "With `details`: number of recent ended jobs, at most 30; 0 by default.")
            .query::<u64>("limit", "With `details`: page size, 1 to 1,000, 1,000 by default.")
            .query::<String>("after", "With `details`: `next` of the previous page.")
            .response::<service::Listed>(200, "the slugs, or with `details` an entry each"),
        Endpoint::post(PIPELINES, "pipelines.create", "Creates a pipeline from a template", create::create)
            .takes::<create::CreateRequest>(BODY_BYTES_MAX)
            .response::<create::Created>(201, "the pipeline is created")
            .header("Location")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::InvalidKey, ErrorCode::AlreadyExists])
            .errors(&[ErrorCode::ObjectNotFound, ErrorCode::InvalidConfig, ErrorCode::PreconditionFailed])
            .errors(KV),
        Endpoint::post("/api/pipelines/import", "pipelines.import", "Imports an exported pipeline", import::import)
            .takes_stream(IMPORT_BYTES_MAX, ContentType::OneOf(&["multipart/form-data"]), "multipart/form-data")
            .response::<import::Imported>(201, "the pipeline is created")
            .header("Location")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::InvalidArchive, ErrorCode::AlreadyExists])
            .errors(KV),
        Endpoint::delete(PIPELINE, "pipelines.delete", "Deletes a pipeline", remove::delete)
            .response::<remove::DeletedPipeline>(200, "the pipeline is deleted")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound])
            // The pipeline has an object that no request can name.
            .errors(&[ErrorCode::InvalidKey])
            .errors(KV),
        Endpoint::patch(PIPELINE, "pipelines.rename", "Renames a pipeline", rename::rename)
            .takes::<rename::RenameRequest>(BODY_BYTES_MAX)
            .response::<rename::Renamed>(200, "the pipeline is renamed")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound, ErrorCode::AlreadyExists])
            // The pipeline has an object whose new key would be too long, or that no request can name.
            .errors(&[ErrorCode::InvalidKey])
            .errors(KV),
        Endpoint::get("/api/p/{pipeline}/export", "pipelines.export", "Exports a pipeline", export::export)
            .bytes_response(200, "application/zip", "the archive")
            .header("Content-Disposition")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound, ErrorCode::PipelineBusy])
            .errors(&[ErrorCode::PayloadTooLarge, ErrorCode::InvalidArchive, ErrorCode::InvalidKey]),
    ]
}
