//! Holds chunks back until the last records of the source are known, and cuts those off.
//!
//! Invariant: only whole records are skipped as footers. A record that is too long is rejected; if the source ends
//! within quotes, no record is skipped, since the rows before the footer may be inside these quotes.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::chunk::{Chunk, Oversize};
use super::machine::{CellSink, Gap, Machine, RecordEnd, RecordState, Step};
use super::record_index::unescape;
use super::rules::too_long_message;
use crate::domain::limits::REJECT_RAW_BYTES_MAX;
use crate::domain::pipeline::Dialect;
use crate::domain::reject::RejectReason;

/// Holds at most the chunks of the last `rows` records and one more.
pub(super) struct FooterCutter {
    rows: usize,
    record_bytes_max: u64,
    marks: FooterMarks,
    held: VecDeque<HeldChunk>,
}

struct HeldChunk {
    chunk: Chunk,
    /// Records, including those of `oversize`.
    records: usize,
    /// The last records of the text; at most `rows`.
    last: VecDeque<LastRecord>,
    /// Whether the source ends within quotes of the last record.
    unclosed: bool,
}

/// A record that may be a footer.
#[derive(Clone, Copy)]
struct LastRecord {
    start: usize,
    record: RecordEnd,
    is_footer: bool,
}

impl FooterCutter {
    pub fn new(dialect: &Dialect) -> Self {
        Self {
            rows: usize::try_from(dialect.skip_footer_rows).unwrap_or(usize::MAX),
            record_bytes_max: dialect.record_bytes_max,
            marks: FooterMarks::new(dialect),
            held: VecDeque::new(),
        }
    }

    /// Adds the next chunk.
    pub fn push(&mut self, machine: &Machine, chunk: Chunk) {
        let mut last = VecDeque::new();
        let mut records = chunk.oversize.len();
        let mut unclosed = chunk.oversize.last().is_some_and(|record| record.reason == RejectReason::UnclosedQuote);
        if self.rows > 0 {
            let mut at = 0;
            while let Gap::Record(start) = machine.skip_gaps(&chunk.text, at, true) {
                records += 1;
                let mut probe = FooterProbe { marks: &self.marks, text: &chunk.text, is_footer: None };
                match machine.advance(&chunk.text, start, RecordState::CellStart, true, &mut probe) {
                    Step::Ended(record) => {
                        at = record.next;
                        unclosed |= record.unclosed;
                        // A rejected record ends a marked footer, regardless of chunk boundaries.
                        let too_long =
                            self.marks.values.is_some() && (record.end - start) as u64 > self.record_bytes_max;
                        let is_footer = probe.is_footer.unwrap_or(true) && !too_long;
                        last.push_back(LastRecord { start, record, is_footer });
                    }
                    Step::More { at: end, .. } => at = end,
                }
                if last.len() > self.rows {
                    last.pop_front();
                }
            }
        }
        self.held.push_back(HeldChunk { chunk, records, last, unclosed });
    }

    /// A chunk without footer: enough records follow it.
    pub fn pop(&mut self) -> Option<Chunk> {
        let after: usize = self.held.iter().skip(1).map(|held| held.records).sum();
        if after < self.rows {
            return None;
        }
        self.held.pop_front().map(|held| held.chunk)
    }

    /// The held chunks without footers at the end of the source, and the footers.
    pub fn finish(&mut self, machine: &Machine) -> (VecDeque<Chunk>, CutRecords) {
        let unclosed = self.held.back().is_some_and(|held| held.unclosed);
        let mut left = if unclosed { 0 } else { self.rows };
        let mut all = CutRecords::default();
        for held in self.held.iter_mut().rev() {
            left -= left.min(held.chunk.oversize.len());
            if self.marks.values.is_some() && !held.chunk.oversize.is_empty() {
                left = 0;
            }
            let room = left.min(held.last.len());
            let cut = held.last.iter().rev().take(room).take_while(|last| last.is_footer).count();
            // The footer ends at a record that is not a footer record.
            left = if cut < room { 0 } else { left - cut };
            if cut > 0 {
                let records = held.last.range(held.last.len() - cut..);
                let cut = cut_off(&mut held.chunk, records, machine, self.record_bytes_max);
                all = CutRecords { bytes: all.bytes + cut.bytes, blank_lines: all.blank_lines + cut.blank_lines };
            }
        }
        let chunks = self.held.drain(..).map(|held| held.chunk);
        (chunks.filter(|c| !c.text.is_empty() || !c.oversize.is_empty()).collect(), all)
    }
}

