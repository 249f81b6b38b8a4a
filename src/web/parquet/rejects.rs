//! Reads the file of rejected rows that a failed run leaves.

use std::fs::File;
use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::FILE;

/// The operation's name.
pub const OPERATION: &str = "parquet_rejects";
/// Maximum size of rows as JSON, in bytes.
const JSON_BYTES_MAX: usize = 8 << 20;
/// Rows decoded at a time: each has up to 64 KiB of text.
const BATCH_ROWS: usize = 100;

/// A request for rows.
#[derive(Debug, Serialize, Deserialize)]
pub struct RejectsRequest {
    pub limit: usize,
}

/// The first rejected rows of a job.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rejects {
    rows: Vec<RejectedRow>,
    /// Number of all rejected rows.
    total: u64,
    /// Whether the size limit truncated the rows.
    truncated: bool,
}

/// A rejected row, as in `_rejected_rows`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct RejectedRow {
    table: Option<String>,
    /// Key relative to the pipeline's prefix.
    source: String,
    /// The physical line on which the record starts, from 1.
    line: u64,
    /// Offset of its first byte in the decompressed source.
    byte_offset: u64,
    /// Bytes from there to the next record, in the source's encoding; null in files of older versions.
    byte_length: Option<u64>,
    column: Option<String>,
    value: Option<String>,
    reason: String,
    message: String,
    raw: String,
    /// The record's bytes in hexadecimal, as many as `raw` shows, where they are not UTF-8.
    raw_hex: Option<String>,
}

impl Rejects {
    /// Truncates to `limit` rows, since the child is untrusted.
    pub fn cut(mut self, limit: usize) -> Self {
        self.rows.truncate(limit);
        self
    }
}

/// Runs in the child.
pub(super) fn read(request: RejectsRequest) -> Result<Rejects, String> {
    first_rows(Path::new(FILE), request.limit)
}

/// The first rows of a file; an error is the file's problem.
fn first_rows(path: &Path, limit: usize) -> Result<Rejects, String> {
    let reason = |error: &dyn std::fmt::Display| error.to_string();
    let file = File::open(path).map_err(|error| reason(&error))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| reason(&error))?;
    let total = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or_default();
    let batches = builder.with_limit(limit).with_batch_size(BATCH_ROWS.min(limit)).build();
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for batch in batches.map_err(|error| reason(&error))? {
        let batch = batch.map_err(|error| reason(&error))?;
        for at in 0..batch.num_rows() {
            let row = row(&batch, at).ok_or("its columns are not those of a file of rejected rows")?;
            bytes += serde_json::to_string(&row).map_err(|error| reason(&error))?.len();
            if bytes > JSON_BYTES_MAX && !rows.is_empty() {
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
        byte_length: number("byte_length"),
        column: optional("column")?,
        value: optional("value")?,
        reason: text("reason")?,
        message: text("message")?,
        raw: text("raw")?,
        raw_hex: optional("raw_hex").flatten(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray, UInt64Array};
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// Writes the given number of rows, each with this much text.
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
    fn first_rows_are_bounded_in_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        file(&path, 500, "short");
        let some = first_rows(&path, 7).unwrap();
        assert_eq!((some.rows.len(), some.total, some.truncated), (7, 500, false));
        assert_eq!((some.rows[6].line, some.rows[6].column.as_deref()), (6, None));
        assert_eq!(first_rows(&path, 1_000).unwrap().rows.len(), 500);
        file(&path, 300, &"x".repeat(64 << 10));
        let long = first_rows(&path, 1_000).unwrap();
        assert!(long.truncated && (100..200).contains(&long.rows.len()), "{}", long.rows.len());
    }

    #[test]
    fn foreign_parquet_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "junk").unwrap();
        assert!(first_rows(&path, 7).is_err());
        let other = RecordBatch::try_from_iter([("a", Arc::new(UInt64Array::from(vec![1])) as ArrayRef)]).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), other.schema(), None).unwrap();
        writer.write(&other).unwrap();
        writer.close().unwrap();
        assert!(first_rows(&path, 7).is_err());
    }
}
