//! Formats of values, and the types of columns that panels distinguish.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Unformatted.
    Text,
    /// Thousands separators and up to three decimals.
    Number,
    /// Without decimals.
    Integer,
    /// One decimal.
    Decimal1,
    /// Two decimals.
    Decimal2,
    /// `1.2k`, `3.4M`.
    Compact,
    /// A ratio as a percentage: `0.123` is `12%`.
    Percent,
    /// A ratio as a percentage with one decimal: `0.123` is `12.3%`.
    Percent1,
    /// US dollars and cents.
    Usd,
    /// US dollars.
    Usd0,
    /// Euros and cents.
    Eur,
    /// Euros.
    Eur0,
    /// Pounds and pence.
    Gbp,
    /// Pounds.
    Gbp0,
    /// Bytes: `1.2 MiB`.
    Bytes,
    /// Seconds: `1 h 2 min`.
    DurationS,
    /// Milliseconds: `1.2 s`.
    DurationMs,
    /// A day.
    Date,
    /// A date with time of day.
    Datetime,
    /// A time of day.
    Time,
    /// A month with its year.
    Month,
    /// A quarter with its year: `Q3 2025`.
    Quarter,
    /// A year.
    Year,
}

/// Kinds of column types that panels distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueClass {
    Number,
    /// A date, a time of day, or both.
    Time,
    Other,
}

impl ValueClass {
    /// The class of a type, given by its config name (`int64`, `decimal(10,2)`) or, if it has none, DuckDB's
    /// (`HUGEINT`).
    pub fn of(ty: &str) -> Self {
        let ty = ty.to_ascii_lowercase();
        let base = ty.split('(').next().unwrap_or_default();
        match base {
            "int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32" | "uint64" | "float32" | "float64"
            | "decimal" | "hugeint" | "uhugeint" | "bignum" | "varint" | "tinyint" | "smallint" | "integer"
            | "bigint" | "utinyint" | "usmallint" | "uinteger" | "ubigint" | "float" | "double" => Self::Number,
            _ if ty.ends_with(']') => Self::Other,
            "date" => Self::Time,
            _ if base.starts_with("time") => Self::Time,
            _ => Self::Other,
        }
    }
}

impl Format {
    /// The kind of column that the format requires; `None`: any.
    pub fn column_references(self) -> Option<ValueClass> {
        match self {
            Self::Text | Self::Year => None,
            Self::Number
            | Self::Integer
            | Self::Decimal1
            | Self::Decimal2
            | Self::Compact
            | Self::Percent
            | Self::Percent1
            | Self::Usd
            | Self::Usd0
            | Self::Eur
            | Self::Eur0
            | Self::Gbp
            | Self::Gbp0
            | Self::Bytes
            | Self::DurationS
            | Self::DurationMs => Some(ValueClass::Number),
            Self::Date | Self::Datetime | Self::Time | Self::Month | Self::Quarter => Some(ValueClass::Time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_config_and_duckdb_names() {
        for ty in ["int8", "uint64", "float64", "decimal(38,4)", "HUGEINT", "BIGINT", "DECIMAL(18,2)"] {
            assert_eq!(ValueClass::of(ty), ValueClass::Number, "{ty}");
        }
        for ty in ["date", "time", "timestamp", "timestamptz", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"] {
            assert_eq!(ValueClass::of(ty), ValueClass::Time, "{ty}");
        }
        for ty in ["string", "boolean", "json", "uuid", "BIGINT[]", "DATE[]", "INTERVAL", "STRUCT(a INTEGER)"] {
            assert_eq!(ValueClass::of(ty), ValueClass::Other, "{ty}");
        }
    }
}
