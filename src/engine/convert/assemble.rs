//! Assembles files from row groups of other files, byte for byte.
//!
//! Invariant: the result has the bytes that it would have if the row groups had been encoded into it. A file ends at the
//! first row group with which it reaches `file_bytes_max`.

use std::ops::Range;
use std::path::PathBuf;

use arrow::datatypes::SchemaRef;

use super::conversion::SpooledFile;
use super::error::{ConvertError, internal};
use super::parquet_file::{ParquetFile, StoredRowGroups, properties};
use super::spill::ScratchFolder;
use crate::domain::pipeline::ParquetOptions;

/// Consecutive row groups of a file with the schema and options of the table, made by this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroups {
    pub path: PathBuf,
    pub range: Range<usize>,
}

/// Properties that all files of a table share.
pub(super) struct FileFormat<'a> {
    pub schema: &'a SchemaRef,
    pub options: &'a ParquetOptions,
    pub scratch: &'a ScratchFolder,
    /// Whether files are published in place and must be durable there.
    pub durable_in_place: bool,
}

impl FileFormat<'_> {
    pub(super) fn create(&self) -> Result<ParquetFile, ConvertError> {
        let mut file = ParquetFile::create(self.scratch, self.schema, properties(self.options))?;
        if self.durable_in_place {
            file.enable_early_writeback();
        }
        Ok(file)
    }

    pub(super) fn is_full(&self, file: &ParquetFile) -> bool {
        file.bytes() >= self.options.file_bytes_max
    }

    /// Writes the row groups of `parts` in order.
    pub(super) fn assemble(&self, parts: &[RowGroups]) -> Result<Vec<SpooledFile>, ConvertError> {
        let mut files = Vec::new();
        let mut open: Option<ParquetFile> = None;
        for part in parts {
            let from = StoredRowGroups::open(&part.path)?;
            if part.range.end > from.count() {
                return Err(internal(format!("`{}` has {} row groups", part.path.display(), from.count())));
            }
            for row_group in part.range.clone() {
                let mut file = match open.take() {
                    Some(file) => file,
                    None => self.create()?,
                };
                file.append_copy(&from, row_group)?;
                if self.is_full(&file) { files.push(file.finish()?) } else { open = Some(file) }
            }
        }
        if let Some(file) = open {
            files.push(file.finish()?);
        }
        Ok(files)
    }
}
