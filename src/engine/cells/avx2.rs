//! Reads the digits of a cell sixteen at a time, or of four short cells eight each, with AVX2, without branches on
//! their number or the position of the mark.
//!
//! Invariant: [`Simd::detect`] checks every feature of `#[target_feature]` below; every cell is read as in
//! [`super::word`].

use std::arch::x86_64::{
    __m128i, __m256i, _mm_and_si128, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_loadu_si128, _mm_madd_epi16,
    _mm_maddubs_epi16, _mm_min_epu8, _mm_movemask_epi8, _mm_packus_epi32, _mm_set1_epi8, _mm_setr_epi8, _mm_setr_epi16,
    _mm_shuffle_epi8, _mm_sub_epi8, _mm256_add_epi64, _mm256_and_si256, _mm256_andnot_si256, _mm256_castsi256_pd,
    _mm256_cmpeq_epi8, _mm256_cmpeq_epi64, _mm256_div_pd, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16,
    _mm256_min_epu8, _mm256_mul_epu32, _mm256_or_pd, _mm256_or_si256, _mm256_permutevar8x32_epi32, _mm256_sad_epu8,
    _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi64x,
    _mm256_setzero_si256, _mm256_slli_epi64, _mm256_sllv_epi64, _mm256_srli_epi64, _mm256_storeu_pd,
    _mm256_storeu_si256, _mm256_sub_epi8, _mm256_sub_epi64, _mm256_sub_pd, _mm256_testz_si256, _mm256_xor_si256,
};

use super::fault::CellFault;
use super::simd::{CLOSED, LAST, LAST8, fill, point_portable, whole_portable};
use super::text::Cell;
use super::typed::{Cells, FixedColumn, Parser};
use super::word::{CellQuad, Digits, Point, QUAD_CELL_BYTES_MAX, WholeNumber};
use crate::engine::simd::Simd;

impl Simd {
    pub(super) fn append<P: Parser>(self, column: &mut FixedColumn<P>, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        // SAFETY: `self` exists, so `detect` found every feature that `append` enables.
        unsafe { append(self, column, cells, faults) }
    }
}

impl Digits for Simd {
    #[inline(always)]
    fn whole(self, cell: Cell<'_>) -> Option<WholeNumber> {
        // SAFETY: `self` exists, so `detect` found every feature that `whole` enables.
        unsafe { whole(cell) }
    }

    #[inline(always)]
    fn point(self, cell: Cell<'_>, mark: u8) -> Option<Point> {
        // SAFETY: `self` exists, so `detect` found every feature that `point` enables.
        unsafe { point(cell, mark) }
    }

    #[inline(always)]
    fn whole_numbers<'a, V>(
        self,
        cells: impl Iterator<Item = CellQuad<'a>>,
        out: &mut [[V; 4]],
        value: impl Fn([i64; 4]) -> Option<[V; 4]>,
    ) -> usize {
        // SAFETY: `self` exists, so `detect` found every feature that `whole_numbers` enables.
        unsafe { whole_numbers(cells, out, value) }
    }

    #[inline(always)]
    fn quotients<'a, V>(
        self,
        cells: impl Iterator<Item = CellQuad<'a>>,
        mark: u8,
        out: &mut [[V; 4]],
        value: impl Fn([f64; 4]) -> Option<[V; 4]>,
    ) -> usize {
        // SAFETY: `self` exists, so `detect` found every feature that `quotients` enables.
        unsafe { quotients(cells, mark, out, value) }
    }
}

/// The whole loop with the features enabled, so that nothing in it is a call.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn append<P: Parser>(simd: Simd, column: &mut FixedColumn<P>, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
    column.append_by(simd, cells, faults);
}

/// A cell of 1 to 16 bytes.
struct LoadedCell {
    /// Right-aligned after zeros, minus `0`.
    digits: __m128i,
    /// Which bytes are not digits.
    non_digits: u32,
    /// Bytes after the sign.
    length: usize,
    negative: bool,
}

