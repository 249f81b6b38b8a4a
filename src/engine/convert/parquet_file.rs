//! Parquet files in scratch.
//!
//! Invariant: a file's bytes depend on the rows, their schema and the options alone: nothing of the machine, the time
//! or the job goes into it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression as Codec, Encoding, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr, WriterVersion,
};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use sha2::{Digest, Sha256};

use super::rows::internal;
use super::spill::{Scratch, scratch_error};
use super::{ConvertError, SpooledFile};
use crate::domain::pipeline::{Compression, ParquetOptions};
use crate::domain::plan::WRITER_FORMAT_VERSION;

/// Rows of a page, and of a slab, the unit in which rows are handed to the encoders: page bounds are checked every
/// `WRITE_BATCH_ROWS` from a slab's start, so that slabs must be a multiple of them for the same pages to come out.
pub(super) const SLAB_ROWS: usize = 20 * WRITE_BATCH_ROWS;
const WRITE_BATCH_ROWS: usize = 1_024;

/// Longest minimum and maximum kept in statistics, in bytes.
const STATISTICS_BYTES_MAX: usize = 64;

/// The properties of a file, or, with the columns worth a dictionary, of a row group.
pub(super) fn properties(
    options: &ParquetOptions,
    schema: &SchemaRef,
    dictionaries: Option<&[bool]>,
) -> WriterPropertiesPtr {
    let mut builder: WriterPropertiesBuilder = WriterProperties::builder()
        .set_created_by(format!("lakemill (format {WRITER_FORMAT_VERSION})"))
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(codec(options.compression))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_statistics_truncate_length(Some(STATISTICS_BYTES_MAX))
        .set_column_index_truncate_length(Some(STATISTICS_BYTES_MAX))
        .set_data_page_row_count_limit(SLAB_ROWS)
        .set_write_batch_size(WRITE_BATCH_ROWS)
        .set_max_row_group_row_count(None);
    for (at, field) in schema.fields().iter().enumerate() {
        if dictionaries.is_some_and(|wanted| !wanted[at]) {
            let path = ColumnPath::new(vec![field.name().clone()]);
            builder =
                builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, Encoding::PLAIN);
        }
    }
    Arc::new(builder.build())
}

fn codec(compression: Compression) -> Codec {
    match compression {
        Compression::None => Codec::UNCOMPRESSED,
        Compression::Snappy => Codec::SNAPPY,
        Compression::Lz4 => Codec::LZ4_RAW,
        // The level was checked when the config was read; the default stands in for one that isn't known here.
        Compression::Zstd(level) => Codec::ZSTD(ZstdLevel::try_new(level).unwrap_or_default()),
    }
}

/// Counts and hashes what passes through.
struct Hashing {
    path: PathBuf,
    /// `None` while the file rests.
    file: Option<BufWriter<File>>,
    hash: Sha256,
    bytes: u64,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file()?.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Hashing {
    fn file(&mut self) -> std::io::Result<&mut BufWriter<File>> {
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::with_capacity(1 << 16, File::options().append(true).open(&self.path)?),
        };
        Ok(self.file.insert(file))
    }

    /// Closes the file until the next write.
    fn rest(&mut self) -> std::io::Result<()> {
        self.flush()?;
        self.file = None;
        Ok(())
    }
}

/// A file being written, row group by row group.
pub(super) struct ParquetFile {
    path: PathBuf,
    schema: SchemaRef,
    properties: WriterPropertiesPtr,
    writer: SerializedFileWriter<Hashing>,
    rows: u64,
}

impl ParquetFile {
    pub(super) fn create(
        scratch: &Scratch,
        schema: &SchemaRef,
        properties: WriterPropertiesPtr,
    ) -> Result<Self, ConvertError> {
        let path = scratch.path("file");
        let file = File::create_new(&path).map_err(|e| scratch_error(&path, &e))?;
        let file = Some(BufWriter::with_capacity(1 << 16, file));
        let sink = Hashing { path: path.clone(), file, hash: Sha256::new(), bytes: 0 };
        let root = ArrowSchemaConverter::new().convert(schema).map_err(internal)?.root_schema_ptr();
        let writer = SerializedFileWriter::new(sink, root, Arc::clone(&properties)).map_err(|e| failed(&path, e))?;
        Ok(Self { path, schema: Arc::clone(schema), properties, writer, rows: 0 })
    }

