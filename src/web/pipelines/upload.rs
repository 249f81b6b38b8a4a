//! Receives the form of an import: the archive, into a file in the scratch folder, and an optional slug.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::domain::digest::hex;
use crate::domain::limits::SLUG_BYTES_MAX;
use crate::domain::name::Slug;
use crate::http::multipart::{Multipart, PartBody, part_failure};
use crate::http::{ApiError, ErrorCode, Request};
use crate::web::access;
use crate::web::spool::write_error;

const FILE: &str = "file";
const SLUG: &str = "slug";
const BUFFER_BYTES: usize = 64 << 10;

/// A received form.
pub(super) struct Upload {
    pub(super) archive: File,
    /// Digest of the archive, in hex.
    pub(super) sha256: String,
    /// The new pipeline's slug; by default that of the exported one.
    pub(super) slug: Option<Slug>,
}

/// Reads the form. `folder`: where the archive is stored; `bytes_max`: its largest size.
///
/// # Errors
/// `invalid_request`, `invalid_slug`, `payload_too_large`; `internal` if the file can't be written.
pub(super) fn receive(request: &mut Request, folder: &Path, bytes_max: u64) -> Result<Upload, ApiError> {
    let wrong = |message: &str| ApiError::new(ErrorCode::InvalidRequest, message);
    let content_type = request.header("content-type").map(str::to_owned);
    let mut form = Multipart::new(content_type.as_deref(), request.body_reader())?;
    let (mut archive, mut slug) = (None, None);
    while let Some(head) = form.next_part()? {
        match head.name.as_str() {
            FILE if archive.is_some() => return Err(wrong("the form has two `file` parts")),
            FILE if head.file_name.is_none_or(|name| name.is_empty()) => {
                return Err(wrong("the part `file` has no file name"));
            }
            FILE => archive = Some(save(form.body(), folder, bytes_max)?),
            SLUG if slug.is_some() => return Err(wrong("the form has two `slug` parts")),
            SLUG => slug = Some(read_slug(form.body())?),
            other => {
                let found = access::clipped(other);
                return Err(wrong(&format!("unknown form part `{found}`, expected `{FILE}` and `{SLUG}`")));
            }
        }
    }
    let (archive, sha256) = archive.ok_or_else(|| wrong("the form has no part `file`"))?;
    // An empty field counts as missing.
    let slug = slug.filter(|slug| !slug.is_empty()).map(|slug| access::slug(&slug)).transpose()?;
    Ok(Upload { archive, sha256, slug })
}

fn read_slug<R: Read>(body: PartBody<'_, R>) -> Result<String, ApiError> {
    let mut bytes = Vec::new();
    // One byte past the limit makes the slug invalid.
    body.take(SLUG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| failure(&error))?;
    String::from_utf8(bytes).map_err(|_| ApiError::new(ErrorCode::InvalidSlug, "the slug is not UTF-8"))
}

fn save<R: Read>(mut body: PartBody<'_, R>, folder: &Path, bytes_max: u64) -> Result<(File, String), ApiError> {
    let mut file = tempfile::tempfile_in(folder).map_err(ApiError::internal)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut total = 0;
    loop {
        let read = body.read(&mut buffer).map_err(|error| failure(&error))?;
        if read == 0 {
            return Ok((file, hex(&hasher.finalize())));
        }
        total += read as u64;
        if total > bytes_max {
            let message = format!("the archive is larger than {bytes_max} bytes");
            return Err(ApiError::new(ErrorCode::PayloadTooLarge, message));
        }
        hasher.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(|error| write_error(&error))?;
    }
}

fn failure(error: &std::io::Error) -> ApiError {
    part_failure(error).unwrap_or_else(|| ApiError::internal(error))
}
