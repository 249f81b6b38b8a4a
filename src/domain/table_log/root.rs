//! The root of a table's manifest: a few kilobytes regardless of the table's size.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::entries::{RangeKey, SourceEntry, StoredFile};
use super::shards::ShardRef;
use crate::domain::limits::TABLE_EXTRA_COLUMNS_MAX;
use crate::domain::pipeline::types::DataType;
use crate::domain::table_schema::{PartitionSource, StoredSchema, TableColumn};

/// The manifest format that this version writes.
pub const MANIFEST_VERSION: u32 = 2;

/// `pipelines/<slug>/manifests/<table>.json`. Replacing it publishes the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    pub version: u32,
    pub table: String,
    /// Counts the commits, from 1.
    pub sequence: u64,
    /// The fence of the run that committed it.
    pub fence: u64,
    pub job_id: String,
    /// When, RFC 3339, by the store's clock.
    pub committed_at: String,
    /// When the newest commit was made that added rows: from a new or changed source. Missing if an earlier version of this
    /// program made the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_added_at: Option<String>,
    /// See `domain::plan::fingerprint`.
    pub fingerprint: String,
    /// The fingerprint of the names, types and partitioning alone.
    pub layout: String,
    pub schema: StoredSchema,
    pub totals: Totals,
    /// Sources, by key.
    pub sources: Vec<ShardRef<String>>,
    /// Data files, by partition and first source.
    pub groups: Vec<ShardRef<RangeKey>>,
    /// The sources of each segment, by partition and first source.
    pub members: Vec<ShardRef<RangeKey>>,
    /// Files of rejected rows, by source key.
    pub rejects: Vec<ShardRef<String>>,
    /// Columns of the sources in the lake that the config doesn't have, with the number of sources; at most
    /// [`TABLE_EXTRA_COLUMNS_MAX`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_columns: BTreeMap<String, u64>,
    /// Whether other programs may have written its files, as after an import. Such files are read in child processes
    /// only, and the next run that changes the table rebuilds it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foreign: bool,
    /// The earlier commit that this one restored. The table may not match the lake until a run has compared them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<u64>,
    /// Commits whose retired objects are still in the store, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retained: Vec<Retirement>,
    /// Its Delta log, if the table has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<DeltaLog>,
    /// Its Iceberg metadata, if it is published as an Iceberg table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iceberg: Option<IcebergTable>,
}

/// The Delta log of a table. Each commit of the table adds a version, so that `version` and the root's sequence grow together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeltaLog {
    /// The table's id in the log, a UUID; also the id of its transactions.
    pub id: String,
    /// The version that belongs to this root.
    pub version: u64,
    /// Creation time of version 0, in milliseconds since the epoch.
    pub began_ms: i64,
    /// Whether a column is or was a timestamp without a zone, which old readers don't know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timestamp_ntz: bool,
}

impl IcebergTable {
    /// Whether the metadata continues at the table's current location.
    pub fn continues(&self, location: &str) -> bool {
        !self.is_stale && self.location == location
    }
}

impl DeltaLog {
    /// The log with the next version, of a table with these columns.
    pub fn next(&self, columns: &[TableColumn]) -> Self {
        let timestamp_ntz = self.timestamp_ntz || columns.iter().any(|column| column.ty == DataType::Timestamp);
        Self { version: self.version + 1, timestamp_ntz, ..self.clone() }
    }
}

/// The Iceberg metadata of a table. Each commit of the table is a snapshot, with its sequence as the id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IcebergTable {
    /// A UUID.
    pub id: String,
    /// The table's location as other engines address it, without a trailing slash.
    pub location: String,
    /// The sequence of the first snapshot.
    pub began: u64,
    /// The levels of the table's partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionSource>,
    /// Whether the next commit starts new metadata.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stale: bool,
    /// The REST catalog that its commits go to, by [`crate::ports::IcebergCatalog::name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// Its state, the only entry of a shard; `None` before the commit that creates it.
    pub state: Option<ShardRef<String>>,
}

/// A commit's change to the table's Delta log, or to its Iceberg metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogStep {
    /// Begin the log with version 0; leftovers of an earlier log are deleted.
    Begin,
    /// Append this version.
    Append(u64),
    /// Delete the log.
    End,
}

/// Totals of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub sources: u64,
    /// Archived sources: removed from the lake, with their rows kept.
    #[serde(default)]
    pub archived: u64,
    pub rows_read: u64,
    pub rows_rejected: u64,
    pub rows_filtered: u64,
    /// Rows of all data files; `files` and `bytes` likewise.
    pub rows: u64,
    pub files: u64,
    pub bytes: u64,
    /// Partitions with rows; 1 if the table isn't partitioned.
    pub partitions: u64,
    pub rejects_files: u64,
    pub rejects_bytes: u64,
}

