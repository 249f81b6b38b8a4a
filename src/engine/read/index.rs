//! Where the records and fields of a block of text lie.
//!
//! Invariant: a [`RecordIndex`] says what the exact machine says, whichever way it was made; its good records are valid
//! UTF-8.

use super::chunk::Chunk;
use super::machine::{Cells, Gap, Machine, State, Step};
use super::rules::Rules;
use super::scan::Scanner;
use super::structure::Structure;
use super::validity::Validity;
use crate::domain::pipeline::{Dialect, RaggedRows};
use crate::domain::reject::RejectReason;

pub use super::unescape::unescape;

/// Text per block: with its index it stays in a core's cache while its columns are parsed.
pub const BLOCK_BYTES_DEFAULT: usize = 128 << 10;

/// A block ends early once it has this many fields, so that padding short records can't take memory without bound.
pub(super) const BLOCK_FIELDS_MAX: usize = 1 << 20;

/// One cell's place in its chunk: the content without its quotes. 8 bytes, since a block holds a lot of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub(super) start: u32,
    pub(super) end_and_flags: u32,
}

pub(super) const QUOTED: u32 = 1 << 30;
const ESCAPED: u32 = 1 << 31;
const END_MASK: u32 = QUOTED - 1;

impl Field {
    /// A cell that a short record doesn't have (`ragged_rows: pad`); it is null.
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

    /// The range of a cell that is there, without quotes; what most cells are.
    #[inline(always)]
    pub fn plain(self) -> Option<std::ops::Range<usize>> {
        // With a flag, the difference has at least the lower flag's bit, since the end is never before the start.
        let len = self.end_and_flags.wrapping_sub(self.start);
        (len < QUOTED).then_some(self.start as usize..self.end_and_flags as usize)
    }

    /// As [`Self::plain`], of a cell in quotes that is what stands between them.
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
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecordIndex {
    /// `width` fields a record, record after record.
    pub fields: Vec<Field>,
    /// Start and end (without terminator) of each good record in the chunk.
    pub records: Vec<(u32, u32)>,
    pub width: usize,
    /// In order of their start.
    pub malformed: Vec<Malformed>,
    /// Bytes of all records with their terminators, good or malformed, and of what stands between them.
    pub counted_bytes: u64,
    /// Blank lines that are no records.
    pub blank_lines: u64,
}

impl RecordIndex {
    pub fn rows(&self) -> usize {
        self.records.len()
    }

    #[inline]
    pub fn field(&self, row: usize, column: usize) -> Field {
        self.fields[row * self.width + column]
    }

    fn clear(&mut self, width: usize) {
        self.fields.clear();
        self.records.clear();
        self.malformed.clear();
        self.counted_bytes = 0;
        self.blank_lines = 0;
        self.width = width;
    }
}

/// Indexes chunks of one source, or of sources with the same dialect and width.
#[derive(Debug)]
pub struct Indexer {
    machine: Machine,
    rules: Rules,
    scanner: Option<Scanner>,
    separators: Structure,
}

impl Indexer {
    /// `width`: cells of a record, see [`super::reader::SourceReader::width`].
    pub fn new(dialect: &Dialect, width: usize, ragged: RaggedRows) -> Self {
        let machine = Machine::new(dialect);
        let rules = Rules::new(dialect, &machine, width, ragged);
        Self { scanner: Scanner::new(&machine), machine, rules, separators: Structure::default() }
    }

    /// Indexes the records that start in the `block_bytes` of `chunk` from `pos`, or a few less, but at least one; moves
    /// `pos` behind them. Returns false, with `out` empty, at the end of the chunk. A block may have no record at all
    /// (blank lines).
    pub fn next_block(&mut self, chunk: &Chunk, pos: &mut usize, block_bytes: usize, out: &mut RecordIndex) -> bool {
        out.clear(self.rules.width);
        let text: &[u8] = &chunk.text;
        let from = *pos;
        if from >= text.len() {
            return false;
        }
        let target = from.saturating_add(block_bytes.max(1)).min(text.len());
        // Whether the scan has seen all of it, and nothing but ASCII.
        let mut ascii = true;
        while *pos < target && out.fields.len() < BLOCK_FIELDS_MAX {
            let Some(scanner) = self.scanner else {
                ascii = false;
                self.exactly(chunk, pos, target - 1, out);
                break;
            };
            self.separators.clear(target);
            let unsure = scanner.scan(text, *pos, &mut self.separators);
            *pos = self.rules.push_scanned(text, *pos, &self.separators, out);
            ascii &= !self.separators.wide;
            match unsure {
                Some(block) => {
                    ascii = false;
                    self.exactly(chunk, pos, block, out);
                }
                None if self.separators.stopped => break,
                None => self.exactly(chunk, pos, text.len(), out),
            }
        }
        if !ascii || chunk.is_transcoded() {
            Validity { chunk, from, to: *pos }.reject_invalid(out);
        }
        true
    }

    /// Scans with this, or not at all.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn with_scanner(self, scanner: Option<Scanner>) -> Self {
        Self { scanner, ..self }
    }

    /// Goes record by record until `pos` is past `until`.
    fn exactly(&self, chunk: &Chunk, pos: &mut usize, until: usize, out: &mut RecordIndex) {
        let text: &[u8] = &chunk.text;
        while *pos <= until && *pos < text.len() && out.fields.len() < BLOCK_FIELDS_MAX {
            let gap = self.machine.skip_gaps(text, *pos, true);
            let gap_end = match gap {
                Gap::Record(at) | Gap::More(at) => at,
                Gap::Comment(_) => text.len(),
            };
            if gap_end > *pos {
                out.counted_bytes += (gap_end - *pos) as u64;
                out.blank_lines += self.machine.blank_lines_in(&text[*pos..gap_end]);
            }
            let Gap::Record(start) = gap else {
                *pos = text.len();
                return;
            };
            let mut cells = Fields(&mut out.fields);
            match self.machine.advance(text, start, State::CellStart, true, &mut cells) {
                Step::Ended(record) => {
                    self.rules.push_exact(chunk, start, &record, out);
                    *pos = record.next;
                }
                Step::More { at, .. } => *pos = at,
            }
        }
    }
}

struct Fields<'a>(&'a mut Vec<Field>);

impl Cells for Fields<'_> {
    #[inline]
    fn cell(&mut self, start: usize, end: usize, quoted: bool, escaped: bool) {
        self.0.push(Field::new(start, end, quoted, escaped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_cells_are_there_without_quotes_and_quoted_ones_without_escapes() {
        assert_eq!(Field::new(3, 7, false, false).plain(), Some(3..7));
        assert_eq!(Field::new(3, 3, false, false).plain(), Some(3..3));
        assert_eq!(Field::new(0, END_MASK as usize, false, false).plain(), Some(0..END_MASK as usize));
        for (start, end) in [(0, 0), (3, 7), (END_MASK as usize, END_MASK as usize)] {
            for (quoted, escaped) in [(true, false), (false, true), (true, true)] {
                assert_eq!(Field::new(start, end, quoted, escaped).plain(), None, "{start}..{end}");
            }
        }
        assert_eq!(Field::ABSENT.plain(), None);
        assert_eq!(Field::ABSENT.quoted(), None);
        for end in [3, 7, END_MASK as usize] {
            assert_eq!(Field::new(3, end, true, false).quoted(), Some(3..end));
            for (quoted, escaped) in [(false, false), (false, true), (true, true)] {
                assert_eq!(Field::new(3, end, quoted, escaped).quoted(), None, "3..{end}");
            }
        }
        assert!(!Field::ABSENT.is_quoted());
    }
}