    /// Gives its descriptor and buffer back until the next row group: there can be as many files as partitions.
    pub(super) fn rest(&mut self) -> Result<(), ConvertError> {
        self.writer.flush().map_err(|e| scratch_error(&self.path, &e))?;
        self.writer.inner_mut().rest().map_err(|e| scratch_error(&self.path, &e))
    }

    /// Bytes written so far, without the footer.
    pub(super) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends a row group of finished column chunks, in column order.
    pub(super) fn append(&mut self, chunks: Vec<ArrowColumnChunk>, rows: u64) -> Result<(), ConvertError> {
        let mut group = self.writer.next_row_group().map_err(|e| failed(&self.path, e))?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group).map_err(|e| failed(&self.path, e))?;
        }
        group.close().map_err(|e| failed(&self.path, e))?;
        self.rows += rows;
        Ok(())
    }

    /// Appends the only row group of `draft`, byte for byte.
    pub(super) fn append_draft(&mut self, draft: &SpooledFile) -> Result<(), ConvertError> {
        let file = File::open(&draft.path).map_err(|e| scratch_error(&draft.path, &e))?;
        // Whole, since it is written again: not the short form that readers need.
        let options = ArrowReaderOptions::new()
            .with_page_index_policy(PageIndexPolicy::Required)
            .with_encoding_stats_as_mask(false);
        let loaded = ArrowReaderMetadata::load(&file, options).map_err(|e| failed(&draft.path, e))?;
        let metadata = loaded.metadata();
        let mut group = self.writer.next_row_group().map_err(|e| failed(&self.path, e))?;
        for (at, column) in metadata.row_group(0).columns().iter().enumerate() {
            let close = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: draft.rows,
                metadata: as_first_written(column)?,
                bloom_filter: None,
                column_index: metadata.column_index().map(|index| index[0][at].clone()),
                offset_index: metadata.offset_index().map(|index| index[0][at].clone()),
            };
            group.append_column(&file, close).map_err(|e| failed(&self.path, e))?;
        }
        group.close().map_err(|e| failed(&self.path, e))?;
        self.rows += draft.rows;
        Ok(())
    }

    /// Encodes and appends one row group on this thread.
    pub(super) fn write_row_group(&mut self, batches: &[RecordBatch]) -> Result<(), ConvertError> {
        let mut writers = column_writers(&self.schema, &self.properties)?;
        let mut rows = 0;
        for batch in batches {
            rows += batch.num_rows() as u64;
            for ((field, column), writer) in self.schema.fields().iter().zip(batch.columns()).zip(&mut writers) {
                for leaf in compute_leaves(field, column).map_err(internal)? {
                    writer.write(&leaf).map_err(internal)?;
                }
            }
        }
        let chunks = writers.into_iter().map(|w| w.close().map_err(internal)).collect::<Result<Vec<_>, _>>()?;
        self.append(chunks, rows)
    }

    /// Writes the footer; the file is then ready to be published.
    pub(super) fn finish(self, sources: Vec<String>) -> Result<SpooledFile, ConvertError> {
        let path = self.path;
        let mut sink = self.writer.into_inner().map_err(|e| failed(&path, e))?;
        sink.flush().map_err(|e| scratch_error(&path, &e))?;
        let sha256 = hex(&sink.hash.finalize());
        Ok(SpooledFile { path, rows: self.rows, size: sink.bytes, sha256, sources })
    }
}

/// The metadata of a column chunk as its writer made them. Reading gives all of it but the mark on the statistics of
/// signed values that has them written in their deprecated form too.
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

/// Writers for one row group of `schema`'s columns.
pub(super) fn column_writers(
    schema: &SchemaRef,
    properties: &WriterPropertiesPtr,
) -> Result<Vec<ArrowColumnWriter>, ConvertError> {
    // The factory takes its schema and properties from a file writer; this one writes nowhere.
    let root = ArrowSchemaConverter::new().convert(schema).map_err(internal)?.root_schema_ptr();
    let nowhere = SerializedFileWriter::new(std::io::sink(), root, Arc::clone(properties)).map_err(internal)?;
    ArrowRowGroupWriterFactory::new(&nowhere, Arc::clone(schema)).create_column_writers(0).map_err(internal)
}

/// Lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parquet wraps I/O errors; a full disk must still be told from a bug.
fn failed(path: &std::path::Path, error: ParquetError) -> ConvertError {
    if let ParquetError::External(inner) = &error
        && let Some(io) = inner.downcast_ref::<std::io::Error>()
    {
        return scratch_error(path, io);
    }
    internal(error)
}
