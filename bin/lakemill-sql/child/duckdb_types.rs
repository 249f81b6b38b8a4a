//! Handles of DuckDB's types: from a declared type, and to the name of a result column's type.

use duckdb::core::{LogicalTypeHandle, LogicalTypeId as Id};
use lakemill::domain::pipeline::types::DataType;

/// The alias that makes a text JSON.
const JSON: &str = "JSON";
/// Deepest nesting that a name shows.
const DEPTH_MAX: usize = 64;

/// The config's name of the type, or DuckDB's in lower case if there is none.
pub fn name(ty: &LogicalTypeHandle) -> String {
    nested(ty, 0)
}

fn nested(ty: &LogicalTypeHandle, depth: usize) -> String {
    if depth > DEPTH_MAX {
        return "…".to_owned();
    }
    let id = ty.id();
    if let Some(declared) = declared_type(ty, id) {
        return declared.to_string();
    }
    let child = |at: usize| nested(&ty.child(at), depth + 1);
    let fields = || {
        let field = |at: usize| format!("{} {}", ty.child_name(at), child(at));
        (0..ty.num_children()).map(field).collect::<Vec<_>>().join(", ")
    };
    match id {
        Id::List | Id::Array => format!("{}[]", child(0)),
        Id::Struct => format!("struct({})", fields()),
        Id::Union => "union".to_owned(),
        Id::Map => format!("map({}, {})", child(0), child(1)),
        Id::Enum => "enum".to_owned(),
        Id::SqlNull => "null".to_owned(),
        Id::TimestampS => "timestamp_s".to_owned(),
        Id::TimestampMs => "timestamp_ms".to_owned(),
        Id::TimestampNs => "timestamp_ns".to_owned(),
        Id::TimeTZ => "timetz".to_owned(),
        other => format!("{other:?}").to_ascii_lowercase(),
    }
}

/// The declared type that a handle represents, if any.
fn declared_type(handle: &LogicalTypeHandle, id: Id) -> Option<DataType> {
    match id {
        Id::Decimal => Some(DataType::Decimal { precision: handle.decimal_width(), scale: handle.decimal_scale() }),
        Id::Varchar if handle.get_alias().is_some_and(|alias| alias.eq_ignore_ascii_case(JSON)) => Some(DataType::Json),
        _ => DataType::PLAIN.iter().map(|(_, ty)| *ty).find(|ty| *ty != DataType::Json && type_id(*ty) == id),
    }
}

/// DuckDB's handle of a declared type.
pub fn logical_type(ty: DataType) -> LogicalTypeHandle {
    if let DataType::Decimal { precision, scale } = ty {
        return LogicalTypeHandle::decimal(precision, scale);
    }
    let mut handle = LogicalTypeHandle::from(type_id(ty));
    if ty == DataType::Json {
        handle.set_alias(JSON);
    }
    handle
}

fn type_id(ty: DataType) -> Id {
    match ty {
        DataType::Boolean => Id::Boolean,
        DataType::Int8 => Id::Tinyint,
        DataType::Int16 => Id::Smallint,
        DataType::Int32 => Id::Integer,
        DataType::Int64 => Id::Bigint,
        DataType::UInt8 => Id::UTinyint,
        DataType::UInt16 => Id::USmallint,
        DataType::UInt32 => Id::UInteger,
        DataType::UInt64 => Id::UBigint,
        DataType::Float32 => Id::Float,
        DataType::Float64 => Id::Double,
        DataType::Decimal { .. } => Id::Decimal,
        DataType::String | DataType::Json => Id::Varchar,
        DataType::Date => Id::Date,
        DataType::Time => Id::Time,
        DataType::Timestamp => Id::Timestamp,
        DataType::TimestampTz => Id::TimestampTZ,
        DataType::Uuid => Id::Uuid,
    }
}
