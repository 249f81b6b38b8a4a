//! Walks over the records of a text with the exact machine, to see how a dialect splits it.

use super::machine::{CellSink, Gap, Machine, RecordState, Step, newline};
use super::record_index::FieldRange;
use crate::domain::pipeline::Dialect;

/// One record under a dialect.
#[derive(Debug)]
pub struct Record<'a> {
    pub start: usize,
    /// Without the terminator.
    pub end: usize,
    /// Where the next record may start.
    pub next: usize,
    pub fields: &'a [FieldRange],
    pub stray: bool,
    pub unclosed: bool,
}

/// Passes the records of `text` to `see` until it returns false; `text` starts where a record may start. `at_end`: the
/// text is complete. Returns where it stopped: an incomplete record is not passed.
pub fn walk(dialect: &Dialect, text: &[u8], at_end: bool, mut see: impl FnMut(&Record<'_>) -> bool) -> usize {
    let machine = Machine::new(dialect);
    let mut fields = Collected(Vec::new());
    let mut at = 0;
    loop {
        let start = match machine.skip_gaps(text, at, at_end) {
            Gap::Record(start) => start,
            Gap::Comment(stop) | Gap::More(stop) => return stop,
        };
        fields.0.clear();
        match machine.advance(text, start, RecordState::CellStart, at_end, &mut fields) {
            Step::More { .. } => return start,
            Step::Ended(record) => {
                let (end, next) = (record.end, record.next);
                let shown = Record {
                    start,
                    end,
                    next,
                    fields: &fields.0,
                    stray: record.stray.is_some(),
                    unclosed: record.unclosed,
                };
                at = next;
                if !see(&shown) || (at_end && next >= text.len()) {
                    return at;
                }
            }
        }
    }
}

struct Collected(Vec<FieldRange>);

impl CellSink for Collected {
    fn cell(&mut self, start: usize, end: usize, quoted: bool, escaped: bool) {
        self.0.push(FieldRange::new(start, end, quoted, escaped));
    }
}

/// The byte that ends a physical line of the dialect.
pub fn newline_of(dialect: &Dialect) -> u8 {
    newline(dialect)
}