/// `None` for other cells, and if no text precedes the cell.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn loaded(cell: Cell<'_>) -> Option<LoadedCell> {
    let window: &[u8; 16] = cell.text[cell.end.checked_sub(16)?..cell.end].first_chunk()?;
    let length = cell.len();
    if !(1..=16).contains(&length) {
        return None;
    }
    let negative = window[16 - length] == b'-';
    let length = length - usize::from(negative);
    let digits = _mm_and_si128(_mm_sub_epi8(load(window), _mm_set1_epi8(b'0' as i8)), load(&LAST[length]));
    let ten = _mm_set1_epi8(10);
    let non_digits = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(digits, ten), ten));
    Some(LoadedCell { digits, non_digits: non_digits as u32, length, negative })
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are readable; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Combines sixteen digits to a number: pairs, fours, eights, all.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn number16(digits: __m128i) -> u64 {
    let pairs = _mm_maddubs_epi16(digits, _mm_setr_epi8(10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1));
    let fours = _mm_madd_epi16(pairs, _mm_setr_epi16(100, 1, 100, 1, 100, 1, 100, 1));
    let fours = _mm_packus_epi32(fours, fours);
    let eights = _mm_madd_epi16(fours, _mm_setr_epi16(10_000, 1, 10_000, 1, 10_000, 1, 10_000, 1));
    let eights = _mm_cvtsi128_si64(eights) as u64;
    (eights & u64::from(u32::MAX)) * 100_000_000 + (eights >> 32)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn whole(cell: Cell<'_>) -> Option<WholeNumber> {
    let Some(LoadedCell { digits, non_digits, length, negative }) = loaded(cell) else {
        return whole_portable(cell.text, cell.start, cell.end);
    };
    if non_digits == 0 && length > 0 { Some(WholeNumber { negative, digits: number16(digits) }) } else { None }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn point(cell: Cell<'_>, mark: u8) -> Option<Point> {
    let Some(LoadedCell { digits, non_digits, length, negative }) = loaded(cell) else {
        return point_portable(cell.text, cell.start, cell.end, mark);
    };
    let marks = _mm_cmpeq_epi8(digits, _mm_set1_epi8(mark.wrapping_sub(b'0') as i8));
    let marks = _mm_movemask_epi8(marks) as u32;
    let is_number = non_digits == marks && marks & marks.wrapping_sub(1) == 0 && length > marks.count_ones() as usize;
    if !is_number {
        return None;
    }
    let places = marks.leading_zeros() - 16;
    let closed = _mm_shuffle_epi8(digits, load(&CLOSED[places as usize]));
    Some(Point { negative, digits: number16(closed), places: places % 16 })
}

/// Four cells, eight bytes each.
struct LoadedQuad {
    /// Right-aligned after zeros, minus `0`; zero for a sign.
    digits: __m256i,
    /// All ones in bytes after the sign.
    unsigned: __m256i,
    /// All ones in a minus sign.
    minus: __m256i,
}

/// `None` if no text precedes the cells.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn loaded_quad(cells: CellQuad<'_>) -> Option<LoadedQuad> {
    let CellQuad { text, ends: [a, b, c, d], lengths } = cells;
    let eight = |end: usize| {
        let bytes: &[u8] = text.get(end.wrapping_sub(QUAD_CELL_BYTES_MAX)..end)?;
        Some(i64::from_le_bytes(*bytes.as_array()?))
    };
    let last = _mm256_setr_epi64x(LAST8[lengths[0]], LAST8[lengths[1]], LAST8[lengths[2]], LAST8[lengths[3]]);
    let text = _mm256_setr_epi64x(eight(a)?, eight(b)?, eight(c)?, eight(d)?);
    let digits = _mm256_and_si256(_mm256_sub_epi8(text, _mm256_set1_epi8(b'0' as i8)), last);
    let first = _mm256_xor_si256(last, _mm256_slli_epi64::<8>(last));
    let dashes = _mm256_cmpeq_epi8(digits, _mm256_set1_epi8(b'-'.wrapping_sub(b'0') as i8));
    let minus = _mm256_and_si256(dashes, first);
    let unsigned = _mm256_andnot_si256(minus, last);
    Some(LoadedQuad { digits: _mm256_and_si256(digits, unsigned), unsigned, minus })
}

/// All ones in each byte that is not a digit.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn non_digits(digits: __m256i) -> __m256i {
    let ten = _mm256_set1_epi8(10);
    _mm256_cmpeq_epi8(_mm256_min_epu8(digits, ten), ten)
}

/// All ones in each lane that is zero.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn zero(four: __m256i) -> __m256i {
    _mm256_cmpeq_epi64(four, _mm256_setzero_si256())
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn is_zero(all: __m256i) -> bool {
    _mm256_testz_si256(all, all) == 1
}

