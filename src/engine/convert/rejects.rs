//! Writes the rejects of one source as Parquet.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::conversion::SpooledFile;
use super::error::{ConvertError, internal};
use super::parquet_file::{ParquetFile, properties};
use super::spill::{ScratchFolder, Spill, SpillWriter};
use crate::domain::digest::hex;
use crate::domain::limits::EXPRESSION_FAILURES_EXPLAINED_MAX;
use crate::domain::pipeline::{Compression, Encodings, ParquetOptions};
use crate::domain::reject::Reject;
use crate::domain::table_log::cuts::CutTargets;

/// Rejects held in memory before they are spilled, in bytes of raw text.
const HELD_BYTES_MAX: usize = 4 << 20;

/// The columns of a rejects file. `table` is a partition column of `_rejected_rows` instead.
pub fn rejects_schema() -> SchemaRef {
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    Arc::new(Schema::new(vec![
        text("source", false),
        text("source_sha256", false),
        Field::new("line", DataType::UInt64, false),
        Field::new("byte_offset", DataType::UInt64, false),
        text("column", true),
        text("value", true),
        text("reason", false),
        text("message", false),
        text("raw", false),
        text("job_id", false),
        text("raw_hex", true),
        Field::new("byte_length", DataType::UInt64, true),
    ]))
}

/// Collects the rejects of one source in order; the file is written at the end of the source, when its hash is known.
pub(super) struct RejectCollector {
    held: Vec<Reject>,
    held_bytes: usize,
    spill: Option<SpillWriter>,
    rows: u64,
    /// Failed evaluations before the next rejects.
    failures: u64,
}

impl RejectCollector {
    pub(super) fn new() -> Self {
        Self { held: Vec::new(), held_bytes: 0, spill: None, rows: 0, failures: 0 }
    }

    /// Adds the rejects of the next chunk, in which expressions failed `failures` times.
    pub(super) fn add(
        &mut self,
        rejects: Vec<Reject>,
        failures: u64,
        scratch: &ScratchFolder,
    ) -> Result<(), ConvertError> {
        let failures_before = self.failures;
        self.failures += failures;
        for mut reject in rejects {
            // The SQL engine explains the first failures of each chunk; this keeps those of the source, wherever chunks
            // end.
            if let Some(fault) = &mut reject.fault
                && failures_before + fault.nth >= EXPRESSION_FAILURES_EXPLAINED_MAX
            {
                reject.message = std::mem::take(&mut fault.general);
            }
            self.rows += 1;
            let raw_bytes = reject.raw.text.len() + reject.raw.bytes.as_ref().map_or(0, |bytes| 2 * bytes.len());
            self.held_bytes += raw_bytes + reject.message.len() + 128;
            self.held.push(reject);
            // Checked for each reject, so that row groups depend on the rejects alone.
            if self.held_bytes > HELD_BYTES_MAX {
                let batch = batch(&self.held, "", "", "")?;
                let spill = match &mut self.spill {
                    Some(spill) => spill,
                    None => self.spill.insert(SpillWriter::create(scratch, &rejects_schema())?),
                };
                spill.write(&batch)?;
                self.held.clear();
                self.held_bytes = 0;
            }
        }
        Ok(())
    }

    /// Writes the file; `None` without rejects.
    pub(super) fn finish(
        self,
        scratch: &ScratchFolder,
        source: &str,
        sha256: &str,
        job_id: &str,
    ) -> Result<Option<SpooledFile>, ConvertError> {
        if self.rows == 0 {
            return Ok(None);
        }
        let schema = rejects_schema();
        let options = ParquetOptions {
            compression: Compression::Zstd(3),
            encodings: Encodings::Compatible,
            row_group_rows: 65_536,
            file_bytes_max: u64::MAX,
            cuts: CutTargets { file_text_bytes: u64::MAX, tail_text_bytes: u64::MAX },
        };
        let mut file = ParquetFile::create(scratch, &schema, properties(&options))?;
        if let Some(spill) = self.spill {
            let spill: Spill = spill.finish()?;
            for spilled in spill.read()? {
                let spilled = spilled?;
                file.write_row_group(&with_source_columns(&spilled, source, sha256, job_id)?, &options)?;
            }
        }
        if !self.held.is_empty() {
            file.write_row_group(&batch(&self.held, source, sha256, job_id)?, &options)?;
        }
        Ok(Some(file.finish()?))
    }
}

/// The same rows with the source's columns filled in.
fn with_source_columns(
    rows: &RecordBatch,
    source: &str,
    sha256: &str,
    job_id: &str,
) -> Result<RecordBatch, ConvertError> {
    let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
    let all =
        |text: &str| Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows.num_rows()))) as ArrayRef;
    columns[0] = all(source);
    columns[1] = all(sha256);
    columns[9] = all(job_id);
    RecordBatch::try_new(rejects_schema(), columns).map_err(internal)
}

fn batch(rejects: &[Reject], source: &str, sha256: &str, job_id: &str) -> Result<RecordBatch, ConvertError> {
    let all =
        |text: &str| Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rejects.len()))) as ArrayRef;
    let columns: Vec<ArrayRef> = vec![
        all(source),
        all(sha256),
        Arc::new(UInt64Array::from_iter_values(rejects.iter().map(|r| r.line))),
        Arc::new(UInt64Array::from_iter_values(rejects.iter().map(|r| r.byte_offset))),
        Arc::new(rejects.iter().map(|r| r.column.as_deref()).collect::<StringArray>()),
        Arc::new(rejects.iter().map(|r| r.value.as_deref()).collect::<StringArray>()),
        Arc::new(StringArray::from_iter_values(rejects.iter().map(|r| r.reason.as_str()))),
        Arc::new(StringArray::from_iter_values(rejects.iter().map(|r| &r.message))),
        Arc::new(StringArray::from_iter_values(rejects.iter().map(|r| &r.raw.text))),
        all(job_id),
        Arc::new(rejects.iter().map(|r| r.raw.bytes.as_deref().map(hex)).collect::<StringArray>()),
        Arc::new(UInt64Array::from_iter_values(rejects.iter().map(|r| r.byte_length))),
    ];
    RecordBatch::try_new(rejects_schema(), columns).map_err(internal)
}
