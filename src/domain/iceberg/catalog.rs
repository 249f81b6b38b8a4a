//! Requests that bring a table in a REST catalog up to date.
//!
//! Catalogs may give schemas and partition specs ids of their own: schemas are matched by their fields. Specs are never
//! forgotten, so that each has the same id in both.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::metadata::{IcebergState, JOB_ID};
use super::schema::TableSchema;
use crate::domain::table_log::root::IcebergTable;

/// The branch that readers see.
const MAIN: &str = "main";
/// Stands for the schema or spec that the request added last.
const LAST_ADDED: i32 = -1;
/// Earlier metadata files that a catalog keeps.
const METADATA_FILES_KEPT: &str = "20";

/// The metadata of a table in a catalog, without the parts that are not compared.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CatalogMetadata {
    pub table_uuid: String,
    pub location: String,
    #[serde(default)]
    last_sequence_number: i64,
    #[serde(default)]
    schemas: Vec<CatalogSchema>,
    #[serde(default)]
    current_schema_id: i32,
    #[serde(default)]
    partition_specs: Vec<CatalogSpec>,
    #[serde(default)]
    default_spec_id: i32,
    #[serde(default)]
    properties: BTreeMap<String, String>,
    /// Some catalogs write -1 for none.
    #[serde(default)]
    current_snapshot_id: Option<i64>,
    #[serde(default)]
    snapshots: Vec<CatalogSnapshot>,
    #[serde(default)]
    refs: BTreeMap<String, CatalogRef>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CatalogSchema {
    schema_id: i32,
    fields: Vec<CatalogField>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct CatalogField {
    id: i32,
    name: String,
    required: bool,
    /// A text, or an object for types that we don't write.
    #[serde(rename = "type")]
    ty: Value,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CatalogSpec {
    spec_id: i32,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CatalogSnapshot {
    snapshot_id: i64,
    #[serde(default)]
    summary: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CatalogRef {
    snapshot_id: i64,
}

/// Another program changed the catalog's table, or replaced it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}")]
pub struct ForeignChange {
    found: String,
}

impl CatalogMetadata {
    fn current(&self) -> Option<i64> {
        self.current_snapshot_id.filter(|id| *id >= 0)
    }

    fn snapshot(&self, id: i64) -> Option<&CatalogSnapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.snapshot_id == id)
    }
}

impl CatalogSnapshot {
    fn is_ours(&self) -> bool {
        self.summary.contains_key(JOB_ID)
    }
}

impl CatalogSchema {
    fn matches(&self, own: &TableSchema) -> bool {
        self.fields.len() == own.fields.len()
            && self.fields.iter().zip(&own.fields).all(|(found, own)| {
                let ty = found.ty.as_str().map(|ty| ty.replace(' ', ""));
                (found.id, &found.name, found.required) == (own.id, &own.name, own.required)
                    && ty.as_deref() == Some(own.ty.replace(' ', "").as_str())
            })
    }
}

impl IcebergState {
    /// The body of the request that creates the catalog's table. `None` without a snapshot.
    pub fn catalog_creation(&self, table: &IcebergTable) -> Option<Value> {
        let empty = CatalogMetadata {
            current_schema_id: LAST_ADDED,
            default_spec_id: LAST_ADDED,
            ..CatalogMetadata::default()
        };
        let mut updates = vec![
            json!({ "action": "assign-uuid", "uuid": table.id }),
            json!({ "action": "upgrade-format-version", "format-version": 2 }),
            json!({ "action": "set-location", "location": table.location }),
        ];
        let schemas = self.schema_updates(&empty, &mut updates);
        self.spec_updates(&empty, &mut updates);
        updates.push(json!({ "action": "add-sort-order", "sort-order": { "order-id": 0, "fields": [] } }));
        updates.push(json!({ "action": "set-default-sort-order", "sort-order-id": LAST_ADDED }));
        self.property_updates(&empty, &mut updates);
        self.snapshot_updates(table, &empty, &schemas, &mut updates);
        let requirements = [json!({ "type": "assert-create" })];
        self.snapshots.last().map(|_| json!({ "requirements": requirements, "updates": updates }))
    }

    /// The body of the request that brings the catalog's table up to date; `None` if it is.
    ///
    /// # Errors
    /// If another program made its current snapshot, or if its partition specs aren't ours.
    pub fn catalog_update(
        &self,
        table: &IcebergTable,
        found: &CatalogMetadata,
    ) -> Result<Option<Value>, ForeignChange> {
        let Some(present) = self.snapshots.last() else { return Ok(None) };
        let foreign = |found: String| Err(ForeignChange { found });
        if let Some(current) = found.current() {
            let own = present.sequence;
            let sequence = u64::try_from(current).ok();
            match found.snapshot(current).filter(|snapshot| snapshot.is_ours()).and(sequence) {
                None => return foreign(format!("another program made its present snapshot {current}")),
                Some(sequence) if sequence == own => return Ok(None),
                Some(sequence) if sequence > own => {
                    return foreign(format!(
                        "its present snapshot is {sequence}, which is later than the table's commit {own}"
                    ));
                }
                Some(_) => {}
            }
        }
        let mut updates = Vec::new();
        let schemas = self.schema_updates(found, &mut updates);
        if !self.spec_updates(found, &mut updates) {
            return foreign("it has partition specs of another program".to_owned());
        }
        self.property_updates(found, &mut updates);
        self.snapshot_updates(table, found, &schemas, &mut updates);
        let requirements = [
            json!({ "type": "assert-table-uuid", "uuid": found.table_uuid }),
            json!({ "type": "assert-ref-snapshot-id", "ref": MAIN, "snapshot-id": found.current() }),
        ];
        Ok(Some(json!({ "requirements": requirements, "updates": updates })))
    }

    /// Adds the schemas that the catalog lacks. Returns the catalog's id of each schema by ours.
    fn schema_updates(&self, found: &CatalogMetadata, updates: &mut Vec<Value>) -> BTreeMap<i32, i32> {
        let (last_column, _) = self.schemas.last_ids();
        let mut ids = BTreeMap::new();
        // A catalog that doesn't take the id that we propose gives this one.
        let mut next = found.schemas.iter().map(|schema| schema.schema_id + 1).max().unwrap_or(0);
        let mut last_added = None;
        for schema in &self.schemas.schemas {
            let known = found.schemas.iter().rev().find(|known| known.matches(schema)).map(|known| known.schema_id);
            let id = known.unwrap_or_else(|| {
                let mut json = schema.json();
                json["schema-id"] = next.into();
                updates.push(json!({ "action": "add-schema", "schema": json, "last-column-id": last_column }));
                last_added = Some(next);
                next += 1;
                next - 1
            });
            ids.insert(schema.id, id);
        }
        let current = ids.get(&self.schemas.current_schema).copied().unwrap_or(LAST_ADDED);
        if current != found.current_schema_id {
            let id = if last_added == Some(current) { LAST_ADDED } else { current };
            updates.push(json!({ "action": "set-current-schema", "schema-id": id }));
        }
        ids
    }

    /// Adds the partition specs that the catalog lacks. Whether each has the same id in both.
    fn spec_updates(&self, found: &CatalogMetadata, updates: &mut Vec<Value>) -> bool {
        let known: BTreeSet<i32> = found.partition_specs.iter().map(|spec| spec.spec_id).collect();
        let mut next = known.last().map_or(0, |last| last + 1);
        let mut last_added = None;
        for spec in self.schemas.specs.iter().filter(|spec| !known.contains(&spec.id)) {
            if spec.id != next {
                return false;
            }
            updates.push(json!({ "action": "add-spec", "spec": spec.json() }));
            last_added = Some(spec.id);
            next += 1;
        }
        let current = self.schemas.current_spec;
        if current != found.default_spec_id {
            let id = if last_added == Some(current) { LAST_ADDED } else { current };
            updates.push(json!({ "action": "set-default-spec", "spec-id": id }));
        }
        self.schemas.specs.iter().map(|spec| spec.id + 1).max().unwrap_or(0) == next
    }

    fn property_updates(&self, found: &CatalogMetadata, updates: &mut Vec<Value>) {
        let own = self.properties().into_iter().chain([
            // The catalog's own metadata files.
            ("write.metadata.delete-after-commit.enabled", "true".to_owned()),
            ("write.metadata.previous-versions-max", METADATA_FILES_KEPT.to_owned()),
        ]);
        let changed: BTreeMap<&str, String> =
            own.filter(|(name, value)| found.properties.get(*name) != Some(value)).collect();
        if !changed.is_empty() {
            updates.push(json!({ "action": "set-properties", "updates": changed }));
        }
    }

    fn snapshot_updates(
        &self,
        table: &IcebergTable,
        found: &CatalogMetadata,
        schemas: &BTreeMap<i32, i32>,
        updates: &mut Vec<Value>,
    ) {
        let has = |sequence: u64| i64::try_from(sequence).ok().and_then(|id| found.snapshot(id)).is_some();
        let after = u64::try_from(found.last_sequence_number).unwrap_or(0);
        for snapshot in self.snapshots.iter().filter(|snapshot| snapshot.sequence > after && !has(snapshot.sequence)) {
            let mut json = snapshot.json(&table.location);
            json["schema-id"] = schemas.get(&snapshot.schema).copied().unwrap_or(snapshot.schema).into();
            updates.push(json!({ "action": "add-snapshot", "snapshot": json }));
        }
        if let Some(present) = self.snapshots.last() {
            updates.push(json!({
                "action": "set-snapshot-ref", "ref-name": MAIN, "type": "branch", "snapshot-id": present.sequence,
            }));
        }
        // Snapshots that a tag or another branch names stay, or the catalog would refuse the commit.
        let named: BTreeSet<i64> =
            found.refs.iter().filter(|(name, _)| *name != MAIN).map(|(_, of)| of.snapshot_id).collect();
        let kept: BTreeSet<u64> = self.snapshots.iter().map(|snapshot| snapshot.sequence).collect();
        let is_gone = |snapshot: &&CatalogSnapshot| {
            let id = snapshot.snapshot_id;
            snapshot.is_ours() && !named.contains(&id) && u64::try_from(id).is_ok_and(|id| !kept.contains(&id))
        };
        let gone: Vec<i64> = found.snapshots.iter().filter(is_gone).map(|snapshot| snapshot.snapshot_id).collect();
        if !gone.is_empty() {
            updates.push(json!({ "action": "remove-snapshots", "snapshot-ids": gone }));
        }
    }
}
