//! The state of an Iceberg table between commits, and its metadata file.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::manifest::ManifestEntry;
use super::schema::Schemas;
use crate::domain::table_log::root::IcebergTable;

/// The entry of a snapshot's summary that only our snapshots have.
pub(super) const JOB_ID: &str = "lakemill.job-id";

/// State kept for the next snapshot of a table, as a shard of the table's manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IcebergState {
    pub schemas: Schemas,
    /// The manifest of each shard of data files, by the shard's name.
    pub manifests: BTreeMap<String, ManifestEntry>,
    /// Oldest first; the last is the current one.
    pub snapshots: Vec<Snapshot>,
}

/// A commit of the table. Its sequence is the snapshot's id and its sequence number, and the version of its metadata file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub sequence: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// Milliseconds since the epoch; never less than the one before.
    pub at_ms: i64,
    pub schema: i32,
    /// The file's name in the folder `metadata`.
    pub manifest_list: String,
    pub job_id: String,
    pub totals: SnapshotTotals,
}

/// Files, rows and bytes that a snapshot has, and those that it added and removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotTotals {
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
    pub added_files: u64,
    pub added_rows: u64,
    pub added_bytes: u64,
    pub removed_files: u64,
    pub removed_rows: u64,
    pub removed_bytes: u64,
}

impl Snapshot {
    pub(super) fn json(&self, location: &str) -> Value {
        let of = &self.totals;
        let operation = if of.removed_files == 0 { "append" } else { "overwrite" };
        let mut summary = Map::new();
        summary.insert("operation".into(), operation.into());
        for (name, number) in [
            ("added-data-files", of.added_files),
            ("added-records", of.added_rows),
            ("added-files-size", of.added_bytes),
            ("deleted-data-files", of.removed_files),
            ("deleted-records", of.removed_rows),
            ("removed-files-size", of.removed_bytes),
        ] {
            if number > 0 {
                summary.insert(name.into(), number.to_string().into());
            }
        }
        for (name, number) in [
            ("total-data-files", of.files),
            ("total-records", of.rows),
            ("total-files-size", of.bytes),
            ("total-delete-files", 0),
            ("total-position-deletes", 0),
            ("total-equality-deletes", 0),
        ] {
            summary.insert(name.into(), number.to_string().into());
        }
        summary.insert(JOB_ID.into(), self.job_id.clone().into());
        let mut json = json!({ "snapshot-id": self.sequence });
        if let (Some(parent), Some(object)) = (self.parent, json.as_object_mut()) {
            object.insert("parent-snapshot-id".into(), parent.into());
        }
        let rest = json!({
            "sequence-number": self.sequence,
            "timestamp-ms": self.at_ms,
            "manifest-list": format!("{location}/metadata/{}", self.manifest_list),
            "summary": summary,
            "schema-id": self.schema,
        });
        if let (Some(object), Value::Object(rest)) = (json.as_object_mut(), rest) {
            object.extend(rest);
        }
        json
    }
}

impl IcebergState {
    /// Names in the folder `metadata` of the current snapshot's manifest list and manifests.
    pub fn names(&self) -> BTreeSet<&str> {
        let list = self.snapshots.last().map(|snapshot| snapshot.manifest_list.as_str());
        self.manifests.values().map(|manifest| manifest.name.as_str()).chain(list).collect()
    }

    /// The properties of the table.
    pub(super) fn properties(&self) -> [(&'static str, String); 2] {
        [
            ("schema.name-mapping.default", self.schemas.name_mapping()),
            // Maintenance by other engines would delete files that earlier commits need.
            ("gc.enabled", "false".to_owned()),
        ]
    }

    /// The text of the metadata file; empty without a snapshot.
    pub fn metadata(&self, table: &IcebergTable) -> String {
        let Some(present) = self.snapshots.last() else { return String::new() };
        let (last_column, last_partition) = self.schemas.last_ids();
        let snapshots: Vec<Value> = self.snapshots.iter().map(|snapshot| snapshot.json(&table.location)).collect();
        let log = |snapshot: &Snapshot| json!({ "timestamp-ms": snapshot.at_ms, "snapshot-id": snapshot.sequence });
        let metadata = json!({
            "format-version": 2,
            "table-uuid": table.id,
            "location": table.location,
            "last-sequence-number": present.sequence,
            "last-updated-ms": present.at_ms,
            "last-column-id": last_column,
            "current-schema-id": self.schemas.current_schema,
            "schemas": self.schemas.schemas.iter().map(|schema| schema.json()).collect::<Vec<_>>(),
            "default-spec-id": self.schemas.current_spec,
            "partition-specs": self.schemas.specs.iter().map(|spec| spec.json()).collect::<Vec<_>>(),
            "last-partition-id": last_partition,
            "default-sort-order-id": 0,
            "sort-orders": [{ "order-id": 0, "fields": [] }],
            "properties": Value::Object(self.properties().map(|(name, value)| (name.to_owned(), value.into())).into_iter().collect()),
            "current-snapshot-id": present.sequence,
            "refs": { "main": { "snapshot-id": present.sequence, "type": "branch" } },
            "snapshots": snapshots,
            "snapshot-log": self.snapshots.iter().map(log).collect::<Vec<_>>(),
            "metadata-log": [],
            "statistics": [],
            "partition-statistics": [],
        });
        format!("{metadata}\n")
    }
}
