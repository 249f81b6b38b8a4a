//! The lake's files: list, upload, move, delete, download, show lines.
//!
//! Invariants:
//! - every key from a request is validated;
//! - a CSV is in the lake before its pipeline's debounce window is extended, so that the following run sees it; a request
//!   that fails in between can be repeated.

mod lines;
mod list;
mod object;
mod service;
mod state;
mod transfer;

use super::endpoint::Endpoint;
use crate::domain::limits::UPLOAD_BYTES_MAX;
use crate::http::{ContentType, ErrorCode};

pub use service::LakeService;
use service::{OCTETS, Stored};

/// Largest request to move an object, in bytes.
const MOVE_BYTES_MAX: u64 = 16 << 10;
pub(super) fn endpoints() -> Vec<Endpoint<LakeService>> {
    const KEY: &str = "The object's key, from the root of the lake.";
    vec![
        Endpoint::get("/api/lake", "lake.list", "Lists one level of the lake", list::list)
            .query::<String>("prefix", "Key prefix: usually a folder, with a trailing `/`.")
            .query::<String>("after", "`next` of the previous page.")
            .query::<u64>("limit", "Page size: 1 to 1,000, 500 by default.")
            .query::<bool>("state", "Whether to include the tables that read each file, and whether they have.")
            .response::<list::Level>(200, "a page of folders and files")
            .errors(&[ErrorCode::InvalidKey]),
        Endpoint::put(
            "/api/lake",
            "lake.upload",
            "Uploads a file; with `If-None-Match: *` never replaces one",
            object::upload,
        )
        .query::<String>("key", KEY)
        .required()
        .takes_stream(UPLOAD_BYTES_MAX, ContentType::AnyButForm, "*/*")
        .response::<Stored>(201, "a new file")
        .header("ETag")
        .response::<Stored>(200, "the file replaced another")
        .header("ETag")
        .errors(&[ErrorCode::InvalidKey, ErrorCode::PreconditionFailed]),
        Endpoint::post("/api/lake", "lake.move", "Moves a file to a new key", transfer::transfer)
            .takes::<transfer::Move>(MOVE_BYTES_MAX)
            .response::<Stored>(200, "the file at its new key")
            .errors(&[
                ErrorCode::InvalidKey,
                ErrorCode::ObjectNotFound,
                ErrorCode::AlreadyExists,
                ErrorCode::PreconditionFailed,
            ]),
        Endpoint::delete("/api/lake", "lake.delete", "Deletes a file", object::delete)
            .query::<String>("key", KEY)
            .required()
            .response::<object::DeletedObjects>(200, "the file is deleted")
            .errors(&[ErrorCode::InvalidKey, ErrorCode::ObjectNotFound]),
        Endpoint::get("/api/lake/object", "lake.download", "Downloads a file", object::download)
            .query::<String>("key", KEY)
            .required()
            .query::<u64>("head", "Only the first bytes: 1 to 1,048,576.")
            .bytes_response(200, OCTETS, "the file as it is stored")
            .header("ETag")
            .header("Content-Disposition")
            .errors(&[ErrorCode::InvalidKey, ErrorCode::ObjectNotFound]),
        Endpoint::get("/api/lake/lines", "lake.lines", "Shows lines of a file as text", lines::lines)
            .query::<String>("key", KEY)
            .required()
            .query::<u64>("line", "Number of the first line, from 1; 1 by default.")
            .query::<u64>("count", "Maximum number of lines: 1 to 1,000, 200 by default.")
            .query::<String>("encoding", "The file's encoding, unless it has a byte order mark; detected by default.")
            .response::<lines::Lines>(200, "the lines")
            .errors(&[ErrorCode::InvalidKey, ErrorCode::ObjectNotFound, ErrorCode::PreconditionFailed]),
    ]
}
