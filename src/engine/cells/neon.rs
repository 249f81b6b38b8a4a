//! Reads the digits of a cell sixteen at a time, or of four short cells eight each, with NEON, without branches on
//! their number or the position of the mark.
//!
//! Invariant: [`Simd::detect`] checks the feature of `#[target_feature]` below, which every build for arm64 has enabled;
//! every cell is read as in [`super::word`].

use std::arch::aarch64::{
    float64x2_t, int64x2_t, uint8x16_t, uint64x2_t, vandq_u8, vbicq_u8, vceqq_u8, vceqzq_u64, vcgtq_u8, vcombine_u8,
    vcombine_u64, vcreate_u8, vcreate_u64, vcvtq_f64_u64, vdivq_f64, vdupq_n_u8, vdupq_n_u16, vdupq_n_u32, vdupq_n_u64,
    veorq_u64, vget_lane_u64, vgetq_lane_u64, vld1q_u8, vmaxvq_u8, vmaxvq_u32, vmulq_u8, vmulq_u16, vmulq_u32,
    vorrq_u8, vorrq_u64, vpaddlq_u8, vpaddlq_u16, vpaddlq_u32, vqtbl1q_u8, vreinterpret_u64_u8, vreinterpretq_f64_u64,
    vreinterpretq_s64_u64, vreinterpretq_u8_u16, vreinterpretq_u8_u64, vreinterpretq_u16_u8, vreinterpretq_u16_u32,
    vreinterpretq_u32_u8, vreinterpretq_u32_u64, vreinterpretq_u64_f64, vreinterpretq_u64_u8, vshlq_n_u64, vshlq_u64,
    vshrn_n_u16, vst1q_f64, vst1q_s64, vsubq_u8, vsubq_u64,
};

use super::fault::CellFault;
use super::simd::{CLOSED, LAST, LAST8, fill, point_portable, whole_portable};
use super::text::Cell;
use super::typed::{Cells, FixedColumn, Parser};
use super::word::{CellQuad, Digits, Point, QUAD_CELL_BYTES_MAX, WholeNumber};
use crate::engine::simd::Simd;

impl Simd {
    pub(super) fn append<P: Parser>(self, column: &mut FixedColumn<P>, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        column.append_by(self, cells, faults);
    }
}

impl Digits for Simd {
    #[inline(always)]
    fn whole(self, cell: Cell<'_>) -> Option<WholeNumber> {
        // SAFETY: `self` exists, so `detect` found the feature that `whole` enables.
        unsafe { whole(cell) }
    }

    #[inline(always)]
    fn point(self, cell: Cell<'_>, mark: u8) -> Option<Point> {
        // SAFETY: `self` exists, so `detect` found the feature that `point` enables.
        unsafe { point(cell, mark) }
    }

    #[inline(always)]
    fn whole_numbers<'a, V>(
        self,
        cells: impl Iterator<Item = CellQuad<'a>>,
        out: &mut [[V; 4]],
        value: impl Fn([i64; 4]) -> Option<[V; 4]>,
    ) -> usize {
        // SAFETY: `self` exists, so `detect` found the feature that `whole_numbers` enables.
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
        // SAFETY: `self` exists, so `detect` found the feature that `quotients` enables.
        unsafe { quotients(cells, mark, out, value) }
    }
}

/// A cell of 1 to 16 bytes.
struct LoadedCell {
    /// Right-aligned after zeros, minus `0`.
    digits: uint8x16_t,
    /// Bytes after the sign.
    length: usize,
    negative: bool,
}

