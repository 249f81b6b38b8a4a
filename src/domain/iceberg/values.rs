//! Values of partitions, and bounds of columns, in the binary forms of Iceberg.

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use serde_json::{Value, json};

use super::avro::Encoder;
use crate::domain::pipeline::Transform;
use crate::domain::pipeline::types::DataType;

const MONTHS_PER_YEAR: i32 = 12;
const HOURS_PER_DAY: i32 = 24;
const EPOCH_YEAR: i32 = 1970;

/// The type of a partition field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    Boolean,
    Int,
    Date,
    Long,
    Timestamp,
    TimestampTz,
    Decimal { precision: u8, scale: u8 },
    String,
}

/// The value of a partition field. Values of one field have one form, and are ordered as Iceberg orders them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PartitionValue {
    Boolean(bool),
    Int(i32),
    Long(i64),
    Decimal(i128),
    String(String),
}

impl ValueType {
    /// The type of a transform's results. `ty`: of the column in the table.
    pub(super) fn of(ty: DataType, transform: Transform) -> Self {
        match (transform, ty) {
            (Transform::Year | Transform::Month | Transform::Hour, _) => Self::Int,
            (Transform::Day, _) | (Transform::Identity, DataType::Date) => Self::Date,
            (Transform::Identity, DataType::Boolean) => Self::Boolean,
            (Transform::Identity, DataType::Int8 | DataType::Int16 | DataType::Int32) => Self::Int,
            (Transform::Identity, DataType::UInt8 | DataType::UInt16) => Self::Int,
            (Transform::Identity, DataType::Int64 | DataType::UInt32) => Self::Long,
            (Transform::Identity, DataType::UInt64) => Self::Decimal { precision: 20, scale: 0 },
            (Transform::Identity, DataType::Decimal { precision, scale }) => Self::Decimal { precision, scale },
            (Transform::Identity, DataType::Timestamp) => Self::Timestamp,
            (Transform::Identity, DataType::TimestampTz) => Self::TimestampTz,
            // Validation refuses the others.
            (
                Transform::Identity,
                DataType::String
                | DataType::Float32
                | DataType::Float64
                | DataType::Time
                | DataType::Uuid
                | DataType::Json,
            ) => Self::String,
        }
    }

    /// The type in the schema of an Avro file.
    pub(super) fn avro(self) -> Value {
        match self {
            Self::Boolean => json!("boolean"),
            Self::Int => json!("int"),
            Self::Date => json!({ "type": "int", "logicalType": "date" }),
            Self::Long => json!("long"),
            Self::Timestamp => json!({ "type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": false }),
            Self::TimestampTz => json!({ "type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": true }),
            Self::Decimal { precision, scale } => json!({
                "type": "fixed",
                "name": format!("decimal_{precision}_{scale}"),
                "size": decimal_bytes(precision),
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }),
            Self::String => json!("string"),
        }
    }

    /// Parses a value as paths of partitions have it; `None` if it isn't one.
    pub(super) fn parse(self, text: &str, transform: Transform) -> Option<PartitionValue> {
        match transform {
            Transform::Year => Some(PartitionValue::Int(year(text)? - EPOCH_YEAR)),
            Transform::Month => {
                let (year_text, month) = text.rsplit_once('-')?;
                let month: i32 = month.parse().ok()?;
                Some(PartitionValue::Int((year(year_text)? - EPOCH_YEAR) * MONTHS_PER_YEAR + month - 1))
            }
            Transform::Hour => {
                let (day, hour) = text.rsplit_once('-')?;
                Some(PartitionValue::Int(days(day)? * HOURS_PER_DAY + hour.parse::<i32>().ok()?))
            }
            Transform::Day => days(text).map(PartitionValue::Int),
            Transform::Identity => self.identity(text),
        }
    }

    fn identity(self, text: &str) -> Option<PartitionValue> {
        Some(match self {
            Self::Boolean => PartitionValue::Boolean(text.parse().ok()?),
            Self::Int => PartitionValue::Int(text.parse().ok()?),
            Self::Date => PartitionValue::Int(days(text)?),
            Self::Long => PartitionValue::Long(text.parse().ok()?),
            Self::Timestamp => PartitionValue::Long(micros(text)?),
            Self::TimestampTz => PartitionValue::Long(micros(text.strip_suffix("+00:00")?)?),
            Self::Decimal { scale, .. } => {
                let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
                if fraction.len() != usize::from(scale) {
                    return None;
                }
                PartitionValue::Decimal(format!("{whole}{fraction}").parse().ok()?)
            }
            Self::String => PartitionValue::String(text.to_owned()),
        })
    }

