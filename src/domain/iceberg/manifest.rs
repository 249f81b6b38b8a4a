//! Manifests and manifest lists: the data files of a snapshot, with their column statistics.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::avro::{Encoder, avro_name, container};
use super::schema::{PartitionSpec, TableSchema};
use super::values::{PartitionValue, ValueType};
use crate::domain::digest::{decode_hex, hex, sha256_hex};
use crate::domain::partition::parse_segment;
use crate::domain::pipeline::Transform;
use crate::domain::table_log::entries::{GroupEntry, RangeKey, StoredFile};
use crate::domain::table_schema::TableColumn;

/// Hex digits of a file's SHA-256 in its name.
const NAME_DIGITS: usize = 32;
/// The status of an entry: the file was in the table before the manifest's snapshot, or came with it.
const EXISTING: i64 = 0;
const ADDED: i64 = 1;

/// The entry of a manifest in a manifest list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// The file's name in the folder `metadata`.
    pub name: String,
    /// Bytes.
    pub size: u64,
    pub spec: i32,
    /// The snapshot that it came with; also its sequence number.
    pub snapshot: u64,
    /// The first snapshot that has one of its files.
    pub first_snapshot: u64,
    pub added: Count,
    pub existing: Count,
    /// One summary for each partition field.
    pub partitions: Vec<PartitionSummary>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, file: &StoredFile) {
        self.files += 1;
        self.rows += file.rows;
        self.bytes += file.size;
    }
}

/// The values of a partition field in one manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionSummary {
    pub has_null: bool,
    /// The least and the greatest value in hex, unless all are null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<(String, String)>,
}

/// A value in the path of a partition isn't one of its column's type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found the partition `{partition}`, expected a value for `{field}`")]
pub struct PartitionError {
    pub partition: String,
    pub field: String,
}

/// Values that all manifests of a table share.
#[derive(Debug, Clone, Copy)]
pub struct ManifestContext<'a> {
    /// Where the table is, without a slash at its end.
    pub location: &'a str,
    pub table: &'a str,
    /// The table's columns, as its root has them.
    pub columns: &'a [TableColumn],
    pub schema: &'a TableSchema,
    pub spec: &'a PartitionSpec,
    /// The current snapshot, and the first one of the table.
    pub snapshot: u64,
    pub first_snapshot: u64,
}

