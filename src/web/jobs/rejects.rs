//! The rows for which a job failed: as the file that the run kept, or the first of them as JSON.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use schemars::JsonSchema;
use serde::Serialize;

use super::{PARQUET, known, named};
use crate::domain::job::JobId;
use crate::domain::layout::job_rejects_key;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{BodyChanged, Bucket, ObjectMeta, StoreError};
use crate::web::Web;
use crate::web::access::{clipped, number_query, optional_query};
use crate::web::attachment::attachment;
use crate::web::failure::from_store;
use crate::web::places::Places;
use crate::web::sql::failure::from_sandbox;
use crate::web::streams::streamed;

/// Rows of one answer where the request doesn't say, and at most.
const ROWS_DEFAULT: u64 = 100;
const ROWS_MAX: u64 = 1_000;
/// Text of the rows of one answer, in bytes.
const TEXT_BYTES_MAX: usize = 8 << 20;
/// Largest file of which rows are shown, in bytes: it is copied to this machine for it, or linked.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// Rows that are decoded at a time: each has up to 64 KiB of text.
const BATCH_ROWS: usize = 100;
/// Files that are looked into at a time.
const AT_A_TIME_MAX: usize = 2;
/// The file's name in the folder in which it is read.
const FILE: &str = "rejected.parquet";

static PLACES: LazyLock<Places> = LazyLock::new(|| Places::new(AT_A_TIME_MAX));

/// The first rows for which a job failed.
#[derive(Serialize, JsonSchema)]
pub struct Rejects {
    rows: Vec<RejectedRow>,
    /// All that there are.
    total: u64,
    /// There are fewer rows than were asked for, since they are long.
    truncated: bool,
}

/// A rejected row, as `_rejected_rows` has them.
#[derive(Debug, Serialize, JsonSchema)]
struct RejectedRow {
    table: Option<String>,
    /// Key relative to the pipeline's prefix.
    source: String,
    /// The physical line on which the record starts, counted from 1.
    line: u64,
    /// Offset of its first byte in the decompressed source.
    byte_offset: u64,
    column: Option<String>,
    value: Option<String>,
    reason: String,
    message: String,
    raw: String,
}

