//! What a table is made of: its sources, its files, and which made which.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The manifest format that this version writes.
pub const MANIFEST_VERSION: u32 = 1;

/// `pipelines/<slug>/manifests/<table>.json`. Keys in it are relative to the pipeline's prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub version: u32,
    pub table: String,
    /// See `domain::plan::Fingerprint`.
    pub fingerprint: String,
    /// The fingerprint of the names, types and partitioning alone.
    pub layout: String,
    /// By source key.
    pub sources: BTreeMap<String, SourceEntry>,
    /// By partition path (`day=2013-01-01`, `""` where there is no partitioning).
    pub partitions: BTreeMap<String, PartitionEntry>,
    /// Rejects files, by source key.
    pub rejects: BTreeMap<String, FileEntry>,
    /// Set while a publish is under way, and left behind by one that died.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub publishing: Option<Publishing>,
}

/// One source as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceEntry {
    pub etag: Option<String>,
    pub size: u64,
    /// Of the object as stored, hex.
    pub sha256: String,
    /// When it was read, RFC 3339.
    pub read_at: String,
    pub rows_read: u64,
    pub rows_written: u64,
    pub rows_rejected: u64,
    pub rows_filtered: u64,
    /// Rows that it gave each partition.
    pub partitions: BTreeMap<String, u64>,
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionEntry {
    pub files: Vec<FileEntry>,
    /// True when all its sources were removed from the lake: it stays until a clean run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retained: bool,
    pub job_id: String,
    pub fence: u64,
}

/// One object that we wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Relative to the pipeline's prefix, e.g. `trips/day=2013-01-01/part-00000.parquet`.
    pub key: String,
    pub rows: u64,
    pub size: u64,
    pub etag: Option<String>,
    pub sha256: String,
    /// Keys of the sources that contributed rows.
    pub sources: Vec<String>,
}

/// The mark of a publish under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publishing {
    pub job_id: String,
    pub fence: u64,
    pub partitions: Vec<String>,
    /// Keys that may be written or deleted, relative to the pipeline's prefix.
    pub files: Vec<String>,
}