    pub(super) fn encode(self, value: &PartitionValue, into: &mut Encoder) {
        match value {
            PartitionValue::Boolean(value) => into.boolean(*value),
            PartitionValue::Int(value) => into.long(i64::from(*value)),
            PartitionValue::Long(value) => into.long(*value),
            PartitionValue::Decimal(value) => {
                let precision = if let Self::Decimal { precision, .. } = self { precision } else { u8::MAX };
                let bytes = value.to_be_bytes();
                into.fixed(&bytes[bytes.len() - decimal_bytes(precision)..]);
            }
            PartitionValue::String(value) => into.bytes(value.as_bytes()),
        }
    }
}

impl PartitionValue {
    /// The form of a bound.
    pub(super) fn bound(&self) -> Vec<u8> {
        match self {
            Self::Boolean(value) => vec![u8::from(*value)],
            Self::Int(value) => value.to_le_bytes().to_vec(),
            Self::Long(value) => value.to_le_bytes().to_vec(),
            Self::Decimal(value) => decimal_bound(*value),
            Self::String(value) => value.as_bytes().to_vec(),
        }
    }
}

/// A bound of a decimal: its unscaled value in as few bytes as hold it, the highest first.
pub fn decimal_bound(unscaled: i128) -> Vec<u8> {
    let bytes = unscaled.to_be_bytes();
    let fill = if unscaled < 0 { 0xff } else { 0 };
    let is_redundant = |at: usize| bytes[at] == fill && (bytes[at + 1] ^ fill) & 0x80 == 0;
    let first = (0..bytes.len() - 1).find(|at| !is_redundant(*at)).unwrap_or(bytes.len() - 1);
    bytes[first..].to_vec()
}

/// The bytes of a decimal with this precision in Avro, at most 16.
fn decimal_bytes(precision: u8) -> usize {
    let fits = |bytes: &usize| 10_i128.checked_pow(u32::from(precision)).is_some_and(|top| top < 1 << (8 * bytes - 1));
    (1..16).find(fits).unwrap_or(16)
}

fn year(text: &str) -> Option<i32> {
    text.parse().ok()
}

/// Days since the epoch.
fn days(text: &str) -> Option<i32> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    i32::try_from(date.signed_duration_since(DateTime::UNIX_EPOCH.date_naive()).num_days()).ok()
}

/// Microseconds since the epoch.
fn micros(text: &str) -> Option<i64> {
    let time = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").ok()?;
    Some(time.and_utc().timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(ty: DataType, transform: Transform, text: &str) -> Option<PartitionValue> {
        ValueType::of(ty, transform).parse(text, transform)
    }

    #[test]
    fn transforms_count_from_the_epoch() {
        let of = |transform, text| match value(DataType::Timestamp, transform, text) {
            Some(PartitionValue::Int(value)) => Some(value),
            _ => None,
        };
        assert_eq!(of(Transform::Year, "2024"), Some(54));
        assert_eq!(of(Transform::Month, "2024-02"), Some(54 * 12 + 1));
        assert_eq!(of(Transform::Month, "1969-12"), Some(-1));
        assert_eq!(of(Transform::Day, "1970-01-02"), Some(1));
        assert_eq!(of(Transform::Day, "1969-12-31"), Some(-1));
        assert_eq!(of(Transform::Hour, "1970-01-02-05"), Some(29));
        assert_eq!(of(Transform::Hour, "1969-12-31-23"), Some(-1));
        assert_eq!(of(Transform::Day, "x"), None);
    }

    #[test]
    fn identities_keep_their_value() {
        let of = |ty, text| value(ty, Transform::Identity, text);
        let decimal = DataType::Decimal { precision: 5, scale: 2 };
        assert_eq!(of(decimal, "-1.50"), Some(PartitionValue::Decimal(-150)));
        assert_eq!(of(decimal, "-0.05"), Some(PartitionValue::Decimal(-5)));
        assert_eq!(of(decimal, "1.5"), None);
        assert_eq!(of(DataType::UInt64, "18446744073709551615"), Some(PartitionValue::Decimal(u64::MAX.into())));
        assert_eq!(of(DataType::Timestamp, "1970-01-01 00:00:01.5"), Some(PartitionValue::Long(1_500_000)));
        assert_eq!(of(DataType::TimestampTz, "1970-01-01 00:00:01+00:00"), Some(PartitionValue::Long(1_000_000)));
        assert_eq!(of(DataType::Boolean, "true"), Some(PartitionValue::Boolean(true)));
    }

    #[test]
    fn decimals_use_the_fewest_bytes() {
        for (value, bytes) in [
            (0, &[0][..]),
            (-1, &[0xff]),
            (127, &[0x7f]),
            (128, &[0, 0x80]),
            (-128, &[0x80]),
            (-129, &[0xff, 0x7f]),
            (1_420, &[5, 0x8c]),
        ] {
            assert_eq!(decimal_bound(value), bytes, "{value}");
        }
        for (precision, bytes) in [(2, 1), (3, 2), (9, 4), (18, 8), (19, 9), (38, 16)] {
            assert_eq!(decimal_bytes(precision), bytes, "{precision}");
        }
    }
}
