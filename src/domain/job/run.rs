//! A run's progress, result and error.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The stages of a run, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    #[default]
    Planning,
    Converting,
    Publishing,
    Finishing,
}

/// The counters of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    pub stage: Stage,
    pub files_total: u64,
    pub files_done: u64,
    pub mappings_total: u64,
    pub mappings_done: u64,
    /// Bytes as stored in the lake.
    pub bytes_total: u64,
    pub bytes_done: u64,
    pub rows_read: u64,
    pub rows_written: u64,
    pub rows_rejected: u64,
    pub partitions_written: u64,
    pub partitions_total: u64,
}

/// Row counts of one source in a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SourceResult {
    /// Key relative to the pipeline's prefix.
    pub source: String,
    pub rows_read: u64,
    pub rows_written: u64,
    pub rows_rejected: u64,
    pub rows_filtered: u64,
    /// Blank lines that were skipped (`csv.blank_lines`); they are not rows.
    #[serde(default)]
    pub blank_lines: u64,
    /// A note about the source, for example that the file is empty.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
}

/// The result of a run for one table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TableResult {
    /// Rows of the table after the run.
    pub rows_written: u64,
    pub rows_rejected: u64,
    pub rows_filtered: u64,
    pub partitions_written: u64,
    pub partitions_unchanged: u64,
    #[serde(default)]
    pub partitions_deleted: u64,
    /// Files and bytes of the table after the run.
    pub files: u64,
    pub bytes: u64,
    pub sources_read: u64,
    pub sources_skipped: u64,
    /// Archived sources after the run: CSVs that were removed from the lake, and whose rows the table keeps.
    #[serde(default)]
    pub sources_archived: u64,
    /// The sources read, at most 10,000: first those with rejected rows or a note.
    pub sources: Vec<SourceResult>,
    /// Checks with `on_fail: warn` that failed, by name, with the number of rows.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub warnings: BTreeMap<String, u64>,
    /// Rows of the table before the run; null if the table didn't exist, or its contents are unknown.
    #[serde(default)]
    pub rows_before: Option<u64>,
    /// Changes since the previous run.
    #[serde(default)]
    pub changes: TableChanges,
    /// Not part of a record: it can be long, and it is in the manifest.
    #[serde(skip)]
    pub planned: PartitionChanges,
}

/// Partitions of a table that a run changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TableChanges {
    /// The partitions with the largest change in rows, largest first; lists of jobs omit them.
    pub partitions: Vec<PartitionChange>,
    pub partitions_total: u64,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PartitionChange {
    /// Its path; empty for a table without partitions.
    pub partition: String,
    /// Null if it is new.
    pub rows_before: Option<u64>,
    /// Null if it was removed.
    pub rows_after: Option<u64>,
    /// The first sources involved: new, changed or removed ones, if there are any.
    pub sources: Vec<String>,
}

/// The partitions that a run writes and deletes (in a dry run: would), in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartitionChanges {
    pub write: Vec<String>,
    pub delete: Vec<String>,
}

/// The result of a completed run, per table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    pub tables: BTreeMap<String, TableResult>,
    /// Tables that the config no longer has, whose output a clean run deleted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dropped: Vec<String>,
    /// Files in the pipeline's folder that are unintentionally not read, the first 100: those whose names are not valid
    /// keys (not UTF-8, for example), in a printable form, and those that `files` would match but for an empty segment
    /// in their keys (`in//a.csv`).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub skipped_files: Vec<String>,
    /// Of a dry run: the first rejected rows of each source, at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rejected_rows: Vec<RejectedRow>,
}

/// A row that a dry run rejects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DryRunReject")]
pub struct RejectedRow {
    pub table: String,
    /// Key relative to the pipeline's prefix.
    pub source: String,
    /// Physical line on which the record starts.
    pub line: u64,
    /// Null if the whole record is rejected.
    pub column: Option<String>,
    /// The cell, truncated.
    pub value: Option<String>,
    pub reason: String,
    pub message: String,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    /// Stable machine code, e.g. `too_many_rejects`.
    pub code: RunErrorCode,
    pub message: String,
    /// Details of the cause, and advice.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    /// The object, or for config problems the JSON Pointer, that the error concerns.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
}

