//! Indexes the records and fields of a chunk.
//!
//! Invariant: a [`RecordIndex`] agrees with the exact machine, regardless of the method of indexing; its good records
//! are valid UTF-8.

use super::chunk::Chunk;
use super::machine::{CellSink, Gap, Machine, RecordState, Step};
use super::record_index::{BLOCK_FIELDS_MAX, FieldRange, Malformed, RecordIndex};
use super::rules::RowRules;
use super::scan::Scanner;
use super::structure::Structure;
use crate::domain::pipeline::{Dialect, RaggedRows};
use crate::domain::reject::RejectReason;

/// Text per block: stays in a core's cache with its index while columns are parsed.
pub const BLOCK_BYTES_DEFAULT: usize = 128 << 10;

/// Indexes chunks of one source, or of sources with the same dialect and width.
#[derive(Debug)]
pub struct Indexer {
    machine: Machine,
    rules: RowRules,
    scanner: Option<Scanner>,
    separators: Structure,
}

impl Indexer {
    /// `width`: cells of a record, see [`super::reader::SourceReader::width`].
    pub fn new(dialect: &Dialect, width: usize, ragged: RaggedRows) -> Self {
        let machine = Machine::new(dialect);
        let rules = RowRules::new(dialect, &machine, width, ragged);
        Self { scanner: Scanner::new(&machine), machine, rules, separators: Structure::default() }
    }

    /// Indexes the records that start in the next `block_bytes` of `chunk` at `pos`, or slightly fewer but at least
    /// one; advances `pos`. Returns false with an empty `out` at the end of the chunk. A block may have no records
    /// (blank lines).
    pub fn next_block(&mut self, chunk: &Chunk, pos: &mut usize, block_bytes: usize, out: &mut RecordIndex) -> bool {
        out.clear(self.rules.width);
        let text: &[u8] = &chunk.text;
        let from = *pos;
        if from >= text.len() {
            return false;
        }
        let target = from.saturating_add(block_bytes.max(1)).min(text.len());
        // Whether the scan covered everything and found only ASCII.
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

    /// Replaces the scanner, or removes it.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn with_scanner(self, scanner: Option<Scanner>) -> Self {
        Self { scanner, ..self }
    }

    /// Indexes record by record until `pos` is past `until`.
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
            let mut cells = FieldCollector(&mut out.fields);
            match self.machine.advance(text, start, RecordState::CellStart, true, &mut cells) {
                Step::Ended(record) => {
                    self.rules.push_exact(chunk, start, &record, out);
                    *pos = record.next;
                }
                Step::More { at, .. } => *pos = at,
            }
        }
    }
}

struct FieldCollector<'a>(&'a mut Vec<FieldRange>);

impl CellSink for FieldCollector<'_> {
    #[inline]
    fn cell(&mut self, start: usize, end: usize, quoted: bool, escaped: bool) {
        self.0.push(FieldRange::new(start, end, quoted, escaped));
    }
}

/// A section of a chunk whose records were just indexed.
struct Validity<'a> {
    chunk: &'a Chunk,
    from: usize,
    to: usize,
}

impl Validity<'_> {
    /// Moves records with invalid sequences to the malformed ones.
    fn reject_invalid(&self, out: &mut RecordIndex) {
        let chunk = self.chunk;
        if chunk.is_transcoded() {
            let first = chunk.invalid.partition_point(|place| place.pos < self.from);
            if chunk.invalid.get(first).is_some_and(|place| place.pos < self.to) {
                self.reject(out, |start, end| {
                    let first = chunk.invalid.partition_point(|place| place.pos < start);
                    chunk.invalid.get(first).filter(|place| place.pos < end).map(|place| place.offset)
                });
            }
        } else if simdutf8::basic::from_utf8(&chunk.text[self.from..self.to]).is_err() {
            self.reject(out, |start, end| {
                let error = simdutf8::compat::from_utf8(&chunk.text[start..end]).err()?;
                Some(chunk.offset_at(start + error.valid_up_to()))
            });
        }
    }

    /// `invalid` returns the source offset of a record's first invalid sequence, if any.
    #[cold]
    fn reject(&self, out: &mut RecordIndex, invalid: impl Fn(usize, usize) -> Option<u64>) {
        let width = out.width;
        let mut kept = 0;
        for row in 0..out.records.len() {
            let (start, end) = out.records[row];
            if let Some(offset) = invalid(start as usize, end as usize) {
                let message =
                    format!("found bytes that are not `{}` at byte offset {offset}", self.chunk.encoding.name());
                out.malformed.push(Malformed { start, end, reason: RejectReason::InvalidEncoding, message });
            } else {
                out.fields.copy_within(row * width..(row + 1) * width, kept * width);
                out.records[kept] = (start, end);
                kept += 1;
            }
        }
        out.records.truncate(kept);
        out.fields.truncate(kept * width);
        out.malformed.sort_by_key(|malformed| malformed.start);
    }
}
