//! Some lines of a file as text: to look into it, and at the line that a rejected row tells of.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use encoding_rs::Encoding;
use schemars::JsonSchema;
use serde::Serialize;

use super::{find, missing};
use crate::engine::read::error::ReadError;
use crate::engine::read::lines::{LinesLimit, LinesWanted, lines as read};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{BodyChanged, Bucket, StoreError};
use crate::sync::Semaphore;
use crate::web::Web;
use crate::web::access::{clipped, number_query, optional_query, required_query};
use crate::web::failure::{acquire, from_store};

/// Files that are looked into at a time.
const AT_A_TIME_MAX: usize = 4;
/// Lines of one answer where the request doesn't say, and at most.
const LINES_DEFAULT: u64 = 200;
const LINES_MAX: u64 = 1_000;
/// Greatest number of a line: what a JSON number holds exactly.
const LINE_MAX: u64 = 1 << 53;
/// Decompressed bytes that are read to reach a line.
const BYTES_MAX: u64 = 256 << 20;
/// Bytes of all lines of an answer.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Longest time of one look.
const TIME_MAX: Duration = Duration::from_secs(10);

static CALLS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(AT_A_TIME_MAX));

/// Lines of a file.
#[derive(Serialize, JsonSchema)]
pub struct Lines {
    key: String,
    etag: Option<String>,
    /// By which the lines were decoded: that of the byte order mark, the one asked for, UTF-8, or windows-1252 where the
    /// lines are no UTF-8.
    encoding: String,
    /// The number of the first line, counted from 1.
    first_line: u64,
    /// Physical lines, without their ends; none where the file ends before.
    lines: Vec<String>,
    /// Semaphore in `lines` of those that were cut after 4,096 characters.
    lines_cut: Vec<usize>,
    /// There is, or may be, something behind the last of them.
    more: bool,
    /// Decompressed bytes that were read.
    bytes_read: u64,
    /// What ended the reading early: `bytes`, `time`, or `text` for the size of the answer.
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
pub fn lines(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let key = required_query(request, "key")?;
    let first = number_query(request, "line", 1..=LINE_MAX)?.unwrap_or(1);
    let count = number_query(request, "count", 1..=LINES_MAX)?.unwrap_or(LINES_DEFAULT);
    let encoding = optional_query(request, "encoding")?.filter(|label| !label.is_empty()).map(by_label).transpose()?;
    let _place = acquire(&CALLS)?;
    let found = find(web, key)?;
    let object = web.store.get(Bucket::Lake, &found.key, None).map_err(|error| match error {
        StoreError::NotFound { .. } => missing(&found.key),
        error => from_store(error),
    })?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let wanted = LinesWanted { first, count, encoding, bytes_max: BYTES_MAX, text_bytes_max: TEXT_BYTES_MAX };
    let until = Instant::now() + TIME_MAX;
    let (meta, go_on) = (object.meta, || Instant::now() < until);
    let told = read(&found.key, object.body, meta.size, &wanted, &go_on).map_err(refusal)?;
    let lines = Lines {
        key: found.key,
        etag: meta.etag.map(|tag| tag.0),
        encoding: told.encoding.to_owned(),
        first_line: first,
        lines: told.lines,
        lines_cut: told.cut,
        more: told.more,
        bytes_read: told.bytes_read,
        limited_by: told.limit.map(|limit| match limit {
            LinesLimit::Bytes => Limit::Bytes,
            LinesLimit::Time => Limit::Time,
            LinesLimit::Text => Limit::Text,
        }),
    };
    Ok(Response::json(200, &lines))
}

fn by_label(label: &str) -> Result<&'static Encoding, ApiError> {
    Encoding::for_label(label.as_bytes()).ok_or_else(|| {
        let message = format!("the parameter `encoding` is `{}`, expected a label as `utf-8`", clipped(label));
        ApiError::new(ErrorCode::InvalidRequest, message)
    })
}

/// What can't be read as its name says is no fault of the service.
fn refusal(error: ReadError) -> ApiError {
    match error {
        ReadError::Io { source, .. } if BodyChanged::is_in(&source) => {
            ApiError::new(ErrorCode::PreconditionFailed, "the file changed while it was read: try again")
        }
        ReadError::Io { key, source } => ApiError::caused(ErrorCode::S3Error, format!("reading `{key}`: {source}")),
        error => ApiError::new(ErrorCode::InvalidRequest, error.to_string()),
    }
}
