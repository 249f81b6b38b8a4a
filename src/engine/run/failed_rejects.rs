//! Stores the rejects of a run that failed because of them, as one file next to its record, and samples them.

use std::fs::File;
use std::path::Path;

use arrow::array::{Array, AsArray, StringArray};
use arrow::datatypes::UInt64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::converter::Converter;
use super::failure::RunFailure;
use super::prepared::PreparedTable;
use super::request::RunRequest;
use crate::domain::job::{RejectedRow, RunError};
use crate::domain::layout::job_rejects_key;
use crate::engine::convert::SpooledFile;
use crate::engine::run_error::store_error;
use crate::ports::store::{Bucket, WriteOptions};

/// Rejected rows shown in the run's error, in total and per source.
const SAMPLES_MAX: usize = 5;
const SAMPLES_OF_SOURCE_MAX: usize = 3;
/// Rejected rows in the result of a dry run, in total and per source.
const DRY_RUN_ROWS_MAX: usize = 100;
const DRY_RUN_ROWS_OF_SOURCE_MAX: usize = 20;

type Part<'a> = (&'a str, &'a SpooledFile);

/// Stores the rejects and returns the run's failure with a link to them. A dry run stores nothing.
pub(super) fn keep<C: Converter>(
    request: &RunRequest<'_>,
    converter: &C,
    tables: &[PreparedTable],
    scratch: &Path,
    error: RunError,
) -> RunFailure {
    let parts = parts(tables);
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

/// The rows that a dry run rejects, for its result.
pub(super) fn of_dry_run(tables: &[PreparedTable]) -> Vec<RejectedRow> {
    first_rows(&parts(tables), DRY_RUN_ROWS_OF_SOURCE_MAX, DRY_RUN_ROWS_MAX)
}

fn parts(tables: &[PreparedTable]) -> Vec<Part<'_>> {
    tables.iter().flat_map(|t| t.rejects.iter().map(|file| (t.name.as_str(), file))).collect()
}

/// The first rejected rows of each source, one line each.
fn samples(parts: &[Part<'_>]) -> String {
    let first = first_rows(parts, SAMPLES_OF_SOURCE_MAX, SAMPLES_MAX);
    let line = |row: &RejectedRow| {
        let RejectedRow { source, line, message, reason, .. } = row;
        format!("`{source}` line {line}: {message} ({reason})\n")
    };
    let mut text: String = first.iter().map(line).collect();
    let rows: u64 = parts.iter().map(|(_, part)| part.rows).sum();
    let more = rows.saturating_sub(first.len() as u64);
    if !first.is_empty() && more > 0 {
        text.push_str(&format!("and {more} more\n"));
    }
    text
}

/// Files that can't be read are skipped.
fn first_rows(parts: &[Part<'_>], of_source_max: usize, rows_max: usize) -> Vec<RejectedRow> {
    let rows = parts.iter().flat_map(|(table, part)| rows_of(table, part, of_source_max).unwrap_or_default());
    rows.take(rows_max).collect()
}

/// The first rows of a source; `None` if the file can't be read.
fn rows_of(table: &str, part: &SpooledFile, rows_max: usize) -> Option<Vec<RejectedRow>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&part.path).ok()?).ok()?;
    let batch = builder.with_limit(rows_max).build().ok()?.next()?.ok()?;
    let text = |name: &str| batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
    let (source, reason, message) = (text("source")?, text("reason")?, text("message")?);
    let (column, value) = (text("column")?, text("value")?);
    let line = batch.column_by_name("line")?.as_primitive_opt::<UInt64Type>()?;
    let known = |cells: &StringArray, row: usize| cells.is_valid(row).then(|| cells.value(row).to_owned());
    let row = |row: usize| RejectedRow {
        table: table.to_owned(),
        source: source.value(row).to_owned(),
        line: line.value(row),
        column: known(column, row),
        value: known(value, row),
        reason: reason.value(row).to_owned(),
        message: message.value(row).to_owned(),
    };
    Some((0..batch.num_rows()).map(row).collect())
}
