//! Faults of cells: a few bytes while parsing, rendered as messages on demand.

use crate::domain::pipeline::Column;
use crate::domain::pipeline::types::DataType;
use crate::domain::reject::RejectReason;

/// Bytes of a value quoted in a message; the reject's own column has the whole value.
const QUOTED_BYTES_MAX: usize = 120;

/// A cell that could not be parsed. `row` counts from the start of the array being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellFault {
    pub row: usize,
    pub reason: RejectReason,
    pub kind: FaultKind,
}

/// Why a cell could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A null in a column that is not nullable.
    Null,
    /// The text does not have the form of the type.
    Syntax,
    /// A number outside what the type or its precision holds.
    OutOfRange,
    /// A decimal mark in an integer.
    Fraction,
    /// An exponent in an integer or decimal.
    Exponent,
    /// Thousands separators that do not separate groups of three digits.
    Grouping,
    /// More fractional digits than the scale, not counting trailing zeros; their number.
    Scale(u32),
    /// A fraction of a second finer than a microsecond.
    Precision,
    /// Second 60.
    LeapSecond,
    /// The form is valid, but there is no such date or time.
    NoSuchTime,
    /// A date without a time of day, for a timestamp.
    TimeMissing,
    /// A time of day other than midnight, for a date.
    TimeGiven,
    /// A date, for a time of day.
    DateGiven,
    /// An offset from UTC, for a type without one.
    OffsetGiven,
    /// The local time is ambiguous in the zone.
    AmbiguousLocal,
    /// The local time is skipped in the zone.
    SkippedLocal,
    /// An unknown zone, or not the abbreviation of the column's zone at that time.
    ZoneName,
    /// Two formats read different values.
    AmbiguousFormat,
    /// A percentage without its sign.
    PercentMissing,
    /// None of several formats matches.
    NoFormat,
    /// JSON that nests deeper than `limits::JSON_DEPTH_MAX`.
    JsonDepth,
}

impl FaultKind {
    pub fn reason(self) -> RejectReason {
        match self {
            Self::Null => RejectReason::NullNotAllowed,
            Self::OutOfRange => RejectReason::OutOfRange,
            Self::Syntax
            | Self::Fraction
            | Self::Exponent
            | Self::Grouping
            | Self::Scale(_)
            | Self::Precision
            | Self::LeapSecond
            | Self::NoSuchTime
            | Self::TimeMissing
            | Self::TimeGiven
            | Self::DateGiven
            | Self::OffsetGiven
            | Self::AmbiguousLocal
            | Self::SkippedLocal
            | Self::ZoneName
            | Self::AmbiguousFormat
            | Self::PercentMissing
            | Self::NoFormat
            | Self::JsonDepth => RejectReason::WrongType,
        }
    }
}

impl CellFault {
    pub(super) fn new(row: usize, kind: FaultKind) -> Self {
        Self { row, reason: kind.reason(), kind }
    }

    /// Describes what `column` expects and what `value` is (the cell's text, see [`super::cell_text`]).
    pub fn message(&self, column: &Column, value: &[u8]) -> String {
        let (name, ty) = (column.name.as_str(), column.ty);
        if self.kind == FaultKind::Null {
            return format!("column `{name}`: expected a value, found a null (`nullable` is false)");
        }
        let why = explanation(self.kind, column, value);
        let why = if why.is_empty() { why } else { format!(": {why}") };
        if value.is_empty() {
            return format!("column `{name}`: expected {ty}, found an empty cell that is not a null token{why}");
        }
        format!("column `{name}`: expected {ty}, found `{}`{why}", quoted(value))
    }
}

