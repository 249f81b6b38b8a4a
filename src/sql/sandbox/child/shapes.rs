//! The types of a result, as people and as the text of values need them.

use duckdb::core::{LogicalTypeHandle, LogicalTypeId as Id};

use crate::domain::pipeline::types::DataType;

/// Deepest nesting of a type that is told.
const DEPTH_MAX: usize = 64;

/// A config's name of the type where there is one, else DuckDB's in lower case.
pub fn name(ty: &LogicalTypeHandle) -> String {
    nested(ty, 0)
}

fn nested(ty: &LogicalTypeHandle, depth: usize) -> String {
    if depth > DEPTH_MAX {
        return "…".to_owned();
    }
    let id = ty.id();
    if let Some(own) = own(ty, id) {
        return own.to_string();
    }
    let child = |at: usize| nested(&ty.child(at), depth + 1);
    let fields = || {
        let field = |at: usize| format!("{} {}", ty.child_name(at), child(at));
        (0..ty.num_children()).map(field).collect::<Vec<_>>().join(", ")
    };
    match id {
        Id::List => format!("{}[]", child(0)),
        Id::Array => format!("{}[]", child(0)),
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

fn own(ty: &LogicalTypeHandle, id: Id) -> Option<DataType> {
    Some(match id {
        Id::Boolean => DataType::Boolean,
        Id::Tinyint => DataType::Int8,
        Id::Smallint => DataType::Int16,
        Id::Integer => DataType::Int32,
        Id::Bigint => DataType::Int64,
        Id::UTinyint => DataType::UInt8,
        Id::USmallint => DataType::UInt16,
        Id::UInteger => DataType::UInt32,
        Id::UBigint => DataType::UInt64,
        Id::Float => DataType::Float32,
        Id::Double => DataType::Float64,
        Id::Decimal => DataType::Decimal { precision: ty.decimal_width(), scale: ty.decimal_scale() },
        Id::Varchar if ty.get_alias().is_some_and(|alias| alias.eq_ignore_ascii_case("json")) => DataType::Json,
        Id::Varchar => DataType::String,
        Id::Date => DataType::Date,
        Id::Time => DataType::Time,
        Id::Timestamp => DataType::Timestamp,
        Id::TimestampTZ => DataType::TimestampTz,
        Id::Uuid => DataType::Uuid,
        _ => return None,
    })
}
