//! `DELTA_BINARY_PACKED`: bit-packed differences of consecutive integers.

use super::bits::{LANES, pack, put_varint, put_zigzag, width_of};

const BLOCK_VALUES: usize = 128;
const MINIBLOCK_VALUES: usize = LANES;
const MINIBLOCKS: usize = BLOCK_VALUES / MINIBLOCK_VALUES;

/// An integer with wrapping differences.
pub(super) trait Delta: Copy {
    /// The difference, sign-extended to 64 bits.
    fn minus(self, other: Self) -> i64;
    /// The difference between `delta` and `min`, both results of [`Delta::minus`].
    fn offset(delta: i64, min: i64) -> u64;
    fn wide(self) -> i64;
}

impl Delta for i32 {
    fn minus(self, other: Self) -> i64 {
        self.wrapping_sub(other).into()
    }

    fn offset(delta: i64, min: i64) -> u64 {
        u64::from((delta as i32).wrapping_sub(min as i32) as u32)
    }

    fn wide(self) -> i64 {
        self.into()
    }
}

impl Delta for i64 {
    fn minus(self, other: Self) -> i64 {
        self.wrapping_sub(other)
    }

    fn offset(delta: i64, min: i64) -> u64 {
        delta.wrapping_sub(min) as u64
    }

    fn wide(self) -> i64 {
        self
    }
}

/// Appends `values`, which may be empty.
pub(super) fn put_deltas<T: Delta>(values: &[T], out: &mut Vec<u8>) {
    put_varint(BLOCK_VALUES as u64, out);
    put_varint(MINIBLOCKS as u64, out);
    put_varint(values.len() as u64, out);
    put_zigzag(values.first().map_or(0, |first| first.wide()), out);
    let mut deltas = [0_i64; BLOCK_VALUES];
    let mut above = [0_u64; BLOCK_VALUES];
    let mut at = 1;
    while at < values.len() {
        let next = &values[at..values.len().min(at + BLOCK_VALUES)];
        let deltas = &mut deltas[..next.len()];
        for ((delta, value), before) in deltas.iter_mut().zip(next).zip(&values[at - 1..]) {
            *delta = value.minus(*before);
        }
        let min = deltas.iter().fold(i64::MAX, |min, &delta| min.min(delta));
        let above = &mut above[..next.len()];
        for (above, delta) in above.iter_mut().zip(deltas) {
            *above = T::offset(*delta, min);
        }
        put_zigzag(min, out);
        let widths = out.len();
        out.extend_from_slice(&[0; MINIBLOCKS]);
        for (nth, values) in above.chunks(MINIBLOCK_VALUES).enumerate() {
            let width = width_of(values.iter().fold(0, |all, value| all | value));
            out[widths + nth] = width as u8;
            pack(values, width, MINIBLOCK_VALUES, out);
        }
        at += BLOCK_VALUES;
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::take_varint;
    use super::*;

    fn zigzag(bytes: &mut &[u8]) -> i64 {
        let value = take_varint(bytes).unwrap();
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    /// A literal implementation of the format's specification.
    fn read(mut bytes: &[u8]) -> Vec<i64> {
        let bytes = &mut bytes;
        assert_eq!((take_varint(bytes), take_varint(bytes)), (Some(128), Some(4)));
        let count = take_varint(bytes).unwrap() as usize;
        let mut last = zigzag(bytes);
        let mut values = vec![last; count.min(1)];
        while values.len() < count {
            let min = zigzag(bytes);
            let widths: Vec<usize> = bytes[..4].iter().map(|&width| width.into()).collect();
            *bytes = &bytes[4..];
            for width in widths {
                if values.len() == count {
                    assert_eq!(width, 0);
                    continue;
                }
                for nth in 0..32 {
                    let bit = |at: usize| u64::from(bytes[at / 8] >> (at % 8) & 1);
                    let above: u64 = (0..width).map(|at| bit(nth * width + at) << at).sum();
                    last = last.wrapping_add(min).wrapping_add(above as i64);
                    if values.len() < count {
                        values.push(last);
                    }
                }
                *bytes = &bytes[width * 4..];
            }
        }
        assert!(bytes.is_empty());
        values
    }

    fn check(values: &[i64]) -> usize {
        let mut out = Vec::new();
        put_deltas(values, &mut out);
        assert_eq!(read(&out), values);
        let narrow: Vec<i32> = values.iter().map(|&value| value as i32).collect();
        let mut out_narrow = Vec::new();
        put_deltas(&narrow, &mut out_narrow);
        let back: Vec<i32> = read(&out_narrow).into_iter().map(|value| value as i32).collect();
        assert_eq!(back, narrow);
        out.len()
    }

    #[test]
    fn deltas_of_any_size_and_number_read_back() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 32
        };
        for count in [0, 1, 2, 31, 32, 33, 34, 64, 65, 127, 128, 129, 130, 257, 1_000] {
            for bits in [0, 1, 7, 31, 32, 33, 63] {
                let values: Vec<i64> = (0..count).map(|_| next() as i64 >> (63 - bits)).collect();
                check(&values);
            }
            let extremes = [i64::MIN, i64::MAX, 0, -1, i64::from(i32::MIN), i64::from(i32::MAX)];
            let values: Vec<i64> = (0..count).map(|_| extremes[next() as usize % extremes.len()]).collect();
            check(&values);
        }
    }

    #[test]
    fn constant_differences_take_almost_no_space() {
        assert!(check(&(0..10_000).map(|at| 1_000_000 * at).collect::<Vec<_>>()) < 800);
    }
}
