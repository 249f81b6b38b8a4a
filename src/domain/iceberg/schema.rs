//! Schemas and partition specs, and the ids of their fields.
//!
//! Invariant: as long as a snapshot is kept that has a column, its name has one id. The data files have no field ids: the
//! name mapping of the table gives columns of files their ids, for all snapshots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::values::ValueType;
use crate::domain::pipeline::Transform;
use crate::domain::pipeline::types::DataType;
use crate::domain::table_schema::{PartitionSource, TableColumn, UnsupportedType, transform_name};

/// The name of a column's type in Iceberg's schema. `partition`: the values are in the manifests, not in the files.
///
/// # Errors
/// [`UnsupportedType`] if no type of Iceberg that its readers know has these values as the files store them.
pub fn iceberg_type(ty: DataType, partition: bool) -> Result<String, UnsupportedType> {
    let none = |instead| Err(UnsupportedType { instead });
    let name = match ty {
        DataType::Boolean => "boolean",
        DataType::Int8 | DataType::Int16 | DataType::Int32 => "int",
        DataType::Int64 => "long",
        DataType::UInt8 | DataType::UInt16 if partition => "int",
        DataType::UInt32 if partition => "long",
        DataType::UInt64 if partition => "decimal(20, 0)",
        DataType::UInt8 => return none("int16"),
        DataType::UInt16 => return none("int32"),
        DataType::UInt32 => return none("int64"),
        DataType::UInt64 => return none("decimal(20,0)"),
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Decimal { precision, scale } => return Ok(format!("decimal({precision}, {scale})")),
        DataType::String => "string",
        DataType::Date => "date",
        DataType::Timestamp => "timestamp",
        DataType::TimestampTz => "timestamptz",
        // Iceberg has `uuid` and `time`, which Spark can't read, and some readers don't read Parquet's JSON as text.
        DataType::Uuid | DataType::Json | DataType::Time => return none("string"),
    };
    Ok(name.to_owned())
}

/// Whether a field of one type may have another from now on, as Iceberg allows it.
fn widens(from: &str, to: &str) -> bool {
    let decimal = |name: &str| {
        let inner = name.strip_prefix("decimal(")?.strip_suffix(')')?;
        let (precision, scale) = inner.split_once(", ")?;
        Some((precision.parse::<u8>().ok()?, scale.parse::<u8>().ok()?))
    };
    match (from, to) {
        ("int", "long") | ("float", "double") => true,
        _ if from == to => true,
        _ => decimal(from).zip(decimal(to)).is_some_and(|(from, to)| from.1 == to.1 && from.0 <= to.0),
    }
}

/// A column of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaField {
    pub id: i32,
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    pub id: i32,
    pub fields: Vec<SchemaField>,
}

/// A field of a partition spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecField {
    pub id: i32,
    pub source: i32,
    pub name: String,
    #[serde(with = "transform_name")]
    pub transform: Transform,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionSpec {
    pub id: i32,
    pub fields: Vec<SpecField>,
}

/// The schemas and specs of the snapshots that are kept; the last of each is the current one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schemas {
    last_column: i32,
    last_partition: i32,
    /// The id of the next new schema: the ids of forgotten ones are not given again, since catalogs may know them.
    #[serde(default)]
    next_schema: i32,
    pub schemas: Vec<TableSchema>,
    pub specs: Vec<PartitionSpec>,
    pub current_schema: i32,
    pub current_spec: i32,
}

/// The first id of a partition field is one more.
const PARTITION_IDS_AFTER: i32 = 999;

/// The effect of changed columns on earlier snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evolution {
    /// The columns and partitions are the same.
    Same,
    /// All snapshots can be read by the schema that each has.
    Kept,
    /// A column has the name of another one in an earlier snapshot: the name mapping can't have both.
    Ambiguous,
}

impl Schemas {
    pub fn schema(&self) -> Option<&TableSchema> {
        self.schemas.iter().find(|schema| schema.id == self.current_schema)
    }

    pub fn spec(&self) -> Option<&PartitionSpec> {
        self.specs.iter().find(|spec| spec.id == self.current_spec)
    }

    /// The highest id of a column, and of a partition field.
    pub fn last_ids(&self) -> (i32, i32) {
        (self.last_column, self.last_partition.max(PARTITION_IDS_AFTER))
    }

    /// Forgets the schemas that neither the table nor a snapshot has. `kept`: of the snapshots.
    pub fn retain(&mut self, kept: impl Fn(i32) -> bool) {
        self.schemas.retain(|schema| schema.id == self.current_schema || kept(schema.id));
    }

