//! The columns of a table: those stored in its files, and those stored in the files' paths.

use serde::{Deserialize, Serialize};

use super::digest::sha256_hex;
use super::pipeline::types::DataType;
use super::pipeline::{Mapping, PartitionField, Transform};

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableColumn {
    pub name: String,
    #[serde(rename = "type", with = "type_name")]
    pub ty: DataType,
    pub nullable: bool,
    /// The values are in the files' paths, not in the files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partition: bool,
}

/// A column's type that a format of `publish` doesn't have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsupportedType {
    /// The type to declare instead.
    pub instead: &'static str,
}

/// The schema under which the files of a table were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSchema {
    /// See [`mapping_digest`].
    pub mapping: String,
    /// The globs that matched the sources; unknown in earlier manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub globs: Option<Vec<String>>,
    /// See [`variants_digest`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variants: String,
    pub columns: Vec<TableColumn>,
}

impl StoredSchema {
    /// The schema of files written by `mapping`.
    pub fn of(mapping: &Mapping) -> Self {
        Self {
            mapping: mapping_digest(mapping),
            globs: Some(mapping.files.clone()),
            variants: variants_digest(mapping),
            columns: columns_of(mapping),
        }
    }

    /// Merges the schema of files written under an earlier one of the same layout: a column is nullable if it was
    /// before. `None`: the earlier schema is unknown.
    pub fn with_older_files(mut self, earlier: Option<&Self>) -> Self {
        for column in &mut self.columns {
            let same = earlier.and_then(|earlier| earlier.columns.iter().find(|other| other.name == column.name));
            column.nullable |= same.is_none_or(|other| other.nullable);
        }
        self
    }
}

/// Identifies a mapping: with equal digests, equal sources that are read by the same variants give equal tables.
pub fn mapping_digest(mapping: &Mapping) -> String {
    sha256_hex(mapping.canonical.as_bytes())
}

/// Identifies a mapping's variants: with equal digests, a source belongs to the same one. Empty without variants.
pub fn variants_digest(mapping: &Mapping) -> String {
    if mapping.variants.is_empty() {
        return String::new();
    }
    let all: Vec<_> = mapping.variants.iter().map(|variant| (&variant.files, &variant.id)).collect();
    sha256_hex(format!("{all:?}").as_bytes())
}

/// The columns in the order of the config. An identity partition replaces its column and has its own name; the other
/// partitions follow at the end.
pub fn columns_of(mapping: &Mapping) -> Vec<TableColumn> {
    let mut columns: Vec<TableColumn> = Vec::new();
    for (at, column) in mapping.columns.iter().enumerate() {
        let identity: Vec<_> = mapping
            .partition_by
            .iter()
            .filter(|field| field.transform == Transform::Identity && field.column == at)
            .collect();
        let one = |name: &str, partition| TableColumn {
            name: name.to_owned(),
            ty: column.ty,
            nullable: column.nullable,
            partition,
        };
        if identity.is_empty() {
            columns.push(one(column.name.as_str(), false));
        }
        columns.extend(identity.into_iter().map(|field| one(field.name.as_str(), true)));
    }
    for field in &mapping.partition_by {
        let ty = match field.transform {
            Transform::Identity => continue,
            Transform::Year => DataType::Int32,
            // `2013-01` and `2013-01-01-05` are valid values of no other type.
            Transform::Month | Transform::Hour => DataType::String,
            Transform::Day => DataType::Date,
        };
        let nullable = mapping.columns.get(field.column).is_none_or(|column| column.nullable);
        columns.push(TableColumn { name: field.name.as_str().to_owned(), ty, nullable, partition: true });
    }
    columns
}

/// A level of a table's folders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionSource {
    /// The name in the paths.
    pub name: String,
    /// The column of the table that it is made from.
    pub column: String,
    #[serde(with = "transform_name")]
    pub transform: Transform,
}

