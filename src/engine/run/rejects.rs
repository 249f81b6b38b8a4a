//! The rejects of a run that failed for them, as one file beside its record.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, UInt64Type};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::RunRequest;
use super::converter::Converter;
use super::failure::{RunFailure, scratch_error};
use super::publish::put_failed_rejects;
use super::table::Prepared;
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::layout::job_rejects_key;
use crate::engine::convert::SpooledFile;

/// Rejected rows that the error of a run tells of, in all and of one source.
const SAMPLES_MAX: usize = 5;
const SAMPLES_OF_SOURCE_MAX: usize = 3;

/// Keeps the rejects of the run and gives its failure, linked to them. A dry run keeps nothing.
pub(super) fn keep<C: Converter>(
    request: &RunRequest<'_>,
    converter: &C,
    tables: &[Prepared],
    scratch: &Path,
    error: RunError,
) -> RunFailure {
    let parts: Vec<(&str, &SpooledFile)> =
        tables.iter().flat_map(|t| t.rejects.iter().map(|file| (t.name(), file))).collect();
    let advice = format!("{}correct the files or the mapping, or raise `rejects`", samples(&parts));
    if request.dry_run || parts.is_empty() {
        return error.detail(advice).into();
    }
    let key = job_rejects_key(request.slug(), request.job_id);
    let file = scratch.join("rejects.parquet");
    let put = || put_failed_rejects(request, &key, &file).map_err(super::failure::store_error);
    match converter.join_rejects(&parts, &file).and_then(|()| put()) {
        Ok(_) => error.detail(advice).path(key).into(),
        Err(lost) => error.detail(format!("{advice}. The rejected rows could not be kept: {lost}")).into(),
    }
}

/// The first rejected rows of each source, a line each, so that the error itself says where to look.
fn samples(parts: &[(&str, &SpooledFile)]) -> String {
    let told: Vec<String> = parts.iter().flat_map(|(_, part)| sample(part).unwrap_or_default()).collect();
    let mut text: String = told.iter().take(SAMPLES_MAX).map(|line| format!("{line}\n")).collect();
    let rows: u64 = parts.iter().map(|(_, part)| part.rows).sum();
    let more = rows.saturating_sub(told.len().min(SAMPLES_MAX) as u64);
    if !told.is_empty() && more > 0 {
        text.push_str(&format!("and {more} more\n"));
    }
    text
}

/// `a/b.csv` line 7: why, for the first rows of one source; none if that can't be told.
fn sample(part: &SpooledFile) -> Option<Vec<String>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&part.path).ok()?).ok()?;
    let batch = builder.with_limit(SAMPLES_OF_SOURCE_MAX).build().ok()?.next()?.ok()?;
    let text = |name: &str| batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
    let (source, reason, message) = (text("source")?, text("reason")?, text("message")?);
    let line = batch.column_by_name("line")?.as_primitive_opt::<UInt64Type>()?;
    let tell = |row: usize| {
        let (source, message, reason) = (source.value(row), message.value(row), reason.value(row));
        format!("`{source}` line {}: {message} ({reason})", line.value(row))
    };
    Some((0..batch.num_rows()).map(tell).collect())
}

/// Writes the rows of several rejects files into one, in order, with the table's name as first column.
///
/// # Errors
/// If scratch fails, or a part is no Parquet file of the same columns as the first.
pub(super) fn concatenate(parts: &[(&str, &SpooledFile)], to: &Path) -> Result<(), RunError> {
    let mut writer: Option<ArrowWriter<File>> = None;
    for (table, part) in parts {
        let file = File::open(&part.path).map_err(|e| scratch_error(&part.path, &e))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|r| r.build());
        for batch in reader.map_err(|e| unreadable(&part.path, &e))? {
            let batch = with_table(table, &batch.map_err(|e| unreadable(&part.path, &e))?);
            let batch = batch.map_err(|e| unreadable(&part.path, &e))?;
            let writer = match &mut writer {
                Some(writer) => writer,
                None => {
                    let out = File::create(to).map_err(|e| scratch_error(to, &e))?;
                    let made = ArrowWriter::try_new(out, batch.schema(), None).map_err(|e| unreadable(to, &e))?;
                    writer.insert(made)
                }
            };
            writer.write(&batch).map_err(|e| unreadable(to, &e))?;
        }
    }
    match writer {
        Some(writer) => writer.close().map(|_| ()).map_err(|e| unreadable(to, &e)),
        None => Err(RunError::new(RunErrorCode::Internal, "no rejected rows were spooled")),
    }
}

fn with_table(table: &str, batch: &RecordBatch) -> Result<RecordBatch, arrow::error::ArrowError> {
    let schema = batch.schema();
    let mut fields = vec![Arc::new(Field::new("table", DataType::Utf8, false))];
    fields.extend(schema.fields().iter().cloned());
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(table, batch.num_rows())));
    let columns = std::iter::once(names).chain(batch.columns().iter().cloned()).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> RunError {
    RunError::new(RunErrorCode::Internal, format!("rejects file `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::UInt64Array;

    fn spool(folder: &Path, name: &str, lines: &[u64]) -> SpooledFile {
        let schema = Arc::new(Schema::new(vec![Field::new("line", DataType::UInt64, false)]));
        let column: ArrayRef = Arc::new(UInt64Array::from(lines.to_vec()));
        let path = folder.join(name);
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), schema.clone(), None).unwrap();
        writer.write(&RecordBatch::try_new(schema, vec![column]).unwrap()).unwrap();
        writer.close().unwrap();
        SpooledFile { path, rows: lines.len() as u64, size: 1, sha256: String::new(), sources: vec![] }
    }

    #[test]
    fn rejects_of_several_tables_become_one_file_that_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (spool(folder.path(), "a", &[2, 7]), spool(folder.path(), "b", &[1]));
        let to = folder.path().join("all");
        concatenate(&[("t", &a), ("u", &b)], &to).unwrap();

        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&to).unwrap()).unwrap().build().unwrap();
        let mut rows = Vec::new();
        for batch in reader {
            let batch = batch.unwrap();
            assert_eq!(batch.schema().field(0).name(), "table");
            let tables = batch.column(0).as_any().downcast_ref::<StringArray>().unwrap();
            let lines = batch.column(1).as_any().downcast_ref::<UInt64Array>().unwrap();
            rows.extend((0..batch.num_rows()).map(|i| (tables.value(i).to_owned(), lines.value(i))));
        }
        assert_eq!(rows, [("t".into(), 2), ("t".into(), 7), ("u".into(), 1)]);
    }

    #[test]
    fn a_spooled_file_that_is_no_parquet_is_an_error_not_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, b"junk").unwrap();
        let file = SpooledFile { path, rows: 1, size: 4, sha256: String::new(), sources: vec![] };
        let error = concatenate(&[("t", &file)], &folder.path().join("all")).unwrap_err();
        assert_eq!(error.code, RunErrorCode::Internal);
    }
}