impl RunError {
    pub fn new(code: RunErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None, path: None }
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }
}

/// The codes of [`RunError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunErrorCode {
    /// The config has problems.
    InvalidConfig,
    PipelineConfigNotFound,
    /// No source matches the globs of any mapping, in an incremental run.
    NoInput,
    /// More rejects than the mapping allows.
    TooManyRejects,
    /// A row that a mapping's setting (`on_error`, `on_fail`, `ragged_rows`) makes an error of the run.
    RowFailed,
    /// The SQL engine behind `expr`, `where` and checks failed, e.g. out of memory.
    ExpressionFailed,
    /// A source whose header doesn't fit the mapping.
    HeaderMismatch,
    /// A source that can't be decompressed or decoded.
    UnreadableSource,
    /// A source changed while it was read, again and again.
    SourceChanged,
    /// The run would lose rows of CSVs that were removed from the lake, which the table keeps.
    ArchivedSourcesMissing,
    /// Rows or bytes of a source are not accounted for.
    AccountingBroken,
    /// The published objects differ from the listing.
    VerificationFailed,
    BucketNotFound,
    AccessDenied,
    /// The object store failed otherwise.
    S3Error,
    DiskFull,
    /// The lease on the run was lost.
    LeaseLost,
    /// A file of the lake folder is still being written.
    SourceBeingWritten,
    /// A stream message that can't be run as it is.
    InvalidJob,
    /// Workers died or were killed while running the job as often as it may start.
    WorkerLost,
    /// The worker was stopped during the run.
    WorkerStopping,
    /// A bug: the run panicked.
    Panicked,
    Cancelled,
    Internal,
}

impl RunErrorCode {
    /// In the order of their declaration.
    pub const ALL: [Self; 24] = [
        Self::InvalidConfig,
        Self::PipelineConfigNotFound,
        Self::NoInput,
        Self::TooManyRejects,
        Self::RowFailed,
        Self::ExpressionFailed,
        Self::HeaderMismatch,
        Self::UnreadableSource,
        Self::SourceChanged,
        Self::ArchivedSourcesMissing,
        Self::AccountingBroken,
        Self::VerificationFailed,
        Self::BucketNotFound,
        Self::AccessDenied,
        Self::S3Error,
        Self::DiskFull,
        Self::LeaseLost,
        Self::SourceBeingWritten,
        Self::InvalidJob,
        Self::WorkerLost,
        Self::WorkerStopping,
        Self::Panicked,
        Self::Cancelled,
        Self::Internal,
    ];
}

const _: () = assert!(RunErrorCode::ALL.len() == RunErrorCode::Internal as usize + 1, "one is missing in `ALL`");

/// The name in records.
impl std::fmt::Display for RunErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

impl RunErrorCode {
    /// Whether another attempt may succeed without a change by anybody.
    pub fn is_transient(self) -> bool {
        match self {
            Self::SourceChanged
            | Self::S3Error
            | Self::DiskFull
            | Self::LeaseLost
            | Self::SourceBeingWritten
            | Self::WorkerStopping
            | Self::Panicked
            | Self::Internal
            | Self::VerificationFailed => true,
            Self::InvalidConfig
            | Self::PipelineConfigNotFound
            | Self::NoInput
            | Self::TooManyRejects
            | Self::RowFailed
            | Self::ExpressionFailed
            | Self::HeaderMismatch
            | Self::UnreadableSource
            | Self::ArchivedSourcesMissing
            | Self::AccountingBroken
            | Self::BucketNotFound
            | Self::AccessDenied
            | Self::InvalidJob
            | Self::WorkerLost
            | Self::Cancelled => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_names_in_records() {
        for (code, text) in [(RunErrorCode::TooManyRejects, "too_many_rejects"), (RunErrorCode::S3Error, "s3_error")] {
            assert_eq!((code.to_string().as_str(), serde_json::to_value(code).unwrap()), (text, text.into()));
        }
    }
}
