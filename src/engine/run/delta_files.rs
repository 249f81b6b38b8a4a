//! Statistics of a written data file in the Delta log, from its footer.
//!
//! Invariant: no value of a column is outside its bounds, however a reader compares. Where that isn't certain, as with NaN,
//! no column of the file has bounds: `deltalake` takes a missing bound of one column for null, which hides all rows.

use std::fmt::Write as _;

use chrono::{DateTime, Datelike, SecondsFormat};
use parquet::file::metadata::ParquetMetaData;
use serde_json::{Number, Value};

use super::footer_bounds::{ColumnBound, ColumnSummary};
use crate::domain::delta::{DECIMAL_DIGITS_MAX, STATS_COLUMNS_MAX, TEXT_BOUND_BYTES_MAX};
use crate::domain::pipeline::Mapping;
use crate::domain::pipeline::types::DataType;
use crate::domain::table_log::entries::DeltaFile;

const MICROS_PER_MS: i64 = 1_000;
const MS_PER_DAY: i64 = 86_400_000;

/// Describes the data files of one table.
#[derive(Debug, Clone)]
pub(super) struct DeltaFiles {
    /// The first columns in the files.
    columns: Vec<(String, DataType)>,
    /// Creation time of the files, in milliseconds since the epoch.
    made_ms: i64,
}

impl DeltaFiles {
    pub(super) fn of(mapping: &Mapping, made_ms: i64) -> Self {
        let column = |at: usize| (mapping.columns[at].name.as_str().to_owned(), mapping.columns[at].ty);
        let columns = mapping.stored_columns().into_iter().take(STATS_COLUMNS_MAX).map(column).collect();
        Self { columns, made_ms }
    }

    /// Creation time of the files, in milliseconds since the epoch.
    pub(super) fn made_ms(&self) -> i64 {
        self.made_ms
    }

    /// Describes a file by its footer.
    pub(super) fn describe(&self, metadata: &ParquetMetaData) -> DeltaFile {
        DeltaFile { made_ms: self.made_ms, stats: self.stats(metadata) }
    }

