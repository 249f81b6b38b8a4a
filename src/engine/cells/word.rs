//! Reads digits eight at a time, in integer arithmetic on words of a cell's bytes.

use super::text::Cell;

/// An optional minus sign, and digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WholeNumber {
    pub negative: bool,
    pub digits: u64,
}

/// An optional minus sign, and digits with at most one mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub negative: bool,
    /// As one number.
    pub digits: u64,
    /// Digits after the mark; less than 16.
    pub places: u32,
}

/// Reads cells of up to 16 bytes after the sign as numbers; `None` for anything else, including cells without digits.
pub(super) trait Digits: Copy {
    fn whole(self, cell: Cell<'_>) -> Option<WholeNumber>;

    /// `mark` is neither a digit nor a minus sign.
    fn point(self, cell: Cell<'_>, mark: u8) -> Option<Point>;

    /// Reads cells like [`Digits::whole`], four at a time, up to the first quad that fails; returns the number of quads.
    #[inline(always)]
    fn whole_numbers<'a, V>(
        self,
        _cells: impl Iterator<Item = CellQuad<'a>>,
        _out: &mut [[V; 4]],
        _value: impl Fn([i64; 4]) -> Option<[V; 4]>,
    ) -> usize {
        0
    }

    /// Like [`Digits::whole_numbers`], for [`Digits::point`] with the digits divided by ten for each place.
    #[inline(always)]
    fn quotients<'a, V>(
        self,
        _cells: impl Iterator<Item = CellQuad<'a>>,
        _mark: u8,
        _out: &mut [[V; 4]],
        _value: impl Fn([f64; 4]) -> Option<[V; 4]>,
    ) -> usize {
        0
    }
}

/// Four consecutive cells of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellQuad<'a> {
    pub text: &'a [u8],
    /// The end of each cell.
    pub ends: [usize; 4],
    /// The length of each cell, 1 to [`QUAD_CELL_BYTES_MAX`].
    pub lengths: [usize; 4],
}

/// The longest cells read four at a time, in bytes.
pub(super) const QUAD_CELL_BYTES_MAX: usize = 8;

/// Parses digits eight bytes at a time in 64-bit integers, on any processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct PortableDigits;

impl Digits for PortableDigits {
    #[inline(always)]
    fn whole(self, cell: Cell<'_>) -> Option<WholeNumber> {
        let (negative, unsigned) = unsigned(cell)?;
        Some(WholeNumber { negative, digits: whole16(unsigned)? })
    }

    #[inline(always)]
    fn point(self, cell: Cell<'_>, mark: u8) -> Option<Point> {
        let (negative, unsigned) = unsigned(cell)?;
        let (digits, places) = point16(unsigned, mark)?;
        Some(Point { negative, digits, places })
    }
}

/// Splits off a minus sign.
#[inline(always)]
fn unsigned(cell: Cell<'_>) -> Option<(bool, Cell<'_>)> {
    let negative = *cell.bytes().first()? == b'-';
    Some((negative, Cell { start: cell.start + usize::from(negative), ..cell }))
}

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
/// Added to each byte, sets the high bit of all values from ten.
const TO_HIGH: u64 = u64::from_le_bytes([0x80 - 10; 8]);
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);

/// The digits of a cell of 1 to 8 bytes, right-aligned, the first in the lowest byte; other bytes are ten or more.
#[inline(always)]
fn digits8(cell: Cell<'_>) -> u64 {
    debug_assert!((1..=8).contains(&cell.len()));
    let keep = u64::MAX << (64 - 8 * cell.len());
    match cell.end.checked_sub(8).and_then(|from| cell.text[from..cell.end].first_chunk()) {
        Some(bytes) => (u64::from_le_bytes(*bytes) ^ ZEROS) & keep,
        None => padded(cell)[1],
    }
}

/// Like [`digits8`] for 9 to 16 bytes, in two words.
#[inline(always)]
fn digits16(cell: Cell<'_>) -> [u64; 2] {
    debug_assert!((9..=16).contains(&cell.len()));
    match cell.end.checked_sub(16).and_then(|from| cell.text[from..cell.end].as_chunks::<8>().0.first_chunk()) {
        Some([first, last]) => {
            let keep = u64::MAX << (128 - 8 * cell.len());
            [(u64::from_le_bytes(*first) ^ ZEROS) & keep, u64::from_le_bytes(*last) ^ ZEROS]
        }
        None => padded(cell),
    }
}

/// The digits of a cell of up to 16 bytes without enough text before it.
#[cold]
fn padded(cell: Cell<'_>) -> [u64; 2] {
    let mut bytes = [b'0'; 16];
    bytes[16 - cell.len()..].copy_from_slice(cell.bytes());
    let word = u128::from_le_bytes(bytes);
    [word as u64 ^ ZEROS, (word >> 64) as u64 ^ ZEROS]
}

/// The high bit of each byte that is not a digit. Exact up to the first (lowest); after a byte from 0x80, a digit may
/// be marked too.
#[inline(always)]
fn non_digits(digits: u64) -> u64 {
    (digits.wrapping_add(TO_HIGH) | digits) & HIGH
}

/// Combines eight digits to a number.
#[inline(always)]
fn number8(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let mask = 0x0000_00FF_0000_00FF;
    let upper = (pairs & mask).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & mask).wrapping_mul(1 + (10_000 << 32));
    upper.wrapping_add(lower) >> 32
}