    /// Sets the present columns and partitions. Columns that were there before keep their ids, if the type is the same or
    /// a wider one.
    pub fn evolve(&mut self, columns: &[TableColumn], partitions: &[PartitionSource]) -> Evolution {
        let before = (self.current_schema, self.current_spec, self.schemas.len() + self.specs.len());
        let mut evolution = Evolution::Kept;
        let mut fields = Vec::with_capacity(columns.len());
        for column in table_columns(columns, partitions) {
            // Validation refuses other types.
            let ty = iceberg_type(column.ty, column.partition).unwrap_or_else(|_| "string".to_owned());
            let mut known =
                self.schemas.iter().flat_map(|schema| &schema.fields).filter(|field| field.name == column.name);
            let id = match known.clone().next() {
                // The current type must be wider than each earlier one.
                Some(field) if known.all(|field| widens(&field.ty, &ty)) => field.id,
                found => {
                    if found.is_some() {
                        evolution = Evolution::Ambiguous;
                    }
                    self.last_column += 1;
                    self.last_column
                }
            };
            fields.push(SchemaField { id, name: column.name.clone(), ty, required: !column.nullable });
        }
        let id_of = |name: &str| fields.iter().find(|field| field.name == name).map(|field| field.id);
        let mut spec = Vec::with_capacity(partitions.len());
        for PartitionSource { name, column, transform } in partitions {
            let Some(source) = id_of(column) else { continue };
            let mut known = self.specs.iter().flat_map(|spec| &spec.fields);
            let id = match known.find(|field| field.source == source && field.transform == *transform) {
                Some(field) => field.id,
                None => {
                    self.last_partition = self.last_partition.max(PARTITION_IDS_AFTER) + 1;
                    self.last_partition
                }
            };
            spec.push(SpecField { id, source, name: name.clone(), transform: *transform });
        }
        self.current_schema = match self.schemas.iter().position(|schema| schema.fields == fields) {
            Some(at) => self.schemas[at].id,
            None => {
                // States of earlier versions have no counter.
                let id = self.schemas.iter().map(|schema| schema.id + 1).fold(self.next_schema, i32::max);
                self.next_schema = id + 1;
                self.schemas.push(TableSchema { id, fields });
                id
            }
        };
        self.current_spec = match self.specs.iter().position(|known| known.fields == spec) {
            Some(at) => self.specs[at].id,
            None => {
                let id = self.specs.iter().map(|spec| spec.id + 1).max().unwrap_or(0);
                self.specs.push(PartitionSpec { id, fields: spec });
                id
            }
        };
        let after = (self.current_schema, self.current_spec, self.schemas.len() + self.specs.len());
        if before == after { Evolution::Same } else { evolution }
    }

    /// The table's name mapping, as text: for each name of a column its id.
    pub fn name_mapping(&self) -> String {
        let by_age = self.schemas.iter().filter(|schema| schema.id != self.current_schema).chain(self.schema());
        let ids: BTreeMap<&str, i32> =
            by_age.flat_map(|schema| &schema.fields).map(|field| (field.name.as_str(), field.id)).collect();
        let mut ids: Vec<(&str, i32)> = ids.into_iter().collect();
        ids.sort_by_key(|(_, id)| *id);
        let entry = |(name, id): (&str, i32)| json!({ "field-id": id, "names": [name] });
        Value::Array(ids.into_iter().map(entry).collect()).to_string()
    }
}

/// The columns of the Iceberg table: partitions that are made by a transform are not among them.
pub(super) fn table_columns<'c>(
    columns: &'c [TableColumn],
    partitions: &'c [PartitionSource],
) -> impl Iterator<Item = &'c TableColumn> {
    let is_made = |column: &TableColumn| {
        let of = partitions.iter().find(|source| source.name == column.name);
        column.partition && of.is_some_and(|source| source.transform != Transform::Identity)
    };
    columns.iter().filter(move |column| !is_made(column))
}

impl TableSchema {
    pub fn json(&self) -> Value {
        let field = |field: &SchemaField| json!({ "id": field.id, "name": field.name, "required": field.required, "type": field.ty });
        json!({ "type": "struct", "schema-id": self.id, "fields": self.fields.iter().map(field).collect::<Vec<_>>() })
    }
}

impl PartitionSpec {
    pub fn fields_json(&self) -> Value {
        let field = |field: &SpecField| {
            let transform = transform_name::of(field.transform);
            json!({ "name": field.name, "transform": transform, "source-id": field.source, "field-id": field.id })
        };
        Value::Array(self.fields.iter().map(field).collect())
    }

    pub fn json(&self) -> Value {
        json!({ "spec-id": self.id, "fields": self.fields_json() })
    }

