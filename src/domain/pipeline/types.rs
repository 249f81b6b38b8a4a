//! The column types of PipelineConfig version 1.
//!
//! A new type is added to the table below; the compiler then names every other place that needs it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Declares the types without parameters, each with its name in a config.
macro_rules! data_types {
    ($($name:literal => $type:ident,)*) => {
        /// A declared type. `Timestamp` and `TimestampTz` count microseconds, `Time` microseconds since midnight.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum DataType {
            $($type,)*
            /// Precision 1 to 38, scale 0 to precision.
            Decimal { precision: u8, scale: u8 },
        }

        impl DataType {
            /// Every type without parameters, with its name in a config.
            pub const PLAIN: &[(&'static str, Self)] = &[$(($name, Self::$type),)*];
        }

        impl fmt::Display for DataType {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$type => f.write_str($name),)*
                    Self::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
                }
            }
        }
    };
}

data_types! {
    "boolean" => Boolean,
    "int8" => Int8,
    "int16" => Int16,
    "int32" => Int32,
    "int64" => Int64,
    "uint8" => UInt8,
    "uint16" => UInt16,
    "uint32" => UInt32,
    "uint64" => UInt64,
    "float32" => Float32,
    "float64" => Float64,
    "string" => String,
    "date" => Date,
    "time" => Time,
    "timestamp" => Timestamp,
    "timestamptz" => TimestampTz,
    "uuid" => Uuid,
    "json" => Json,
}

impl DataType {
    /// Parses `int64`, `decimal(10,2)` and so on; blanks within the parentheses are allowed.
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

    /// Whether a column of the type may have `formats`.
    pub fn takes_formats(self) -> bool {
        matches!(self.class(), TypeClass::Temporal(_))
    }

    pub fn class(self) -> TypeClass {
        match self {
            Self::Boolean => TypeClass::Boolean,
            Self::Int8
            | Self::Int16
            | Self::Int32
            | Self::Int64
            | Self::UInt8
            | Self::UInt16
            | Self::UInt32
            | Self::UInt64 => TypeClass::Integer,
            Self::Float32 | Self::Float64 => TypeClass::Float,
            Self::Decimal { .. } => TypeClass::Decimal,
            Self::String => TypeClass::Text,
            Self::Date => TypeClass::Temporal(Temporal::Date),
            Self::Time => TypeClass::Temporal(Temporal::Time),
            Self::Timestamp => TypeClass::Temporal(Temporal::Timestamp),
            Self::TimestampTz => TypeClass::Temporal(Temporal::TimestampTz),
            Self::Uuid => TypeClass::Uuid,
            Self::Json => TypeClass::Json,
        }
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

/// The classes of types, for rules that are the same for all types of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeClass {
    Boolean,
    Integer,
    Float,
    Decimal,
    Text,
    Temporal(Temporal),
    Uuid,
    Json,
}

impl TypeClass {
    /// Whether equal values always have one text, so that a value can name a partition.
    pub fn compares_exactly(self) -> bool {
        match self {
            Self::Float | Self::Json => false,
            Self::Boolean | Self::Integer | Self::Decimal | Self::Text | Self::Temporal(_) | Self::Uuid => true,
        }
    }
}

/// Types of dates and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temporal {
    Date,
    Time,
    Timestamp,
    TimestampTz,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_round_trip_through_text() {
        for (name, ty) in DataType::PLAIN {
            assert_eq!(DataType::parse(name), Some(*ty));
            assert_eq!(ty.to_string(), *name);
        }
        let decimal = DataType::Decimal { precision: 10, scale: 2 };
        assert_eq!(DataType::parse("decimal(10, 2)"), Some(decimal));
        assert_eq!(decimal.to_string(), "decimal(10,2)");
    }

    #[test]
    fn decimals_out_of_range_are_refused() {
        for bad in ["decimal", "decimal(0,0)", "decimal(39,2)", "decimal(5,6)", "decimal(5)", "decimal(+5,1)", "int"] {
            assert_eq!(DataType::parse(bad), None, "{bad}");
        }
    }
}
