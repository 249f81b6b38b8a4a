//! The records and fields of a block, by their positions in the text.

use crate::domain::pipeline::Dialect;
use crate::domain::reject::RejectReason;

/// A block ends early at this number of fields, so that padding short records can't take unbounded memory.
pub(super) const BLOCK_FIELDS_MAX: usize = 1 << 20;

/// The range of a cell in its chunk, without quotes. 8 bytes, since a block has many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldRange {
    pub(super) start: u32,
    pub(super) end_and_flags: u32,
}

pub(super) const QUOTED: u32 = 1 << 30;
const ESCAPED: u32 = 1 << 31;
const END_MASK: u32 = QUOTED - 1;

impl FieldRange {
    /// A cell missing in a short record (`ragged_rows: pad`); it is null.
    pub const ABSENT: Self = Self { start: u32::MAX, end_and_flags: ESCAPED };

    pub fn new(start: usize, end: usize, quoted: bool, escaped: bool) -> Self {
        debug_assert!(end <= END_MASK as usize);
        let flags = if quoted { QUOTED } else { 0 } | if escaped { ESCAPED } else { 0 };
        Self { start: start as u32, end_and_flags: end as u32 | flags }
    }

    #[inline]
    pub fn is_absent(self) -> bool {
        self.start == u32::MAX
    }

    #[inline]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.end_and_flags & END_MASK) as usize
    }

    /// The range of an unquoted cell, the most common kind.
    #[inline(always)]
    pub fn plain(self) -> Option<std::ops::Range<usize>> {
        // With a flag the difference has at least the lower flag's bit, since the end is never before the start.
        let len = self.end_and_flags.wrapping_sub(self.start);
        (len < QUOTED).then_some(self.start as usize..self.end_and_flags as usize)
    }

    /// Like [`Self::plain`], for a quoted cell without escapes.
    #[inline(always)]
    pub fn quoted(self) -> Option<std::ops::Range<usize>> {
        let end = self.end_and_flags ^ QUOTED;
        let len = end.wrapping_sub(self.start);
        (len < QUOTED).then_some(self.start as usize..end as usize)
    }

    #[inline]
    pub fn is_quoted(self) -> bool {
        self.end_and_flags & QUOTED != 0
    }

    /// Whether [`unescape`] must convert the content to text.
    #[inline]
    pub fn is_escaped(self) -> bool {
        self.end_and_flags & ESCAPED != 0
    }
}

/// A record that can't be a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The record's bytes in the chunk, without its terminator.
    pub start: u32,
    pub end: u32,
    pub reason: RejectReason,
    pub message: String,
}

/// The records of one block. Reused from block to block.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecordIndex {
    /// `width` fields per record, record after record.
    pub fields: Vec<FieldRange>,
    /// Start and end (without terminator) of each good record in the chunk.
    pub records: Vec<(u32, u32)>,
    pub width: usize,
    /// In order of their start positions.
    pub malformed: Vec<Malformed>,
    /// Bytes of all records with their terminators, good or malformed, and of the gaps between them.
    pub counted_bytes: u64,
    /// Blank lines that are not records.
    pub blank_lines: u64,
}

impl RecordIndex {
    pub fn rows(&self) -> usize {
        self.records.len()
    }

    #[inline]
    pub fn field(&self, row: usize, column: usize) -> FieldRange {
        self.fields[row * self.width + column]
    }

    pub(super) fn clear(&mut self, width: usize) {
        self.fields.clear();
        self.records.clear();
        self.malformed.clear();
        self.counted_bytes = 0;
        self.blank_lines = 0;
        self.width = width;
    }
}

/// Appends the text of `content`, the range of an escaped [`FieldRange`], to `out`.
///
/// Doubled quotes become one; an escape byte is dropped. Text after a closing quote (`quotes: lenient`, `"abc"def`) is
/// kept, the closing quote dropped.
pub fn unescape(content: &[u8], dialect: &Dialect, out: &mut Vec<u8>) {
    let Some(quote) = dialect.quote else {
        out.extend_from_slice(content);
        return;
    };
    let escape = dialect.escape.filter(|escape| *escape != quote);
    let mut rest = content;
    loop {
        let found = match escape {
            None => memchr::memchr(quote, rest),
            Some(escape) => memchr::memchr2(quote, escape, rest),
        };
        let Some(at) = found else {
            out.extend_from_slice(rest);
            return;
        };
        out.extend_from_slice(&rest[..at]);
        let next = rest.get(at + 1).copied();
        match (rest[at] == quote, escape, next) {
            (true, None, Some(next)) if next == quote => out.push(quote),
            (true, _, _) => {
                out.extend_from_slice(&rest[at + 1..]);
                return;
            }
            (false, _, Some(next)) => out.push(next),
            (false, _, None) => return,
        }
        rest = &rest[at + 2..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_quoted_ranges_exclude_other_cells() {
        assert_eq!(FieldRange::new(3, 7, false, false).plain(), Some(3..7));
        assert_eq!(FieldRange::new(3, 3, false, false).plain(), Some(3..3));
        assert_eq!(FieldRange::new(0, END_MASK as usize, false, false).plain(), Some(0..END_MASK as usize));
        for (start, end) in [(0, 0), (3, 7), (END_MASK as usize, END_MASK as usize)] {
            for (quoted, escaped) in [(true, false), (false, true), (true, true)] {
                assert_eq!(FieldRange::new(start, end, quoted, escaped).plain(), None, "{start}..{end}");
            }
        }
        assert_eq!(FieldRange::ABSENT.plain(), None);
        assert_eq!(FieldRange::ABSENT.quoted(), None);
        for end in [3, 7, END_MASK as usize] {
            assert_eq!(FieldRange::new(3, end, true, false).quoted(), Some(3..end));
            for (quoted, escaped) in [(false, false), (false, true), (true, true)] {
                assert_eq!(FieldRange::new(3, end, quoted, escaped).quoted(), None, "3..{end}");
            }
        }
        assert!(!FieldRange::ABSENT.is_quoted());
    }
}