    /// The types of the fields' values. `columns`: of the table, as its manifest has them.
    pub(super) fn value_types(&self, schema: &TableSchema, columns: &[TableColumn]) -> Vec<ValueType> {
        let type_of = |field: &SpecField| {
            let name = schema.fields.iter().find(|column| column.id == field.source).map(|column| &column.name);
            let column = columns.iter().find(|column| Some(&column.name) == name);
            ValueType::of(column.map_or(DataType::String, |column| column.ty), field.transform)
        };
        self.fields.iter().map(type_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(of: &[(&str, DataType)]) -> Vec<TableColumn> {
        let column = |(name, ty): &(&str, DataType)| TableColumn {
            name: (*name).into(),
            ty: *ty,
            nullable: true,
            partition: false,
        };
        of.iter().map(column).collect()
    }

    fn ids(schemas: &Schemas) -> Vec<(String, i32)> {
        schemas.schema().unwrap().fields.iter().map(|field| (field.name.clone(), field.id)).collect()
    }

    #[test]
    fn columns_keep_their_ids_and_new_ones_get_new_ids() {
        let (mut schemas, int, text) = (Schemas::default(), DataType::Int32, DataType::String);
        assert_eq!(schemas.evolve(&columns(&[("a", int), ("b", text)]), &[]), Evolution::Kept);
        assert_eq!(schemas.evolve(&columns(&[("a", int), ("b", text)]), &[]), Evolution::Same);
        assert_eq!(schemas.evolve(&columns(&[("c", text), ("a", DataType::Int64)]), &[]), Evolution::Kept);
        assert_eq!(ids(&schemas), [("c".into(), 3), ("a".into(), 1)]);
        assert_eq!(
            schemas.name_mapping(),
            r#"[{"field-id":1,"names":["a"]},{"field-id":2,"names":["b"]},{"field-id":3,"names":["c"]}]"#
        );
        schemas.retain(|_| false);
        assert_eq!(schemas.evolve(&columns(&[("a", DataType::Int64), ("b", text)]), &[]), Evolution::Kept);
        assert_eq!(ids(&schemas), [("a".into(), 1), ("b".into(), 4)], "no snapshot has the first `b`");
    }

    #[test]
    fn id_of_a_removed_schema_is_not_reused() {
        let (mut schemas, int) = (Schemas::default(), DataType::Int32);
        let mut current = |names: &[(&str, DataType)]| {
            schemas.evolve(&columns(names), &[]);
            let id = schemas.current_schema;
            schemas.retain(|_| false);
            id
        };
        assert_eq!([current(&[("a", int)]), current(&[("b", int)]), current(&[("a", int)])], [0, 1, 2]);
    }

    #[test]
    fn state_without_a_schema_counter_continues_after_the_highest_id() {
        let (mut schemas, int) = (Schemas::default(), DataType::Int32);
        schemas.evolve(&columns(&[("a", int)]), &[]);
        schemas.evolve(&columns(&[("a", int), ("b", int)]), &[]);
        let mut state = serde_json::to_value(&schemas).unwrap();
        state.as_object_mut().unwrap().remove("next_schema");
        let mut schemas: Schemas = serde_json::from_value(state).unwrap();
        schemas.evolve(&columns(&[("c", int)]), &[]);
        assert_eq!(schemas.current_schema, 2);
    }

    #[test]
    fn column_of_another_type_is_another_column() {
        let mut schemas = Schemas::default();
        schemas.evolve(&columns(&[("a", DataType::Int64)]), &[]);
        assert_eq!(schemas.evolve(&columns(&[("a", DataType::Int32)]), &[]), Evolution::Ambiguous);
        assert_eq!(ids(&schemas), [("a".into(), 2)]);
        assert!(widens("decimal(9, 2)", "decimal(18, 2)") && !widens("decimal(9, 2)", "decimal(18, 3)"));
        assert!(widens("float", "double") && !widens("int", "double"));
    }

    #[test]
    fn partition_fields_keep_their_ids() {
        let mut schemas = Schemas::default();
        let columns = columns(&[("at", DataType::Timestamp)]);
        let source = |transform| PartitionSource { name: "p".into(), column: "at".into(), transform };
        let ids = |schemas: &Schemas| Vec::from_iter(schemas.spec().unwrap().fields.iter().map(|field| field.id));
        schemas.evolve(&columns, &[source(Transform::Day)]);
        assert_eq!((ids(&schemas), schemas.last_ids()), (vec![1000], (1, 1000)));
        schemas.evolve(&columns, &[source(Transform::Month)]);
        assert_eq!((ids(&schemas), schemas.current_spec), (vec![1001], 1));
        schemas.evolve(&columns, &[source(Transform::Day)]);
        assert_eq!((ids(&schemas), schemas.current_spec), (vec![1000], 0));
    }
}
