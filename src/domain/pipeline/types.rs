//! The column types of PipelineConfig version 1.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A declared type. `Timestamp` and `TimestampTz` count microseconds, `Time` microseconds since midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    /// Precision 1 to 38, scale 0 to precision.
    Decimal {
        precision: u8,
        scale: u8,
    },
    String,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Uuid,
    Json,
}

impl DataType {
    /// Every type without parameters, as it is written in a config.
    pub const PLAIN: &[(&'static str, Self)] = &[
        ("boolean", Self::Boolean),
        ("int8", Self::Int8),
        ("int16", Self::Int16),
        ("int32", Self::Int32),
        ("int64", Self::Int64),
        ("uint8", Self::UInt8),
        ("uint16", Self::UInt16),
        ("uint32", Self::UInt32),
        ("uint64", Self::UInt64),
        ("float32", Self::Float32),
        ("float64", Self::Float64),
        ("string", Self::String),
        ("date", Self::Date),
        ("time", Self::Time),
        ("timestamp", Self::Timestamp),
        ("timestamptz", Self::TimestampTz),
        ("uuid", Self::Uuid),
        ("json", Self::Json),
    ];

    /// Reads `int64`, `decimal(10,2)` and so on; blanks within the parentheses are allowed.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some((_, ty)) = Self::PLAIN.iter().find(|(name, _)| *name == text) {
            return Some(*ty);
        }
        let inner = text.strip_prefix("decimal(")?.strip_suffix(')')?;
        let (precision, scale) = inner.split_once(',')?;
        let number = |s: &str| -> Option<u8> {
            let s = s.trim();
            (!s.is_empty() && s.len() <= 2 && s.bytes().all(|b| b.is_ascii_digit())).then(|| s.parse().ok())?
        };
        let (precision, scale) = (number(precision)?, number(scale)?);
        ((1..=38).contains(&precision) && scale <= precision).then_some(Self::Decimal { precision, scale })
    }

    /// Whether `formats` may be given.
    pub fn takes_formats(self) -> bool {
        matches!(self, Self::Date | Self::Time | Self::Timestamp | Self::TimestampTz)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Decimal { precision, scale } = self {
            return write!(f, "decimal({precision},{scale})");
        }
        let name = Self::PLAIN.iter().find(|(_, ty)| ty == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl Serialize for DataType {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DataType {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a column type")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_reads_back_from_its_own_text() {
        for (name, ty) in DataType::PLAIN {
            assert_eq!(DataType::parse(name), Some(*ty));
            assert_eq!(ty.to_string(), *name);
        }
        let decimal = DataType::Decimal { precision: 10, scale: 2 };
        assert_eq!(DataType::parse("decimal(10, 2)"), Some(decimal));
        assert_eq!(decimal.to_string(), "decimal(10,2)");
    }

    #[test]
    fn decimals_out_of_range_are_no_types() {
        for bad in ["decimal", "decimal(0,0)", "decimal(39,2)", "decimal(5,6)", "decimal(5)", "decimal(+5,1)", "int"] {
            assert_eq!(DataType::parse(bad), None, "{bad}");
        }
    }
}
