//! Stores the rejects of a run that failed because of them, as one file next to its record.

use std::fs::File;
use std::path::Path;

use arrow::array::AsArray;
use arrow::datatypes::UInt64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::converter::Converter;
use super::failure::RunFailure;
use super::prepared::PreparedTable;
use super::request::RunRequest;
use crate::domain::job::RunError;
use crate::domain::layout::job_rejects_key;
use crate::engine::convert::SpooledFile;
use crate::engine::run_error::store_error;
use crate::ports::store::{Bucket, WriteOptions};

/// Rejected rows shown in the run's error, in total and per source.
const SAMPLES_MAX: usize = 5;
const SAMPLES_OF_SOURCE_MAX: usize = 3;

/// Stores the rejects and returns the run's failure with a link to them. A dry run stores nothing.
pub(super) fn keep<C: Converter>(
    request: &RunRequest<'_>,
    converter: &C,
    tables: &[PreparedTable],
    scratch: &Path,
    error: RunError,
) -> RunFailure {
    let parts: Vec<(&str, &SpooledFile)> =
        tables.iter().flat_map(|t| t.rejects.iter().map(|file| (t.name.as_str(), file))).collect();
    let advice = format!("{}correct the files or the mapping, or raise `rejects`", samples(&parts));
    if request.dry_run || parts.is_empty() {
        return error.detail(advice).into();
    }
    let key = job_rejects_key(request.slug(), request.job_id);
    let file = scratch.join("rejects.parquet");
    let options = WriteOptions::leased(request.lease);
    let put = || request.store.put_file(Bucket::Pipelines, &key, &file, &options).map_err(store_error);
    match converter.join_rejects(&parts, &file).and_then(|()| put()) {
        Ok(_) => error.detail(advice).path(key).into(),
        Err(lost) => error.detail(format!("{advice}. The rejected rows could not be stored: {lost}")).into(),
    }
}

/// The first rejected rows of each source, one line each.
fn samples(parts: &[(&str, &SpooledFile)]) -> String {
    let samples: Vec<String> = parts.iter().flat_map(|(_, part)| sample(part).unwrap_or_default()).collect();
    let mut text: String = samples.iter().take(SAMPLES_MAX).map(|line| format!("{line}\n")).collect();
    let rows: u64 = parts.iter().map(|(_, part)| part.rows).sum();
    let more = rows.saturating_sub(samples.len().min(SAMPLES_MAX) as u64);
    if !samples.is_empty() && more > 0 {
        text.push_str(&format!("and {more} more\n"));
    }
    text
}

/// `a/b.csv` line 7 and the reason, for the first rows of one source; `None` if the file can't be read.
fn sample(part: &SpooledFile) -> Option<Vec<String>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&part.path).ok()?).ok()?;
    let batch = builder.with_limit(SAMPLES_OF_SOURCE_MAX).build().ok()?.next()?.ok()?;
    let text = |name: &str| batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
    let (source, reason, message) = (text("source")?, text("reason")?, text("message")?);
    let line = batch.column_by_name("line")?.as_primitive_opt::<UInt64Type>()?;
    let sample_line = |row: usize| {
        let (source, message, reason) = (source.value(row), message.value(row), reason.value(row));
        format!("`{source}` line {}: {message} ({reason})", line.value(row))
    };
    Some((0..batch.num_rows()).map(sample_line).collect())
}
