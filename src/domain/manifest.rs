//! A table's manifest: its sources, its files, and which source contributed to which file.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::table_schema::StoredSchema;

/// The manifest format that this version writes.
pub const MANIFEST_VERSION: u32 = 1;

/// `pipelines/<slug>/manifests/<table>.json`. Keys in it are relative to the pipeline's prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub version: u32,
    pub table: String,
    /// Of the run that wrote it last.
    #[serde(default)]
    pub fence: u64,
    /// See `domain::plan::Fingerprint`.
    pub fingerprint: String,
    /// The fingerprint of the names, types and partitioning alone.
    pub layout: String,
    /// The schema of the files. Missing in manifests that Lakemill 0.1 wrote; the next run adds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<StoredSchema>,
    /// By source key.
    pub sources: BTreeMap<String, SourceEntry>,
    /// By partition path (`day=2013-01-01`, `""` where there is no partitioning).
    pub partitions: BTreeMap<String, PartitionEntry>,
    /// Rejects files, by source key.
    pub rejects: BTreeMap<String, FileEntry>,
    /// Set during a publish, and left behind by a crashed one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub publishing: Option<PublishIntent>,
}

/// One source as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceEntry {
    pub etag: Option<String>,
    pub size: u64,
    /// Of the object as stored, hex.
    pub sha256: String,
    /// When it was read, RFC 3339, by the clock of the store that it was read from.
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
    /// Whether all its sources were removed from the lake: it stays until a clean run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retained: bool,
    pub job_id: String,
    pub fence: u64,
}

/// One object that a run wrote.
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

/// The intent of a publish, stored before its first write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishIntent {
    pub job_id: String,
    pub fence: u64,
    /// Partitions whose files may be written or deleted, by this run or a crashed one before it.
    pub partitions: BTreeSet<String>,
    /// Sources whose rejects file may be written or deleted.
    #[serde(default)]
    pub rejects: BTreeSet<String>,
    /// Files that may have been written to the partitions, by this run or a crashed one before it; without tags. The next
    /// run recognizes by them a file whose sources are gone.
    #[serde(default)]
    pub files: Vec<FileEntry>,
}

/// Why a manifest can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("found manifest version {found}, expected at most {MANIFEST_VERSION}: a newer Lakemill wrote it")]
    Newer { found: u64 },
    #[error("found no readable manifest: {reason}")]
    Unreadable { reason: String },
}

impl Manifest {
    /// The manifest of an unpublished table.
    pub fn new(table: &str, fingerprint: &str, layout: &str) -> Self {
        Self {
            version: MANIFEST_VERSION,
            table: table.to_owned(),
            fence: 0,
            fingerprint: fingerprint.to_owned(),
            layout: layout.to_owned(),
            schema: None,
            sources: BTreeMap::new(),
            partitions: BTreeMap::new(),
            rejects: BTreeMap::new(),
            publishing: None,
        }
    }

    /// # Errors
    /// [`ManifestError::Newer`] if its version is newer than this program's; else `Unreadable`.
    pub fn parse(json: &[u8]) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        let unreadable = |e: serde_json::Error| ManifestError::Unreadable { reason: e.to_string() };
        let found = serde_json::from_slice::<Version>(json).map_err(unreadable)?.version;
        if found > u64::from(MANIFEST_VERSION) {
            return Err(ManifestError::Newer { found });
        }
        if found < u64::from(MANIFEST_VERSION) {
            return Err(ManifestError::Unreadable { reason: format!("version {found} is no longer read") });
        }
        serde_json::from_slice(json).map_err(unreadable)
    }

    /// Deterministic.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Every file of the table, including rejects.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.partitions.values().flat_map(|p| &p.files).chain(self.rejects.values())
    }

    /// The sources with rows in `partition`, or possibly there after a crashed publish.
    pub fn contributors(&self, partition: &str) -> BTreeSet<&str> {
        let published = self.partitions.get(partition).into_iter().flat_map(|p| &p.files);
        let marked = self.publishing.iter().flat_map(|m| &m.files);
        let marked = marked.filter(|f| partition_of(&self.table, &f.key) == Some(partition));
        published.chain(marked).flat_map(|f| &f.sources).map(String::as_str).collect()
    }

    /// The highest fence in it.
    pub fn highest_fence(&self) -> u64 {
        let partitions = self.partitions.values().map(|p| p.fence);
        partitions.chain(self.publishing.iter().map(|m| m.fence)).fold(self.fence, u64::max)
    }
}

/// The partition of a file of `table` (`""` directly under the table); `None` for a file elsewhere, such as its rejects.
/// `key` is relative to the pipeline's prefix.
pub fn partition_of<'a>(table: &str, key: &'a str) -> Option<&'a str> {
    let path = key.strip_prefix(table)?.strip_prefix('/')?;
    Some(path.rsplit_once('/').map_or("", |(partition, _)| partition))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_and_broken_manifests_are_distinct_errors() {
        assert_eq!(Manifest::parse(br#"{"version":2,"x":1}"#), Err(ManifestError::Newer { found: 2 }));
        for broken in [&b""[..], b"{", b"[]", br#"{"version":1}"#, br#"{"version":0}"#, br#"{"version":"1"}"#] {
            assert!(matches!(Manifest::parse(broken), Err(ManifestError::Unreadable { .. })), "{broken:?}");
        }
        let empty = Manifest::new("t", "f", "l");
        assert_eq!(Manifest::parse(&empty.to_json()), Ok(empty));
    }

    #[test]
    fn key_contains_its_partition() {
        assert_eq!(partition_of("t", "t/a=1/b=2/part-00000.parquet"), Some("a=1/b=2"));
        assert_eq!(partition_of("t", "t/part-00000.parquet"), Some(""));
        assert_eq!(partition_of("t", "tt/part-00000.parquet"), None);
        assert_eq!(partition_of("t", "_rejected_rows/table=t/x.parquet"), None);
    }
}