/// What distinguishes footers from rows.
struct FooterMarks {
    /// `None`: the position alone.
    values: Option<Vec<FooterValue>>,
    dialect: Dialect,
}

/// A value in lower case.
enum FooterValue {
    Exactly(String),
    StartsWith(String),
}

impl FooterMarks {
    fn new(dialect: &Dialect) -> Self {
        let value = |text: &String| {
            let text = text.trim_ascii().to_lowercase();
            match text.strip_suffix('*') {
                Some(start) => FooterValue::StartsWith(start.to_owned()),
                None => FooterValue::Exactly(text),
            }
        };
        let values = dialect.footer_values.as_ref().map(|values| values.iter().map(value).collect());
        Self { values, dialect: dialect.clone() }
    }
}

/// Determines from its first cell that isn't empty whether a record is a footer.
struct FooterProbe<'a> {
    marks: &'a FooterMarks,
    text: &'a [u8],
    /// `None`: all cells so far are empty.
    is_footer: Option<bool>,
}

impl CellSink for FooterProbe<'_> {
    fn cell(&mut self, start: usize, end: usize, _quoted: bool, escaped: bool) {
        let (Some(values), None) = (&self.marks.values, self.is_footer) else { return };
        let mut content = Cow::Borrowed(&self.text[start..end]);
        if escaped {
            let mut text = Vec::new();
            unescape(&content, &self.marks.dialect, &mut text);
            content = Cow::Owned(text);
        }
        let content = content.trim_ascii();
        if content.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(content).to_lowercase();
        self.is_footer = Some(values.iter().any(|value| match value {
            FooterValue::Exactly(value) => text == *value,
            FooterValue::StartsWith(start) => text.starts_with(start.as_str()),
        }));
    }
}

/// A footer that was cut off a chunk.
#[derive(Debug, Default)]
pub(super) struct CutRecords {
    /// Includes gaps between and after the records.
    pub bytes: u64,
    pub blank_lines: u64,
}

/// Cuts the text off from the first of `records`; records that are too long become rejects.
fn cut_off<'r>(
    chunk: &mut Chunk,
    records: impl Iterator<Item = &'r LastRecord>,
    machine: &Machine,
    record_bytes_max: u64,
) -> CutRecords {
    let (mut from, mut end, mut blank_lines) = (chunk.text.len(), None, 0);
    let mut rejected = Vec::new();
    for &LastRecord { start, record, .. } in records {
        from = from.min(start);
        blank_lines += end.map_or(0, |end| machine.blank_lines_in(&chunk.text[end..start]));
        end = Some(record.next);
        let length = (record.end - start) as u64;
        if length > record_bytes_max {
            rejected.push(Oversize {
                line: chunk.line_at(start),
                offset: chunk.offset_at(start),
                reason: RejectReason::RecordTooLong,
                message: too_long_message(record_bytes_max),
                raw: chunk.text[start..record.end.min(start + REJECT_RAW_BYTES_MAX)].to_vec(),
                length,
                length_with_terminator: (record.next - start) as u64,
                source_bytes: chunk.offset_at(record.next) - chunk.offset_at(start),
            });
        }
    }
    let kept: u64 = rejected.iter().map(|record| record.length_with_terminator).sum();
    blank_lines += end.map_or(0, |end| machine.blank_lines_in(&chunk.text[end..]));
    let bytes = (chunk.text.len() - from) as u64 - kept;
    chunk.text.truncate(from);
    rejected.append(&mut chunk.oversize);
    chunk.oversize = rejected;
    CutRecords { bytes, blank_lines }
}
