//! Writes values as JSON without loss of digits in a browser.
//!
//! Whole numbers beyond 2^53, decimals, dates and times, uuids, intervals, NaN and the infinities are strings; bytes are
//! base64, bit strings their digits.

use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::domain::digest::base64;

/// Largest whole number that every JSON reader represents exactly.
const SAFE_MAX: i128 = 1 << 53;

/// A byte buffer with a limit; drops what exceeds it and records that it did.
pub struct BoundedBuffer {
    bytes: Vec<u8>,
    max: usize,
    full: bool,
}

impl BoundedBuffer {
    pub fn new(max: usize) -> Self {
        Self { bytes: Vec::new(), max, full: false }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        if self.full || self.bytes.len() + bytes.len() > self.max {
            self.full = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// A text in quotes.
    pub fn string(&mut self, text: &str) {
        self.push(b"\"");
        let mut from = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                b'\n' => "\\n",
                b'\r' => "\\r",
                b'\t' => "\\t",
                0..=0x1f => {
                    self.push(&text.as_bytes()[from..at]);
                    self.push(format!("\\u{byte:04x}").as_bytes());
                    from = at + 1;
                    continue;
                }
                _ => continue,
            };
            self.push(&text.as_bytes()[from..at]);
            self.push(escape.as_bytes());
            from = at + 1;
        }
        self.push(&text.as_bytes()[from..]);
        self.push(b"\"");
    }

    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Keeps the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
        self.full = false;
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// How a column's Arrow values encode DuckDB values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnForm {
    Native,
    /// Decimals that are 128-bit integers.
    HugeInt,
    /// Bytes that are a bit string in DuckDB's layout.
    BitString,
}

/// Writes a row as an array.
pub fn write_row(batch: &RecordBatch, row: usize, forms: &[ColumnForm], out: &mut BoundedBuffer) {
    out.push(b"[");
    for (at, (column, form)) in batch.columns().iter().zip(forms).enumerate() {
        if at > 0 {
            out.push(b",");
        }
        write_value(column.as_ref(), row, *form, out);
    }
    out.push(b"]");
}

/// A value as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendered {
    Null,
    /// A user's text.
    Text(String),
    /// A number, a date or the like, which needs no escaping.
    Scalar(String),
    /// A list or a structure, which has no text of its own.
    Nested,
}

/// Writes one value as JSON.
pub fn write_value(array: &dyn Array, row: usize, form: ColumnForm, out: &mut BoundedBuffer) {
    // Avoids a copy of a long text.
    if let (Some(texts), false) = (array.as_string_opt::<i32>(), array.is_null(row)) {
        return out.string(texts.value(row));
    }
    match render(array, row, form) {
        Rendered::Null => out.push(b"null"),
        Rendered::Text(text) => out.string(&text),
        Rendered::Scalar(text) if is_number(array.data_type(), form, &text) => out.push(text.as_bytes()),
        Rendered::Scalar(text) => out.string(&text),
        Rendered::Nested => nested(array, row, out),
    }
}

/// One value as JSON; bytes of 16 are a uuid.
pub fn json_value(array: &dyn Array, row: usize) -> serde_json::Value {
    if let (Some(bytes), false) = (array.as_fixed_size_binary_opt(), array.is_null(row)) {
        let text =
            uuid::Uuid::from_slice(bytes.value(row)).map_or_else(|_| base64(bytes.value(row)), |id| id.to_string());
        return text.into();
    }
    let mut out = BoundedBuffer::new(usize::MAX);
    write_value(array, row, ColumnForm::Native, &mut out);
    serde_json::from_slice(out.bytes()).unwrap_or_default()
}

/// Whether JSON has a scalar's text without quotes.
fn is_number(ty: &DataType, form: ColumnForm, text: &str) -> bool {
    match ty {
        DataType::Boolean => true,
        DataType::Float32 | DataType::Float64 => !text.ends_with(['N', 'y']),
        DataType::Decimal128(_, 0) if form != ColumnForm::HugeInt => false,
        DataType::Decimal128(_, scale) if *scale != 0 => false,
        _ if ty.is_integer() || matches!(ty, DataType::Decimal128(_, 0)) => {
            text.parse::<i128>().is_ok_and(|number| number.abs() <= SAFE_MAX)
        }
        _ => false,
    }
}

