//! The `metaData` and `protocol` of a table.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::domain::pipeline::types::DataType;
use crate::domain::table_log::root::DeltaLog;
use crate::domain::table_schema::{TableColumn, UnsupportedType};

/// The name of a column's type in Delta's schema. `partition`: the values are in the log, not in the files.
///
/// # Errors
/// [`UnsupportedType`] if no type of Delta has these values as the files store them.
pub fn delta_type(ty: DataType, partition: bool) -> Result<String, UnsupportedType> {
    let none = |instead| Err(UnsupportedType { instead });
    let name = match ty {
        DataType::Boolean => "boolean",
        DataType::Int8 => "byte",
        DataType::Int16 => "short",
        DataType::Int32 => "integer",
        DataType::Int64 => "long",
        // Partition values are text, which any wider type takes.
        DataType::UInt8 if partition => "short",
        DataType::UInt16 if partition => "integer",
        DataType::UInt32 if partition => "long",
        DataType::UInt64 if partition => "decimal(20,0)",
        DataType::UInt8 => return none("int16"),
        DataType::UInt16 => return none("int32"),
        DataType::UInt32 => return none("int64"),
        DataType::UInt64 => return none("decimal(20,0)"),
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Decimal { precision, scale } => return Ok(format!("decimal({precision},{scale})")),
        DataType::String => "string",
        DataType::Date => "date",
        DataType::Timestamp => "timestamp_ntz",
        DataType::TimestampTz => "timestamp",
        // Stored as 16 bytes. In paths it has no hyphens, and Polars reads the paths instead of the log.
        DataType::Uuid => return none("string"),
        // Polars reads Parquet's JSON type as binary.
        DataType::Json | DataType::Time => return none("string"),
    };
    Ok(name.to_owned())
}

/// The features that a client must support to read or write a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    pub min_reader_version: i32,
    pub min_writer_version: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<&'static str>>,
}

/// The protocol of a log. The oldest versions, unless a column is a timestamp without a zone.
pub fn protocol(log: &DeltaLog) -> Protocol {
    let features = log.timestamp_ntz.then(|| vec!["timestampNtz"]);
    Protocol {
        min_reader_version: if log.timestamp_ntz { 3 } else { 1 },
        min_writer_version: if log.timestamp_ntz { 7 } else { 2 },
        reader_features: features.clone(),
        writer_features: features,
    }
}

/// The metadata of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub id: String,
    pub name: String,
    pub format: Value,
    /// JSON as text.
    pub schema_string: String,
    pub partition_columns: Vec<String>,
    /// Milliseconds since the epoch.
    pub created_time: i64,
    pub configuration: Map<String, Value>,
}

/// The metadata of a table with these columns.
pub fn metadata(log: &DeltaLog, table: &str, columns: &[TableColumn]) -> Metadata {
    let partitions = columns.iter().filter(|column| column.partition).map(|column| column.name.clone());
    Metadata {
        id: log.id.clone(),
        name: table.to_owned(),
        format: json!({ "provider": "parquet", "options": {} }),
        schema_string: schema(columns),
        partition_columns: partitions.collect(),
        created_time: log.began_ms,
        configuration: Map::new(),
    }
}

fn schema(columns: &[TableColumn]) -> String {
    let field = |column: &TableColumn| {
        // Validation refuses other types.
        let ty = delta_type(column.ty, column.partition).unwrap_or_else(|_| "string".to_owned());
        json!({ "name": column.name, "type": ty, "nullable": column.nullable, "metadata": {} })
    };
    json!({ "type": "struct", "fields": columns.iter().map(field).collect::<Vec<_>>() }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_integers_are_partition_values_only() {
        assert_eq!(delta_type(DataType::UInt64, true).as_deref(), Ok("decimal(20,0)"));
        assert_eq!(delta_type(DataType::UInt64, false), Err(UnsupportedType { instead: "decimal(20,0)" }));
        assert_eq!(delta_type(DataType::Time, true), Err(UnsupportedType { instead: "string" }));
        let decimal = DataType::Decimal { precision: 9, scale: 2 };
        assert_eq!(delta_type(decimal, false).as_deref(), Ok("decimal(9,2)"));
    }

    #[test]
    fn only_timestamps_without_zone_need_a_feature() {
        let log = DeltaLog { id: "i".into(), version: 0, began_ms: 0, timestamp_ntz: false };
        assert_eq!(serde_json::to_string(&protocol(&log)).unwrap(), r#"{"minReaderVersion":1,"minWriterVersion":2}"#);
        let features = r#"{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["timestampNtz"],"writerFeatures":["timestampNtz"]}"#;
        let protocol = protocol(&DeltaLog { timestamp_ntz: true, ..log });
        assert_eq!(serde_json::to_string(&protocol).unwrap(), features);
    }
}
