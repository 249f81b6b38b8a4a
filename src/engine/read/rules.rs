//! Decides which records are rows, and adds their fields.

use super::chunk::Chunk;
use super::machine::{Machine, RecordEnd};
use super::record_index::{BLOCK_FIELDS_MAX, FieldRange, Malformed, QUOTED, RecordIndex};
use super::structure::Structure;
use crate::domain::pipeline::{BlankLines, Dialect, Quotes, RaggedRows};
use crate::domain::reject::RejectReason;

/// The rules for rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRules {
    pub width: usize,
    ragged: RaggedRows,
    blank_lines: BlankLines,
    strict: bool,
    crlf: bool,
    quote: Option<u8>,
    record_bytes_max: u64,
}

impl RowRules {
    pub fn new(dialect: &Dialect, machine: &Machine, width: usize, ragged: RaggedRows) -> Self {
        Self {
            width,
            ragged,
            blank_lines: dialect.blank_lines,
            strict: dialect.quotes == Quotes::Strict,
            crlf: machine.crlf(),
            quote: machine.quote(),
            record_bytes_max: dialect.record_bytes_max,
        }
    }

    /// Finishes the record whose fields were just pushed.
    pub fn push_exact(&self, chunk: &Chunk, start: usize, record: &RecordEnd, out: &mut RecordIndex) {
        let first = out.records.len() * self.width;
        let cells = out.fields.len() - first;
        if record.end == start {
            out.fields.truncate(first);
            self.push_blank(start, record.next, out);
            return;
        }
        out.counted_bytes += (record.next - start) as u64;
        let (reason, message) = if record.unclosed {
            (RejectReason::UnclosedQuote, unclosed_message(chunk.line_at(start)))
        } else if self.is_too_long(start, record.end) {
            (RejectReason::RecordTooLong, too_long_message(self.record_bytes_max))
        } else if let Some(stray) = record.stray.filter(|_| self.strict) {
            (RejectReason::StrayQuote, stray_message(chunk.text[stray], self.quote, stray - start))
        } else if cells != self.width && self.ragged != RaggedRows::Pad {
            (RejectReason::RaggedRow, ragged_message(cells, self.width))
        } else {
            out.fields.resize(first + self.width, FieldRange::ABSENT);
            out.records.push((start as u32, record.end as u32));
            return;
        };
        out.fields.truncate(first);
        out.malformed.push(Malformed { start: start as u32, end: record.end as u32, reason, message });
    }

    /// Adds the whole records of a scan; returns the start of the rest.
    pub fn push_scanned(&self, text: &[u8], from: usize, found: &Structure, out: &mut RecordIndex) -> usize {
        let mut start = from;
        let mut first = 0;
        let mut counted = 0;
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
                counted += newline + 1 - start;
            } else if end > start {
                self.push_irregular(text, start, end, &separators[..separators.len() - 1], &mut doubled, out);
                counted += newline + 1 - start;
            } else {
                self.push_blank(start, newline + 1, out);
            }
            first = last as usize + 1;
            start = newline + 1;
        }
        out.counted_bytes += counted as u64;
        start
    }

    /// Handles a blank line, which `blank_lines` makes a row of nulls, a reject or nothing.
    #[cold]
    fn push_blank(&self, start: usize, next: usize, out: &mut RecordIndex) {
        out.counted_bytes += (next - start) as u64;
        match self.blank_lines {
            BlankLines::Skip => out.blank_lines += 1,
            BlankLines::Null => {
                out.fields.resize(out.fields.len() + self.width, FieldRange::ABSENT);
                out.records.push((start as u32, start as u32));
            }
            BlankLines::Reject => {
                let message = "found a blank line, which `csv.blank_lines` says to reject".to_owned();
                let (start, end) = (start as u32, start as u32);
                out.malformed.push(Malformed { start, end, reason: RejectReason::BlankLine, message });
            }
        }
    }

    /// A scanned record that is too long or has another width.
    #[cold]
    fn push_irregular<D: Iterator<Item = u32>>(
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
            out.fields.resize(first + self.width, FieldRange::ABSENT);
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
        let field = FieldRange { start, end_and_flags: delimiter };
        start = delimiter + 1;
        field
    }));
    out.fields.push(FieldRange { start, end_and_flags: end as u32 });
}

/// Pushes the cells of a record without doubled quotes.
#[inline]
fn push_quoted(text: &[u8], quote: u8, start: usize, end: usize, cells: &[u32], out: &mut RecordIndex) {
    let mut start = start as u32;
    let field = |start: u32, end: u32| {
        let quoted = u32::from(end > start && text[start as usize] == quote);
        FieldRange { start: start + quoted, end_and_flags: (end - quoted) | (quoted * QUOTED) }
    };
    out.fields.extend(cells.iter().map(|&delimiter| {
        let field = field(start, delimiter);
        start = delimiter + 1;
        field
    }));
    out.fields.push(field(start, end as u32));
}

/// Pushes the cells of any well-formed record. `doubled`: positions of doubled quotes; those of the record are
/// consumed.
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
        out.fields.push(FieldRange::new(content.start, content.end, quoted, escaped));
        start = cell_end + 1;
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

/// Independent of chunk boundaries.
pub(super) fn too_long_message(record_bytes_max: u64) -> String {
    format!("the record is longer than `record_bytes_max` ({record_bytes_max} bytes)")
}

pub(super) fn unclosed_message(line: u64) -> String {
    format!(
        "a quote opened in the record that starts on line {line} is never closed: everything after it belongs to that record"
    )
}
