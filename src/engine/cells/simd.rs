//! The digits of a cell sixteen at a time, without a branch by how many there are or where the mark stands; by the
//! instructions that processors with AVX2 have.
//!
//! Invariant: [`Avx2::detect`] looks for every feature of `#[target_feature]` below; every cell is read as
//! [`super::word`] does.

use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_loadu_si128, _mm_madd_epi16, _mm_maddubs_epi16,
    _mm_min_epu8, _mm_movemask_epi8, _mm_packus_epi32, _mm_set1_epi8, _mm_setr_epi8, _mm_setr_epi16, _mm_shuffle_epi8,
    _mm_sub_epi8,
};

use super::fault::CellFault;
use super::text::Cell;
use super::typed::{Cells, Fixed, Parser};
use super::word::{Digits, Point, Portable, Whole};
use crate::engine::avx2::Avx2;

impl Avx2 {
    pub(super) fn append<P: Parser>(self, column: &mut Fixed<P>, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        // SAFETY: `self` exists, so `detect` found every feature that `append` enables.
        unsafe { append(self, column, cells, faults) }
    }
}

impl Digits for Avx2 {
    #[inline(always)]
    fn whole(self, cell: Cell<'_>) -> Option<Whole> {
        // SAFETY: `self` exists, so `detect` found every feature that `whole` enables.
        unsafe { whole(cell) }
    }

    #[inline(always)]
    fn point(self, cell: Cell<'_>, mark: u8) -> Option<Point> {
        // SAFETY: `self` exists, so `detect` found every feature that `point` enables.
        unsafe { point(cell, mark) }
    }
}

/// The whole loop with the features on, so that nothing in it is a call.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn append<P: Parser>(avx2: Avx2, column: &mut Fixed<P>, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
    column.append_by(avx2, cells, faults);
}

/// What takes the mark out, by how many bytes follow it: those before it move up by one, and a zero comes first. At 16:
/// nothing.
static CLOSED: [[u8; 16]; 17] = {
    let mut all = [[0; 16]; 17];
    let mut places = 0;
    while places <= 16 {
        let mut at = 0usize;
        while at < 16 {
            let from = if places == 16 || at + places > 15 { at } else { at.wrapping_sub(1) };
            // One with its high bit set gives a zero.
            all[places][at] = from as u8;
            at += 1;
        }
        places += 1;
    }
    all
};

/// By how many: the last so many bytes.
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
struct Loaded {
    /// Right-aligned after zeros, and each less `0`.
    digits: __m128i,
    /// Which of them are none.
    odd: u32,
    /// How many bytes follow the sign.
    length: usize,
    negative: bool,
}

/// `None` of other cells, and without text before it to read along.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn loaded(cell: Cell<'_>) -> Option<Loaded> {
    let window: &[u8; 16] = cell.text[cell.end.checked_sub(16)?..cell.end].first_chunk()?;
    let length = cell.len();
    if !(1..=16).contains(&length) {
        return None;
    }
    let negative = window[16 - length] == b'-';
    let length = length - usize::from(negative);
    let digits = _mm_and_si128(_mm_sub_epi8(load(window), _mm_set1_epi8(b'0' as i8)), load(&LAST[length]));
    let ten = _mm_set1_epi8(10);
    let odd = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(digits, ten), ten));
    Some(Loaded { digits, odd: odd as u32, length, negative })
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are readable; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// The number that sixteen digits make: of pairs, of fours, of eights, of all.
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
fn whole(cell: Cell<'_>) -> Option<Whole> {
    let Some(Loaded { digits, odd, length, negative }) = loaded(cell) else {
        return whole_portable(cell.text, cell.start, cell.end);
    };
    if odd == 0 && length > 0 { Some(Whole { negative, digits: number16(digits) }) } else { None }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn point(cell: Cell<'_>, mark: u8) -> Option<Point> {
    let Some(Loaded { digits, odd, length, negative }) = loaded(cell) else {
        return point_portable(cell.text, cell.start, cell.end, mark);
    };
    let marks = _mm_cmpeq_epi8(digits, _mm_set1_epi8(mark.wrapping_sub(b'0') as i8));
    let marks = _mm_movemask_epi8(marks) as u32;
    let is_number = odd == marks && marks & marks.wrapping_sub(1) == 0 && length > marks.count_ones() as usize;
    if !is_number {
        return None;
    }
    let places = marks.leading_zeros() - 16;
    let closed = _mm_shuffle_epi8(digits, load(&CLOSED[places as usize]));
    Some(Point { negative, digits: number16(closed), places: places % 16 })
}

// By their parts, lest the loop keeps the cell in memory for them.
#[cold]
#[inline(never)]
fn whole_portable(text: &[u8], start: usize, end: usize) -> Option<Whole> {
    Portable.whole(Cell { text, start, end })
}

#[cold]
#[inline(never)]
fn point_portable(text: &[u8], start: usize, end: usize, mark: u8) -> Option<Point> {
    Portable.point(Cell { text, start, end }, mark)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether the cell, with text before it and without, is read alike.
    fn check(before: &[u8], cell: &[u8]) {
        let Some(avx2) = Avx2::detect() else { return };
        let text = [before, cell].concat();
        for cell in [Cell { text: &text, start: before.len(), end: text.len() }, Cell::new(cell)] {
            let (bytes, text) = (cell.bytes().escape_ascii(), text.escape_ascii());
            assert_eq!(avx2.whole(cell), Portable.whole(cell), "`{bytes}` in `{text}`");
            for mark in [b'.', b','] {
                assert_eq!(avx2.point(cell, mark), Portable.point(cell, mark), "`{bytes}` in `{text}`");
            }
        }
    }

    #[test]
    fn every_byte_at_every_place_is_read_as_without_the_instructions() {
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn any_cell_is_read_as_without_the_instructions(
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
    }
}