/// Renders a value as text.
pub fn render(array: &dyn Array, row: usize, form: ColumnForm) -> Rendered {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return Rendered::Null;
    }
    macro_rules! at {
        ($ty:ty) => {
            array.as_primitive::<$ty>().value(row)
        };
    }
    Rendered::Scalar(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => at!(Int8Type).to_string(),
        DataType::Int16 => at!(Int16Type).to_string(),
        DataType::Int32 => at!(Int32Type).to_string(),
        DataType::Int64 => at!(Int64Type).to_string(),
        DataType::UInt8 => at!(UInt8Type).to_string(),
        DataType::UInt16 => at!(UInt16Type).to_string(),
        DataType::UInt32 => at!(UInt32Type).to_string(),
        DataType::UInt64 => at!(UInt64Type).to_string(),
        DataType::Float32 => float(f64::from(at!(Float32Type)), || format!("{:?}", at!(Float32Type))),
        DataType::Float64 => float(at!(Float64Type), || format!("{:?}", at!(Float64Type))),
        DataType::Decimal128(_, 0) if form == ColumnForm::HugeInt => at!(Decimal128Type).to_string(),
        DataType::Decimal128(_, _) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Utf8 => return Rendered::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => return Rendered::Text(array.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => return Rendered::Text(array.as_string_view().value(row).to_owned()),
        DataType::Binary => return bytes(array.as_binary::<i32>().value(row), form),
        DataType::LargeBinary => return bytes(array.as_binary::<i64>().value(row), form),
        DataType::Date32 => date(at!(Date32Type)),
        DataType::Time64(TimeUnit::Microsecond) => time(at!(Time64MicrosecondType) * 1_000),
        DataType::Time64(_) => time(at!(Time64NanosecondType)),
        DataType::Timestamp(unit, zone) => {
            let (value, nanos) = match unit {
                TimeUnit::Second => (at!(TimestampSecondType), 1_000_000_000),
                TimeUnit::Millisecond => (at!(TimestampMillisecondType), 1_000_000),
                TimeUnit::Microsecond => (at!(TimestampMicrosecondType), 1_000),
                TimeUnit::Nanosecond => (at!(TimestampNanosecondType), 1),
            };
            timestamp(value, nanos, zone.is_some())
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = at!(IntervalMonthDayNanoType);
            interval(value.months, value.days, value.nanoseconds)
        }
        DataType::Dictionary(_, _) => {
            let Some(dictionary) = array.as_any_dictionary_opt() else { return Rendered::Null };
            let key = dictionary.normalized_keys().get(row).copied().unwrap_or_default();
            return render(dictionary.values().as_ref(), key, ColumnForm::Native);
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => return Rendered::Nested,
        DataType::Struct(_) | DataType::Map(_, _) => return Rendered::Nested,
        _ => return Rendered::Text(displayed(array, row)),
    })
}

fn displayed(array: &dyn Array, row: usize) -> String {
    let formatter = ArrayFormatter::try_new(array, &FormatOptions::default());
    formatter.and_then(|formatter| formatter.value(row).try_to_string()).unwrap_or_default()
}

fn nested(array: &dyn Array, row: usize, out: &mut BoundedBuffer) {
    let list = |items: ArrayRef, out: &mut BoundedBuffer| {
        out.push(b"[");
        for at in 0..items.len() {
            if at > 0 {
                out.push(b",");
            }
            write_value(items.as_ref(), at, ColumnForm::Native, out);
            if out.is_full() {
                return;
            }
        }
        out.push(b"]");
    };
    match array.data_type() {
        DataType::List(_) => list(array.as_list::<i32>().value(row), out),
        DataType::LargeList(_) => list(array.as_list::<i64>().value(row), out),
        DataType::FixedSizeList(_, _) => list(array.as_fixed_size_list().value(row), out),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let named = fields.iter().all(|field| !field.name().is_empty());
            out.push(if named { b"{" } else { b"[" });
            for (at, (field, column)) in fields.iter().zip(columns).enumerate() {
                if at > 0 {
                    out.push(b",");
                }
                if named {
                    out.string(field.name());
                    out.push(b":");
                }
                write_value(column.as_ref(), row, ColumnForm::Native, out);
            }
            out.push(if named { b"}" } else { b"]" });
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            out.push(b"{");
            for at in 0..entries.len() {
                if at > 0 {
                    out.push(b",");
                }
                match render(keys.as_ref(), at, ColumnForm::Native) {
                    Rendered::Text(text) | Rendered::Scalar(text) => out.string(&text),
                    Rendered::Null | Rendered::Nested => out.string(&displayed(keys.as_ref(), at)),
                }
                out.push(b":");
                write_value(values.as_ref(), at, ColumnForm::Native, out);
                if out.is_full() {
                    return;
                }
            }
            out.push(b"}");
        }
        _ => out.push(b"null"),
    }
}

fn float(value: f64, finite: impl FnOnce() -> String) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        finite()
    }
}

fn bytes(bytes: &[u8], form: ColumnForm) -> Rendered {
    match form {
        ColumnForm::BitString => Rendered::Scalar(bits(bytes)),
        ColumnForm::Native | ColumnForm::HugeInt => Rendered::Text(base64(bytes)),
    }
}