/// The objects that one commit retired, kept for the retention time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retirement {
    /// The commit that retired them: readers of the commit before, and only they, may need them.
    pub sequence: u64,
    /// When, RFC 3339, by the store's clock.
    pub at: String,
}

/// An object in the warehouse and the entry that names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OwnedFile {
    /// Relative to the pipeline's prefix.
    pub key: String,
    pub owner: Owner,
}

/// The entry of a manifest that names a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    Group(RangeKey),
    /// The rejected rows of a source.
    Rejects(String),
    /// The Iceberg metadata of the table.
    Iceberg,
}

/// Objects that a run wrote, or that a commit no longer references.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objects {
    pub files: Vec<OwnedFile>,
    /// Shards, by name.
    pub shards: Vec<String>,
    /// Roots of earlier commits, and lists of what they retired, by sequence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<u64>,
}

/// Written before a run's first object appears under its final name, and deleted after its commit: lists the objects
/// that the run leaves behind if it dies. `pipelines/<slug>/manifests/<table>/intent-<fence>.json`: separate for each
/// run, so that a run that lost its lock can't replace its successor's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub job_id: String,
    pub fence: u64,
    /// The sequence of the commit.
    pub sequence: u64,
    /// Objects that it may write before the commit.
    pub made: Objects,
    /// Objects that it deletes after the commit.
    pub retired: Objects,
    /// Its change to the Delta log after the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogStep>,
    /// The change of the Iceberg metadata after the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iceberg: Option<LogStep>,
}

impl Intent {
    /// Whether `root` is its commit.
    pub fn describes(&self, root: &Root) -> bool {
        root.sequence == self.sequence && root.fence == self.fence && root.job_id == self.job_id
    }

    /// Whether `root` is its commit, or a later one.
    pub fn is_committed(&self, root: Option<&Root>) -> bool {
        root.is_some_and(|root| self.describes(root) || root.sequence > self.sequence)
    }
}

/// Why a manifest can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("found manifest version {found}, expected at most {MANIFEST_VERSION}: a newer Lakemill wrote it")]
    Newer { found: u64 },
    #[error("found manifest version {found}, expected {MANIFEST_VERSION}: the next run rebuilds the table")]
    Older { found: u64 },
    #[error("found no readable manifest: {reason}")]
    Unreadable { reason: String },
}

impl Root {
    /// # Errors
    /// See [`ManifestError`].
    pub fn parse(json: &[u8]) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        let unreadable = |e: serde_json::Error| ManifestError::Unreadable { reason: e.to_string() };
        let found = serde_json::from_slice::<Version>(json).map_err(unreadable)?.version;
        match found.cmp(&u64::from(MANIFEST_VERSION)) {
            std::cmp::Ordering::Less => Err(ManifestError::Older { found }),
            std::cmp::Ordering::Greater => Err(ManifestError::Newer { found }),
            std::cmp::Ordering::Equal => serde_json::from_slice(json).map_err(unreadable),
        }
    }

    /// Forces the next run to rebuild the table: no config has an empty fingerprint.
    pub fn forget_fingerprint(&mut self) {
        self.fingerprint.clear();
    }

    /// Deterministic.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The names of all its shards.
    pub fn shards(&self) -> impl Iterator<Item = &str> {
        let by_source = self.sources.iter().chain(&self.rejects).map(|shard| shard.name.as_str());
        let iceberg = self.iceberg.as_ref().and_then(|table| table.state.as_ref()).map(|shard| shard.name.as_str());
        by_source.chain(self.groups.iter().chain(&self.members).map(|shard| shard.name.as_str())).chain(iceberg)
    }
}

/// Counts the columns of a source that the config doesn't have; `is_added` is false for a source that leaves. Archived
/// sources don't count, since their files are gone.
pub fn count_extra_columns(counts: &mut BTreeMap<String, u64>, source: &SourceEntry, is_added: bool) {
    if source.archived {
        return;
    }
    for name in &source.extra_columns {
        match counts.get(name).copied() {
            Some(count) if is_added => drop(counts.insert(name.clone(), count + 1)),
            Some(count) if count > 1 => drop(counts.insert(name.clone(), count - 1)),
            Some(_) => drop(counts.remove(name)),
            None if is_added && counts.len() < TABLE_EXTRA_COLUMNS_MAX => drop(counts.insert(name.clone(), 1)),
            None => {}
        }
    }
}

impl Totals {
    /// Adds a data file.
    pub fn add_file(&mut self, file: &StoredFile) {
        self.files += 1;
        self.rows += file.rows;
        self.bytes += file.size;
    }

    /// Removes a data file.
    pub fn remove_file(&mut self, file: &StoredFile) {
        self.files -= 1;
        self.rows -= file.rows;
        self.bytes -= file.size;
    }
}