/// The levels of a mapping's partitions.
pub fn partition_sources(mapping: &Mapping) -> Vec<PartitionSource> {
    let column_of = |at: usize| {
        // A column that is itself a partition has that partition's name.
        let identity =
            mapping.partition_by.iter().find(|field| field.transform == Transform::Identity && field.column == at);
        identity.map_or_else(|| mapping.columns[at].name.as_str(), |field| field.name.as_str()).to_owned()
    };
    let source = |field: &PartitionField| PartitionSource {
        name: field.name.as_str().to_owned(),
        column: match field.transform {
            Transform::Identity => field.name.as_str().to_owned(),
            Transform::Year | Transform::Month | Transform::Day | Transform::Hour => column_of(field.column),
        },
        transform: field.transform,
    };
    mapping.partition_by.iter().map(source).collect()
}

/// A transform by its name in a config.
pub(in crate::domain) mod transform_name {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Transform;

    const NAMES: [(Transform, &str); 5] = [
        (Transform::Identity, "identity"),
        (Transform::Year, "year"),
        (Transform::Month, "month"),
        (Transform::Day, "day"),
        (Transform::Hour, "hour"),
    ];

    pub(in crate::domain) fn of(transform: Transform) -> &'static str {
        NAMES.iter().find(|(known, _)| *known == transform).map_or("", |(_, name)| name)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(in crate::domain) fn serialize<S: Serializer>(transform: &Transform, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(of(*transform))
    }

    pub(in crate::domain) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Transform, D::Error> {
        let text = String::deserialize(deserializer)?;
        let found = NAMES.iter().find(|(_, name)| *name == text).map(|(transform, _)| *transform);
        found.ok_or_else(|| {
            let known = NAMES.map(|(_, name)| format!("`{name}`")).join(", ");
            D::Error::custom(format!("found transform `{text}`, expected one of {known}"))
        })
    }
}

/// A type by its name in a config.
mod type_name {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::DataType;

    pub fn serialize<S: Serializer>(ty: &DataType, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(ty)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DataType, D::Error> {
        let name = String::deserialize(deserializer)?;
        DataType::parse(&name).ok_or_else(|| {
            D::Error::custom(format!("found type `{name}`, expected a type as configs name it, such as `int64`"))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::pipeline::validate;

    fn schema(nullable: bool) -> StoredSchema {
        let mapping = json!({
            "table": "t", "files": ["*.csv"],
            "columns": [
                { "name": "at", "type": "timestamp" },
                { "name": "vendor", "type": "int16" },
                { "name": "x", "type": "decimal(10,2)", "nullable": nullable }
            ],
            "partition_by": [
                { "column": "at", "transform": "year", "name": "y" }, { "column": "at", "transform": "day", "name": "d" },
                { "column": "vendor", "name": "by_vendor" }
            ]
        });
        let config = json!({ "version": 1, "mappings": [mapping] }).to_string();
        StoredSchema::of(&validate::parse(&config).unwrap().mappings[0])
    }

    #[test]
    fn partition_columns_have_their_own_names_and_types() {
        let schema = schema(true);
        let shown = |c: &TableColumn| format!("{} {}{}", c.name, c.ty, if c.partition { " in the path" } else { "" });
        let expected = [
            "at timestamp",
            "by_vendor int16 in the path",
            "x decimal(10,2)",
            "y int32 in the path",
            "d date in the path",
        ];
        assert_eq!(schema.columns.iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn schema_round_trips_as_json() {
        let schema = schema(false);
        let text = serde_json::to_string(&schema).unwrap();
        assert_eq!(serde_json::from_str::<StoredSchema>(&text).unwrap(), schema);
        assert!(serde_json::from_str::<StoredSchema>(&text.replace("timestamp", "instant")).is_err());
    }

    #[test]
    fn files_of_an_earlier_schema_keep_their_nulls() {
        let x = |schema: StoredSchema| schema.columns[2].nullable;
        assert!(x(schema(false).with_older_files(Some(&schema(true)))));
        assert!(x(schema(false).with_older_files(None)));
        assert!(!x(schema(false).with_older_files(Some(&schema(false)))));
    }
}
