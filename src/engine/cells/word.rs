//! Digits eight at a time, in plain integer arithmetic on words that hold a cell's bytes.

use super::text::Cell;

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
const ZEROS_16: u128 = u128::from_le_bytes([b'0'; 16]);

/// The cell's bytes (1 to 8), right-aligned and filled with `0` digits in front, as a little-endian word.
#[inline(always)]
pub(super) fn word8(cell: Cell<'_>) -> u64 {
    let len = cell.len();
    debug_assert!((1..=8).contains(&len));
    if let Some(bytes) = cell.end.checked_sub(8).and_then(|from| cell.text[from..cell.end].first_chunk()) {
        let keep = u64::MAX << (8 * (8 - len));
        return u64::from_le_bytes(*bytes) & keep | ZEROS & !keep;
    }
    let mut bytes = [b'0'; 8];
    bytes[8 - len..].copy_from_slice(cell.bytes());
    u64::from_le_bytes(bytes)
}

/// As [`word8`] for 1 to 16 bytes.
#[inline(always)]
pub(super) fn word16(cell: Cell<'_>) -> u128 {
    let len = cell.len();
    debug_assert!((1..=16).contains(&len));
    if let Some(bytes) = cell.end.checked_sub(16).and_then(|from| cell.text[from..cell.end].first_chunk()) {
        let keep = u128::MAX << (8 * (16 - len));
        return u128::from_le_bytes(*bytes) & keep | ZEROS_16 & !keep;
    }
    let mut bytes = [b'0'; 16];
    bytes[16 - len..].copy_from_slice(cell.bytes());
    u128::from_le_bytes(bytes)
}

#[inline(always)]
pub(super) fn all_digits8(word: u64) -> bool {
    let high = 0xF0F0_F0F0_F0F0_F0F0;
    (word & high) | ((word.wrapping_add(0x0606_0606_0606_0606) & high) >> 4) == 0x3333_3333_3333_3333
}

/// The number that eight digits make.
#[inline(always)]
pub(super) fn value8(word: u64) -> u64 {
    let digits = word.wrapping_sub(ZEROS);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let mask = 0x0000_00FF_0000_00FF;
    let upper = (pairs & mask).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & mask).wrapping_mul(1 + (10_000 << 32));
    upper.wrapping_add(lower) >> 32
}

/// The number that sixteen digits make; `None` if any byte is no digit.
#[inline(always)]
pub(super) fn value16(word: u128) -> Option<u64> {
    let (high, low) = (word as u64, (word >> 64) as u64);
    (all_digits8(high) & all_digits8(low)).then(|| value8(high) * 100_000_000 + value8(low))
}

/// Reads up to 16 bytes of digits with at most one `mark` among them: the digits as one number, and how many of them
/// stand after the mark. `None` for anything else, including a cell without digits.
#[inline(always)]
pub(super) fn point16(cell: Cell<'_>, mark: u8) -> Option<(u64, u32)> {
    match cell.len() {
        1..=8 => point_in8(word8(cell), mark, cell.len()),
        9..=16 => point_in16(word16(cell), mark),
        _ => None,
    }
}

#[inline(always)]
fn point_in8(word: u64, mark: u8, len: usize) -> Option<(u64, u32)> {
    let ones = u64::from_le_bytes([1; 8]);
    let other = word ^ (ones * u64::from(mark));
    let hits = other.wrapping_sub(ones) & !other & (ones << 7);
    if hits == 0 {
        return all_digits8(word).then(|| (value8(word), 0));
    }
    if len == 1 {
        return None;
    }
    // Close the gap: the bytes before the mark move up by one.
    let at = hits.trailing_zeros() & !7;
    let before = (1 << at) - 1;
    let closed = (word & !before & !(0xFF << at)) | (word & before) << 8 | u64::from(b'0');
    all_digits8(closed).then(|| (value8(closed), 7 - at / 8))
}

/// As [`point_in8`], for more than one byte.
#[inline(always)]
fn point_in16(word: u128, mark: u8) -> Option<(u64, u32)> {
    let ones = u128::from_le_bytes([1; 16]);
    let other = word ^ (ones * u128::from(mark));
    let hits = other.wrapping_sub(ones) & !other & (ones << 7);
    if hits == 0 {
        return value16(word).map(|value| (value, 0));
    }
    let at = hits.trailing_zeros() & !7;
    let before = (1u128 << at) - 1;
    let closed = (word & !before & !(0xFF << at)) | (word & before) << 8 | u128::from(b'0');
    value16(closed).map(|value| (value, 15 - at / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_from_the_text_before_a_cell_and_without_it() {
        for text in ["7", "42", "12345678", "00000001"] {
            let padded = format!("zzzzzzzzzzzzzzzzz{text}");
            let inside = Cell { text: padded.as_bytes(), start: 17, end: padded.len() };
            for cell in [inside, Cell::new(text.as_bytes())] {
                assert!(all_digits8(word8(cell)), "{text}");
                assert_eq!(value8(word8(cell)), text.parse::<u64>().unwrap());
                assert_eq!(value16(word16(cell)), text.parse().ok());
            }
        }
    }

    #[test]
    fn every_byte_but_a_digit_is_refused_at_every_place() {
        for at in 0..8 {
            for byte in 0..=255u8 {
                let mut bytes = *b"12345678";
                bytes[at] = byte;
                assert_eq!(all_digits8(u64::from_le_bytes(bytes)), byte.is_ascii_digit(), "{byte} at {at}");
            }
        }
    }

    #[test]
    fn one_mark_is_taken_wherever_it_stands() {
        let read = |text: &str| point16(Cell::new(text.as_bytes()), b'.');
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
