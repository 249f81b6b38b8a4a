//! Shows lines of a file as text, such as that of a rejected row.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use encoding_rs::Encoding;
use schemars::JsonSchema;
use serde::Serialize;

use super::service::{LakeService, find, missing};
use crate::engine::read::error::ReadError;
use crate::engine::read::lines::{LinesLimit, LinesWanted, lines as read};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{BodyChanged, Bucket, StoreError};
use crate::sync::Semaphore;
use crate::web::access::{clipped, number_query, optional_query, required_query};
use crate::web::failure::{acquire, from_store};

/// Concurrent reads.
const CONCURRENT_MAX: usize = 4;
/// Default and largest number of lines.
const LINES_DEFAULT: u64 = 200;
const LINES_MAX: u64 = 1_000;
/// Largest line number: the largest exact integer in JSON.
const LINE_MAX: u64 = 1 << 53;
/// Maximum number of decompressed bytes read to reach a line.
const BYTES_MAX: u64 = 256 << 20;
/// Maximum size of all lines of a response, in bytes.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Longest time of one read.
const TIME_MAX: Duration = Duration::from_secs(10);

static CALLS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(CONCURRENT_MAX));

/// Lines of a file.
#[derive(Serialize, JsonSchema)]
pub struct Lines {
    key: String,
    etag: Option<String>,
    /// The encoding used: that of the byte order mark, the requested one, UTF-8, or windows-1252 if the lines aren't
    /// valid UTF-8.
    encoding: String,
    /// Number of the first line, from 1.
    first_line: u64,
    /// Physical lines without line endings; empty past the end of the file.
    lines: Vec<String>,
    /// Indices in `lines` of those cut after 4,096 characters.
    lines_cut: Vec<usize>,
    /// More lines follow, or may follow.
    more: bool,
    /// Decompressed bytes read.
    bytes_read: u64,
    /// The limit that ended the read early: `bytes`, `time`, or `text` for the size of the response.
    limited_by: Option<Limit>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Limit {
    Bytes,
    Time,
    Text,
}

/// `GET /api/lake/lines`
pub fn lines(lake: &LakeService, request: &mut Request) -> Result<Response, ApiError> {
    let key = required_query(request, "key")?;
    let first = number_query(request, "line", 1..=LINE_MAX)?.unwrap_or(1);
    let count = number_query(request, "count", 1..=LINES_MAX)?.unwrap_or(LINES_DEFAULT);
    let encoding = optional_query(request, "encoding")?.filter(|label| !label.is_empty()).map(by_label).transpose()?;
    let _permit = acquire(&CALLS)?;
    let meta = find(lake, key)?;
    let object = lake.store.get(Bucket::Lake, &meta.key, None).map_err(|error| match error {
        StoreError::NotFound { .. } => missing(&meta.key),
        error => from_store(error),
    })?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let wanted = LinesWanted { first, count, encoding, bytes_max: BYTES_MAX, text_bytes_max: TEXT_BYTES_MAX };
    let until = Instant::now() + TIME_MAX;
    let keep_going = || Instant::now() < until;
    let found = read(&meta.key, object.body, object.meta.size, &wanted, &keep_going).map_err(read_error)?;
    let lines = Lines {
        key: meta.key,
        etag: object.meta.etag.map(|tag| tag.0),
        encoding: found.encoding.to_owned(),
        first_line: first,
        lines: found.lines,
        lines_cut: found.cut,
        more: found.more,
        bytes_read: found.bytes_read,
        limited_by: found.limit.map(|limit| match limit {
            LinesLimit::Bytes => Limit::Bytes,
            LinesLimit::Time => Limit::Time,
            LinesLimit::Text => Limit::Text,
        }),
    };
    Ok(Response::json(200, &lines))
}

fn by_label(label: &str) -> Result<&'static Encoding, ApiError> {
    Encoding::for_label(label.as_bytes()).ok_or_else(|| {
        let message = format!("query parameter `encoding` is `{}`, expected a label such as `utf-8`", clipped(label));
        ApiError::new(ErrorCode::InvalidRequest, message)
    })
}

/// A file that doesn't have the format of its name is the client's error.
fn read_error(error: ReadError) -> ApiError {
    match error {
        ReadError::Io { source, .. } if BodyChanged::is_in(&source) => {
            ApiError::new(ErrorCode::PreconditionFailed, "the file changed while it was read; retry")
        }
        ReadError::Io { key, source } => ApiError::caused(ErrorCode::S3Error, format!("reading `{key}`: {source}")),
        error => ApiError::new(ErrorCode::InvalidRequest, error.to_string()),
    }
}
