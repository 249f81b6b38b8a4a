//! DuckDB's names of declared types, and the types that an expression may have for a declared one.

use crate::domain::pipeline::types::{DataType, TypeClass};

/// The name of `ty` in DuckDB's dialect.
pub fn sql_type(ty: DataType) -> String {
    match ty {
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Decimal { precision, scale } => return format!("DECIMAL({precision},{scale})"),
        DataType::String => "VARCHAR",
        DataType::Date => "DATE",
        DataType::Time => "TIME",
        DataType::Timestamp => "TIMESTAMP",
        DataType::TimestampTz => "TIMESTAMP WITH TIME ZONE",
        DataType::Uuid => "UUID",
        DataType::Json => "JSON",
    }
    .to_owned()
}

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SqlType {
    Null,
    Declared(DataType),
    /// 128-bit integers; `sum` and literals beyond 64 bits have them.
    HugeInt,
    Enum,
    /// Timestamps of seconds and milliseconds.
    CoarseTimestamp,
    Other,
}

impl SqlType {
    fn parse(name: &str) -> Self {
        if let Some((_, ty)) = DataType::PLAIN.iter().find(|(_, ty)| sql_type(*ty) == name) {
            return Self::Declared(*ty);
        }
        match name {
            "\"NULL\"" | "NULL" => Self::Null,
            "HUGEINT" | "UHUGEINT" => Self::HugeInt,
            "TIMESTAMP_S" | "TIMESTAMP_MS" => Self::CoarseTimestamp,
            _ if name.starts_with("ENUM(") && name.ends_with(')') => Self::Enum,
            _ => DataType::parse(&name.to_ascii_lowercase()).map_or(Self::Other, Self::Declared),
        }
    }
}

/// Most digits and decimal places of an exact number; `None` for other types.
fn digits_and_scale(ty: DataType) -> Option<(u8, u8)> {
    match ty {
        DataType::Int8 | DataType::UInt8 => Some((3, 0)),
        DataType::Int16 | DataType::UInt16 => Some((5, 0)),
        DataType::Int32 | DataType::UInt32 => Some((10, 0)),
        DataType::Int64 => Some((19, 0)),
        DataType::UInt64 => Some((20, 0)),
        DataType::Decimal { precision, scale } => Some((precision, scale)),
        DataType::Boolean
        | DataType::Float32
        | DataType::Float64
        | DataType::String
        | DataType::Date
        | DataType::Time
        | DataType::Timestamp
        | DataType::TimestampTz
        | DataType::Uuid
        | DataType::Json => None,
    }
}

/// Whether a cast from DuckDB's type `found` to `declared` is lossless, or fails on the row that doesn't fit. False for
/// casts that round, truncate, or guess.
pub fn fits(found: &str, declared: DataType) -> bool {
    let found = match SqlType::parse(found) {
        SqlType::Null => return true,
        SqlType::Declared(found) => found,
        SqlType::HugeInt => return digits_and_scale(declared).is_some(),
        SqlType::Enum => return declared == DataType::String,
        SqlType::CoarseTimestamp => return declared == DataType::Timestamp,
        SqlType::Other => return false,
    };
    if found == declared {
        return true;
    }
    let has_digits = |max: u8| digits_and_scale(found).is_some_and(|(digits, _)| digits <= max);
    let has_scale = |max: u8| digits_and_scale(found).is_some_and(|(_, scale)| scale <= max);
    match declared {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => has_scale(0),
        DataType::Decimal { scale, .. } => has_scale(scale),
        DataType::Float64 => found == DataType::Float32 || has_digits(f64::DIGITS as u8),
        DataType::Float32 => has_digits(f32::DIGITS as u8),
        DataType::String => found == DataType::Json,
        DataType::Timestamp => found == DataType::Date,
        DataType::Boolean
        | DataType::Date
        | DataType::Time
        | DataType::TimestampTz
        | DataType::Uuid
        | DataType::Json => false,
    }
}

/// How to convert `found` to `declared`.
pub fn remedy(found: &str, declared: DataType) -> String {
    let sql = sql_type(declared);
    match (SqlType::parse(found), declared) {
        (SqlType::Declared(DataType::Timestamp), DataType::TimestampTz) => {
            "name its time zone: `(…) AT TIME ZONE 'Europe/Berlin'`".to_owned()
        }
        (SqlType::Declared(DataType::TimestampTz), DataType::Timestamp | DataType::Date | DataType::Time) => {
            let cut =
                if declared == DataType::Timestamp { String::new() } else { format!(" and `CAST(… AS {sql})`") };
            format!("say in which zone: `(…) AT TIME ZONE 'Europe/Berlin'`{cut}")
        }
        (SqlType::Declared(DataType::String), DataType::Timestamp | DataType::TimestampTz) => {
            format!("write `strptime(…, '%Y-%m-%d %H:%M:%S')` or `CAST(… AS {sql})`")
        }
        (SqlType::Declared(DataType::Float32 | DataType::Float64 | DataType::Decimal { .. }), _)
            if declared.class() == TypeClass::Integer =>
        {
            format!("write `CAST(floor(…) AS {sql})` or `CAST(… AS {sql})`, which rounds")
        }
        (SqlType::Other, _) if found.ends_with(']') || found.starts_with("STRUCT") || found.starts_with("MAP") => {
            format!("take one value out of it, or write `CAST(to_json(…) AS {sql})` for its JSON text")
        }
        _ => format!("write `CAST(… AS {sql})`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lossless_or_checked_conversions_fit() {
        let check = |found: &str, declared: &str, expect: bool| {
            let ty = DataType::parse(declared).unwrap();
            assert_eq!(fits(found, ty), expect, "{found} to {declared}");
        };
        for (_, ty) in DataType::PLAIN {
            check(&sql_type(*ty), &ty.to_string(), true);
            check("\"NULL\"", &ty.to_string(), true);
        }
        for (found, declared) in [
            ("INTEGER", "int8"),
            ("HUGEINT", "int64"),
            ("BIGINT", "uint8"),
            ("INTEGER", "decimal(4,2)"),
            ("DECIMAL(4,2)", "decimal(10,2)"),
            ("DECIMAL(12,2)", "decimal(10,2)"),
            ("DECIMAL(9,0)", "int32"),
            ("FLOAT", "float64"),
            ("DECIMAL(2,1)", "float64"),
            ("INTEGER", "float64"),
            ("SMALLINT", "float32"),
            ("DATE", "timestamp"),
            ("TIMESTAMP_S", "timestamp"),
            ("ENUM('a', 'b')", "string"),
            ("JSON", "string"),
        ] {
            check(found, declared, true);
        }
        for (found, declared) in [
            ("DOUBLE", "int32"),
            ("DOUBLE", "float32"),
            ("BIGINT", "float64"),
            ("INTEGER", "float32"),
            ("VARCHAR", "int32"),
            ("VARCHAR", "json"),
            ("VARCHAR", "date"),
            ("INTEGER", "string"),
            ("BOOLEAN", "int8"),
            ("INTEGER", "boolean"),
            ("DECIMAL(4,2)", "int32"),
            ("DECIMAL(4,3)", "decimal(10,2)"),
            ("DECIMAL(18,3)", "float64"),
            ("TIMESTAMP", "date"),
            ("TIMESTAMP", "timestamptz"),
            ("TIMESTAMP WITH TIME ZONE", "timestamp"),
            ("TIMESTAMP_NS", "timestamp"),
            ("INTEGER[]", "string"),
            ("STRUCT(a INTEGER)", "json"),
            ("BLOB", "string"),
            ("UUID", "string"),
        ] {
            check(found, declared, false);
        }
    }
}
