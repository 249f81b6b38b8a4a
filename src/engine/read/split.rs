//! Finds the end of the last whole record of a text.

use super::machine::{Gap, Machine, NoCells, RecordState, Step};
use super::scan::{Block, BlockSink, Scanner};

#[derive(Debug, Clone)]
pub(super) struct Splitter {
    machine: Machine,
    scanner: Option<Scanner>,
}

impl Splitter {
    pub fn new(machine: Machine) -> Self {
        Self { scanner: Scanner::new(&machine), machine }
    }

    /// Without the scan.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn exact(self) -> Self {
        Self { scanner: None, ..self }
    }

    /// The end of the last whole record (or blank line, or comment) of `text`; 0 if there is none. `text` starts where
    /// a record may start, and its source continues.
    pub fn last_boundary(&self, text: &[u8]) -> usize {
        if self.machine.quote().is_none_or(|quote| memchr::memchr(quote, text).is_none()) {
            return memchr::memrchr(self.machine.newline(), text).map_or(0, |at| at + 1);
        }
        let mut boundary = 0;
        while let Some(scanner) = &self.scanner {
            let mut last = LastNewline { end: boundary };
            let unsure = scanner.scan(text, boundary, &mut last);
            boundary = last.end;
            let Some(unsure) = unsure else { return boundary };
            match self.pass(text, boundary, unsure) {
                (end, true) => boundary = end,
                (end, false) => return end,
            }
        }
        self.pass(text, 0, text.len()).0
    }

    /// Advances record by record from `boundary` past `until`; false if the text ends first.
    fn pass(&self, text: &[u8], boundary: usize, until: usize) -> (usize, bool) {
        let mut boundary = boundary;
        while boundary <= until {
            boundary = match self.machine.skip_gaps(text, boundary, false) {
                Gap::Record(at) => match self.machine.advance(text, at, RecordState::CellStart, false, &mut NoCells) {
                    Step::Ended(record) => record.next,
                    Step::More { .. } => return (at, false),
                },
                Gap::Comment(at) | Gap::More(at) => return (at, false),
            };
        }
        (boundary, true)
    }
}

struct LastNewline {
    end: usize,
}

impl BlockSink for LastNewline {
    #[inline(always)]
    fn block(&mut self, block: Block) -> bool {
        if block.newlines != 0 {
            self.end = block.base + 64 - block.newlines.leading_zeros() as usize;
        }
        false
    }
}
