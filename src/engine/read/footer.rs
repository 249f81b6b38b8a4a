//! Holds chunks back until it is known which records are the last ones of the source, and cuts those off.

use std::collections::VecDeque;

use super::chunk::Chunk;
use super::machine::{Gap, Machine, NoCells, State, Step};

/// Holds no more than the chunks of the last `rows` records and one chunk beyond.
pub(super) struct Footer {
    rows: usize,
    held: VecDeque<Held>,
}

struct Held {
    chunk: Chunk,
    /// Records with those of `oversize`.
    records: usize,
    /// Starts of the last records of the text, at most `rows`.
    starts: VecDeque<usize>,
}

impl Footer {
    /// `rows`: records at the end that aren't data.
    pub fn new(rows: u64) -> Self {
        Self { rows: usize::try_from(rows).unwrap_or(usize::MAX), held: VecDeque::new() }
    }

    /// Takes the next chunk in.
    pub fn push(&mut self, machine: &Machine, chunk: Chunk) {
        let mut starts = VecDeque::new();
        let mut records = chunk.oversize.len();
        if self.rows > 0 {
            let mut at = 0;
            while let Gap::Record(start) = machine.skip_gaps(&chunk.text, at, true) {
                records += 1;
                starts.push_back(start);
                if starts.len() > self.rows {
                    starts.pop_front();
                }
                match machine.advance(&chunk.text, start, State::CellStart, true, &mut NoCells) {
                    Step::Ended(record) => at = record.next,
                    Step::More { at: end, .. } => at = end,
                }
            }
        }
        self.held.push_back(Held { chunk, records, starts });
    }

    /// A chunk that has no footer in it: one after which enough records are known.
    pub fn pop(&mut self) -> Option<Chunk> {
        let after: usize = self.held.iter().skip(1).map(|held| held.records).sum();
        if after < self.rows {
            return None;
        }
        self.held.pop_front().map(|held| held.chunk)
    }

    /// The source is at its end: what is held, without the footers.
    pub fn finish(&mut self) -> VecDeque<Chunk> {
        let mut left = std::mem::take(&mut self.rows);
        for held in self.held.iter_mut().rev() {
            let oversize = held.chunk.oversize.len();
            let kept = oversize.saturating_sub(left);
            held.chunk.oversize.truncate(kept);
            left -= oversize - kept;
            let cut = left.min(held.starts.len());
            if cut > 0 {
                held.chunk.text.truncate(held.starts[held.starts.len() - cut]);
                left -= cut;
            }
            if left == 0 {
                break;
            }
        }
        self.held.drain(..).map(|held| held.chunk).filter(|c| !c.text.is_empty() || !c.oversize.is_empty()).collect()
    }
}