/// The second half of a message; empty if the first half is sufficient.
fn explanation(kind: FaultKind, column: &Column, value: &[u8]) -> String {
    match kind {
        FaultKind::Null => String::new(),
        FaultKind::Syntax => syntax(column, value),
        FaultKind::OutOfRange => range(column.ty),
        FaultKind::Fraction => "an integer has no decimal places".into(),
        FaultKind::Exponent => "it has an exponent, which this type does not accept".into(),
        FaultKind::Grouping => "its thousands separators are not between groups of three digits".into(),
        FaultKind::Scale(found) => match column.ty {
            DataType::Decimal { scale, .. } => {
                format!("it has {found} decimal places, the type holds {scale}, and nothing is rounded")
            }
            _ => String::new(),
        },
        FaultKind::Precision => "it is finer than a microsecond, and nothing is rounded".into(),
        FaultKind::LeapSecond => "leap seconds are not supported".into(),
        FaultKind::NoSuchTime => "there is no such date or time".into(),
        FaultKind::TimeMissing => "it has no time of day; `iso` and `%Y-%m-%d` in `formats` read it as midnight".into(),
        FaultKind::TimeGiven => "it has a time of day, which the type `timestamp` keeps".into(),
        FaultKind::DateGiven => "it has a date, which the type `timestamp` keeps".into(),
        FaultKind::OffsetGiven => "it has an offset from UTC, which the type `timestamptz` applies".into(),
        FaultKind::AmbiguousLocal => format!("it occurred twice in `{}`, when clocks were set back", zone(column)),
        FaultKind::SkippedLocal => format!("it did not occur in `{}`, since clocks were set forward", zone(column)),
        FaultKind::ZoneName => {
            format!("its zone is unknown, or not in use in `{}` at that time", zone(column))
        }
        FaultKind::AmbiguousFormat => {
            format!("two of the formats {} read it as different values; keep only the intended one", formats(column))
        }
        FaultKind::PercentMissing => "it has no `%`, which `number_format` expects".into(),
        FaultKind::NoFormat => format!("it matches none of the formats {}", formats(column)),
        FaultKind::JsonDepth => {
            format!("it nests deeper than {} levels", crate::domain::limits::JSON_DEPTH_MAX)
        }
    }
}

fn syntax(column: &Column, value: &[u8]) -> String {
    if !value.is_empty() && value.trim_ascii() != value {
        return "it has surrounding white space; `trim` removes that from unquoted cells".into();
    }
    if !column.formats.is_empty() {
        return format!("it does not match the format {}", formats(column));
    }
    if column.number_format.is_some() {
        return "it does not match `number_format`".into();
    }
    match column.ty {
        DataType::Date => "without `formats` a date is `YYYY-MM-DD`".into(),
        DataType::Time => "without `formats` a time is `HH:MM:SS`".into(),
        DataType::Timestamp => "without `formats` a timestamp is `YYYY-MM-DD HH:MM:SS`".into(),
        DataType::TimestampTz => "without `formats` a timestamp is `YYYY-MM-DDTHH:MM:SS+hh:mm`".into(),
        DataType::Boolean => "it is in neither `true_values` nor `false_values`".into(),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal { .. }
        | DataType::String
        | DataType::Uuid
        | DataType::Json => String::new(),
    }
}

fn range(ty: DataType) -> String {
    let bounds = match ty {
        DataType::Int8 => (i8::MIN.to_string(), i8::MAX.to_string()),
        DataType::Int16 => (i16::MIN.to_string(), i16::MAX.to_string()),
        DataType::Int32 => (i32::MIN.to_string(), i32::MAX.to_string()),
        DataType::Int64 => (i64::MIN.to_string(), i64::MAX.to_string()),
        DataType::UInt8 => ("0".into(), u8::MAX.to_string()),
        DataType::UInt16 => ("0".into(), u16::MAX.to_string()),
        DataType::UInt32 => ("0".into(), u32::MAX.to_string()),
        DataType::UInt64 => ("0".into(), u64::MAX.to_string()),
        DataType::Float32 => (format!("{:e}", f32::MIN), format!("{:e}", f32::MAX)),
        DataType::Float64 => (format!("{:e}", f64::MIN), format!("{:e}", f64::MAX)),
        DataType::Decimal { precision, scale } => {
            return format!("the type holds {} digits before the decimal mark", precision - scale);
        }
        DataType::Boolean
        | DataType::String
        | DataType::Date
        | DataType::Time
        | DataType::Timestamp
        | DataType::TimestampTz
        | DataType::Uuid
        | DataType::Json => return "it is out of the type's range".into(),
    };
    format!("the type holds {} to {}", bounds.0, bounds.1)
}

fn zone(column: &Column) -> &'static str {
    column.timezone.map_or("UTC", |zone| zone.name())
}

fn formats(column: &Column) -> String {
    let quoted: Vec<String> = column.formats.iter().map(|f| format!("`{f}`")).collect();
    quoted.join(", ")
}

/// At most [`QUOTED_BYTES_MAX`] bytes of `value`, control characters escaped.
fn quoted(value: &[u8]) -> String {
    let cut = value.len() > QUOTED_BYTES_MAX;
    let text = String::from_utf8_lossy(&value[..value.len().min(QUOTED_BYTES_MAX)]);
    let mut out = String::with_capacity(text.len() + 3);
    // Drops a character truncated to U+FFFD.
    for c in if cut { text.trim_end_matches('\u{fffd}') } else { &text }.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    if cut {
        out.push('…');
    }
    out
}