/// `None` for other cells, and if no text precedes the cell.
#[inline]
#[target_feature(enable = "neon")]
fn loaded(cell: Cell<'_>) -> Option<LoadedCell> {
    let window: &[u8; 16] = cell.text[cell.end.checked_sub(16)?..cell.end].first_chunk()?;
    let length = cell.len();
    if !(1..=16).contains(&length) {
        return None;
    }
    let negative = window[16 - length] == b'-';
    let length = length - usize::from(negative);
    let digits = vandq_u8(vsubq_u8(load(window), vdupq_n_u8(b'0')), load(&LAST[length]));
    Some(LoadedCell { digits, length, negative })
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: 16 bytes are readable; the load needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Combines eight digits each to numbers: pairs, fours, eights.
#[inline]
#[target_feature(enable = "neon")]
fn numbers8(digits: uint8x16_t) -> uint64x2_t {
    let tens = vreinterpretq_u8_u16(vdupq_n_u16(10 | 1 << 8));
    let pairs = vpaddlq_u8(vmulq_u8(digits, tens));
    let fours = vpaddlq_u16(vmulq_u16(pairs, vreinterpretq_u16_u32(vdupq_n_u32(100 | 1 << 16))));
    vpaddlq_u32(vmulq_u32(fours, vreinterpretq_u32_u64(vdupq_n_u64(10_000 | 1 << 32))))
}

/// Combines sixteen digits to a number.
#[inline]
#[target_feature(enable = "neon")]
fn number16(digits: uint8x16_t) -> u64 {
    let eights = numbers8(digits);
    vgetq_lane_u64::<0>(eights) * 100_000_000 + vgetq_lane_u64::<1>(eights)
}

/// Four bits for each byte of a mask.
#[inline]
#[target_feature(enable = "neon")]
fn nibbles(mask: uint8x16_t) -> u64 {
    vget_lane_u64::<0>(vreinterpret_u64_u8(vshrn_n_u16::<4>(vreinterpretq_u16_u8(mask))))
}

#[inline]
#[target_feature(enable = "neon")]
fn whole(cell: Cell<'_>) -> Option<WholeNumber> {
    let Some(LoadedCell { digits, length, negative }) = loaded(cell) else {
        return whole_portable(cell.text, cell.start, cell.end);
    };
    if vmaxvq_u8(digits) < 10 && length > 0 { Some(WholeNumber { negative, digits: number16(digits) }) } else { None }
}

#[inline]
#[target_feature(enable = "neon")]
fn point(cell: Cell<'_>, mark: u8) -> Option<Point> {
    let Some(LoadedCell { digits, length, negative }) = loaded(cell) else {
        return point_portable(cell.text, cell.start, cell.end, mark);
    };
    let marks = nibbles(vceqq_u8(digits, vdupq_n_u8(mark.wrapping_sub(b'0'))));
    let strange = nibbles(vcgtq_u8(digits, vdupq_n_u8(9)));
    // One bit for each mark.
    let bits = marks & 0x1111_1111_1111_1111;
    let is_number = strange == marks && bits & bits.wrapping_sub(1) == 0 && length > usize::from(bits != 0);
    if !is_number {
        return None;
    }
    let places = bits.leading_zeros() / 4;
    let closed = vqtbl1q_u8(digits, load(&CLOSED[places as usize]));
    Some(Point { negative, digits: number16(closed), places: places % 16 })
}

/// Two cells, eight bytes each.
struct LoadedPair {
    /// Right-aligned after zeros, minus `0`; zero for a sign.
    digits: uint8x16_t,
    /// All ones in bytes after the sign.
    unsigned: uint8x16_t,
    /// All ones in a minus sign.
    minus: uint8x16_t,
}

/// `None` if no text precedes the cells.
#[inline]
#[target_feature(enable = "neon")]
fn loaded_pair(text: &[u8], ends: [usize; 2], lengths: [usize; 2]) -> Option<LoadedPair> {
    let eight = |end: usize| {
        let bytes: &[u8] = text.get(end.wrapping_sub(QUAD_CELL_BYTES_MAX)..end)?;
        Some(vcreate_u8(u64::from_le_bytes(*bytes.as_array()?)))
    };
    let text = vcombine_u8(eight(ends[0])?, eight(ends[1])?);
    let last = vcombine_u64(vcreate_u64(LAST8[lengths[0]] as u64), vcreate_u64(LAST8[lengths[1]] as u64));
    let first = vreinterpretq_u8_u64(veorq_u64(last, vshlq_n_u64::<8>(last)));
    let last = vreinterpretq_u8_u64(last);
    let digits = vandq_u8(vsubq_u8(text, vdupq_n_u8(b'0')), last);
    let dashes = vceqq_u8(digits, vdupq_n_u8(b'-'.wrapping_sub(b'0')));
    let minus = vandq_u8(dashes, first);
    let unsigned = vbicq_u8(last, minus);
    Some(LoadedPair { digits: vandq_u8(digits, unsigned), unsigned, minus })
}

#[inline]
#[target_feature(enable = "neon")]
fn loaded_pairs(cells: CellQuad<'_>) -> Option<[LoadedPair; 2]> {
    let CellQuad { text, ends: [a, b, c, d], lengths: [k, l, m, n] } = cells;
    Some([loaded_pair(text, [a, b], [k, l])?, loaded_pair(text, [c, d], [m, n])?])
}

/// All ones in each lane that is zero.
#[inline]
#[target_feature(enable = "neon")]
fn zero(two: uint8x16_t) -> uint8x16_t {
    vreinterpretq_u8_u64(vceqzq_u64(vreinterpretq_u64_u8(two)))
}

#[inline]
#[target_feature(enable = "neon")]
fn is_zero(all: uint8x16_t) -> bool {
    vmaxvq_u32(vreinterpretq_u32_u8(all)) == 0
}

#[inline]
#[target_feature(enable = "neon")]
fn whole_numbers<'a, V>(
    cells: impl Iterator<Item = CellQuad<'a>>,
    out: &mut [[V; 4]],
    value: impl Fn([i64; 4]) -> Option<[V; 4]>,
) -> usize {
    let signed = |pair: &LoadedPair| -> int64x2_t {
        // Negation: invert the bits and add one.
        let negative = veorq_u64(vreinterpretq_u64_u8(zero(pair.minus)), vdupq_n_u64(u64::MAX));
        vreinterpretq_s64_u64(vsubq_u64(veorq_u64(numbers8(pair.digits), negative), negative))
    };
    let read = |cells| {
        let [a, b] = loaded_pairs(cells)?;
        let strange = |pair: &LoadedPair| vorrq_u8(vcgtq_u8(pair.digits, vdupq_n_u8(9)), zero(pair.unsigned));
        if !is_zero(vorrq_u8(strange(&a), strange(&b))) {
            return None;
        }
        let mut four = [0; 4];
        // SAFETY: 16 bytes are writable at the start, and after these; the stores need no alignment.
        unsafe {
            vst1q_s64(four.as_mut_ptr(), signed(&a));
            vst1q_s64(four.as_mut_ptr().add(2), signed(&b));
        }
        value(four)
    };
    fill(cells, out, read)
}

