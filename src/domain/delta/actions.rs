//! The actions of a version.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::schema::{Metadata, Protocol};
use crate::domain::table_log::entries::StoredFile;
use crate::domain::table_log::root::{DeltaLog, Root};

pub use super::partition_values::partition_values;

/// A data file that a version adds, or re-adds with other statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAction {
    /// Relative to the table's folder, percent-encoded.
    pub path: String,
    pub partition_values: Map<String, Value>,
    pub size: u64,
    /// Milliseconds since the epoch.
    pub modified_ms: i64,
    /// JSON as text.
    pub stats: String,
}

impl FileAction {
    /// `values`: the file's partition values. Files written before the log began have only a row count as statistics.
    pub fn new(log: &DeltaLog, table: &str, file: &StoredFile, values: Map<String, Value>) -> Self {
        let known = file.delta.as_deref();
        Self {
            path: encoded_path(table, &file.key),
            partition_values: values,
            size: file.size,
            modified_ms: known.map_or(log.began_ms, |known| known.made_ms),
            stats: known.map_or_else(|| format!(r#"{{"numRecords":{}}}"#, file.rows), |known| known.stats.clone()),
        }
    }
}

/// The text of one version: one JSON object per line.
#[derive(Debug, Default)]
pub struct LogVersion(String);

impl LogVersion {
    /// Begins the version for a commit of the table. `at_ms`: the commit's time in milliseconds since the epoch.
    pub fn new(log: &DeltaLog, root: &Root, at_ms: i64) -> Self {
        let mut version = Self::default();
        version.push(json!({ "commitInfo": {
            "timestamp": at_ms,
            "operation": "WRITE",
            "operationParameters": { "mode": "Append" },
            "isBlindAppend": false,
            "engineInfo": "Lakemill",
            "lakemill": { "sequence": root.sequence, "jobId": root.job_id },
        } }));
        // The commit's sequence, which maps log versions to commits.
        version.push(json!({ "txn": { "appId": log.id, "version": root.sequence, "lastUpdated": at_ms } }));
        version
    }

    fn push(&mut self, action: Value) {
        let _ = writeln!(self.0, "{action}");
    }

    pub fn protocol(&mut self, protocol: &Protocol) {
        self.push(json!({ "protocol": protocol }));
    }

    pub fn metadata(&mut self, metadata: &Metadata) {
        self.push(json!({ "metaData": metadata }));
    }

    /// `data_change`: false if the table had the file already.
    pub fn add(&mut self, file: FileAction, data_change: bool) {
        self.push(json!({ "add": {
            "path": file.path,
            "partitionValues": file.partition_values,
            "size": file.size,
            "modificationTime": file.modified_ms,
            "dataChange": data_change,
            "stats": file.stats,
        } }));
    }

    /// `key`: relative to the pipeline's prefix.
    pub fn remove(&mut self, table: &str, key: &str, at_ms: i64) {
        let path = encoded_path(table, key);
        self.push(json!({ "remove": { "path": path, "deletionTimestamp": at_ms, "dataChange": true } }));
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

/// The path of a data file relative to its table, as a URI.
pub fn encoded_path(table: &str, key: &str) -> String {
    let path = key.strip_prefix(table).and_then(|rest| rest.strip_prefix('/')).unwrap_or(key);
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/=".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_the_path_are_escaped_again() {
        assert_eq!(encoded_path("t", "t/p=a%2Fb é/part-0.parquet"), "p=a%252Fb%20%C3%A9/part-0.parquet");
        assert_eq!(encoded_path("t", "t/part-0.parquet"), "part-0.parquet");
    }
}
