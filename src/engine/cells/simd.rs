//! Reads the digits of a cell sixteen at a time, or of four short cells eight each, with AVX2, without branches on
//! their number or the position of the mark.
//!
//! Invariant: [`Avx2::detect`] checks every feature of `#[target_feature]` below; every cell is read as in
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
use super::text::Cell;
use super::typed::{Cells, FixedColumn, Parser};
use super::word::{CellQuad, Digits, Point, PortableDigits, QUAD_CELL_BYTES_MAX, WholeNumber};
use crate::engine::avx2::Avx2;

impl Avx2 {
    pub(super) fn append<P: Parser>(self, column: &mut FixedColumn<P>, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        // SAFETY: `self` exists, so `detect` found every feature that `append` enables.
        unsafe { append(self, column, cells, faults) }
    }
}

impl Digits for Avx2 {
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
fn append<P: Parser>(avx2: Avx2, column: &mut FixedColumn<P>, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
    column.append_by(avx2, cells, faults);
}

/// Shuffles that remove the mark, by the number of bytes after it: the bytes before it move up by one, after a zero. At
/// 16: identity.
static CLOSED: [[u8; 16]; 17] = {
    let mut all = [[0; 16]; 17];
    let mut places = 0;
    while places <= 16 {
        let mut at = 0usize;
        while at < 16 {
            let from = if places == 16 || at + places > 15 { at } else { at.wrapping_sub(1) };
            // An index with its high bit set yields zero.
            all[places][at] = from as u8;
            at += 1;
        }
        places += 1;
    }
    all
};

/// Masks of the last bytes, by their number.
static LAST: [[u8; 16]; 17] = {
    let mut all = [[0; 16]; 17];
    let mut count = 1;
    while count <= 16 {
        all[count] = all[count - 1];
        all[count][16 - count] = u8::MAX;
        count += 1;
    }
    all
};

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

/// Masks of the last bytes, by their number.
static LAST8: [i64; QUAD_CELL_BYTES_MAX + 1] = {
    let mut all = [0; QUAD_CELL_BYTES_MAX + 1];
    let mut count = 1;
    while count <= QUAD_CELL_BYTES_MAX {
        all[count] = i64::MIN >> (8 * count - 1);
        count += 1;
    }
    all
};

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

/// Writes values until `read` fails; returns their number.
#[inline(always)]
fn fill<'a, V>(
    cells: impl Iterator<Item = CellQuad<'a>>,
    out: &mut [[V; 4]],
    mut read: impl FnMut(CellQuad<'a>) -> Option<[V; 4]>,
) -> usize {
    let mut done = 0;
    for (cells, out) in cells.zip(out) {
        let Some(values) = read(cells) else { break };
        *out = values;
        done += 1;
    }
    done
}

// As separate arguments, so that the loop keeps the cell in registers.
#[cold]
#[inline(never)]
fn whole_portable(text: &[u8], start: usize, end: usize) -> Option<WholeNumber> {
    PortableDigits.whole(Cell { text, start, end })
}

#[cold]
#[inline(never)]
fn point_portable(text: &[u8], start: usize, end: usize, mark: u8) -> Option<Point> {
    PortableDigits.point(Cell { text, start, end }, mark)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks that the cell is read alike with and without text before it.
    fn check(before: &[u8], cell: &[u8]) {
        let Some(avx2) = Avx2::detect() else { return };
        let text = [before, cell].concat();
        for cell in [Cell { text: &text, start: before.len(), end: text.len() }, Cell::new(cell)] {
            let (bytes, text) = (cell.bytes().escape_ascii(), text.escape_ascii());
            assert_eq!(avx2.whole(cell), PortableDigits.whole(cell), "`{bytes}` in `{text}`");
            for mark in [b'.', b','] {
                assert_eq!(avx2.point(cell, mark), PortableDigits.point(cell, mark), "`{bytes}` in `{text}`");
            }
        }
    }

    #[test]
    fn simd_reads_every_byte_at_every_position_like_portable_code() {
        for length in 0..=17 {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut cell = b"98765432109876543"[..length].to_vec();
                    cell[at] = byte;
                    check(b"1,.;9/:\xff12345,6.", &cell);
                    check(b"12", &cell);
                }
            }
        }
    }

    fn check_quad(before: &str, cells: [String; 4]) {
        let Some(avx2) = Avx2::detect() else { return };
        let text = [before, &cells.concat()].concat();
        let mut end = before.len();
        let ends = cells.each_ref().map(|cell| {
            end += cell.len();
            end
        });
        let four = CellQuad { text: text.as_bytes(), ends, lengths: cells.each_ref().map(String::len) };
        let cells = cells.each_ref().map(|cell| Cell::new(cell.as_bytes()));
        let read = ends[0] >= QUAD_CELL_BYTES_MAX;
        let signed = |WholeNumber { negative, digits }| if negative { -(digits as i64) } else { digits as i64 };
        let expected: Option<Vec<i64>> = cells.iter().map(|cell| PortableDigits.whole(*cell).map(signed)).collect();
        let mut out = [[0; 4]];
        let done = avx2.whole_numbers([four].into_iter(), &mut out, Some);
        assert_eq!((done == 1).then(|| out[0].to_vec()), expected.filter(|_| read), "{four:?}");
        for mark in [b'.', b','] {
            let quotient = |cell| {
                let Point { negative, digits, places } = PortableDigits.point(cell, mark)?;
                let value = digits as f64 / 10f64.powi(places as i32);
                Some(if negative { -value } else { value }.to_bits())
            };
            let expected: Option<Vec<u64>> = cells.iter().map(|cell| quotient(*cell)).collect();
            let mut out = [[0.0; 4]];
            let done = avx2.quotients([four].into_iter(), mark, &mut out, Some);
            let found = (done == 1).then(|| out[0].map(f64::to_bits).to_vec());
            assert_eq!(found, expected.filter(|_| read), "{four:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn simd_reads_any_cell_like_portable_code(
            before in prop::collection::vec(any::<u8>(), 0..20),
            cell in prop_oneof![
                "-?[0-9]{0,18}".prop_map(String::into_bytes),
                "-?[0-9]{0,9}[.,]?[0-9]{0,9}".prop_map(String::into_bytes),
                "[-0-9.,]{0,18}".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..18),
            ],
        ) {
            check(&before, &cell);
        }

        #[test]
        fn simd_reads_four_cells_like_portable_code(
            before in "[ -9]{0,9}",
            cells in prop_oneof![
                prop::array::uniform4("-[0-9]{1,7}|[0-9]{1,8}"),
                prop::array::uniform4("-?[0-9]{1,4}\\.?[0-9]{0,2}"),
                prop::array::uniform4("-?[0-9]{1,2}\\.[0-9]{0,4}"),
                prop::array::uniform4("[0-9]{0,4},[0-9]{1,3}"),
                prop::array::uniform4("[-0-9.,]{1,8}"),
                prop::array::uniform4("[0-9]{0,6}[\\x00-\\x7f][0-9]{0,1}"),
            ],
        ) {
            check_quad(&before, cells);
        }
    }
}
