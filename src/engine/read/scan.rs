//! Finds structural bytes 64 at a time as bit masks, and where the exact machine must decide.
//!
//! Quotes toggle "inside"; a delimiter or newline outside is structural. This agrees with the machine only if every
//! opening quote is at the start of a cell (or follows a closing one: a doubled quote) and every closing quote is
//! followed by a delimiter, a terminator or another quote. Each block is checked before it is passed on; the first
//! violation ends the scan.

use super::machine::Machine;
use crate::engine::simd::Simd;

pub(super) const BLOCK_BYTES: usize = 64;

/// The bytes to search for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Separators {
    pub delimiter: u8,
    pub newline: u8,
    pub quote: Option<u8>,
    pub crlf: bool,
}

/// One bit per byte, the first byte lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Masks {
    pub quote: u64,
    pub delimiter: u64,
    pub newline: u64,
    /// Whether there are bytes that aren't ASCII.
    pub wide: bool,
}

/// Computes masks.
pub(super) trait Masker: Copy {
    fn masks(self, block: &[u8; BLOCK_BYTES], separators: &Separators) -> Masks;

    /// Each bit of the result is the parity of the bits up to and including it.
    fn prefix_xor(self, mask: u64) -> u64;
}

/// A checked block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// Position of its first byte.
    pub base: usize,
    /// Delimiters and newlines outside quotes.
    pub structural: u64,
    /// The newlines of `structural`.
    pub newlines: u64,
    /// Second quotes of doubled ones.
    pub doubled: u64,
    pub quotes: u64,
    /// Whether there are bytes that aren't ASCII.
    pub wide: bool,
}

/// Receives blocks in order.
pub(super) trait BlockSink {
    /// Returns whether to stop after this block.
    fn block(&mut self, block: Block) -> bool;
}

/// Masks without special instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct PortableMasks;

impl Masker for PortableMasks {
    #[inline(always)]
    fn masks(self, block: &[u8; BLOCK_BYTES], separators: &Separators) -> Masks {
        Masks {
            quote: separators.quote.map_or(0, |quote| equal(block, quote)),
            delimiter: equal(block, separators.delimiter),
            newline: equal(block, separators.newline),
            wide: !block.is_ascii(),
        }
    }

    #[inline(always)]
    fn prefix_xor(self, mut mask: u64) -> u64 {
        for shift in [1, 2, 4, 8, 16, 32] {
            mask ^= mask << shift;
        }
        mask
    }
}

#[inline(always)]
fn equal(block: &[u8; BLOCK_BYTES], byte: u8) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let wanted = u64::from(byte) * 0x0101_0101_0101_0101;
    let mut mask = 0;
    for (i, word) in block.as_chunks::<8>().0.iter().enumerate() {
        let zero_where_equal = u64::from_le_bytes(*word) ^ wanted;
        let high_where_equal = !(((zero_where_equal & LOW) + LOW) | zero_where_equal | LOW);
        mask |= (high_where_equal.wrapping_mul(0x0002_0408_1020_4081) >> 56) << (8 * i);
    }
    mask
}

/// The scan for a supported dialect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner {
    separators: Separators,
    simd: Option<Simd>,
}

impl Scanner {
    pub fn new(machine: &Machine) -> Option<Self> {
        let separators = Separators {
            delimiter: machine.simple_delimiter()?,
            newline: machine.newline(),
            quote: machine.quote(),
            crlf: machine.crlf(),
        };
        Some(Self { separators, simd: Simd::detect() })
    }

    /// Without special instructions.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn portable(self) -> Self {
        Self { simd: None, ..self }
    }

    /// Scans `text` from `from`, the start of a record, until the sink stops it or the text ends. Returns the position
    /// of the first block that needs the exact machine, which `sink` has not received.
    pub fn scan<S: BlockSink>(&self, text: &[u8], from: usize, sink: &mut S) -> Option<usize> {
        match self.simd {
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Some(simd) => simd.scan(&self.separators, text, from, sink),
            _ => scan_with(PortableMasks, &self.separators, text, from, sink),
        }
    }
}

/// State carried from one block to the next.
struct Carry {
    /// All ones within quotes.
    inside: u64,
    /// Bit 0: a quote may open here.
    may_open: u64,
    /// Bit 0: the byte before closed a quote.
    closed: u64,
}

#[inline(always)]
pub(super) fn scan_with<M: Masker, S: BlockSink>(
    masker: M,
    separators: &Separators,
    text: &[u8],
    from: usize,
    sink: &mut S,
) -> Option<usize> {
    let mut carry = Carry { inside: 0, may_open: 1, closed: 0 };
    let mut base = from;
    let (blocks, tail) = text[from..].as_chunks::<BLOCK_BYTES>();
    for block in blocks {
        let masks = masker.masks(block, separators);
        let Some(found) = check(masker, separators, text, base, masks, u64::MAX, &mut carry) else { return Some(base) };
        if sink.block(found) {
            return None;
        }
        base += BLOCK_BYTES;
    }
    if !tail.is_empty() {
        let mut block = [0; BLOCK_BYTES];
        block[..tail.len()].copy_from_slice(tail);
        let valid = (1 << tail.len()) - 1;
        let masks = masker.masks(&block, separators);
        let Some(found) = check(masker, separators, text, base, masks, valid, &mut carry) else { return Some(base) };
        sink.block(found);
    }
    None
}

/// `None` if the exact machine must check this block. `valid`: which bits are bytes of the text.
#[inline(always)]
fn check<M: Masker>(
    masker: M,
    separators: &Separators,
    text: &[u8],
    base: usize,
    masks: Masks,
    valid: u64,
    carry: &mut Carry,
) -> Option<Block> {
    let quotes = masks.quote & valid;
    let separator = (masks.delimiter | masks.newline) & valid;
    if quotes == 0 && carry.closed == 0 {
        let structural = separator & !carry.inside;
        carry.may_open = structural >> 63;
        let newlines = structural & masks.newline;
        return Some(Block { base, structural, newlines, doubled: 0, quotes: 0, wide: masks.wide });
    }
    let inside = masker.prefix_xor(quotes) ^ carry.inside;
    let structural = separator & !inside;
    let opening = quotes & inside;
    let closing = quotes & !inside;
    let after_closing = closing << 1 | carry.closed;
    let may_open = (structural | closing) << 1 | carry.may_open;
    let odd = after_closing & valid & !(structural | opening);
    if opening & !may_open != 0 || (odd != 0 && !only_crlf(separators, text, base, odd)) {
        return None;
    }
    carry.inside = ((inside as i64) >> 63) as u64;
    carry.may_open = (structural | closing) >> 63;
    carry.closed = closing >> 63;
    let doubled = opening & after_closing;
    Some(Block { base, structural, newlines: structural & masks.newline, doubled, quotes, wide: masks.wide })
}

/// Whether each byte of `mask` is a CR with an LF after it.
#[inline(always)]
fn only_crlf(separators: &Separators, text: &[u8], base: usize, mut mask: u64) -> bool {
    if !separators.crlf {
        return false;
    }
    while mask != 0 {
        let at = base + mask.trailing_zeros() as usize;
        if text.get(at..at + 2) != Some(b"\r\n") {
            return false;
        }
        mask &= mask - 1;
    }
    true
}