/// Combines eight digits each to numbers.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn numbers8(digits: __m256i) -> __m256i {
    let pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(10 | 1 << 8));
    let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(100 | 1 << 16));
    let first = _mm256_mul_epu32(fours, _mm256_set1_epi64x(10_000));
    _mm256_add_epi64(first, _mm256_srli_epi64::<32>(fours))
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn whole_numbers<'a, V>(
    cells: impl Iterator<Item = CellQuad<'a>>,
    out: &mut [[V; 4]],
    value: impl Fn([i64; 4]) -> Option<[V; 4]>,
) -> usize {
    let read = |cells| {
        let LoadedQuad { digits, unsigned, minus } = loaded_quad(cells)?;
        if !is_zero(_mm256_or_si256(non_digits(digits), zero(unsigned))) {
            return None;
        }
        let numbers = numbers8(digits);
        // Negation: invert the bits and add one.
        let negative = _mm256_xor_si256(zero(minus), _mm256_set1_epi64x(-1));
        let numbers = _mm256_sub_epi64(_mm256_xor_si256(numbers, negative), negative);
        let mut four = [0; 4];
        // SAFETY: 32 bytes are writable; the store needs no alignment.
        unsafe { _mm256_storeu_si256(four.as_mut_ptr().cast(), numbers) };
        value(four)
    };
    fill(cells, out, read)
}

/// The upper half of each power of ten's bits as a float; the lower half is zero.
static POWERS8: [i32; 8] = {
    let mut all = [0; 8];
    let (mut at, mut power) = (0, 1.0f64);
    while at < all.len() {
        all[at] = (power.to_bits() >> 32) as i32;
        power *= 10.0;
        at += 1;
    }
    all
};

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn quotients<'a, V>(
    cells: impl Iterator<Item = CellQuad<'a>>,
    mark: u8,
    out: &mut [[V; 4]],
    value: impl Fn([f64; 4]) -> Option<[V; 4]>,
) -> usize {
    let ones = _mm256_set1_epi8(1);
    let mark = _mm256_set1_epi8(mark.wrapping_sub(b'0') as i8);
    // The bits of a float whose unit in the last place is one.
    let magic = _mm256_set1_epi64x(0x4330_0000_0000_0000);
    // SAFETY: 32 bytes are readable; the load needs no alignment.
    let powers = unsafe { _mm256_loadu_si256(POWERS8.as_ptr().cast()) };
    let read = |cells| {
        let LoadedQuad { digits, unsigned, minus } = loaded_quad(cells)?;
        let marks = _mm256_cmpeq_epi8(digits, mark);
        let bits = _mm256_and_si256(marks, ones);
        let below = _mm256_sub_epi64(bits, _mm256_set1_epi64x(1));
        let strange = _mm256_andnot_si256(marks, non_digits(digits));
        let second = _mm256_and_si256(bits, below);
        let empty = zero(_mm256_andnot_si256(marks, unsigned));
        if !is_zero(_mm256_or_si256(_mm256_or_si256(strange, second), empty)) {
            return None;
        }
        // Bytes before the mark move up by one; without a mark all bytes are before it.
        let before = _mm256_andnot_si256(bits, below);
        let rest = _mm256_or_si256(before, marks);
        let by = _mm256_andnot_si256(zero(bits), _mm256_set1_epi64x(8));
        let moved = _mm256_sllv_epi64(_mm256_and_si256(digits, before), by);
        let numbers = numbers8(_mm256_or_si256(moved, _mm256_andnot_si256(rest, digits)));
        let numbers = _mm256_castsi256_pd(_mm256_or_si256(numbers, magic));
        let numbers = _mm256_sub_pd(numbers, _mm256_castsi256_pd(magic));
        let places = _mm256_sad_epu8(_mm256_andnot_si256(rest, ones), _mm256_setzero_si256());
        let powers = _mm256_slli_epi64::<32>(_mm256_permutevar8x32_epi32(powers, places));
        let quotients = _mm256_div_pd(numbers, _mm256_castsi256_pd(powers));
        let sign = _mm256_andnot_si256(zero(minus), _mm256_set1_epi64x(i64::MIN));
        let quotients = _mm256_or_pd(quotients, _mm256_castsi256_pd(sign));
        let mut four = [0.0; 4];
        // SAFETY: 32 bytes are writable; the store needs no alignment.
        unsafe { _mm256_storeu_pd(four.as_mut_ptr(), quotients) };
        value(four)
    };
    fill(cells, out, read)
}
