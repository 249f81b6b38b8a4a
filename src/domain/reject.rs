//! Why a row was not written.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reasons of the `reason` column of `_rejected_rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    WrongType,
    OutOfRange,
    NullNotAllowed,
    RaggedRow,
    StrayQuote,
    UnclosedQuote,
    InvalidEncoding,
    RecordTooLong,
    BlankLine,
    CheckFailed,
    ExpressionError,
    PartitionValue,
}

impl RejectReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WrongType => "wrong_type",
            Self::OutOfRange => "out_of_range",
            Self::NullNotAllowed => "null_not_allowed",
            Self::RaggedRow => "ragged_row",
            Self::StrayQuote => "stray_quote",
            Self::UnclosedQuote => "unclosed_quote",
            Self::InvalidEncoding => "invalid_encoding",
            Self::RecordTooLong => "record_too_long",
            Self::BlankLine => "blank_line",
            Self::CheckFailed => "check_failed",
            Self::ExpressionError => "expression_error",
            Self::PartitionValue => "partition_value",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A row that was read and not written, with its place and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// Physical line on which the record starts, counted from 1.
    pub line: u64,
    /// Offset of the record's first byte in the decompressed source.
    pub byte_offset: u64,
    /// The column that was refused; none where the record as a whole was.
    pub column: Option<String>,
    /// The cell as it stands in the source, cut at [`super::limits::REJECT_VALUE_BYTES_MAX`].
    pub value: Option<String>,
    pub reason: RejectReason,
    pub message: String,
    /// The record as it stands in the source, cut at [`super::limits::REJECT_RAW_BYTES_MAX`].
    pub raw: String,
}
