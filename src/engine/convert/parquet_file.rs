//! Parquet files in scratch.
//!
//! Invariant: a file's bytes depend on the rows, their schema and the options alone, never on the machine, the time or
//! the job.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::file::reader::Length;
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;

use super::conversion::SpooledFile;
use super::error::{ConvertError, internal, scratch_error};
use super::hashing_file::HashingFile;
use super::spill::ScratchFolder;
use crate::domain::pipeline::ParquetOptions;
use crate::domain::plan::WRITER_FORMAT_VERSION;
use crate::engine::encode::{ColumnChunk, ColumnEncoder, codec};

/// Rows per slab, the unit passed to the encoders; also the rows per page.
pub(super) const SLAB_ROWS: usize = 20_480;

/// Smaller row groups are hashed inline: starting a thread would take longer.
const BACKGROUND_HASH_BYTES_MIN: u64 = 16 << 20;

/// The file's properties. Column chunks arrive encoded.
pub(super) fn properties(options: &ParquetOptions) -> WriterPropertiesPtr {
    let builder = WriterProperties::builder()
        .set_created_by(format!("lakemill (format {WRITER_FORMAT_VERSION})"))
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(codec(options.compression));
    Arc::new(builder.build())
}

/// The Parquet columns of a schema.
pub(super) fn descriptors(schema: &SchemaRef) -> Result<Vec<ColumnDescPtr>, ConvertError> {
    Ok(ArrowSchemaConverter::new().convert(schema).map_err(internal)?.columns().to_vec())
}

/// A file being written, row group by row group.
pub(super) struct ParquetFile {
    path: PathBuf,
    writer: SerializedFileWriter<HashingFile>,
    rows: u64,
    row_groups: usize,
}

impl ParquetFile {
    pub(super) fn create(
        scratch: &ScratchFolder,
        schema: &SchemaRef,
        properties: WriterPropertiesPtr,
    ) -> Result<Self, ConvertError> {
        let path = scratch.path("file");
        let sink = HashingFile::create(path.clone()).map_err(|e| scratch_error(&path, &e))?;
        let root = ArrowSchemaConverter::new().convert(schema).map_err(internal)?.root_schema_ptr();
        let writer = SerializedFileWriter::new(sink, root, properties).map_err(|e| failed(&path, e))?;
        Ok(Self { path, writer, rows: 0, row_groups: 0 })
    }

    /// Starts writeback while the file grows, for files that must be durable in place.
    pub(super) fn enable_early_writeback(&mut self) {
        self.writer.inner_mut().enable_early_writeback();
    }

    /// Releases the file descriptor and buffer until the next row group, since each partition may have an open file.
    pub(super) fn suspend(&mut self) -> Result<(), ConvertError> {
        self.writer.flush().map_err(|e| scratch_error(&self.path, &e))?;
        self.writer.inner_mut().suspend().map_err(|e| scratch_error(&self.path, &e))
    }

    /// Bytes written so far, without the footer.
    pub(super) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Appends a row group of finished column chunks, in column order.
    pub(super) fn append(&mut self, chunks: Vec<ColumnChunk>, rows: u64) -> Result<(), ConvertError> {
        if chunks.iter().map(|chunk| chunk.pages.len()).sum::<u64>() >= BACKGROUND_HASH_BYTES_MIN {
            self.writer.inner_mut().hash_in_background();
        }
        let mut group = self.writer.next_row_group().map_err(|e| failed(&self.path, e))?;
        for chunk in chunks {
            group.append_column(&chunk.pages, chunk.close).map_err(|e| failed(&self.path, e))?;
        }
        group.close().map_err(|e| failed(&self.path, e))?;
        self.writer.inner_mut().hash_inline();
        self.rows += rows;
        self.row_groups += 1;
        Ok(())
    }

