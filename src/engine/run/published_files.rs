//! Describes written data files for the formats that a table is published in.

use std::fs::File;
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;

use super::delta_files::DeltaFiles;
use super::iceberg_files::IcebergFiles;
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::pipeline::{Mapping, TableFormat};
use crate::domain::table_log::entries::{DeltaFile, IcebergFile};
use crate::engine::run_error::scratch_error;

/// Describes the data files of one table, if it is published.
#[derive(Debug, Clone, Default)]
pub struct PublishedFiles {
    delta: Option<DeltaFiles>,
    iceberg: Option<IcebergFiles>,
}

/// A data file's entry in each format; `None`: the table isn't published in it.
pub type PublishedFile = (Option<DeltaFile>, Option<IcebergFile>);

impl PublishedFiles {
    /// `made_ms`: when the files are made, in milliseconds since the epoch.
    pub(super) fn of(mapping: &Mapping, made_ms: i64) -> Self {
        let has = |format| mapping.publish.contains(&format);
        Self {
            delta: has(TableFormat::Delta).then(|| DeltaFiles::of(mapping, made_ms)),
            iceberg: has(TableFormat::Iceberg).then(|| IcebergFiles::of(mapping)),
        }
    }

    /// Creation time of a Delta table's files, in milliseconds since the epoch.
    pub fn delta_made_ms(&self) -> Option<i64> {
        self.delta.as_ref().map(DeltaFiles::made_ms)
    }

    /// Describes a file in scratch that this process wrote.
    pub(super) fn describe(&self, path: &Path) -> Result<PublishedFile, RunError> {
        if self.delta.is_none() && self.iceberg.is_none() {
            return Ok((None, None));
        }
        let file = File::open(path).map_err(|error| scratch_error(path, &error))?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).map_err(|error| failed(path, error))?;
        let delta = self.delta.as_ref().map(|files| files.describe(&metadata));
        Ok((delta, self.iceberg.as_ref().map(|files| files.describe(&metadata))))
    }
}

fn failed(path: &Path, error: ParquetError) -> RunError {
    match error {
        ParquetError::External(inner) if inner.is::<std::io::Error>() => match inner.downcast::<std::io::Error>() {
            Ok(error) => scratch_error(path, &error),
            Err(error) => RunError::new(RunErrorCode::Internal, error.to_string()),
        },
        error => RunError::new(RunErrorCode::Internal, format!("scratch `{}`: {error}", path.display())),
    }
}