/// `GET …/jobs/{id}/rejects`
pub fn rejects(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = named(request)?;
    let limit = number_query(request, "limit", 1..=ROWS_MAX)?.unwrap_or(ROWS_DEFAULT);
    match optional_query(request, "format")? {
        None | Some("parquet") => download(web, &pipeline, &id),
        Some("json") => shown(web, &pipeline, &id, usize::try_from(limit).unwrap_or(usize::MAX)),
        Some(other) => {
            let message = format!("the parameter `format` is `{}`, expected `parquet` or `json`", clipped(other));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

fn download(web: &Web, pipeline: &Slug, id: &JobId) -> Result<Response, ApiError> {
    let place = web.streams.enter()?;
    let reader = match web.store.get(Bucket::Pipelines, &job_rejects_key(pipeline, id.as_str()), None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Err(none(web, pipeline, id)),
        Err(error) => return Err(from_store(error)),
    };
    let name = attachment(&format!("{pipeline}-{id}.rejected.parquet"));
    let response = streamed(200, PARQUET, reader.body, Some(reader.meta.size), place);
    Ok(response.with_header("Content-Disposition", name))
}

/// Why there is no file.
fn none(web: &Web, pipeline: &Slug, id: &JobId) -> ApiError {
    known(web, pipeline, id)
        .err()
        .unwrap_or_else(|| ApiError::new(ErrorCode::ObjectNotFound, format!("the job `{id}` left no rejected rows")))
}

fn shown(web: &Web, pipeline: &Slug, id: &JobId, limit: usize) -> Result<Response, ApiError> {
    let key = job_rejects_key(pipeline, id.as_str());
    let Some(meta) = web.store.head(Bucket::Pipelines, &key).map_err(from_store)? else {
        return Err(none(web, pipeline, id));
    };
    if meta.size > FILE_BYTES_MAX {
        let message =
            format!("the rejected rows take {} bytes; up to {FILE_BYTES_MAX} are shown: download them", meta.size);
        return Err(ApiError::new(ErrorCode::QueryTooLarge, message));
    }
    let _place = PLACES.enter()?;
    let staging = web.sql.sandbox.staging().map_err(from_sandbox)?;
    let path = staging.path().join(FILE);
    bring(web, &meta, &path)?;
    let rejects = read(&path, limit).map_err(|reason| {
        let message = format!("the file of the job's rejected rows can't be read: {reason}");
        ApiError::new(ErrorCode::InvalidRequest, message)
    })?;
    Ok(Response::json(200, &rejects))
}

/// Puts the object's bytes at `path`.
fn bring(web: &Web, meta: &ObjectMeta, path: &Path) -> Result<(), ApiError> {
    let (bucket, key) = (Bucket::Pipelines, meta.key.as_str());
    if let Some(etag) = &meta.etag
        && web.store.link(bucket, key, etag, path).map_err(from_store)?
    {
        return Ok(());
    }
    let internal = |error: io::Error| ApiError::internal(format!("`{}`: {error}", path.display()));
    let mut body = web.store.get(bucket, key, meta.etag.as_ref()).map_err(from_store)?.body.take(FILE_BYTES_MAX);
    let mut file = File::create_new(path).map_err(internal)?;
    io::copy(&mut body, &mut file).map(drop).map_err(|error| match BodyChanged::is_in(&error) {
        true => ApiError::new(ErrorCode::Overloaded, "the file changed while it was read"),
        false => ApiError::caused(ErrorCode::S3Error, format!("copying `{key}`: {error}")),
    })
}

/// The first rows of a file. An error is what is wrong with it.
fn read(path: &Path, limit: usize) -> Result<Rejects, String> {
    let reason = |error: &dyn std::fmt::Display| error.to_string();
    let file = File::open(path).map_err(|error| reason(&error))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| reason(&error))?;
    let total = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or_default();
    let batches = builder.with_limit(limit).with_batch_size(BATCH_ROWS.min(limit)).build();
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for batch in batches.map_err(|error| reason(&error))? {
        let batch = batch.map_err(|error| reason(&error))?;
        for at in 0..batch.num_rows() {
            let row = row(&batch, at).ok_or("it has other columns than such a file has")?;
            bytes += row.raw.len() + row.message.len() + row.value.as_ref().map_or(0, String::len);
            if bytes > TEXT_BYTES_MAX && !rows.is_empty() {
                return Ok(Rejects { rows, total, truncated: true });
            }
            rows.push(row);
        }
    }
    Ok(Rejects { rows, total, truncated: false })
}

fn row(batch: &RecordBatch, at: usize) -> Option<RejectedRow> {
    let optional = |name: &str| -> Option<Option<String>> {
        let texts = batch.column_by_name(name)?.as_string_opt::<i32>()?;
        Some((!texts.is_null(at)).then(|| texts.value(at).to_owned()))
    };
    let text = |name: &str| optional(name)?;
    let number = |name: &str| Some(batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>()?.value(at));
    Some(RejectedRow {
        table: optional("table").flatten(),
        source: text("source")?,
        line: number("line")?,
        byte_offset: number("byte_offset")?,
        column: optional("column")?,
        value: optional("value")?,
        reason: text("reason")?,
        message: text("message")?,
        raw: text("raw")?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray, UInt64Array};
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// Writes so many rows with so much text each.
    fn file(path: &Path, rows: usize, raw: &str) {
        let texts = |text: &str| Arc::new(StringArray::from(vec![text; rows])) as ArrayRef;
        let nulls = Arc::new(StringArray::from(vec![None::<&str>; rows])) as ArrayRef;
        let numbers = Arc::new(UInt64Array::from_iter_values(0..rows as u64)) as ArrayRef;
        let columns = [
            ("table", texts("t"), false),
            ("source", texts("in/a.csv"), false),
            ("line", ArrayRef::clone(&numbers), false),
            ("byte_offset", numbers, false),
            ("column", ArrayRef::clone(&nulls), true),
            ("value", nulls, true),
            ("reason", texts("ragged_row"), false),
            ("message", texts("m"), false),
            ("raw", texts(raw), false),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn the_first_rows_are_shown_as_far_as_they_are_not_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        file(&path, 500, "short");
        let some = read(&path, 7).unwrap();
        assert_eq!((some.rows.len(), some.total, some.truncated), (7, 500, false));
        assert_eq!((some.rows[6].line, some.rows[6].column.as_deref()), (6, None));
        assert_eq!(read(&path, 1_000).unwrap().rows.len(), 500);
        file(&path, 300, &"x".repeat(64 << 10));
        let long = read(&path, 1_000).unwrap();
        assert!(long.truncated && (100..200).contains(&long.rows.len()), "{}", long.rows.len());
    }

    #[test]
    fn what_is_no_such_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "junk").unwrap();
        assert!(read(&path, 7).is_err());
        let other = RecordBatch::try_from_iter([("a", Arc::new(UInt64Array::from(vec![1])) as ArrayRef)]).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), other.schema(), None).unwrap();
        writer.write(&other).unwrap();
        writer.close().unwrap();
        assert!(read(&path, 7).is_err());
    }
}