impl ManifestContext<'_> {
    /// Makes the manifest of these groups, in the name of the current snapshot.
    ///
    /// # Errors
    /// If a group is in no partition of the spec.
    pub fn manifest(&self, groups: &[(RangeKey, GroupEntry)]) -> Result<(ManifestEntry, Vec<u8>), PartitionError> {
        let types = self.spec.value_types(self.schema, self.columns);
        let mut entry = ManifestEntry {
            name: String::new(),
            size: 0,
            spec: self.spec.id,
            snapshot: self.snapshot,
            first_snapshot: self.snapshot,
            added: Count::default(),
            existing: Count::default(),
            partitions: Vec::new(),
        };
        let mut ranges: Vec<ValueRange> = types.iter().map(|_| ValueRange::default()).collect();
        let mut records = Encoder::default();
        for (key, group) in groups {
            let values = self.partition(&key.partition, &types)?;
            ranges.iter_mut().zip(&values).for_each(|(range, value)| range.add(value.as_ref()));
            let snapshot = group.sequence.max(self.first_snapshot);
            entry.first_snapshot = entry.first_snapshot.min(snapshot);
            for file in &group.files {
                let is_new = snapshot == self.snapshot;
                (if is_new { &mut entry.added } else { &mut entry.existing }).add(file);
                records.long(if is_new { ADDED } else { EXISTING });
                // The snapshot that added it, and its sequence numbers.
                for _ in 0..3 {
                    records.branch(true);
                    records.count(snapshot);
                }
                self.data_file(file, &values, &types, &mut records);
            }
        }
        let (schema, spec) = (self.schema.json().to_string(), self.spec.fields_json().to_string());
        let (schema_id, spec_id) = (self.schema.id.to_string(), self.spec.id.to_string());
        let metadata = [
            ("schema", schema.as_str()),
            ("schema-id", &schema_id),
            ("partition-spec", &spec),
            ("partition-spec-id", &spec_id),
            ("format-version", "2"),
            ("content", "data"),
        ];
        let count = entry.added.files + entry.existing.files;
        let bytes = container(&self.avro_schema(&types).to_string(), &metadata, count, &records);
        entry.name = format!("{}-m0.avro", &sha256_hex(&bytes)[..NAME_DIGITS]);
        entry.size = bytes.len() as u64;
        entry.partitions = ranges.into_iter().map(ValueRange::summary).collect();
        Ok((entry, bytes))
    }

    /// The values of a partition's fields, from its path.
    fn partition(&self, path: &str, types: &[ValueType]) -> Result<Vec<Option<PartitionValue>>, PartitionError> {
        let segments: Vec<(String, Option<String>)> = path.split('/').filter_map(parse_segment).collect();
        let mut values = Vec::with_capacity(types.len());
        for (field, ty) in self.spec.fields.iter().zip(types) {
            let found = segments.iter().find(|(name, _)| *name == field.name);
            let value = match found {
                Some((_, None)) => Some(None),
                Some((_, Some(text))) => ty.parse(text, field.transform).map(Some),
                None => None,
            };
            let error = || PartitionError { partition: path.to_owned(), field: field.name.clone() };
            values.push(value.ok_or_else(error)?);
        }
        Ok(values)
    }

    fn data_file(
        &self,
        file: &StoredFile,
        partition: &[Option<PartitionValue>],
        types: &[ValueType],
        into: &mut Encoder,
    ) {
        let path = file.key.strip_prefix(self.table).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&file.key);
        into.long(0); // Data, not deletes.
        into.bytes(format!("{}/{path}", self.location).as_bytes());
        into.bytes(b"PARQUET");
        for (value, ty) in partition.iter().zip(types) {
            into.branch(value.is_some());
            if let Some(value) = value {
                ty.encode(value, into);
            }
        }
        into.count(file.rows);
        into.count(file.size);
        let stored = self.columns.iter().filter(|column| !column.partition);
        let ids: Vec<Option<i32>> = stored.map(|column| self.id_of(&column.name)).collect();
        let known = file.iceberg.as_deref();
        let mut nulls = by_id(&ids, known.map(|known| &known.nulls), |nulls| Some(*nulls));
        let mut lower = by_id(&ids, known.map(|known| &known.lower), |bound| decode_hex(bound));
        let mut upper = by_id(&ids, known.map(|known| &known.upper), |bound| decode_hex(bound));
        // Columns that are not in the file. Without their counts, DuckDB 1.4 takes them for columns without nulls.
        for (field, value) in self.spec.fields.iter().zip(partition) {
            if field.transform == Transform::Identity {
                nulls.push((field.source, if value.is_none() { file.rows } else { 0 }));
                let bound = value.as_ref().map(|value| (field.source, value.bound()));
                lower.extend(bound.clone());
                upper.extend(bound);
            }
        }
        let rows = nulls.iter().map(|(id, _)| (*id, file.rows)).collect::<Vec<_>>();
        for counts in [rows, nulls] {
            into.branch(!counts.is_empty());
            if !counts.is_empty() {
                into.array(&counts, |into, (id, count)| {
                    into.long(i64::from(*id));
                    into.count(*count);
                });
            }
        }
        for bounds in [lower, upper] {
            into.branch(!bounds.is_empty());
            if !bounds.is_empty() {
                into.array(&bounds, |into, (id, bound)| {
                    into.long(i64::from(*id));
                    into.bytes(bound);
                });
            }
        }
    }

    fn id_of(&self, column: &str) -> Option<i32> {
        self.schema.fields.iter().find(|field| field.name == column).map(|field| field.id)
    }

    fn avro_schema(&self, types: &[ValueType]) -> Value {
        let mut defined = Vec::new();
        let mut partition = Vec::with_capacity(types.len());
        for (field, ty) in self.spec.fields.iter().zip(types) {
            let mut avro = ty.avro();
            // A named type is defined once.
            if let Some(name) = avro.get("name").cloned() {
                match defined.contains(&name) {
                    true => avro = name,
                    false => defined.push(name),
                }
            }
            partition.push(optional(&avro_name(&field.name), avro, field.id));
        }
        let long_map = |key: i32, value: i32| map("long", key, value);
        let data_file = json!({ "type": "record", "name": "r2", "fields": [
            required("content", "int", 134),
            required("file_path", "string", 100),
            required("file_format", "string", 101),
            { "name": "partition", "type": { "type": "record", "name": "r102", "fields": partition }, "field-id": 102 },
            required("record_count", "long", 103),
            required("file_size_in_bytes", "long", 104),
            optional("value_counts", long_map(119, 120), 109),
            optional("null_value_counts", long_map(121, 122), 110),
            optional("lower_bounds", map("bytes", 126, 127), 125),
            optional("upper_bounds", map("bytes", 129, 130), 128),
        ] });
        json!({ "type": "record", "name": "manifest_entry", "fields": [
            required("status", "int", 0),
            optional("snapshot_id", "long".into(), 1),
            optional("sequence_number", "long".into(), 3),
            optional("file_sequence_number", "long".into(), 4),
            { "name": "data_file", "type": data_file, "field-id": 2 },
        ] })
    }
}

/// Values of columns with their ids; those that are unknown are left out.
fn by_id<T, V>(ids: &[Option<i32>], of: Option<&Vec<Option<T>>>, read: impl Fn(&T) -> Option<V>) -> Vec<(i32, V)> {
    let values = of.into_iter().flatten();
    ids.iter().zip(values).filter_map(|(id, value)| Some(((*id)?, read(value.as_ref()?)?))).collect()
}

