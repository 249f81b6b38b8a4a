//! Formats of dates and times that have a name: ISO 8601, and numbers.

use super::types::Temporal;

/// A number that means a date or a time; its name can be used in a column's `formats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SerialFormat {
    /// Time since 1970 in UTC.
    Epoch(EpochUnit),
    /// Days since 1899-12-31 of local time in Excel's 1900 system, with its 29 February 1900 that never was; the fraction
    /// is the time of day.
    Excel,
}

/// What an epoch time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochUnit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

/// ISO 8601 among the `formats` of a column; as the only one, it is the default.
pub const ISO_FORMAT: &str = "iso";

impl SerialFormat {
    pub const ALL: [(&'static str, Self); 5] = [
        ("epoch_s", Self::Epoch(EpochUnit::Seconds)),
        ("epoch_ms", Self::Epoch(EpochUnit::Milliseconds)),
        ("epoch_us", Self::Epoch(EpochUnit::Microseconds)),
        ("epoch_ns", Self::Epoch(EpochUnit::Nanoseconds)),
        ("excel", Self::Excel),
    ];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, format)| *format)
    }

    /// Whether it distinguishes values of a type.
    pub fn suits(self, temporal: Temporal) -> bool {
        match self {
            Self::Epoch(_) => matches!(temporal, Temporal::Timestamp | Temporal::TimestampTz),
            Self::Excel => true,
        }
    }
}

impl EpochUnit {
    /// Decimal places of a second.
    pub fn places(self) -> u32 {
        match self {
            Self::Seconds => 0,
            Self::Milliseconds => 3,
            Self::Microseconds => 6,
            Self::Nanoseconds => 9,
        }
    }
}
