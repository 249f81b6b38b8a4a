//! Where the records and fields of a block of text lie.
//!
//! Invariant: a [`RecordIndex`] says what the exact machine says, whichever way it was made; its good records are valid
//! UTF-8.

use super::chunk::Chunk;
use super::machine::{Cells, Gap, Machine, Record, State, Step};
use super::scan::{Block, Scanner, Sink};
use crate::domain::pipeline::{Dialect, Quotes, RaggedRows};
use crate::domain::reject::RejectReason;

pub use super::unescape::unescape;

/// Text per block: with its index it stays in a core's cache while its columns are parsed.
pub const BLOCK_BYTES_DEFAULT: usize = 128 << 10;

/// A block ends early once it has this many fields, so that padding short records can't take memory without bound.
const BLOCK_FIELDS_MAX: usize = 1 << 20;

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
#[derive(Debug, Default, PartialEq, Eq)]
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

    fn clear(&mut self, width: usize) {
        self.fields.clear();
        self.records.clear();
        self.malformed.clear();
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

/// What makes a record a row.
#[derive(Debug, Clone, Copy)]
struct Rules {
    width: usize,
    ragged: RaggedRows,
    strict: bool,
    crlf: bool,
    quote: Option<u8>,
    record_bytes_max: u64,
}

impl Indexer {
    /// `width`: cells of a record, see [`super::reader::SourceReader::width`].
    pub fn new(dialect: &Dialect, width: usize, ragged: RaggedRows) -> Self {
        let machine = Machine::new(dialect);
        let rules = Rules {
            width,
            ragged,
            strict: dialect.quotes == Quotes::Strict,
            crlf: machine.crlf(),
            quote: machine.quote(),
            record_bytes_max: dialect.record_bytes_max,
        };
        Self { scanner: Scanner::new(&machine), machine, rules, separators: Structure::default() }
    }

    /// Indexes the records that start in the `block_bytes` of `chunk` from `pos`, or a few less, but at least one; moves
    /// `pos` behind them. Returns false, with `out` empty, at the end of the chunk. A block may have no record at all
    /// (blank lines).
    pub fn next_block(&mut self, chunk: &Chunk, pos: &mut usize, block_bytes: usize, out: &mut RecordIndex) -> bool {
        out.clear(self.rules.width);
        let text = &chunk.text;
        let from = *pos;
        if from >= text.len() {
            return false;
        }
        let target = from.saturating_add(block_bytes.max(1)).min(text.len());
        while *pos < target && out.fields.len() < BLOCK_FIELDS_MAX {
            let Some(scanner) = self.scanner else {
                self.exactly(chunk, pos, target - 1, out);
                break;
            };
            self.separators.clear(target);
            let unsure = scanner.scan(text, *pos, &mut self.separators);
            *pos = self.rules.push_scanned(text, *pos, &self.separators, out);
            match unsure {
                Some(block) => self.exactly(chunk, pos, block, out),
                None if self.separators.stopped => break,
                None => self.exactly(chunk, pos, text.len(), out),
            }
        }
        Encoding { chunk, from, to: *pos }.reject_invalid(out);
        true
    }

    /// Scans with this, or not at all.
    #[cfg(test)]
    pub(super) fn with_scanner(self, scanner: Option<Scanner>) -> Self {
        Self { scanner, ..self }
    }

    /// Goes record by record until `pos` is past `until`.
    fn exactly(&self, chunk: &Chunk, pos: &mut usize, until: usize, out: &mut RecordIndex) {
        let text = &chunk.text;
        while *pos <= until && *pos < text.len() && out.fields.len() < BLOCK_FIELDS_MAX {
            let start = match self.machine.skip_gaps(text, *pos, true) {
                Gap::Record(start) => start,
                Gap::Comment(_) | Gap::More(_) => {
                    *pos = text.len();
                    return;
                }
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

impl Rules {
    /// Settles the record whose fields were just pushed.
    fn push_exact(&self, chunk: &Chunk, start: usize, record: &Record, out: &mut RecordIndex) {
        let first = out.records.len() * self.width;
        let cells = out.fields.len() - first;
        let (reason, message) = if record.unclosed {
            (RejectReason::UnclosedQuote, unclosed_message(chunk.line_at(start)))
        } else if self.is_too_long(start, record.end) {
            (RejectReason::RecordTooLong, too_long_message(self.record_bytes_max))
        } else if let Some(stray) = record.stray.filter(|_| self.strict) {
            (RejectReason::StrayQuote, stray_message(chunk.text[stray], self.quote, stray - start))
        } else if cells != self.width && self.ragged != RaggedRows::Pad {
            (RejectReason::RaggedRow, ragged_message(cells, self.width))
        } else {
            out.fields.resize(first + self.width, Field::ABSENT);
            out.records.push((start as u32, record.end as u32));
            return;
        };
        out.fields.truncate(first);
        out.malformed.push(Malformed { start: start as u32, end: record.end as u32, reason, message });
    }

    /// Makes rows of the whole records of a scan; returns where the rest starts.
    fn push_scanned(&self, text: &[u8], from: usize, found: &Structure, out: &mut RecordIndex) -> usize {
        let mut start = from;
        let mut first = 0;
        let mut doubled = found.doubled.iter().copied().peekable();
        let quote = self.quote.filter(|_| found.quotes);
        out.fields.reserve(found.used);
        for &last in &found.ends {
            if out.fields.len() >= BLOCK_FIELDS_MAX {
                break;
            }
            let separators = &found.positions[first..=last as usize];
            let newline = separators[separators.len() - 1] as usize;
            let carriage = self.crlf && newline > start && text[newline - 1] == b'\r';
            let end = newline - usize::from(carriage);
            if separators.len() == self.width && end > start && !self.is_too_long(start, end) {
                let cells = &separators[..separators.len() - 1];
                match quote {
                    None => push_plain(start, end, cells, out),
                    Some(quote) if doubled.peek().is_none_or(|at| *at as usize >= newline) => {
                        push_quoted(text, quote, start, end, cells, out);
                    }
                    Some(quote) => push_escaped(text, quote, start, end, cells, &mut doubled, out),
                }
                out.records.push((start as u32, end as u32));
            } else if end > start {
                self.push_odd(text, start, end, &separators[..separators.len() - 1], &mut doubled, out);
            }
            first = last as usize + 1;
            start = newline + 1;
        }
        start
    }

    /// A scanned record that is too long or has another width.
    #[cold]
    fn push_odd<D: Iterator<Item = u32>>(
        &self,
        text: &[u8],
        start: usize,
        end: usize,
        cells: &[u32],
        doubled: &mut std::iter::Peekable<D>,
        out: &mut RecordIndex,
    ) {
        let first = out.fields.len();
        let (reason, message) = if self.is_too_long(start, end) {
            (RejectReason::RecordTooLong, too_long_message(self.record_bytes_max))
        } else if self.ragged != RaggedRows::Pad && cells.len() + 1 != self.width {
            (RejectReason::RaggedRow, ragged_message(cells.len() + 1, self.width))
        } else {
            match self.quote {
                Some(quote) => push_escaped(text, quote, start, end, cells, doubled, out),
                None => push_plain(start, end, cells, out),
            }
            out.fields.resize(first + self.width, Field::ABSENT);
            out.records.push((start as u32, end as u32));
            return;
        };
        out.malformed.push(Malformed { start: start as u32, end: end as u32, reason, message });
    }

    #[inline]
    fn is_too_long(&self, start: usize, end: usize) -> bool {
        (end - start) as u64 > self.record_bytes_max
    }
}

/// Pushes the cells of a record without any quote: `cells` are its delimiters.
#[inline]
fn push_plain(start: usize, end: usize, cells: &[u32], out: &mut RecordIndex) {
    let mut start = start as u32;
    out.fields.extend(cells.iter().map(|&delimiter| {
        let field = Field { start, end_and_flags: delimiter };
        start = delimiter + 1;
        field
    }));
    out.fields.push(Field { start, end_and_flags: end as u32 });
}

/// Pushes the cells of a record without doubled quotes.
#[inline]
fn push_quoted(text: &[u8], quote: u8, start: usize, end: usize, cells: &[u32], out: &mut RecordIndex) {
    let mut start = start as u32;
    let field = |start: u32, end: u32| {
        let quoted = u32::from(end > start && text[start as usize] == quote);
        Field { start: start + quoted, end_and_flags: (end - quoted) | (quoted * QUOTED) }
    };
    out.fields.extend(cells.iter().map(|&delimiter| {
        let field = field(start, delimiter);
        start = delimiter + 1;
        field
    }));
    out.fields.push(field(start, end as u32));
}

/// Pushes the cells of any well-formed record; `doubled` are the places of doubled quotes, left at the record's end.
fn push_escaped<D: Iterator<Item = u32>>(
    text: &[u8],
    quote: u8,
    start: usize,
    end: usize,
    cells: &[u32],
    doubled: &mut std::iter::Peekable<D>,
    out: &mut RecordIndex,
) {
    let mut start = start as u32;
    for cell_end in cells.iter().copied().chain([end as u32]) {
        let quoted = cell_end > start && text[start as usize] == quote;
        let mut escaped = false;
        while let Some(at) = doubled.next_if(|at| *at < cell_end) {
            escaped |= at >= start;
        }
        let quote_bytes = usize::from(quoted);
        let content = start as usize + quote_bytes..cell_end as usize - quote_bytes;
        out.fields.push(Field::new(content.start, content.end, quoted, escaped));
        start = cell_end + 1;
    }
}

struct Fields<'a>(&'a mut Vec<Field>);

impl Cells for Fields<'_> {
    #[inline]
    fn cell(&mut self, start: usize, end: usize, quoted: bool, escaped: bool) {
        self.0.push(Field::new(start, end, quoted, escaped));
    }
}

/// The structural bytes of a scan.
#[derive(Debug, Default)]
struct Structure {
    /// Of delimiters and newlines; what lies past the last of `ends` is not used.
    positions: Vec<u32>,
    used: usize,
    /// Which of `positions` are newlines.
    ends: Vec<u32>,
    /// Second quotes of doubled ones.
    doubled: Vec<u32>,
    quotes: bool,
    /// Stop at the first newline at or past this.
    target: usize,
    stopped: bool,
}

impl Structure {
    fn clear(&mut self, target: usize) {
        self.used = 0;
        self.ends.clear();
        self.doubled.clear();
        self.quotes = false;
        self.target = target;
        self.stopped = false;
    }
}

impl Sink for Structure {
    #[inline(always)]
    fn block(&mut self, block: Block) -> bool {
        let base = block.base as u32;
        if self.used + 64 > self.positions.len() {
            self.positions.resize((self.used + 64).next_power_of_two().max(4_096), 0);
        }
        let mut newlines = block.newlines;
        while newlines != 0 {
            let before = (1u64 << newlines.trailing_zeros()) - 1;
            self.ends.push(self.used as u32 + (block.structural & before).count_ones());
            newlines &= newlines - 1;
        }
        if let Some(out) = self.positions[self.used..].first_chunk_mut::<64>() {
            write_bits(block.structural, base, out);
        }
        self.used += block.structural.count_ones() as usize;
        if block.quotes != 0 {
            self.quotes = true;
            let mut doubled = block.doubled;
            while doubled != 0 {
                self.doubled.push(base + doubled.trailing_zeros());
                doubled &= doubled - 1;
            }
        }
        self.stopped = block.base + 64 >= self.target && !self.ends.is_empty();
        self.stopped
    }
}

/// Writes the positions of the bits; in steps of eight without a branch each, so what follows them is rubbish.
#[inline(always)]
fn write_bits(mut bits: u64, base: u32, out: &mut [u32; 64]) {
    for step in out.as_chunks_mut::<8>().0 {
        if bits == 0 {
            return;
        }
        for place in step {
            *place = base.wrapping_add(bits.trailing_zeros());
            bits &= bits.wrapping_sub(1);
        }
    }
}

/// Takes out the records that aren't valid in their encoding.
struct Encoding<'a> {
    chunk: &'a Chunk,
    from: usize,
    to: usize,
}

impl Encoding<'_> {
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

    /// `invalid` gives the source offset of the first malformed sequence in a record, if it has one.
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

fn ragged_message(found: usize, expected: usize) -> String {
    format!("found {found} cell{}, expected {expected}", if found == 1 { "" } else { "s" })
}

fn stray_message(found: u8, quote: Option<u8>, at: usize) -> String {
    if Some(found) == quote {
        format!("found a quote within an unquoted cell at byte {at} of the record; quotes may only enclose whole cells")
    } else {
        format!("found text after a closing quote at byte {at} of the record, expected a delimiter or the record's end")
    }
}

/// The same wherever chunks begin and end.
pub(super) fn too_long_message(record_bytes_max: u64) -> String {
    format!("the record is longer than `record_bytes_max` ({record_bytes_max} bytes)")
}

pub(super) fn unclosed_message(line: u64) -> String {
    format!("a quote opened in the record that starts on line {line} is never closed: all from there on belongs to it")
}
