//! The conversion as the run uses it, and joining of reject files.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::published_files::{PublishedFile, PublishedFiles};
use crate::domain::job::{RunError, RunErrorCode};
use crate::engine::convert::{
    BufferedRows, BuildInputs, Conversion, ConvertError, Converted, OutcomeSink, RowGroups, SourceList, SourceOutcome,
    SpooledFile,
};
use crate::engine::run_error::scratch_error;

/// Turns the sources of a table into spooled files.
pub trait Converter: Sync {
    /// Rows read to learn their partitions.
    type Buffered;

    /// See [`Conversion::buffer`].
    ///
    /// # Errors
    /// See [`ConvertError`].
    fn buffer(&self, table: &Conversion<'_>, sources: &Arc<SourceList>) -> Result<Self::Buffered, ConvertError>;

    /// The outcome of each buffered source, in key order.
    fn outcomes<'h>(&self, buffered: &'h Self::Buffered) -> &'h [SourceOutcome];

    /// See [`Conversion::build`].
    ///
    /// # Errors
    /// See [`ConvertError`].
    fn build(
        &self,
        table: &Conversion<'_>,
        inputs: BuildInputs<Self::Buffered>,
        read: &mut OutcomeSink<'_>,
    ) -> Result<Converted, ConvertError>;

    /// See [`Conversion::assemble`].
    ///
    /// # Errors
    /// See [`ConvertError`].
    fn assemble(
        &self,
        table: &Conversion<'_>,
        groups: &[Vec<RowGroups>],
    ) -> Result<Vec<Vec<SpooledFile>>, ConvertError>;

    /// Describes a data file that it made for other engines.
    ///
    /// # Errors
    /// If scratch fails.
    fn describe(&self, file: &SpooledFile, published: &PublishedFiles) -> Result<PublishedFile, RunError> {
        published.describe(&file.path)
    }

    /// Joins the rejects of several tables in order into one file, with the table name as first column.
    ///
    /// # Errors
    /// If scratch fails.
    fn join_rejects(&self, parts: &[(&str, &SpooledFile)], to: &Path) -> Result<(), RunError> {
        concatenate(parts, to)
    }
}

/// The conversion of CSV to Parquet.
#[derive(Debug, Clone, Copy, Default)]
pub struct CsvConverter;

impl Converter for CsvConverter {
    type Buffered = BufferedRows;

    fn buffer(&self, table: &Conversion<'_>, sources: &Arc<SourceList>) -> Result<BufferedRows, ConvertError> {
        table.buffer(sources)
    }

    fn outcomes<'h>(&self, buffered: &'h BufferedRows) -> &'h [SourceOutcome] {
        &buffered.sources
    }

    fn build(
        &self,
        table: &Conversion<'_>,
        inputs: BuildInputs,
        read: &mut OutcomeSink<'_>,
    ) -> Result<Converted, ConvertError> {
        table.build(inputs, read)
    }

    fn assemble(
        &self,
        table: &Conversion<'_>,
        groups: &[Vec<RowGroups>],
    ) -> Result<Vec<Vec<SpooledFile>>, ConvertError> {
        table.assemble(groups)
    }
}

/// Joins the rows of reject files in order into one file, with the table name as first column.
///
/// # Errors
/// If scratch fails, or a part is not a Parquet file with the columns of the first.
fn concatenate(parts: &[(&str, &SpooledFile)], to: &Path) -> Result<(), RunError> {
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
        SpooledFile { path, rows: lines.len() as u64, size: 1, sha256: String::new(), row_groups: 1 }
    }

    #[test]
    fn rejects_of_several_tables_are_joined_with_table_names() {
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
    fn invalid_spooled_file_is_an_error_not_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, b"junk").unwrap();
        let file = SpooledFile { path, rows: 1, size: 4, sha256: String::new(), row_groups: 1 };
        let error = concatenate(&[("t", &file)], &folder.path().join("all")).unwrap_err();
        assert_eq!(error.code, RunErrorCode::Internal);
    }
}
