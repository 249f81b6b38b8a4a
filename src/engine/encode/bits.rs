//! Packs integers of a fixed number of bits, the lowest bit first, as in Parquet.

/// Values packed at a time. At any width they fill a whole number of 4-byte words.
pub(super) const LANES: usize = 32;

/// Bits needed by `largest`.
pub(super) fn width_of(largest: u64) -> usize {
    (u64::BITS - largest.leading_zeros()) as usize
}

/// Appends `values`, each of at most `width` bits, padded with zeros to a multiple of `multiple_of`, a divisor of
/// [`LANES`] that fills whole bytes.
pub(super) fn pack<T: Copy + Default + Into<u64>>(values: &[T], width: usize, multiple_of: usize, out: &mut Vec<u8>) {
    debug_assert!(multiple_of.is_multiple_of(8) && LANES.is_multiple_of(multiple_of));
    if width == 0 {
        return;
    }
    let pack = packer(width);
    let (whole, rest) = values.as_chunks::<LANES>();
    let start = out.len();
    out.resize(start + whole.len() * width * LANES / 8, 0);
    pack(whole, &mut out[start..]);
    if !rest.is_empty() {
        let mut lanes = [T::default(); LANES];
        lanes[..rest.len()].copy_from_slice(rest);
        let start = out.len();
        out.resize(start + width * LANES / 8, 0);
        pack(&[lanes], &mut out[start..]);
        out.truncate(start + rest.len().next_multiple_of(multiple_of) * width / 8);
    }
}

/// Packs each of `lanes` into `WIDTH` 4-byte words. The width is a constant, so all shifts and words are too.
fn pack_lanes<T: Copy + Into<u64>, const WIDTH: usize>(lanes: &[[T; LANES]], out: &mut [u8]) {
    for (lanes, out) in lanes.iter().zip(out.chunks_exact_mut(WIDTH * LANES / 8)) {
        let mut word = 0;
        macro_rules! each {
            ($($lane:literal)*) => { $(
                let value: u64 = lanes[$lane].into();
                let (at, shift) = ($lane * WIDTH / 64 * 8, $lane * WIDTH % 64);
                word |= value << shift;
                if shift + WIDTH >= 64 {
                    out[at..at + 8].copy_from_slice(&word.to_le_bytes());
                    word = if shift + WIDTH > 64 { value >> (64 - shift) } else { 0 };
                }
            )* };
        }
        each!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
        if WIDTH % 2 == 1 {
            out[WIDTH * 4 - 4..].copy_from_slice(&(word as u32).to_le_bytes());
        }
    }
}

type Packer<T> = fn(&[[T; LANES]], &mut [u8]);

fn packer<T: Copy + Into<u64>>(width: usize) -> Packer<T> {
    macro_rules! widths {
        ($($width:literal)*) => {
            match width {
                $($width => pack_lanes::<T, $width>,)*
                _ => pack_lanes::<T, 64>,
            }
        };
    }
    widths!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63)
}

/// Appends an unsigned LEB128 number.
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Like [`put_varint`], with the sign in the lowest bit.
pub(super) fn put_zigzag(value: i64, out: &mut Vec<u8>) {
    put_varint(((value << 1) ^ (value >> 63)) as u64, out);
}

/// Removes a number written by [`put_varint`]; `None` at the end.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 {
            return Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit.
    fn naive(values: &[u64], width: usize, multiple_of: usize) -> Vec<u8> {
        let mut out = vec![0; values.len().next_multiple_of(multiple_of) * width / 8];
        for (nth, value) in values.iter().enumerate() {
            for bit in 0..width {
                let at = nth * width + bit;
                out[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
            }
        }
        out
    }

    fn values(count: usize, width: usize) -> Vec<u64> {
        let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
        let mut state = width as u64 + 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state ^ state >> 29) & mask
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn packing_matches_bit_by_bit_reference() {
        for width in 0..=64 {
            for count in [0, 1, 7, 8, 9, 31, 32, 33, 40, 63, 64, 65, 127, 128, 1_000] {
                let values = values(count, width);
                for multiple_of in [8, 32] {
                    let mut out = vec![0xaa];
                    pack(&values, width, multiple_of, &mut out);
                    assert_eq!(out[1..], naive(&values, width, multiple_of), "{count} of {width} bits");
                }
                if width <= 32 {
                    let narrow: Vec<u32> = values.iter().map(|&value| value as u32).collect();
                    let mut out = Vec::new();
                    pack(&narrow, width, 8, &mut out);
                    assert_eq!(out, naive(&values, width, 8), "{count} of {width} bits from 4 bytes");
                }
            }
        }
    }

    #[test]
    fn width_is_the_position_of_the_highest_bit() {
        for (largest, width) in [(0, 0), (1, 1), (2, 2), (255, 8), (256, 9), (u64::MAX, 64)] {
            assert_eq!(width_of(largest), width, "{largest}");
        }
    }

    #[test]
    fn varints_have_seven_bits_per_byte() {
        let of = |value| {
            let mut out = Vec::new();
            put_varint(value, &mut out);
            out
        };
        assert_eq!(of(0), [0]);
        assert_eq!(of(127), [127]);
        assert_eq!(of(300), [0xac, 0x02]);
        assert_eq!(of(u64::MAX).len(), 10);
        let signed = |value| {
            let mut out = Vec::new();
            put_zigzag(value, &mut out);
            out
        };
        assert_eq!([signed(0), signed(-1), signed(1)], [[0], [1], [2]]);
        assert_eq!(signed(i64::MIN).len(), 10);
    }
}
