//! The Arrow type of each declared type.

use std::sync::Arc;

use arrow::datatypes::{DataType as Arrow, Field, Schema, TimeUnit};

use crate::domain::pipeline::Mapping;
use crate::domain::pipeline::types::{DataType, TypeClass};

/// The Arrow type of a declared type.
pub fn arrow_type(ty: DataType) -> Arrow {
    match ty {
        DataType::Boolean => Arrow::Boolean,
        DataType::Int8 => Arrow::Int8,
        DataType::Int16 => Arrow::Int16,
        DataType::Int32 => Arrow::Int32,
        DataType::Int64 => Arrow::Int64,
        DataType::UInt8 => Arrow::UInt8,
        DataType::UInt16 => Arrow::UInt16,
        DataType::UInt32 => Arrow::UInt32,
        DataType::UInt64 => Arrow::UInt64,
        DataType::Float32 => Arrow::Float32,
        DataType::Float64 => Arrow::Float64,
        DataType::Decimal { precision, scale } => Arrow::Decimal128(precision, scale as i8),
        DataType::String | DataType::Json => Arrow::Utf8,
        DataType::Date => Arrow::Date32,
        DataType::Time => Arrow::Time64(TimeUnit::Microsecond),
        DataType::Timestamp => Arrow::Timestamp(TimeUnit::Microsecond, None),
        DataType::TimestampTz => Arrow::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Uuid => Arrow::FixedSizeBinary(16),
    }
}

/// A field of the declared type; `uuid` and `json` have Arrow's canonical extension types, which become logical types in
/// Parquet.
pub fn arrow_field(name: &str, ty: DataType, nullable: bool) -> Field {
    let field = Field::new(name, arrow_type(ty), nullable);
    match ty.class() {
        TypeClass::Uuid => field.with_extension_type(arrow_schema::extension::Uuid),
        TypeClass::Json => field.with_extension_type(arrow_schema::extension::Json::default()),
        TypeClass::Boolean
        | TypeClass::Integer
        | TypeClass::Float
        | TypeClass::Decimal
        | TypeClass::Text
        | TypeClass::Temporal(_) => field,
    }
}

/// The schema of a mapping's columns.
pub fn mapping_schema(mapping: &Mapping) -> Arc<Schema> {
    let fields: Vec<Field> = mapping.columns.iter().map(|c| arrow_field(c.name.as_str(), c.ty, c.nullable)).collect();
    Arc::new(Schema::new(fields))
}