fn required(name: &str, ty: &str, id: i32) -> Value {
    json!({ "name": name, "type": ty, "field-id": id })
}

fn optional(name: &str, ty: Value, id: i32) -> Value {
    json!({ "name": name, "type": ["null", ty], "default": null, "field-id": id })
}

/// A map from ids of columns, which Avro has as an array.
fn map(value_type: &str, key: i32, value: i32) -> Value {
    let fields = [required("key", "int", key), required("value", value_type, value)];
    let items = json!({ "type": "record", "name": format!("k{key}_v{value}"), "fields": fields });
    json!({ "type": "array", "items": items, "logicalType": "map" })
}

#[derive(Default)]
struct ValueRange {
    has_null: bool,
    bounds: Option<(PartitionValue, PartitionValue)>,
}

impl ValueRange {
    fn add(&mut self, value: Option<&PartitionValue>) {
        match (value, &mut self.bounds) {
            (None, _) => self.has_null = true,
            (Some(value), None) => self.bounds = Some((value.clone(), value.clone())),
            (Some(value), Some((min, max))) => {
                if value < min {
                    *min = value.clone();
                }
                if value > max {
                    *max = value.clone();
                }
            }
        }
    }

    fn summary(self) -> PartitionSummary {
        let bounds = self.bounds.map(|(min, max)| (hex(&min.bound()), hex(&max.bound())));
        PartitionSummary { has_null: self.has_null, bounds }
    }
}

/// Makes the manifest list of a snapshot; returns its name and its bytes.
pub fn manifest_list(
    location: &str,
    snapshot: u64,
    parent: Option<u64>,
    manifests: &[&ManifestEntry],
) -> (String, Vec<u8>) {
    let mut records = Encoder::default();
    for manifest in manifests {
        records.bytes(format!("{location}/metadata/{}", manifest.name).as_bytes());
        records.count(manifest.size);
        records.long(i64::from(manifest.spec));
        records.long(0); // Data, not deletes.
        for number in [manifest.snapshot, manifest.first_snapshot, manifest.snapshot] {
            records.count(number);
        }
        for number in [manifest.added.files, manifest.existing.files, 0] {
            records.count(number);
        }
        for number in [manifest.added.rows, manifest.existing.rows, 0] {
            records.count(number);
        }
        records.branch(true);
        records.array(&manifest.partitions, |records, summary| {
            records.boolean(summary.has_null);
            records.branch(true);
            records.boolean(false);
            let bounds = summary.bounds.as_ref().map(|(min, max)| [min, max]);
            for at in 0..2 {
                records.branch(bounds.is_some());
                if let Some(bounds) = bounds {
                    records.bytes(&decode_hex(bounds[at]).unwrap_or_default());
                }
            }
        });
    }
    let summary = json!({ "type": "record", "name": "r508", "fields": [
        required("contains_null", "boolean", 509),
        optional("contains_nan", "boolean".into(), 518),
        optional("lower_bound", "bytes".into(), 510),
        optional("upper_bound", "bytes".into(), 511),
    ] });
    let schema = json!({ "type": "record", "name": "manifest_file", "fields": [
        required("manifest_path", "string", 500),
        required("manifest_length", "long", 501),
        required("partition_spec_id", "int", 502),
        required("content", "int", 517),
        required("sequence_number", "long", 515),
        required("min_sequence_number", "long", 516),
        required("added_snapshot_id", "long", 503),
        required("added_files_count", "int", 504),
        required("existing_files_count", "int", 505),
        required("deleted_files_count", "int", 506),
        required("added_rows_count", "long", 512),
        required("existing_rows_count", "long", 513),
        required("deleted_rows_count", "long", 514),
        optional("partitions", json!({ "type": "array", "items": summary, "element-id": 508 }), 507),
    ] });
    let (id, parent) = (snapshot.to_string(), parent.map_or_else(|| "null".to_owned(), |parent| parent.to_string()));
    let metadata = [
        ("snapshot-id", id.as_str()),
        ("parent-snapshot-id", &parent),
        ("sequence-number", &id),
        ("format-version", "2"),
    ];
    let bytes = container(&schema.to_string(), &metadata, manifests.len() as u64, &records);
    (format!("snap-{snapshot}-{}.avro", &sha256_hex(&bytes)[..NAME_DIGITS]), bytes)
}

/// Whether the name of a manifest or a manifest list contains the hash of its bytes.
pub fn name_matches_content(name: &str, bytes: &[u8]) -> bool {
    let digits = name.strip_suffix(".avro").and_then(|stem| stem.strip_suffix("-m0").or(stem.rsplit('-').next()));
    digits.is_some_and(|digits| digits.len() == NAME_DIGITS && sha256_hex(bytes).starts_with(digits))
}
