//! Tables and loops shared by the vector code for both processors.

use super::text::Cell;
use super::word::{CellQuad, Digits, Point, PortableDigits, QUAD_CELL_BYTES_MAX, WholeNumber};

/// Shuffles that remove the mark, by the number of bytes after it: the bytes before it move up by one, after a zero. At
/// 16: identity.
pub(super) static CLOSED: [[u8; 16]; 17] = {
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
pub(super) static LAST: [[u8; 16]; 17] = {
    let mut all = [[0; 16]; 17];
    let mut count = 1;
    while count <= 16 {
        all[count] = all[count - 1];
        all[count][16 - count] = u8::MAX;
        count += 1;
    }
    all
};

/// Masks of the last bytes, by their number.
pub(super) static LAST8: [i64; QUAD_CELL_BYTES_MAX + 1] = {
    let mut all = [0; QUAD_CELL_BYTES_MAX + 1];
    let mut count = 1;
    while count <= QUAD_CELL_BYTES_MAX {
        all[count] = i64::MIN >> (8 * count - 1);
        count += 1;
    }
    all
};

/// Writes values until `read` fails; returns their number.
#[inline(always)]
pub(super) fn fill<'a, V>(
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
pub(super) fn whole_portable(text: &[u8], start: usize, end: usize) -> Option<WholeNumber> {
    PortableDigits.whole(Cell { text, start, end })
}

#[cold]
#[inline(never)]
pub(super) fn point_portable(text: &[u8], start: usize, end: usize, mark: u8) -> Option<Point> {
    PortableDigits.point(Cell { text, start, end }, mark)
}