#[inline(always)]
fn number16([first, last]: [u64; 2]) -> u64 {
    number8(first) * 100_000_000 + number8(last)
}

/// The number in a cell of one to sixteen digits.
#[inline(always)]
fn whole16(cell: Cell<'_>) -> Option<u64> {
    match cell.len() {
        1..=8 => {
            let digits = digits8(cell);
            (non_digits(digits) == 0).then(|| number8(digits))
        }
        9..=16 => {
            let digits = digits16(cell);
            (non_digits(digits[0]) | non_digits(digits[1]) == 0).then(|| number16(digits))
        }
        _ => None,
    }
}

/// Whether the bytes are eight digits.
#[inline(always)]
pub(super) fn all_digits8(word: u64) -> bool {
    non_digits(word ^ ZEROS) == 0
}

/// Reads up to 16 bytes of digits with at most one `mark`: the digits as one number, and how many follow the mark.
#[inline(always)]
fn point16(cell: Cell<'_>, mark: u8) -> Option<(u64, u32)> {
    match cell.len() {
        1..=8 => {
            let digits = digits8(cell);
            match non_digits(digits) {
                0 => Some((number8(digits), 0)),
                non_digits if cell.len() > 1 => {
                    let (closed, places) = close(digits, non_digits, mark)?;
                    Some((number8(closed), places))
                }
                _ => None,
            }
        }
        9..=16 => {
            let [first, last] = digits16(cell);
            match (non_digits(first), non_digits(last)) {
                (0, 0) => Some((number16([first, last]), 0)),
                (0, non_digits) => {
                    let (closed, places) = close(last, non_digits, mark)?;
                    Some((number16([first << 8, closed | first >> 56]), places))
                }
                (non_digits, 0) => {
                    let (closed, places) = close(first, non_digits, mark)?;
                    Some((number16([closed, last]), places + 8))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Removes the only other byte from `digits`, if it is the mark: bytes before it move up by one, after a zero. Also
/// returns the number of digits after it.
#[inline(always)]
fn close(digits: u64, non_digits: u64, mark: u8) -> Option<(u64, u32)> {
    let at = non_digits.trailing_zeros() & 56;
    let is_mark = (digits >> at) as u8 == mark ^ b'0';
    if !is_mark || non_digits & (non_digits - 1) != 0 {
        return None;
    }
    let before = digits & ((1 << at) - 1);
    let after = digits & (u64::MAX << at) & !(0xFF << at);
    Some((after | before << 8, 7 - at / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the cell with and without text before it.
    fn both(text: &str, check: impl Fn(Cell<'_>)) {
        let padded = format!("zzzzzzzzzzzzzzzzz{text}");
        check(Cell { text: padded.as_bytes(), start: 17, end: padded.len() });
        check(Cell::new(text.as_bytes()));
    }

    #[test]
    fn integers_are_read_with_and_without_preceding_text() {
        for text in ["7", "42", "12345678", "00000001", "123456789", "1234567890123456", "0000000000000000"] {
            both(text, |cell| assert_eq!(whole16(cell), text.parse().ok(), "{text}"));
        }
        for bad in ["", "12345678901234567", "1.2", "12345678x", "x123456789", "-1"] {
            both(bad, |cell| assert_eq!(whole16(cell), None, "{bad}"));
        }
    }

    #[test]
    fn every_non_digit_is_refused_at_every_position() {
        for at in 0..16 {
            for byte in 0..=255u8 {
                let mut bytes = *b"1234567812345678";
                bytes[at] = byte;
                if let Some(eight) = bytes.first_chunk() {
                    let digits = eight.iter().all(u8::is_ascii_digit);
                    assert_eq!(all_digits8(u64::from_le_bytes(*eight)), digits, "{byte} at {at}");
                }
                let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse::<u64>().ok());
                let number = number.filter(|_| byte != b'+');
                assert_eq!(whole16(Cell::new(&bytes)), number, "{byte} at {at}");
                let expect = if byte == b',' {
                    let rest: String = bytes.iter().filter(|b| **b != b',').copied().map(char::from).collect();
                    Some((rest.parse().unwrap(), 15 - at as u32))
                } else {
                    number.map(|number| (number, 0))
                };
                assert_eq!(point16(Cell::new(&bytes), b','), expect, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn one_mark_is_accepted_at_any_position() {
        let read = |text: &str| {
            let padded = format!("1.1.1.1.1.1.1.1.1{text}");
            let inside = Cell { text: padded.as_bytes(), start: 17, end: padded.len() };
            let read = point16(Cell::new(text.as_bytes()), b'.');
            assert_eq!(point16(inside, b'.'), read, "{text}");
            read
        };
        assert_eq!(read("12.5"), Some((125, 1)));
        assert_eq!(read("125"), Some((125, 0)));
        assert_eq!(read("125."), Some((125, 0)));
        assert_eq!(read(".125"), Some((125, 3)));
        assert_eq!(read("1234567890.12345"), Some((123_456_789_012_345, 5)));
        assert_eq!(read(".123456789012345"), Some((123_456_789_012_345, 15)));
        assert_eq!(read("123456789012345."), Some((123_456_789_012_345, 0)));
        for bad in ["", ".", "..", "1.2.3", "1,2", "-1", "1.2x", "12345678901234567"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
