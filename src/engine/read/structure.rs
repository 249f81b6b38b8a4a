//! Collects the results of a scan: positions of delimiters, newlines and doubled quotes.

use super::scan::{Block, BlockSink};

/// The structural bytes of a scan.
#[derive(Debug, Default)]
pub(super) struct Structure {
    /// Positions of delimiters and newlines; entries past the last of `ends` are unused.
    pub positions: Vec<u32>,
    pub used: usize,
    /// Which of `positions` are newlines.
    pub ends: Vec<u32>,
    /// Positions of the second quote of each doubled quote.
    pub doubled: Vec<u32>,
    pub quotes: bool,
    /// Whether there are bytes that aren't ASCII.
    pub wide: bool,
    /// Stop at the first newline at or past this.
    target: usize,
    pub stopped: bool,
}

impl Structure {
    pub fn clear(&mut self, target: usize) {
        self.used = 0;
        self.ends.clear();
        self.doubled.clear();
        self.quotes = false;
        self.wide = false;
        self.target = target;
        self.stopped = false;
    }
}

impl BlockSink for Structure {
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
        self.wide |= block.wide;
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

/// Writes the positions of the bits in branch-free steps of eight; entries after them are garbage.
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
