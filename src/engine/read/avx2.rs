//! The masks of [`super::scan`] by AVX2 and carry-less multiplication.
//!
//! Invariant: [`Simd::detect`] checks every feature of `#[target_feature]` below.

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_prefetch, _mm_set_epi64x, _mm_set1_epi8,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
};

use super::scan::{BLOCK_BYTES, BlockSink, Masker, Masks, Separators, scan_with};
use crate::engine::simd::Simd;

/// Prefetch distance in bytes: text read by another thread is in that core's cache and slow to load.
const AHEAD_BYTES: usize = 1_024;

impl Simd {
    pub(super) fn scan<S: BlockSink>(
        self,
        separators: &Separators,
        text: &[u8],
        from: usize,
        sink: &mut S,
    ) -> Option<usize> {
        // SAFETY: `self` exists, so `detect` found every feature that `scan` enables.
        unsafe { scan(self, separators, text, from, sink) }
    }
}

impl Masker for Simd {
    #[inline(always)]
    fn masks(self, block: &[u8; BLOCK_BYTES], separators: &Separators) -> Masks {
        // SAFETY: `self` exists, so `detect` found every feature that `masks` enables.
        unsafe { masks(block, separators) }
    }

    #[inline(always)]
    fn prefix_xor(self, mask: u64) -> u64 {
        // SAFETY: `self` exists, so `detect` found every feature that `prefix_xor` enables.
        unsafe { prefix_xor(mask) }
    }
}

/// The whole loop with the features enabled, so that masks and bit counts are single instructions.
#[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt,popcnt")]
fn scan<S: BlockSink>(simd: Simd, separators: &Separators, text: &[u8], from: usize, sink: &mut S) -> Option<usize> {
    scan_with(simd, separators, text, from, sink)
}

#[inline]
#[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt,popcnt")]
fn masks(block: &[u8; BLOCK_BYTES], separators: &Separators) -> Masks {
    // Past the end of the text it has no effect.
    _mm_prefetch::<_MM_HINT_T0>(block.as_ptr().wrapping_add(AHEAD_BYTES).cast());
    // SAFETY: `block` is 64 readable bytes, so 32 at its start and 32 at half are; the load needs no alignment.
    let (low, high) = unsafe {
        let start = block.as_ptr().cast::<__m256i>();
        (_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1)))
    };
    let equal = |byte: u8| {
        let wanted = _mm256_set1_epi8(byte as i8);
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)) as u32;
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)) as u32;
        u64::from(low) | u64::from(high) << 32
    };
    Masks {
        quote: separators.quote.map_or(0, equal),
        delimiter: equal(separators.delimiter),
        newline: equal(separators.newline),
        wide: _mm256_movemask_epi8(_mm256_or_si256(low, high)) != 0,
    }
}

/// A carry-less multiplication by all ones xors every bit with all lower bits.
#[inline]
#[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt,popcnt")]
fn prefix_xor(mask: u64) -> u64 {
    let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, mask as i64), _mm_set1_epi8(-1));
    _mm_cvtsi128_si64(product) as u64
}
