//! Rejected rows and their reasons.

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

/// A rejected row with its position and reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// Physical line on which the record starts, counted from 1.
    pub line: u64,
    /// Offset of the record's first byte in the decompressed source.
    pub byte_offset: u64,
    /// Bytes of the decompressed source up to the next record: the record and its terminator, in the encoding of the
    /// source.
    pub byte_length: u64,
    /// The rejected column; none for a whole record.
    pub column: Option<String>,
    /// The cell in the source, as an [`Excerpt`] of at most
    /// [`super::limits::REJECT_VALUE_BYTES_MAX`] bytes.
    pub value: Option<String>,
    pub reason: RejectReason,
    pub message: String,
    /// Set if an expression failed.
    pub fault: Option<ExpressionFault>,
    /// The record in the source, in at most [`super::limits::REJECT_RAW_BYTES_MAX`] bytes.
    pub raw: Excerpt,
}

/// A row on which an expression failed. The engine explains only the first of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionFault {
    /// Its index among the failures of the chunk.
    pub nth: u64,
    /// The message if the failure isn't explained.
    pub general: String,
}

/// Marks a truncated text.
const CUT: char = '…';

/// Source text for display: bytes that are not UTF-8 are shown as U+FFFD, and a text over the limit is truncated and
/// ends in `…`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excerpt {
    pub text: String,
    /// The displayed bytes, if some of them are not UTF-8.
    pub bytes: Option<Vec<u8>>,
}

impl Excerpt {
    /// Displays a text of `length` bytes in at most `bytes_max`. `head`: its first `bytes_max` bytes, or all.
    pub fn new(head: &[u8], length: u64, bytes_max: usize) -> Self {
        let is_cut = length > bytes_max as u64;
        let shown = if is_cut { &head[..character_start(head, bytes_max - CUT.len_utf8())] } else { head };
        let mut text = String::from_utf8_lossy(shown).into_owned();
        let bytes = (text.as_bytes() != shown).then(|| shown.to_vec());
        // U+FFFD in place of invalid bytes can make it longer.
        if is_cut || text.len() > bytes_max {
            text.truncate(text.floor_char_boundary(bytes_max - CUT.len_utf8()));
            text.push(CUT);
        }
        Self { text, bytes }
    }

    /// Like [`Self::new`], for a complete text.
    pub fn of(text: &[u8], bytes_max: usize) -> Self {
        Self::new(&text[..text.len().min(bytes_max)], text.len() as u64, bytes_max)
    }
}

/// The last position at or before `at` where a character may start.
fn character_start(bytes: &[u8], at: usize) -> usize {
    const CONTINUATIONS_MAX: usize = 3;
    let at = at.min(bytes.len());
    let starts = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    (at.saturating_sub(CONTINUATIONS_MAX)..=at).rev().find(starts).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_text_ends_in_an_ellipsis_at_a_character_boundary() {
        let shown = |text: &[u8]| Excerpt::of(text, 10).text;
        assert_eq!(shown(b"0123456789"), "0123456789");
        assert_eq!(shown(b"0123456789a"), "0123456…");
        assert_eq!(shown("0123456é89".as_bytes()), "0123456…");
        assert_eq!(shown("012345é789".as_bytes()), "012345…");
        assert_eq!(shown("01234\u{1f600}89".as_bytes()), "01234…");
        assert_eq!(shown(b""), "");
    }

    #[test]
    fn invalid_utf_8_bytes_are_kept() {
        assert_eq!(Excerpt::of("é".as_bytes(), 10).bytes, None);
        let excerpt = Excerpt::of(b"M\xfcller", 10);
        assert_eq!((excerpt.text.as_str(), excerpt.bytes.as_deref()), ("M\u{fffd}ller", Some(&b"M\xfcller"[..])));
        let long = Excerpt::of(&[0xff; 30], 10);
        assert_eq!((long.text.as_str(), long.bytes.as_deref()), ("\u{fffd}\u{fffd}…", Some(&[0xff; 7][..])));
    }
}
