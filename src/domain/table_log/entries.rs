//! The entries of a manifest's shards.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cuts::Cut;

/// A source as it was read. Its key in the manifest is relative to the pipeline's prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Bytes as stored.
    pub size: u64,
    /// SHA-256 of the stored object, in hex.
    pub sha256: String,
    /// When it was read, RFC 3339, by the clock of the store that it was read from.
    pub read_at: String,
    /// Bytes of its text, after decompression and decoding.
    pub text_bytes: u64,
    pub rows_read: u64,
    pub rows_written: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_rejected: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_filtered: u64,
    /// Its number of rows in each partition.
    pub partitions: BTreeMap<String, u64>,
    /// The variant that it was read by, by its id; `None`: the mapping's own format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Whether it left the lake and its rows were kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// Columns of its header that the config doesn't have, the first [`EXTRA_COLUMNS_MAX`](crate::domain::limits).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_columns: Vec<String>,
}

/// One immutable object in the warehouse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Relative to the pipeline's prefix.
    pub key: String,
    pub rows: u64,
    pub size: u64,
    /// In hex; empty if the file is marked as lost.
    pub sha256: String,
    /// Of a data file.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub row_groups: u32,
    /// Of a data file of a table with a Delta log, unless it is older than the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Box<DeltaFile>>,
    /// Of a data file of a table with Iceberg metadata, unless it is older than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iceberg: Option<Box<IcebergFile>>,
}

/// The Iceberg statistics of a data file's columns, in file order; bounds only of the first. `None`: unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IcebergFile {
    pub nulls: Vec<Option<u64>>,
    /// Bounds in Iceberg's binary form, as hex.
    pub lower: Vec<Option<String>>,
    pub upper: Vec<Option<String>>,
}

/// A data file's entry in a Delta log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeltaFile {
    /// Creation time, in milliseconds since the epoch.
    pub made_ms: i64,
    /// Its statistics: JSON as text.
    pub stats: String,
}

impl StoredFile {
    /// Marks the file as lost: the next run that reads its sources rebuilds it.
    pub fn marked_lost(self) -> Self {
        Self { sha256: String::new(), ..self }
    }

    pub fn is_marked_lost(&self) -> bool {
        self.sha256.is_empty()
    }
}

/// The key of a group or a segment: its partition (`""` if the table isn't partitioned) and its first source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "(String, String)", into = "(String, String)")]
pub struct RangeKey {
    pub partition: String,
    pub first: String,
}

impl From<(String, String)> for RangeKey {
    fn from((partition, first): (String, String)) -> Self {
        Self { partition, first }
    }
}

impl From<RangeKey> for (String, String) {
    fn from(key: RangeKey) -> Self {
        (key.partition, key.first)
    }
}

impl RangeKey {
    pub fn new(partition: &str, first: &str) -> Self {
        Self { partition: partition.to_owned(), first: first.to_owned() }
    }
}

/// A group: the segments of one data file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupEntry {
    /// One file, or several if the group exceeded `file_bytes_max`.
    pub files: Vec<StoredFile>,
    /// In order; never empty.
    pub segments: Vec<SegmentEntry>,
    /// The run that wrote it.
    pub job_id: String,
    /// The commit that added it.
    pub sequence: u64,
}

/// A segment of a group: sources whose rows were encoded together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// Its first and last source with rows in the partition.
    pub first: String,
    pub last: String,
    pub rows: u64,
    pub row_groups: u32,
    /// The boundary after the last source.
    pub cut: Cut,
}

impl GroupEntry {
    pub fn rows(&self) -> u64 {
        self.segments.iter().map(|segment| segment.rows).sum()
    }

    /// Whether it ends at a file boundary.
    pub fn is_closed(&self) -> bool {
        self.segments.last().is_some_and(|segment| segment.cut == Cut::File)
    }
}

/// One source of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(String, u64, u64)", into = "(String, u64, u64)")]
pub struct Member {
    pub source: String,
    /// Rows in the segment, at least one.
    pub rows: u64,
    /// Bytes of its text attributed to the partition; see `cuts`.
    pub share: u64,
}

impl From<(String, u64, u64)> for Member {
    fn from((source, rows, share): (String, u64, u64)) -> Self {
        Self { source, rows, share }
    }
}

impl From<Member> for (String, u64, u64) {
    fn from(member: Member) -> Self {
        (member.source, member.rows, member.share)
    }
}

/// The sources of a segment, in order.
pub type Members = Vec<Member>;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero_u32(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
