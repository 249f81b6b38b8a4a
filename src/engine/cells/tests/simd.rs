//! The code with vector instructions reads every cell like the portable code.

use proptest::prelude::*;

use crate::engine::cells::text::Cell;
use crate::engine::cells::word::{CellQuad, Digits, Point, PortableDigits, QUAD_CELL_BYTES_MAX, WholeNumber};
use crate::engine::simd::Simd;

/// Checks that the cell is read alike with and without text before it.
fn check(before: &[u8], cell: &[u8]) {
    let Some(simd) = Simd::detect() else { return };
    let text = [before, cell].concat();
    for cell in [Cell { text: &text, start: before.len(), end: text.len() }, Cell::new(cell)] {
        let (bytes, text) = (cell.bytes().escape_ascii(), text.escape_ascii());
        assert_eq!(simd.whole(cell), PortableDigits.whole(cell), "`{bytes}` in `{text}`");
        for mark in [b'.', b','] {
            assert_eq!(simd.point(cell, mark), PortableDigits.point(cell, mark), "`{bytes}` in `{text}`");
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
    let Some(simd) = Simd::detect() else { return };
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
    let done = simd.whole_numbers([four].into_iter(), &mut out, Some);
    assert_eq!((done == 1).then(|| out[0].to_vec()), expected.filter(|_| read), "{four:?}");
    for mark in [b'.', b','] {
        let quotient = |cell| {
            let Point { negative, digits, places } = PortableDigits.point(cell, mark)?;
            let value = digits as f64 / 10f64.powi(places as i32);
            Some(if negative { -value } else { value }.to_bits())
        };
        let expected: Option<Vec<u64>> = cells.iter().map(|cell| quotient(*cell)).collect();
        let mut out = [[0.0; 4]];
        let done = simd.quotients([four].into_iter(), mark, &mut out, Some);
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