/// Powers of ten, by their exponents.
static POWERS: [f64; 8] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];

/// The marks of two cells, as masks of their bytes.
struct Marked {
    /// All ones in a byte where the cells are no numbers.
    strange: uint8x16_t,
    /// 1 in the mark.
    bits: uint8x16_t,
    /// All ones in the bytes before the mark; without a mark in all.
    before: uint8x16_t,
    marks: uint8x16_t,
}

#[inline]
#[target_feature(enable = "neon")]
fn marked(pair: &LoadedPair, mark: u8) -> Marked {
    let marks = vceqq_u8(pair.digits, vdupq_n_u8(mark));
    let bits = vandq_u8(marks, vdupq_n_u8(1));
    let below = vreinterpretq_u8_u64(vsubq_u64(vreinterpretq_u64_u8(bits), vdupq_n_u64(1)));
    let strange = vbicq_u8(vcgtq_u8(pair.digits, vdupq_n_u8(9)), marks);
    let second = vandq_u8(bits, below);
    let empty = zero(vbicq_u8(pair.unsigned, marks));
    Marked { strange: vorrq_u8(vorrq_u8(strange, second), empty), bits, before: vbicq_u8(below, bits), marks }
}

#[inline]
#[target_feature(enable = "neon")]
fn divided(pair: &LoadedPair, marked: &Marked) -> float64x2_t {
    // Bytes before the mark move up by one; without a mark all bytes are before it.
    let Marked { bits, before, marks, .. } = *marked;
    let rest = vorrq_u8(before, marks);
    let by = vreinterpretq_s64_u64(vreinterpretq_u64_u8(vbicq_u8(vreinterpretq_u8_u64(vdupq_n_u64(8)), zero(bits))));
    let moved = vreinterpretq_u8_u64(vshlq_u64(vreinterpretq_u64_u8(vandq_u8(pair.digits, before)), by));
    let numbers = vcvtq_f64_u64(numbers8(vorrq_u8(moved, vbicq_u8(pair.digits, rest))));
    let after = vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vbicq_u8(vdupq_n_u8(1), rest))));
    let power = |places: u64| POWERS[places as usize % POWERS.len()].to_bits();
    let powers =
        vcombine_u64(vcreate_u64(power(vgetq_lane_u64::<0>(after))), vcreate_u64(power(vgetq_lane_u64::<1>(after))));
    let quotients = vreinterpretq_u64_f64(vdivq_f64(numbers, vreinterpretq_f64_u64(powers)));
    let sign = vreinterpretq_u64_u8(vbicq_u8(vreinterpretq_u8_u64(vdupq_n_u64(1 << 63)), zero(pair.minus)));
    vreinterpretq_f64_u64(vorrq_u64(quotients, sign))
}

#[inline]
#[target_feature(enable = "neon")]
fn quotients<'a, V>(
    cells: impl Iterator<Item = CellQuad<'a>>,
    mark: u8,
    out: &mut [[V; 4]],
    value: impl Fn([f64; 4]) -> Option<[V; 4]>,
) -> usize {
    let mark = mark.wrapping_sub(b'0');
    let read = |cells| {
        let [a, b] = loaded_pairs(cells)?;
        let (of_a, of_b) = (marked(&a, mark), marked(&b, mark));
        if !is_zero(vorrq_u8(of_a.strange, of_b.strange)) {
            return None;
        }
        let mut four = [0.0; 4];
        // SAFETY: 16 bytes are writable at the start, and after these; the stores need no alignment.
        unsafe {
            vst1q_f64(four.as_mut_ptr(), divided(&a, &of_a));
            vst1q_f64(four.as_mut_ptr().add(2), divided(&b, &of_b));
        }
        value(four)
    };
    fill(cells, out, read)
}
