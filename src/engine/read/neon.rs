//! The masks of [`super::scan`] by NEON.
//!
//! Invariant: [`Simd::detect`] checks the feature of `#[target_feature]` below. Every build for arm64 has it enabled, so
//! that these functions are inlined into the loop of `scan`.

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vdupq_n_u8, vdupq_n_u64, vgetq_lane_u64, vld1q_u8, vmaxvq_u8, vorrq_u8, vpaddq_u8,
    vreinterpretq_u8_u64, vreinterpretq_u64_u8,
};

use super::scan::{BLOCK_BYTES, BlockSink, Masker, Masks, PortableMasks, Separators, scan_with};
use crate::engine::simd::Simd;

impl Simd {
    pub(super) fn scan<S: BlockSink>(
        self,
        separators: &Separators,
        text: &[u8],
        from: usize,
        sink: &mut S,
    ) -> Option<usize> {
        scan_with(self, separators, text, from, sink)
    }
}

impl Masker for Simd {
    #[inline(always)]
    fn masks(self, block: &[u8; BLOCK_BYTES], separators: &Separators) -> Masks {
        // SAFETY: `self` exists, so `detect` found the feature that `masks` enables.
        unsafe { masks(block, separators) }
    }

    /// Six instructions: each of arm64 can shift one of its operands. A carry-less multiplication is optional there.
    #[inline(always)]
    fn prefix_xor(self, mask: u64) -> u64 {
        PortableMasks.prefix_xor(mask)
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn masks(block: &[u8; BLOCK_BYTES], separators: &Separators) -> Masks {
    let (parts, _) = block.as_chunks::<16>();
    let [a, b, c, d] = [load(&parts[0]), load(&parts[1]), load(&parts[2]), load(&parts[3])];
    // The bit of each byte in its eight: sums of neighbours, three times, make a byte of every eight.
    let bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
    let equal = |byte: u8| {
        let wanted = vdupq_n_u8(byte);
        let found = |part: uint8x16_t| vandq_u8(vceqq_u8(part, wanted), bits);
        let fours = vpaddq_u8(vpaddq_u8(found(a), found(b)), vpaddq_u8(found(c), found(d)));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(fours, fours)))
    };
    Masks {
        quote: separators.quote.map_or(0, equal),
        delimiter: equal(separators.delimiter),
        newline: equal(separators.newline),
        wide: vmaxvq_u8(vorrq_u8(vorrq_u8(a, b), vorrq_u8(c, d))) > 0x7f,
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: 16 bytes are readable; the load needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}
