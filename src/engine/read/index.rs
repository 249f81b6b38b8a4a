//! Where the records and fields of a block of text lie.

use crate::domain::reject::RejectReason;

/// One cell's place in its chunk: the content without its quotes. 8 bytes, since a block holds a lot of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    start: u32,
    end_and_flags: u32,
}

const QUOTED: u32 = 1 << 30;
const ESCAPED: u32 = 1 << 31;
const END_MASK: u32 = QUOTED - 1;

impl Field {
    /// A cell that a short record doesn't have (`ragged_rows: pad`); it is null.
    pub const ABSENT: Self = Self { start: u32::MAX, end_and_flags: 0 };

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

    #[inline]
    pub fn is_quoted(self) -> bool {
        self.end_and_flags & QUOTED != 0
    }

    /// Whether the content must pass through [`crate::engine::read::index::unescape`] before it is text.
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
#[derive(Debug, Default)]
pub struct RecordIndex {
    /// `width` fields a record, record after record.
    pub fields: Vec<Field>,
    /// Start and end (without terminator) of each good record in the chunk.
    pub records: Vec<(u32, u32)>,
    pub width: usize,
    /// In order of their start.
    pub malformed: Vec<Malformed>,
}

impl RecordIndex {
    pub fn rows(&self) -> usize {
        self.records.len()
    }

    #[inline]
    pub fn field(&self, row: usize, column: usize) -> Field {
        self.fields[row * self.width + column]
    }
}
