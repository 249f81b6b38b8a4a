//! Spills rows to scratch while memory is short.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use super::error::{ConvertError, arrow_error, scratch_error};

/// Assigns unique file names in a scratch folder.
#[derive(Debug)]
pub(super) struct ScratchFolder {
    folder: PathBuf,
    next: AtomicU64,
}

impl ScratchFolder {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), next: AtomicU64::new(0) }
    }

    /// A path of no existing file.
    pub(super) fn path(&self, kind: &str) -> PathBuf {
        // Several conversions share the folder of their run, so names may be taken.
        loop {
            let path = self.folder.join(format!("{kind}-{}", self.next.fetch_add(1, Ordering::Relaxed)));
            if !path.exists() {
                return path;
            }
        }
    }
}

/// A file of batches, written once and then read.
pub(super) struct SpillWriter {
    path: PathBuf,
    writer: StreamWriter<std::io::BufWriter<File>>,
}

/// A finished spill; deleted when dropped.
#[derive(Debug)]
pub(super) struct Spill {
    path: PathBuf,
}

impl SpillWriter {
    pub(super) fn create(scratch: &ScratchFolder, schema: &SchemaRef) -> Result<Self, ConvertError> {
        let path = scratch.path("spill");
        let file = File::create_new(&path).map_err(|e| scratch_error(&path, &e))?;
        let writer = StreamWriter::try_new(std::io::BufWriter::with_capacity(1 << 16, file), schema)
            .map_err(|e| arrow_error(&path, e))?;
        Ok(Self { path, writer })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), ConvertError> {
        self.writer.write(batch).map_err(|e| arrow_error(&self.path, e))
    }

    pub(super) fn finish(mut self) -> Result<Spill, ConvertError> {
        self.writer.finish().map_err(|e| arrow_error(&self.path, e))?;
        let buffered = self.writer.into_inner().map_err(|e| arrow_error(&self.path, e))?;
        buffered.into_inner().map_err(|e| scratch_error(&self.path, e.error()))?;
        Ok(Spill { path: self.path })
    }
}

impl Spill {
    /// Writes all `batches`.
    pub(super) fn of(
        scratch: &ScratchFolder,
        schema: &SchemaRef,
        batches: impl IntoIterator<Item = Result<RecordBatch, ConvertError>>,
    ) -> Result<Self, ConvertError> {
        let mut writer = SpillWriter::create(scratch, schema)?;
        for batch in batches {
            writer.write(&batch?)?;
        }
        writer.finish()
    }

    /// Reads the batches in the order of writing.
    pub(super) fn read(&self) -> Result<impl Iterator<Item = Result<RecordBatch, ConvertError>> + use<>, ConvertError> {
        let path = self.path.clone();
        let file = File::open(&path).map_err(|e| scratch_error(&path, &e))?;
        let reader =
            StreamReader::try_new(BufReader::with_capacity(1 << 16, file), None).map_err(|e| arrow_error(&path, e))?;
        Ok(reader.map(move |batch| batch.map_err(|e| arrow_error(&path, e))))
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        // The scratch folder is deleted at the end of the run; this frees the space earlier.
        let _ = std::fs::remove_file(&self.path);
    }
}