    fn stats(&self, metadata: &ParquetMetaData) -> String {
        let rows = metadata.file_metadata().num_rows();
        let (mut lists, mut has_bounds) = ([String::new(), String::new(), String::new()], true);
        for (at, (name, ty)) in self.columns.iter().enumerate() {
            let name = Value::String(name.clone()).to_string();
            let summary = ColumnSummary::of(metadata, at, *ty);
            let min = summary.bounds.as_ref().and_then(|[min, _]| min.text(*ty, false));
            let max = summary.bounds.as_ref().and_then(|[_, max]| max.text(*ty, true));
            has_bounds &= (min.is_some() && max.is_some()) || summary.nulls == Some(rows as u64);
            for (list, value) in lists.iter_mut().zip([min, max, summary.nulls.map(|nulls| nulls.to_string())]) {
                if let Some(value) = value {
                    let comma = if list.is_empty() { "" } else { "," };
                    let _ = write!(list, "{comma}{name}:{value}");
                }
            }
        }
        let [min, max, nulls] = lists;
        let bounds =
            if has_bounds { format!(r#""minValues":{{{min}}},"maxValues":{{{max}}},"#) } else { String::new() };
        format!(r#"{{"numRecords":{rows},{bounds}"nullCount":{{{nulls}}}}}"#)
    }
}

impl ColumnBound {
    /// As JSON. `up`: how to round where Delta has fewer digits.
    fn text(&self, ty: DataType, up: bool) -> Option<String> {
        match (self, ty) {
            (Self::Int(value), DataType::Decimal { precision, scale }) => {
                Some(decimal(rounded(*value, precision, up), scale))
            }
            (Self::Int(value), DataType::Boolean) => Some((*value != 0).to_string()),
            (Self::Int(days), DataType::Date) => {
                let time = time(i64::try_from(*days).ok()?.checked_mul(MS_PER_DAY)?)?;
                Some(format!("\"{}\"", time.format("%Y-%m-%d")))
            }
            (Self::Int(micros), DataType::Timestamp | DataType::TimestampTz) => {
                let micros = i64::try_from(*micros).ok()?;
                let below = micros.div_euclid(MICROS_PER_MS);
                let ms = below + i64::from(up && micros.rem_euclid(MICROS_PER_MS) > 0);
                let text = time(ms)?.to_rfc3339_opts(SecondsFormat::Millis, true);
                let text = if ty == DataType::Timestamp { text.trim_end_matches('Z') } else { &text };
                Some(format!("\"{text}\""))
            }
            (Self::Int(value), _) => Some(value.to_string()),
            // JSON has no infinity.
            (Self::Float(value), _) => Number::from_f64(*value).map(|number| number.to_string()),
            (Self::Text(text), _) => {
                (text.len() <= TEXT_BOUND_BYTES_MAX).then(|| Value::String(text.clone()).to_string())
            }
        }
    }
}

/// A time in the years that all readers parse.
fn time(ms: i64) -> Option<DateTime<chrono::Utc>> {
    DateTime::from_timestamp_millis(ms).filter(|time| (1..=9999).contains(&time.year()))
}

/// A decimal with as many digits as a double has, since readers may take it for one.
fn rounded(value: i128, precision: u8, up: bool) -> i128 {
    let digits = value.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
    let Some(unit) = digits.checked_sub(DECIMAL_DIGITS_MAX).map(|over| 10_i128.pow(over)) else { return value };
    let below = value.div_euclid(unit) * unit;
    let outward = if up && below < value { below + unit } else { below };
    // A bound with more digits than the type equals the unrounded one as a double.
    if outward.unsigned_abs() < 10_u128.pow(u32::from(precision)) { outward } else { value }
}

/// A decimal with all its digits.
fn decimal(value: i128, scale: u8) -> String {
    let (sign, digits) = (if value < 0 { "-" } else { "" }, value.unsigned_abs().to_string());
    let scale = usize::from(scale);
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_outwards() {
        let text = |value, ty, up| ColumnBound::Int(value).text(ty, up);
        let (ntz, tz) = (DataType::Timestamp, DataType::TimestampTz);
        assert_eq!(text(1_001, ntz, false).as_deref(), Some("\"1970-01-01T00:00:00.001\""));
        assert_eq!(text(1_001, tz, true).as_deref(), Some("\"1970-01-01T00:00:00.002Z\""));
        assert_eq!(text(-1, tz, false).as_deref(), Some("\"1969-12-31T23:59:59.999Z\""));
        assert_eq!(text(-1, tz, true).as_deref(), Some("\"1970-01-01T00:00:00.000Z\""));
        assert_eq!(text(1_000, tz, true).as_deref(), Some("\"1970-01-01T00:00:00.001Z\""));
        assert_eq!(text(i128::from(i64::MAX), tz, true), None, "a year beyond 9999");
        assert_eq!(text(-1, DataType::Date, false).as_deref(), Some("\"1969-12-31\""));
    }

    #[test]
    fn numbers_keep_their_value() {
        let decimal = |precision, scale| DataType::Decimal { precision, scale };
        assert_eq!(ColumnBound::Int(-5).text(decimal(5, 2), true).as_deref(), Some("-0.05"));
        assert_eq!(ColumnBound::Int(1_230).text(decimal(5, 2), true).as_deref(), Some("12.30"));
        assert_eq!(ColumnBound::Int(7).text(decimal(5, 0), true).as_deref(), Some("7"));
        assert_eq!(ColumnBound::Int(7).text(decimal(38, 0), true).as_deref(), Some("7"));
        assert_eq!(rounded(1_234_567_890_123_456_789, 38, true), 1_234_567_890_123_460_000);
        assert_eq!(rounded(1_234_567_890_123_456_789, 38, false), 1_234_567_890_123_450_000);
        assert_eq!(rounded(-1_234_567_890_123_456_789, 38, false), -1_234_567_890_123_460_000);
        assert_eq!(rounded(999_999_999_999_999_999, 18, true), 999_999_999_999_999_999);
        assert_eq!(
            ColumnBound::Float(f64::from(0.1_f32)).text(DataType::Float32, true).as_deref(),
            Some("0.10000000149011612")
        );
        assert_eq!(ColumnBound::Float(f64::INFINITY).text(DataType::Float64, true), None);
        assert_eq!(ColumnBound::Float(-0.0).text(DataType::Float64, true).as_deref(), Some("-0.0"));
    }
}
