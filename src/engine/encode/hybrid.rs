//! Parquet's hybrid of run-length encoding (RLE) and bit-packing, used for dictionary codes and levels.
//!
//! Invariant: the bytes depend on the values alone.

use super::bits::{pack, put_varint};

/// Shorter runs are packed: the overhead of a run would exceed the saving.
const RUN_LENGTH_MIN: usize = 48;
/// A page with a shorter average run is packed as a whole; compression finds its runs.
const RUN_LENGTH_AVERAGE_MIN: usize = 12;

/// Appends `codes`, each of at most `width` bits.
pub(super) fn put_codes(codes: &[u32], width: usize, out: &mut Vec<u8>) {
    if codes.is_empty() {
        return;
    }
    let changes = codes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    if changes > 0 && codes.len() < (changes + 1) * RUN_LENGTH_AVERAGE_MIN {
        return put_packed(codes, width, out);
    }
    // Packed sections have a multiple of 8 values, so a run may begin some values late.
    let mut packed_from = 0;
    let mut at = 0;
    for run in codes.chunk_by(|a, b| a == b) {
        let end = at + run.len();
        let start = packed_from + (at - packed_from).next_multiple_of(8);
        if start < end && end - start >= RUN_LENGTH_MIN || packed_from == at && end == codes.len() {
            put_packed(&codes[packed_from..start], width, out);
            put_run(run[0], end - start, width, out);
            packed_from = end;
        }
        at = end;
    }
    put_packed(&codes[packed_from..], width, out);
}

/// Appends a run of `count` equal values.
pub(super) fn put_run(value: u32, count: usize, width: usize, out: &mut Vec<u8>) {
    put_varint((count as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8)]);
}

/// Appends the header of a packed section of `count` values.
pub(super) fn put_packed_head(count: usize, out: &mut Vec<u8>) {
    put_varint((count.div_ceil(8) as u64) << 1 | 1, out);
}

fn put_packed(codes: &[u32], width: usize, out: &mut Vec<u8>) {
    if !codes.is_empty() {
        put_packed_head(codes.len(), out);
        pack(codes, width, 8, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::take_varint;
    use super::*;

    /// A literal implementation of the format's specification.
    fn read(mut bytes: &[u8], width: usize, count: usize) -> Vec<u32> {
        let mut codes = Vec::new();
        while codes.len() < count {
            let head = take_varint(&mut bytes).unwrap();
            if head & 1 == 0 {
                let mut value = [0; 4];
                let (now, rest) = bytes.split_at(width.div_ceil(8));
                value[..now.len()].copy_from_slice(now);
                codes.extend(std::iter::repeat_n(u32::from_le_bytes(value), (head >> 1) as usize));
                bytes = rest;
            } else {
                let values = (head >> 1) as usize * 8;
                for nth in 0..values {
                    let bit = |bit: usize| u32::from(bytes[(nth * width + bit) / 8] >> ((nth * width + bit) % 8) & 1);
                    codes.push((0..width).map(|at| bit(at) << at).sum());
                }
                bytes = &bytes[values * width / 8..];
            }
        }
        assert!(bytes.is_empty());
        assert!(codes[count..].iter().all(|&code| code == 0), "only zeros are filled up with");
        codes.truncate(count);
        codes
    }

    fn check(codes: &[u32], width: usize) -> usize {
        let mut out = Vec::new();
        put_codes(codes, width, &mut out);
        assert_eq!(read(&out, width, codes.len()), codes, "{width} bits");
        out.len()
    }

    #[test]
    fn codes_with_any_runs_read_back() {
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for width in 1..=32 {
            for longest in [1, 3, 20, 100, 1_000] {
                for length in [0, 1, 8, 63, 64, 65, 5_000] {
                    let mut codes = Vec::new();
                    while codes.len() < length {
                        let code = next(1 << width) as u32;
                        codes.extend(std::iter::repeat_n(code, 1 + next(longest) as usize));
                    }
                    codes.truncate(length);
                    check(&codes, width);
                }
            }
        }
    }

    #[test]
    fn one_value_is_one_run() {
        assert_eq!(check(&[5; 20_480], 3), 4);
        assert_eq!(check(&[5], 3), 2);
    }

    #[test]
    fn long_runs_between_noise_are_encoded_as_runs() {
        let noise = (0..64).map(|at| at % 7);
        let codes: Vec<u32> = noise.clone().chain([9; 10_000]).chain(noise).chain([3; 10_000]).collect();
        assert!(check(&codes, 4) < 100);
    }

    #[test]
    fn noise_is_packed() {
        let codes: Vec<u32> = (0..1_000).map(|at| at * 7 % 16).collect();
        assert_eq!(check(&codes, 4), 2 + 500);
    }
}