/// The digits of a bit string: its first byte is the number of padding bits at the start of the others.
fn bits(bytes: &[u8]) -> String {
    let Some((padding, bytes)) = bytes.split_first() else { return String::new() };
    let digits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| if byte >> at & 1 == 1 { '1' } else { '0' }));
    digits.skip(usize::from(*padding)).collect()
}

/// Days since 1970 as `2013-01-31`; years of more than four digits have a sign, as in ISO 8601.
fn date(days: i32) -> String {
    // DuckDB's infinite dates.
    match days {
        i32::MAX => return "infinity".to_owned(),
        _ if days == -i32::MAX => return "-infinity".to_owned(),
        _ => {}
    }
    civil(i64::from(days))
}

fn civil(days: i64) -> String {
    // Years are counted from March, so that the leap day is a year's last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    match year {
        0..=9_999 => format!("{year:04}-{month:02}-{day:02}"),
        _ => format!("{year:+05}-{month:02}-{day:02}"),
    }
}

/// Nanoseconds of a day as `05:00:00`, with a fraction only where there is one.
fn time(nanos: i64) -> String {
    let (seconds, rest) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    let mut out = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if rest != 0 {
        let fraction = format!("{rest:09}");
        let _ = write!(out, ".{}", fraction.trim_end_matches('0'));
    }
    out
}

/// `value` units of `nanos` nanoseconds since 1970.
fn timestamp(value: i64, nanos: i64, zoned: bool) -> String {
    match value {
        i64::MAX => return "infinity".to_owned(),
        _ if value == -i64::MAX => return "-infinity".to_owned(),
        _ => {}
    }
    let day = 86_400_000_000_000 / nanos;
    let (days, rest) = (value.div_euclid(day), value.rem_euclid(day));
    format!("{}T{}{}", civil(days), time(rest * nanos), if zoned { "Z" } else { "" })
}

/// As ISO 8601: `P1Y2M3DT4H5M6.5S`.
fn interval(months: i32, days: i32, nanos: i64) -> String {
    let mut out = "P".to_owned();
    for (value, unit) in [(months / 12, 'Y'), (months % 12, 'M'), (days, 'D')] {
        if value != 0 {
            let _ = write!(out, "{value}{unit}");
        }
    }
    let seconds = nanos / 1_000_000_000;
    let fraction = (nanos % 1_000_000_000).unsigned_abs();
    if nanos != 0 {
        out.push('T');
        for (value, unit) in [(seconds / 3_600, 'H'), (seconds / 60 % 60, 'M')] {
            if value != 0 {
                let _ = write!(out, "{value}{unit}");
            }
        }
        if seconds % 60 != 0 || fraction != 0 {
            let sign = if nanos < 0 { "-" } else { "" };
            let _ = write!(out, "{sign}{}", (seconds % 60).unsigned_abs());
            if fraction != 0 {
                let _ = write!(out, ".{}", format!("{fraction:09}").trim_end_matches('0'));
            }
            out.push('S');
        }
    }
    if out.len() == 1 { "PT0S".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_iso() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (15_706, "2013-01-01"),
            (11_016, "2000-02-29"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (2_932_897, "+10000-01-01"),
            (i32::MAX, "infinity"),
        ] {
            assert_eq!(date(days), text);
        }
        assert_eq!(timestamp(1_357_016_400_000_000, 1_000, false), "2013-01-01T05:00:00");
        assert_eq!(timestamp(1_357_016_400_500_000, 1_000, true), "2013-01-01T05:00:00.5Z");
        assert_eq!(timestamp(-1, 1_000, false), "1969-12-31T23:59:59.999999");
        assert_eq!(time(86_400_000_000_000), "24:00:00");
    }

    #[test]
    fn intervals_are_iso_durations() {
        for (parts, text) in [
            ((14, 3, 14_706_500_000_000), "P1Y2M3DT4H5M6.5S"),
            ((0, 0, 0), "PT0S"),
            ((0, -1, -500_000_000), "P-1DT-0.5S"),
            ((0, 0, 3_600_000_000_000), "PT1H"),
        ] {
            assert_eq!(interval(parts.0, parts.1, parts.2), text);
        }
    }

    #[test]
    fn bytes_are_base64() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn bit_strings_are_their_digits() {
        for (bytes, text) in [(&[5, 0b1111_1101][..], "101"), (&[0, 0, 255], "0000000011111111"), (&[], "")] {
            assert_eq!(bits(bytes), text);
        }
    }

    #[test]
    fn sink_respects_its_limit() {
        let mut sink = BoundedBuffer::new(6);
        sink.string("a\"\u{1}");
        assert!(sink.is_full());
        sink.truncate(0);
        sink.string("a\"b");
        assert_eq!((sink.bytes(), sink.is_full()), (b"\"a\\\"b\"".as_slice(), false));
    }
}
