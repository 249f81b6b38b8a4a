//! Inspects the header or the first record.

use super::machine::{CellSink, Machine, RecordState};
use super::record_index::unescape;
use super::records::walk;
use crate::domain::pipeline::{Dialect, RecordTerminator};

/// Lines checked to detect lone CR line endings.
const LONE_CR_LINES_MAX: usize = 100;

/// The cells of the record at `at`, unescaped and trimmed; `text` contains the whole record. Stray quotes are text.
pub(super) fn cells(machine: &Machine, dialect: &Dialect, text: &[u8], at: usize) -> Vec<String> {
    let mut ranges = Ranges(Vec::new());
    machine.advance(text, at, RecordState::CellStart, true, &mut ranges);
    let content = |(start, end, escaped): &(usize, usize, bool)| {
        let mut content = Vec::new();
        if *escaped {
            unescape(&text[*start..*end], dialect, &mut content);
        } else {
            content.extend_from_slice(&text[*start..*end]);
        }
        String::from_utf8_lossy(&content).trim().to_owned()
    };
    ranges.0.iter().map(content).collect()
}

/// Whether an unquoted cell of the record has a CR, as in a source with lone CR line endings read as LF.
pub(super) fn has_lone_cr(machine: &Machine, text: &[u8]) -> bool {
    let mut lone = UnquotedCr { text, found: false };
    machine.advance(text, 0, RecordState::CellStart, true, &mut lone);
    lone.found
}

/// Whether the first record of a source without header is several lines with lone CR endings: split at its CRs, each
/// line has the configured number of cells.
pub(super) fn is_lines_of_lone_cr(dialect: &Dialect, text: &[u8]) -> bool {
    let Some(width) = dialect.width.filter(|_| dialect.record_terminator == RecordTerminator::Auto) else {
        return false;
    };
    if memchr::memchr(b'\r', text).is_none() {
        return false;
    }
    let lines = Dialect { record_terminator: RecordTerminator::Cr, ..dialect.clone() };
    let (mut count, mut fit) = (0, true);
    walk(&lines, text, true, |line| {
        count += 1;
        fit &= line.fields.len() == width && !line.unclosed;
        fit && count < LONE_CR_LINES_MAX
    });
    fit && count > 1
}

/// The number of cells of the record at `at`.
pub(super) fn width(machine: &Machine, text: &[u8], at: usize) -> usize {
    let mut count = Count(0);
    machine.advance(text, at, RecordState::CellStart, true, &mut count);
    count.0
}

struct Ranges(Vec<(usize, usize, bool)>);

impl CellSink for Ranges {
    fn cell(&mut self, start: usize, end: usize, _quoted: bool, escaped: bool) {
        self.0.push((start, end, escaped));
    }
}

struct Count(usize);

impl CellSink for Count {
    fn cell(&mut self, _: usize, _: usize, _: bool, _: bool) {
        self.0 += 1;
    }
}

struct UnquotedCr<'a> {
    text: &'a [u8],
    found: bool,
}

impl CellSink for UnquotedCr<'_> {
    fn cell(&mut self, start: usize, end: usize, quoted: bool, _escaped: bool) {
        self.found |= !quoted && self.text[start..end].contains(&b'\r');
    }
}

/// Detects a line with a CR before its end, as in a source whose lines end in a lone CR.
#[derive(Debug, Default)]
pub(super) struct LoneCr {
    ends_in_cr: bool,
    found: bool,
}

impl LoneCr {
    /// Scans more of the line, without its terminator.
    pub fn observe(&mut self, text: &[u8]) {
        let Some(last) = text.len().checked_sub(1) else { return };
        self.found |= self.ends_in_cr || memchr::memchr(b'\r', &text[..last]).is_some();
        self.ends_in_cr = text[last] == b'\r';
    }

    pub fn found(&self) -> bool {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_cr_is_detected_across_pieces() {
        for (line, expected) in [("", false), ("x\r", false), ("x\ry", true), ("\r\r", true), ("xy", false)] {
            for step in 1..=4 {
                let mut seen = LoneCr::default();
                line.as_bytes().chunks(step).for_each(|piece| seen.observe(piece));
                assert_eq!(seen.found(), expected, "{line:?} in steps of {step}");
            }
        }
    }
}