    /// Appends a row group of another file byte for byte.
    pub(super) fn append_copy(&mut self, from: &StoredRowGroups, row_group: usize) -> Result<(), ConvertError> {
        let metadata = from.loaded.metadata();
        let group_metadata = metadata.row_group(row_group);
        let rows = group_metadata.num_rows() as u64;
        if group_metadata.compressed_size() as u64 >= BACKGROUND_HASH_BYTES_MIN {
            self.writer.inner_mut().hash_in_background();
        }
        let mut group = self.writer.next_row_group().map_err(|e| failed(&self.path, e))?;
        for (at, column) in group_metadata.columns().iter().enumerate() {
            let close = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: rows,
                metadata: as_first_written(column)?,
                bloom_filter: None,
                column_index: metadata.column_index().map(|index| index[row_group][at].clone()),
                offset_index: metadata.offset_index().map(|index| index[row_group][at].clone()),
            };
            group.append_column(&from.file, close).map_err(|e| failed(&self.path, e))?;
        }
        group.close().map_err(|e| failed(&self.path, e))?;
        self.writer.inner_mut().hash_inline();
        self.rows += rows;
        self.row_groups += 1;
        Ok(())
    }

    /// Encodes and appends a row group on this thread.
    pub(super) fn write_row_group(
        &mut self,
        batch: &RecordBatch,
        options: &ParquetOptions,
    ) -> Result<(), ConvertError> {
        let mut chunks = Vec::with_capacity(batch.num_columns());
        for (descriptor, column) in descriptors(&batch.schema())?.into_iter().zip(batch.columns()) {
            let mut encoder =
                ColumnEncoder::new(descriptor, column.data_type(), options.compression, options.encodings);
            for start in (0..column.len()).step_by(SLAB_ROWS) {
                encoder.write(&[column.slice(start, SLAB_ROWS.min(column.len() - start))]).map_err(internal)?;
            }
            chunks.push(encoder.close().map_err(internal)?);
        }
        self.append(chunks, batch.num_rows() as u64)
    }

    /// Writes the footer. The file is then ready to be published.
    pub(super) fn finish(self) -> Result<SpooledFile, ConvertError> {
        let path = self.path;
        let sink = self.writer.into_inner().map_err(|e| failed(&path, e))?;
        let (size, sha256) = sink.finish().map_err(|e| scratch_error(&path, &e))?;
        Ok(SpooledFile { path, rows: self.rows, size, sha256, row_groups: self.row_groups })
    }
}

/// A file of ours whose row groups are copied.
pub(super) struct StoredRowGroups {
    file: File,
    loaded: ArrowReaderMetadata,
}

impl StoredRowGroups {
    pub(super) fn open(path: &Path) -> Result<Self, ConvertError> {
        let file = File::open(path).map_err(|e| scratch_error(path, &e))?;
        // Loads all metadata, since it is written again.
        let options = ArrowReaderOptions::new()
            .with_page_index_policy(PageIndexPolicy::Required)
            .with_encoding_stats_as_mask(false);
        let loaded = ArrowReaderMetadata::load(&file, options).map_err(|e| failed(path, e))?;
        Ok(Self { file, loaded })
    }

    pub(super) fn count(&self) -> usize {
        self.loaded.metadata().num_row_groups()
    }
}

/// Reads the rows of a draft back in batches of about `rows`.
pub(super) fn read_draft(
    draft: &SpooledFile,
    rows: u64,
    schema: &SchemaRef,
) -> Result<impl Iterator<Item = Result<RecordBatch, ConvertError>> + use<>, ConvertError> {
    let reader = open_rows(&draft.path, schema)?;
    let reader = reader.with_batch_size(rows.clamp(1, SLAB_ROWS as u64) as usize).build().map_err(internal)?;
    Ok(reader.map(|batch| batch.map_err(internal)))
}

/// Opens a file of ours, to read rows of this schema.
pub(super) fn open_rows(
    path: &Path,
    schema: &SchemaRef,
) -> Result<ParquetRecordBatchReaderBuilder<File>, ConvertError> {
    let file = File::open(path).map_err(|e| scratch_error(path, &e))?;
    let options = ArrowReaderOptions::new().with_schema(Arc::clone(schema));
    ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(internal)
}

/// The metadata of a column chunk as first written. Reading loses only the flag that writes the statistics of signed
/// values in their deprecated form too.
fn as_first_written(column: &ColumnChunkMetaData) -> Result<ColumnChunkMetaData, ConvertError> {
    let signed = column.column_descr().sort_order().is_signed();
    let Some(statistics) = column.statistics().cloned() else { return Ok(column.clone()) };
    let statistics = match statistics {
        Statistics::Boolean(s) => Statistics::Boolean(s.with_backwards_compatible_min_max(signed)),
        Statistics::Int32(s) => Statistics::Int32(s.with_backwards_compatible_min_max(signed)),
        Statistics::Int64(s) => Statistics::Int64(s.with_backwards_compatible_min_max(signed)),
        Statistics::Int96(s) => Statistics::Int96(s.with_backwards_compatible_min_max(signed)),
        Statistics::Float(s) => Statistics::Float(s.with_backwards_compatible_min_max(signed)),
        Statistics::Double(s) => Statistics::Double(s.with_backwards_compatible_min_max(signed)),
        Statistics::ByteArray(s) => Statistics::ByteArray(s.with_backwards_compatible_min_max(signed)),
        Statistics::FixedLenByteArray(s) => Statistics::FixedLenByteArray(s.with_backwards_compatible_min_max(signed)),
    };
    column.clone().into_builder().set_statistics(statistics).build().map_err(internal)
}

/// Extracts I/O errors wrapped by Parquet, so that a full disk is not reported as a bug.
fn failed(path: &Path, error: ParquetError) -> ConvertError {
    if let ParquetError::External(inner) = &error
        && let Some(io) = inner.downcast_ref::<std::io::Error>()
    {
        return scratch_error(path, io);
    }
    internal(error)
}
