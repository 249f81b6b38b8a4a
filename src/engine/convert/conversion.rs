//! The inputs and results of a conversion.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::ConvertError;
use super::members::Members;
use super::text_list::TextList;
use crate::domain::job::SourceResult;
use crate::domain::name::Slug;
use crate::domain::pipeline::Mapping;
use crate::domain::table_log::cuts::Cut;
use crate::ports::observer::Stop;
use crate::ports::store::ETag;
use crate::ports::{Expressions, ObjectStore};

/// A source as listed when the run planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRef {
    /// Key relative to `pipelines/<slug>/` of the lake.
    pub key: String,
    pub etag: Option<ETag>,
    /// Bytes as stored.
    pub size: u64,
}

/// A finished file in scratch, waiting to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpooledFile {
    pub path: PathBuf,
    pub rows: u64,
    /// Bytes.
    pub size: u64,
    /// Hex.
    pub sha256: String,
    pub row_groups: usize,
}

/// The outcome of one source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceOutcome {
    /// `source` is the key; `rows_written` counts the rows of every partition, built or not.
    pub rows: SourceResult,
    /// SHA-256 of the stored object, in hex.
    pub sha256: String,
    /// The ETag of the GET response.
    pub etag: Option<String>,
    pub size: u64,
    /// Rows per partition, built or not.
    pub partitions: BTreeMap<String, u64>,
    /// Its rejected rows.
    pub rejects: Option<SpooledFile>,
    /// Checks that warned, with the number of rows.
    pub warnings: BTreeMap<String, u64>,
    /// Its text in bytes, after decompression and decoding.
    pub text_bytes: u64,
    /// Bytes of text accounted for: headers, skipped lines and records, comments, blank lines, and records that are
    /// counted as rows.
    pub counted_bytes: u64,
    /// The first columns of its header that the mapping doesn't have.
    pub extra_columns: Vec<String>,
    /// The id of the variant that it was read by.
    pub variant: Option<String>,
}

/// Takes the outcome of each source that is read, in key order, as the source ends.
pub type OutcomeSink<'a> = dyn FnMut(SourceOutcome) -> Result<(), ConvertError> + Send + 'a;

/// The result of a conversion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Converted {
    /// The key of every source that may have rows in `partitions`, in order.
    pub keys: Arc<TextList>,
    /// The groups of each built partition that has rows, in order.
    pub partitions: BTreeMap<String, Vec<BuiltGroup>>,
}

/// A group: the segments in one data file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuiltGroup {
    /// One file, or several if the group exceeded `file_bytes_max`.
    pub files: Vec<SpooledFile>,
    /// In order.
    pub segments: Vec<BuiltSegment>,
}

/// A segment: sources whose rows were encoded together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltSegment {
    pub members: Members,
    pub rows: u64,
    pub row_groups: usize,
    /// The boundary after its last source.
    pub cut: Cut,
}

impl Converted {
    /// The files of a partition in order.
    pub fn files(groups: &[BuiltGroup]) -> impl Iterator<Item = &SpooledFile> {
        groups.iter().flat_map(|group| &group.files)
    }
}

/// Threads, memory and scratch of a run.
#[derive(Debug, Clone)]
pub struct Resources {
    pub threads: usize,
    /// `SVC_RUN_MEMORY_BYTES`.
    pub memory_bytes: u64,
    /// An existing folder that only this run uses.
    pub scratch: PathBuf,
}

/// Receives the progress of a conversion.
pub trait ConvertProgress: Sync {
    fn bytes_read(&self, bytes: u64);
    fn source_done(&self);
    fn rows(&self, read: u64, written: u64, rejected: u64);
    /// # Errors
    /// The reason to stop.
    fn check(&self) -> Result<(), Stop>;
}

/// Called with the partition of a file, the first source of its group as an index of [`Converted::keys`], its index in the
/// group, and the file.
pub type OnFile<'a> = dyn Fn(&str, u32, usize, &SpooledFile) + Sync + 'a;

/// The inputs of a conversion of one table.
pub struct Conversion<'a> {
    pub store: &'a dyn ObjectStore,
    pub slug: &'a Slug,
    pub mapping: &'a Mapping,
    pub expressions: &'a dyn Expressions,
    pub resources: &'a Resources,
    pub progress: &'a dyn ConvertProgress,
    /// Called for each finished file.
    pub made: &'a OnFile<'a>,
    pub job_id: &'a str,
}
